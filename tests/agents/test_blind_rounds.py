"""Blind rounds: nobody hears anybody until they are over, and their calls go out concurrently."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from autogen_agentchat.conditions import MaxMessageTermination

from parley.agents import Budget, Debate, Persona, Session, Turn, model, record_calls, session, shuffled
from parley.base.errors import BudgetSpent
from tests.agents.common import SIM, TASK

PANEL = [Persona(name, f"You are {name}, a councillor.") for name in ("Ada", "Ben", "Cy", "Dee")]
NAMES = [persona.name for persona in PANEL]
RAY, EVE = Persona("Ray", "You are Ray, the referee."), Persona("Eve", "You are Eve, the chair.")


def sources(turn: Turn) -> list[str]:
    """The sources of the messages in a turn's prompt, in order, without the persona."""
    persona = turn.calls[0].prompt[-1].text == turn.persona
    pieces = [piece for piece in turn.calls[0].prompt if piece.role != "system"]
    return [piece.source for piece in (pieces[:-1] if persona else pieces)]


async def test_what_was_said_blindly_is_read_by_all_others_afterwards_in_speaking_order():
    transcript = await Debate(PANEL, model=SIM, rounds=3, blind_rounds=1).converse(TASK)
    blind, discussed = transcript.spoken(round=1), transcript.spoken(round=2)
    assert [turn.speaker for turn in transcript.spoken()] == NAMES * 3
    assert [sources(turn) for turn in blind] == [["user"]] * 4
    assert sources(discussed[0]) == ["user", "Ada", "Ben", "Cy", "Dee"]
    assert sources(discussed[1]) == ["user", "Ben", "Ada", "Cy", "Dee", "Ada"], "its own turn is the assistant's"
    texts = {piece.source: piece.text for piece in discussed[1].calls[0].prompt if piece.source == "Cy"}
    assert texts == {"Cy": blind[2].text}


async def test_the_calls_of_a_blind_round_are_concurrent_and_those_of_a_discussion_are_not(server):
    server.says("Yes.")
    await Debate(PANEL, model=server.client(), rounds=1, blind_rounds=1).converse(TASK)
    assert server.most_under_way == 4
    server.most_under_way = 0
    await Debate(PANEL, model=server.client(), rounds=1).converse(TASK)
    assert server.most_under_way == 1


async def test_where_each_slot_has_a_cache_of_its_own_a_shared_prefix_is_read_first(server):
    """llama.cpp: the agents take turns, and still hear nobody."""
    server.says("Yes.")
    async with asyncio.timeout(20):
        for placement, most in (("last", 1), ("system", 4)):
            server.most_under_way = 0
            client = model(f"llamacpp/m?base_url={server.url}")
            debate = Debate(PANEL, model=client, rounds=1, blind_rounds=1, placement=placement)
            transcript = await debate.converse(TASK)
            await client.close()
            assert server.most_under_way == most
            assert [sources(turn) for turn in transcript.spoken()] == [["user"]] * 4


async def test_several_blind_rounds_keep_everything_back_until_the_last_is_over():
    transcript = await Debate(PANEL[:2], model=SIM, rounds=3, blind_rounds=2, referee=RAY).converse(TASK)
    ada, ben = transcript.spoken("debater", round=2)
    assert (sources(ada), sources(ben)) == (["user", "Ada"], ["user", "Ben"])
    assert sources(transcript.spoken("referee", round=1)[0]) == ["user", "Ada", "Ben"], "the referee hears them"
    third = sources(transcript.spoken("debater", round=3)[0])
    assert third == ["user", "Ada", "Ada", "Ben", "Ray", "Ben", "Ray"]


@pytest.mark.parametrize("fence", [False, True])
async def test_personas_at_the_end_share_the_blind_round_in_the_same_order(fence):
    debate = Debate(PANEL, model=SIM, rounds=2, blind_rounds=1, order=shuffled(3), placement="last", fence=fence)
    transcript = await debate.converse(TASK)
    first, second = ([turn.speaker for turn in transcript.spoken(round=nth)] for nth in (1, 2))
    for nth, turn in enumerate(transcript.spoken(round=2)):
        assert sources(turn) == ["user", *first, *second[:nth]], "each turn once, its own included"
    prefixes = {turn.calls[0].prompt[:5] for turn in transcript.spoken(round=2)}
    assert len(prefixes) == (4 if fence else 1), "fenced, an agent's own turn is not quoted"


async def test_a_blind_round_is_completed_before_a_termination_condition_ends_the_debate():
    debate = Debate(PANEL, model=SIM, rounds=3, blind_rounds=1, termination_condition=MaxMessageTermination(2))
    transcript = await debate.converse(TASK)
    assert [turn.speaker for turn in transcript.spoken()] == NAMES, "their calls were already made"
    again = await debate.converse("And trams?")
    assert sources(again.spoken()[0]) == ["user", *NAMES, "user"], "and what they said was delivered"


async def test_a_budget_ends_a_blind_round_and_no_reply_that_was_paid_for_is_lost():
    client, budget = model(f"{SIM}?latency=0.01"), Budget(max_calls=2)
    with session(Session("0", budget=budget)), record_calls() as calls, pytest.raises(BudgetSpent):
        await Debate(PANEL, model=client, rounds=2, blind_rounds=1).converse(TASK)
    assert len(calls) == budget.calls == 2
    assert client.throttle.under_way == 0


async def test_a_debate_saved_within_a_blind_round_loses_no_turn():
    first, second = (Debate(PANEL[:2], model=SIM, rounds=1, blind_rounds=1) for _ in range(2))
    turns = first.stream(TASK)
    heard: Sequence[Turn] = [await anext(turns) for _ in range(3)]
    assert [turn.speaker for turn in heard] == ["user", "Ada", "Ben"]
    await second.load_state(json.loads(json.dumps(await first.save_state())))
    await turns.aclose()
    for debate in (first, second):
        assert sources((await debate.converse("And trams?")).spoken()[0]) == ["user", "Ada", "Ben", "user"]
