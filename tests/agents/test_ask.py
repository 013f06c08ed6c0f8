"""A single question to a single persona: what it returns, what is recorded, and who closes the client."""

from __future__ import annotations

from typing import Any

import pytest

from parley.agents import (
    ConfigError,
    Debate,
    Models,
    Persona,
    ask,
    model,
)
from tests.agents.common import ADA, SIM, Opinion

PROMPT = "Should buses be free?"


@pytest.mark.parametrize("reply_type", [None, Opinion])
async def test_it_is_the_turn_of_a_debate_of_one(reply_type):
    """The same in all but the time it took."""

    def untimed(turn: Any) -> Any:
        return turn._replace(calls=tuple(call._replace(latency=0.0) for call in turn.calls))

    options = {"max_tokens": 50, "seed": 3}
    debate = Debate([ADA], model=SIM, rounds=1, reply_type=reply_type, options=options)
    (turn,) = (await debate.converse(PROMPT)).spoken()
    assert untimed(await ask(ADA, PROMPT, reply_type, model=SIM, options=options)) == untimed(turn)


async def test_the_options_and_the_readout_reach_the_call(server):
    server.says('{"score": 7}')
    await ask(ADA, PROMPT, Opinion, model=server.client(), readout="expected", options={"max_tokens": 9})
    assert (server.asked[0]["max_tokens"], server.asked[0]["logprobs"]) == (9, True)


async def test_the_personas_own_model_comes_first_and_a_question_may_end_a_conversation():
    dee = Persona("Dee", "You are Dee.", model="sim/other")
    said = [("Interviewer", "How was your way?"), ("Applicant", "Very good."), ("user", "Is the applicant polite?")]
    for given in (SIM, model(SIM)):
        turn = await ask(dee, said, model=given)
        assert turn.calls[0].model == "sim/other"
        assert [(piece.source, piece.text) for piece in turn.calls[0].prompt[1:]] == said


async def test_clients_that_it_opened_are_closed_and_given_ones_stay_open(monkeypatch):
    closed: list[Models] = []
    close = Models.close

    async def watch(models: Models) -> None:
        closed.append(models)
        await close(models)

    monkeypatch.setattr(Models, "close", watch)
    models = Models()
    turn = await ask(ADA, PROMPT, model=SIM, models=models)
    assert (closed, [client.name for client in models]) == ([], [turn.calls[0].model])
    await ask(ADA, PROMPT, model=SIM)
    with pytest.raises(ConfigError, match="unknown provider"):
        await ask(ADA, PROMPT, model="nowhere/model")
    assert len(closed) == 2
