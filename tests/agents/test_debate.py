"""A table of personas: who speaks when, who hears whom, when it ends, and who else may sit down."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from pydantic import BaseModel

from parley.agents import (
    ConfigError,
    Cue,
    Debate,
    Persona,
    PersonaAgent,
    ServerFault,
    Turn,
    Usage,
    load_personas,
    model,
    round_robin,
    scale,
    shuffled,
    simultaneous,
)

ADA = Persona("Ada", "You are Ada, an auditor.")
BEN = Persona("Ben", "You are Ben, a baker.")
CY = Persona("Cy", "You are Cy, a cyclist.")
RAY = Persona("Ray", "You are Ray, the referee.")
TASK = "Should buses be free?"
SIM = "sim/judge"


class Opinion(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]


def speakers(turns: Sequence[Turn]) -> list[str]:
    return [turn.speaker for turn in turns]


def heard(turn: Turn) -> list[str]:
    """Whose words stand in the prompt of a turn, in order; the persona itself is left out."""
    return [piece.source for piece in turn.calls[0].prompt if piece.role != "system"]


async def test_two_rounds_in_the_order_of_the_table() -> None:
    talk = await Debate([ADA, BEN], model=SIM, rounds=2).converse(TASK)
    assert speakers(talk.turns) == ["user", "Ada", "Ben", "Ada", "Ben"]
    assert [turn.role for turn in talk.turns] == ["narrator"] + ["debater"] * 4
    assert [turn.round for turn in talk.spoken()] == [1, 1, 2, 2]
    assert [turn.persona for turn in talk.spoken(round=1)] == [ADA.about, BEN.about]
    assert talk.stop_reason == "2 rounds completed"
    assert str(talk).startswith(f"[0] user: {TASK}\n\n[1] Ada: ")


async def test_everyone_hears_those_before_and_their_own_words() -> None:
    talk = await Debate([ADA, BEN], model=SIM, rounds=2).converse(TASK)
    first, second, third, fourth = talk.spoken()
    assert heard(first) == ["user"]
    assert heard(second) == ["user", "Ada"]
    assert heard(third) == ["user", "Ada", "Ben"]
    assert heard(fourth) == ["user", "Ada", "Ben", "Ada"]
    own = [(piece.role, piece.text) for piece in third.calls[0].prompt if piece.source == "Ada"]
    assert own == [("assistant", first.text)]
    assert third.calls[0].prompt[0] == ("system", "", ADA.about)


async def test_all_at_once_nobody_hears_the_others_of_the_round() -> None:
    talk = await Debate([ADA, BEN, CY], model=SIM, rounds=2, order=simultaneous).converse(TASK)
    assert speakers(talk.spoken()) == ["Ada", "Ben", "Cy"] * 2
    assert [heard(turn) for turn in talk.spoken(round=1)] == [["user"]] * 3
    assert sorted(heard(talk.spoken(round=2)[0])) == ["Ada", "Ben", "Cy", "user"]
    assert all(len(turn.calls) == 1 for turn in talk.spoken())


async def test_another_order_every_round_the_same_for_the_same_seed() -> None:
    async def order(seed: int) -> list[str]:
        return speakers(
            (await Debate([ADA, BEN, CY], model=SIM, rounds=6, order=shuffled(seed)).converse(TASK)).spoken()
        )

    names = await order(1)
    rounds = [tuple(names[at : at + 3]) for at in range(0, 18, 3)]
    assert all(sorted(one) == ["Ada", "Ben", "Cy"] for one in rounds)
    assert len(set(rounds)) > 1
    assert names == await order(1)
    assert names != await order(2)


async def test_an_order_of_ones_own() -> None:
    def ladies_last(round: int, names: Sequence[str]) -> Sequence[Sequence[str]]:
        return [[name] for name in reversed(names)] if round == 1 else [["Ben"]]

    talk = await Debate([ADA, BEN, CY], model=SIM, rounds=2, order=ladies_last).converse(TASK)
    assert speakers(talk.spoken()) == ["Cy", "Ben", "Ada", "Ben"]


async def test_an_order_with_a_stranger() -> None:
    table = Debate([ADA], model=SIM, order=lambda round, names: [["Zoe"]])
    with pytest.raises(ConfigError, match="the speaking order names 'Zoe', who does not take part"):
        await table.converse(TASK)


async def test_an_agent_is_given_only_what_it_may_see() -> None:
    def only_the_referee_sees_all(listener: Cue, turn: Turn) -> bool:
        return listener.role == "referee"

    table = Debate([ADA, BEN], model=SIM, rounds=2, referee=RAY, sees=only_the_referee_sees_all)
    talk = await table.converse(TASK)
    assert [heard(turn) for turn in talk.spoken("debater")] == [["user"], ["user"], ["user", "Ada"], ["user", "Ben"]]
    assert heard(talk.spoken("referee")[1]) == ["user", "Ada", "Ben", "Ray", "Ada", "Ben"]
    ben = talk.spoken("debater")[3]
    said_by_ada = {turn.text for turn in talk.spoken() if turn.speaker == "Ada"}
    own = {turn.text for turn in talk.spoken() if turn.speaker == "Ben"}
    assert not {piece.text for piece in ben.calls[0].prompt} & (said_by_ada - own)


async def test_a_referee_after_each_round_and_a_chair_at_the_end() -> None:
    table = Debate([ADA, BEN], model=SIM, rounds=2, referee=RAY, chair=CY)
    talk = await table.converse(TASK)
    assert speakers(talk.spoken()) == ["Ada", "Ben", "Ray", "Ada", "Ben", "Ray", "Cy"]
    assert [turn.role for turn in talk.spoken(round=2)] == ["debater", "debater", "referee", "chair"]
    assert heard(talk.spoken("chair")[0]) == ["user", "Ada", "Ben", "Ray", "Ada", "Ben", "Ray"]


async def test_instructions_are_given_before_each_turn_and_told_once_a_round() -> None:
    def instruct(cue: Cue) -> str | None:
        return {1: "Open.", 2: None, 3: f"Close, {cue.speaker}."}[cue.round]

    talk = await Debate([ADA, BEN], model=SIM, rounds=3, instructions=instruct).converse(TASK)
    told = [(turn.round, turn.text) for turn in talk.turns if turn.role == "narrator"]
    assert told == [(0, TASK), (1, "Open."), (3, "Close, Ada."), (3, "Close, Ben.")]
    last = {turn.speaker: [p.text for p in turn.calls[0].prompt][-1] for turn in talk.spoken(round=3)}
    assert last == {"Ada": "Close, Ada.", "Ben": "Close, Ben."}
    opening = [[p.text for p in turn.calls[0].prompt] for turn in talk.spoken(round=1)]
    assert [texts.count("Open.") for texts in opening] == [1, 1]


async def test_replies_are_read_as_the_type_asked_of_each() -> None:
    table = Debate(
        [ADA],
        model=f"{SIM}?base=6&noise=0",
        rounds=2,
        reply_type=lambda cue: Opinion if cue.round == 2 else None,
    )
    free, scored = (await table.converse(TASK)).spoken()
    assert (free.verdict, free.parse_status) == (None, None)
    assert (scored.verdict, scored.parse_status) == (Opinion(score=6), "ok")


async def test_a_reply_that_cannot_be_read_is_no_verdict() -> None:
    (turn,) = (await Debate([ADA], model=f"{SIM}?malformed=1", rounds=1, reply_type=Opinion).converse(TASK)).spoken()
    assert (turn.verdict, turn.parse_status) == (None, "unparsed")
    assert len(turn.calls) == 2


async def test_it_ends_when_the_one_who_counts_says_so(server: Any) -> None:
    server.says("Do we AGREE?", "No.", "Still no.", "I AGREE.", "Too late.")
    ends = TextMentionTermination("AGREE", sources=["Ben"])
    table = Debate([ADA, BEN], model=server.client(), rounds=5, termination=ends)
    talk = await table.converse(TASK)
    assert [turn.text for turn in talk.spoken()] == ["Do we AGREE?", "No.", "Still no.", "I AGREE."]
    assert "AGREE" in talk.stop_reason


async def test_it_ends_after_so_many_messages_and_can_be_held_again() -> None:
    table = Debate([ADA, BEN], model=SIM, rounds=5, termination=MaxMessageTermination(3))
    talk = await table.converse(TASK)
    assert speakers(talk.spoken()) == ["Ada", "Ben", "Ada"]
    assert "Maximum number of messages 3 reached" in talk.stop_reason
    assert speakers((await table.converse("And trams?")).spoken()) == ["Ada", "Ben", "Ada"]


async def test_a_debate_that_ran_its_rounds_leaves_nothing_behind_in_its_condition() -> None:
    table = Debate([ADA, BEN], model=SIM, rounds=1, termination=MaxMessageTermination(3))
    assert speakers((await table.converse(TASK)).spoken()) == ["Ada", "Ben"]
    assert speakers((await table.converse("And trams?")).spoken()) == ["Ada", "Ben"]


async def test_what_was_spoken_at_once_is_all_in_the_transcript() -> None:
    client = model(SIM)
    table = Debate([ADA, BEN], model=client, order=simultaneous, termination=MaxMessageTermination(1))
    talk = await table.converse(TASK)
    assert sum(one.prompt_tokens for one in talk.usage().values()) == client.total_usage().prompt_tokens


async def test_it_can_be_cancelled_while_a_slow_model_answers(until: Any) -> None:
    client, token = model(f"{SIM}?latency=60"), CancellationToken()
    table = Debate([ADA, BEN], model=client)
    talk = asyncio.ensure_future(table.converse(TASK, token))
    await until(lambda: client.throttle.under_way)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await talk
    assert client.throttle.under_way == 0


async def test_when_one_of_a_group_fails_the_others_are_not_left_running() -> None:
    slow = model(f"{SIM}?latency=60")
    broken = Persona("Broken", "You fail.", model=f"{SIM}?fail=1&retries=0")
    with pytest.raises(ServerFault):
        await Debate([ADA, broken], model=slow, order=simultaneous).converse(TASK)
    assert slow.throttle.under_way == 0


async def test_it_waits_while_paused() -> None:
    table = Debate([ADA, BEN], model=SIM, rounds=1)
    await table.pause()
    turns = table.stream(TASK)
    assert (await anext(turns)).speaker == "user"
    first = asyncio.ensure_future(anext(turns))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done()
    await table.resume()
    assert (await first).speaker == "Ada"
    await turns.aclose()


async def test_an_autogen_agent_with_our_client_sits_at_the_table_and_is_recorded() -> None:
    guest = AssistantAgent("Guest", model(SIM), system_message="You are a guest.")
    talk = await Debate([ADA, guest], model=SIM, rounds=2).converse(TASK)
    assert speakers(talk.spoken()) == ["Ada", "Guest", "Ada", "Guest"]
    said = [turn for turn in talk.spoken() if turn.speaker == "Guest"]
    assert [call.reply for turn in said for call in turn.calls] == [turn.text for turn in said]
    assert heard(said[0]) == ["user", "Ada"]
    assert heard(talk.spoken(round=2)[0]) == ["user", "Ada", "Guest"]


def pair_of_assistants(name: str = "pair") -> RoundRobinGroupChat:
    agents = [AssistantAgent(each, model(SIM), system_message=f"You are {each}.") for each in ("Xi", "Yu")]
    return RoundRobinGroupChat(agents, name=name, max_turns=2)


async def test_a_team_sits_at_the_table_and_its_last_word_is_heard() -> None:
    talk = await Debate([pair_of_assistants(), ADA], model=SIM, rounds=1).converse(TASK)
    team, ada = talk.spoken()
    assert (team.speaker, len(team.calls)) == ("pair", 2)
    assert team.text == team.calls[-1].reply
    assert heard(ada) == ["user", "pair"]


async def test_a_team_hears_what_personas_say() -> None:
    talk = await Debate([ADA, pair_of_assistants()], model=SIM, rounds=1).converse(TASK)
    assert speakers(talk.spoken()) == ["Ada", "pair"]


async def test_a_persona_sits_in_a_stock_team() -> None:
    agents = [PersonaAgent(persona, model(SIM)) for persona in (ADA, BEN)]
    result = await RoundRobinGroupChat(agents, max_turns=2).run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Ada", "Ben"]


async def test_a_debate_sits_in_a_stock_team() -> None:
    guest = AssistantAgent("Guest", model(SIM))
    team = RoundRobinGroupChat([Debate([ADA, BEN], model=SIM, rounds=1), guest], max_turns=2)
    result = await team.run(task=TASK)
    assert [message.source for message in result.messages] == ["user", "Ada", "Ben", "Guest"]


async def test_a_debate_sits_at_another_table() -> None:
    inner = Debate([BEN, CY], model=SIM, rounds=1, name="committee")
    talk = await Debate([ADA, inner], model=SIM, rounds=1).converse(TASK)
    ada, committee = talk.spoken()
    assert (ada.speaker, committee.speaker) == ("Ada", "committee")
    assert committee.text
    assert committee.role == "debater"


async def test_the_calls_of_a_table_within_a_table_are_recorded() -> None:
    inner = Debate([BEN, CY], model=SIM, rounds=1, name="committee")
    (committee,) = (await Debate([inner], model=SIM, rounds=1).converse(TASK)).spoken()
    assert len(committee.calls) == 2
    assert committee.text == committee.calls[-1].reply


async def test_it_runs_as_an_autogen_team() -> None:
    table = Debate([ADA, BEN], model=SIM, rounds=1, instructions=lambda cue: "Be brief.")
    result = await table.run(task=TASK)
    assert isinstance(result, TaskResult)
    assert [message.source for message in result.messages] == ["user", "Ada", "Ben"]
    assert result.stop_reason == "1 round completed"
    opening = [TextMessage(content="Hello.", source="user"), TextMessage(content=TASK, source="Zoe")]
    quiet = await table.run(task=opening, output_task_messages=False)
    assert [message.source for message in quiet.messages] == ["Ada", "Ben"]


async def test_personas_at_the_end_of_the_prompt_share_its_beginning() -> None:
    talk = await Debate([ADA, BEN], model=SIM, rounds=2, placement="last").converse(TASK)
    prompts = [turn.calls[0].prompt for turn in talk.spoken()]
    assert [prompt[-1].text for prompt in prompts] == [ADA.about, BEN.about] * 2
    assert {piece.role for prompt in prompts for piece in prompt} == {"user"}
    for before, after in pairwise(prompts):
        assert after[: len(before) - 1] == before[:-1]


async def test_a_saved_debate_goes_on_where_it_stopped() -> None:
    first = Debate([ADA, BEN], model=SIM, rounds=1)
    await first.converse(TASK)
    kept = json.loads(json.dumps(await first.save_state()))
    second = Debate([ADA, BEN], model=SIM, rounds=1)
    await second.load_state(kept)
    there, here = await first.converse("And trams?"), await second.converse("And trams?")
    assert [turn.calls[0].prompt for turn in here.spoken()] == [turn.calls[0].prompt for turn in there.spoken()]
    assert heard(here.spoken()[0]) == ["user", "Ada", "Ben", "user"]


async def test_a_saved_debate_with_verdicts_goes_on_too() -> None:
    first = Debate([ADA, BEN], model=SIM, rounds=1, reply_type=Opinion)
    await first.converse(TASK)
    kept = json.loads(json.dumps(await first.save_state()))
    second = Debate([ADA, BEN], model=SIM, rounds=1, reply_type=Opinion)
    await second.load_state(kept)
    assert heard((await second.converse("And trams?")).spoken()[0]) == ["user", "Ada", "Ben", "user"]


async def test_a_saved_debate_with_an_agent_that_speaks_in_types() -> None:
    def table() -> Debate:
        guest = AssistantAgent("Guest", model(SIM), output_content_type=Opinion)
        return Debate([ADA, guest], model=SIM, rounds=1)

    first, second = table(), table()
    await first.converse(TASK)
    await second.load_state(json.loads(json.dumps(await first.save_state())))
    assert heard((await second.converse("And trams?")).spoken()[0]) == ["user", "Ada", "Guest", "user"]


async def test_after_a_reset_nothing_is_remembered() -> None:
    table = Debate([ADA, BEN], model=SIM, rounds=1)
    await table.converse(TASK)
    await table.reset()
    talk = await table.converse("And trams?")
    assert heard(talk.spoken()[0]) == ["user"]
    assert talk.spoken()[0].calls[0].prompt[1].text == "And trams?"


async def test_usage_by_speaker_adds_up() -> None:
    client = model(f"{SIM}?price_in=2&price_out=4")
    talk = await Debate([ADA, BEN], model=client, rounds=2, chair=CY).converse(TASK)
    usage = talk.usage()
    assert {name: one.calls for name, one in usage.items()} == {"Ada": 2, "Ben": 2, "Cy": 1}
    total = client.total_usage()
    assert sum(one.prompt_tokens for one in usage.values()) == total.prompt_tokens
    assert sum(one.completion_tokens for one in usage.values()) == total.completion_tokens
    cost = (2 * total.prompt_tokens + 4 * total.completion_tokens) / 1e6
    assert sum(one.cost or 0 for one in usage.values()) == pytest.approx(cost)


async def test_one_unknown_price_makes_the_sum_unknown(server: Any) -> None:
    server.says("Yes.")
    talk = await Debate([ADA], model=server.client(), rounds=2).converse(TASK)
    assert talk.usage() == {"Ada": Usage(calls=2, prompt_tokens=24, completion_tokens=6, cost=None)}


async def test_each_persona_on_its_own_model() -> None:
    table = Debate([ADA, Persona("Dee", "You are Dee.", model="sim/other")], model=SIM, rounds=1)
    talk = await table.converse(TASK)
    assert [turn.calls[0].model for turn in talk.spoken()] == ["sim/judge", "sim/other"]
    await table.close()


@pytest.mark.parametrize("seats", [{"participants": [ADA, ADA]}, {"participants": [ADA], "chair": ADA}])
def test_two_of_one_name_are_refused(seats: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="two participants are called 'Ada'; names must differ"):
        Debate(model=SIM, **seats)


def test_tables_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="needs at least one participant"):
        Debate([], model=SIM)
    with pytest.raises(ConfigError, match="needs at least one round, got 0"):
        Debate([ADA], model=SIM, rounds=0)
    with pytest.raises(ConfigError, match="cannot take part"):
        Debate(["Ada"], model=SIM)  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="no participant may be called 'user'"):
        Debate([Persona("user", "You are nobody.")], model=SIM)
    with pytest.raises(ConfigError, match="without spaces, not 'Ada L'"):
        Persona("Ada L", "You are Ada.")


def test_round_robin_is_the_order_of_the_table() -> None:
    assert round_robin(1, ["Ada", "Ben"]) == [["Ada"], ["Ben"]]


def test_personas_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_text('[[persona]]\nname = "Ada"\nabout = "You are Ada."\nmodel = "sim/judge"\n')
    assert load_personas(path) == [Persona("Ada", "You are Ada.", "sim/judge")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"it has no \[\[persona\]\] table"),
        ("[[persona]", "table.toml: "),
        ('[[persona]]\nname = "Ada"', "about"),
        ('[[persona]]\nname = "Ada"\nabout = 3', "table.toml: "),
        ('[[persona]]\nname = "Ada"\nabout = "Ada"\nage = 3', "age"),
    ],
)
def test_a_file_of_personas_that_cannot_be_used(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "table.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        load_personas(path)


def test_a_file_of_personas_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_bytes('[[persona]]\nname = "André"\n'.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"table\.toml: "):
        load_personas(path)


def test_a_file_of_personas_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_personas(tmp_path / "none.toml")
