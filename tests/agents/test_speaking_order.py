"""Speakers chosen before each turn, by a model as AutoGen's teams choose them, or by a policy of one's own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from autogen_agentchat.teams import SelectorGroupChat

from parley.agents import ConfigError, Debate, NextSpeaker, Persona, PersonaAgent, by_model, model
from parley.agents.speaking_order import SELECTOR_PROMPT, Floor
from tests.agents.common import ADA, BEN, CY, SIM, TASK


async def test_a_model_chooses_as_in_a_selector_group_chat(server):
    asked, speakers = [], []
    for kind in ("ours", "stock"):
        server.asked.clear()
        server.says("Cy", "Cy and Ada", "Cy", "Ada", "Nobody.", "Ben.")
        agents = [PersonaAgent(persona, model(f"{SIM}?seed=1")) for persona in (ADA, BEN, CY)]
        if kind == "ours":
            team: Any = Debate(agents, rounds=1, order=by_model(server.client()))
        else:
            team = SelectorGroupChat([*agents], model_client=server.client(), max_turns=3)
        result = await team.run(task=TASK)
        speakers.append([message.source for message in result.messages])
        asked.append(json.dumps([request["messages"] for request in server.asked]))
        server._answers.clear()
    assert speakers == [["user", "Cy", "Ada", "Ben"]] * 2
    assert asked[0] == asked[1]


async def test_the_calls_of_the_choosing_model_are_recorded(server):
    server.says("Cy", "Ada", "Cy")
    debate = Debate([ADA, BEN, CY], model=SIM, rounds=1, order=by_model(server.client()), referee=Persona("Ref", "…"))
    transcript = await debate.converse(TASK)
    assert [turn.speaker for turn in transcript.spoken()] == ["Cy", "Ada", "Cy", "Ref"]
    told = [(turn.speaker, turn.text) for turn in transcript.turns if turn.role == "narrator"][1:]
    assert told == [("selector", name) for name in ("Cy", "Ada", "Cy")]
    assert transcript.usage()["selector"].calls == 3


async def test_a_model_that_names_nobody_and_the_debates_own_model(server):
    server.says("I cannot say.")
    debate = Debate([ADA, BEN, CY], model=SIM, rounds=1, order=by_model(server.client(), max_selector_attempts=2))
    assert [turn.speaker for turn in (await debate.converse(TASK)).spoken()] == ["Ada", "Ada", "Ada"]
    assert len(server.asked) == 6
    server._answers.clear()
    server.says("Ben")
    debate = Debate([ADA, BEN], model=server.client(), rounds=1, order=by_model(allow_repeated_speaker=True))
    assert [turn.speaker for turn in (await debate.converse(TASK)).spoken()] == ["Ben", "Ben"]


def test_the_prompt_is_autogens():
    agents = [PersonaAgent(persona, model(SIM)) for persona in (ADA, BEN)]
    assert SelectorGroupChat([*agents], model_client=model(SIM))._selector_prompt == SELECTOR_PROMPT


@dataclass
class Says(NextSpeaker):
    """A choice of one's own, which notes what it is made from."""

    name: str
    seen: list[list[tuple[str, str]]] = field(default_factory=list)

    async def choose(self, floor: Floor) -> str:
        self.seen.append([(type(message).__name__, message.source) for message in floor.messages])
        return self.name


async def test_a_blind_round_is_everyones():
    debate = Debate([ADA, BEN], model=SIM, rounds=2, blind_rounds=1, order=Says("Ben"))
    assert [turn.speaker for turn in (await debate.converse(TASK)).spoken()] == ["Ada", "Ben", "Ben", "Ben"]


async def test_a_choice_of_somebody_else():
    with pytest.raises(ConfigError, match="the speaking order names 'Zoe', who does not take part"):
        await Debate([ADA, BEN], model=SIM, order=Says("Zoe")).converse(TASK)


async def test_what_the_speakers_are_chosen_from_is_saved():
    says = Says("Ben")
    first, second = (Debate([ADA, BEN], model=SIM, rounds=1, order=says) for _ in range(2))
    await first.run(task=TASK)
    saved = json.loads(json.dumps(await first.save_state()))
    await second.run(task="Something else, which is forgotten.")
    await second.load_state(saved)
    says.seen.clear()
    on_same = await first.run(task="And trams?")
    on_loaded = await second.run(task="And trams?")
    assert [len(messages) for messages in says.seen] == [4, 5, 4, 5]
    assert says.seen[:2] == says.seen[2:]
    assert [m.source for m in on_same.messages] == [m.source for m in on_loaded.messages]
    del saved["speaking order"]  # as states were before
    await second.load_state(saved)
    says.seen.clear()
    await second.run(task="And trams?")
    assert [len(messages) for messages in says.seen] == [1, 2]
