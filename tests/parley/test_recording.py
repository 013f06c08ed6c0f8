"""`parley.record`: users' own AutoGen teams in run files, with resume, budget, cache and the viewer's data."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

import parley
from parley import Debate, Options, Persona, record
from parley.agents import ConfigError, Critique, Transcript, by_model, model
from parley.judging import Verdict
from parley.runs import PlanChanged, frames

SIM = "sim/judge?base=6&noise=0"
TASKS = ["Should buses be free?", "Should trams be free?"]
INFO = ModelInfo(
    vision=False, function_calling=True, json_output=True, structured_output=True, family=ModelFamily.UNKNOWN
)


class Opinion(BaseModel):
    score: float


def pair(client: Any = None, **settings: Any) -> RoundRobinGroupChat:
    agents = [AssistantAgent(name, client or model(SIM), system_message=f"You are {name}.") for name in ("Xi", "Yu")]
    return RoundRobinGroupChat([*agents], termination_condition=MaxMessageTermination(4), **settings)


def openai(server: Any) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(
        model="judge",
        base_url=f"http://127.0.0.1:{server.port}/v1",
        api_key="sk-a-secret-that-must-not-show",
        model_info=INFO,
        max_retries=0,
    )


def test_a_team_is_recorded_and_resumed(run_file: Any) -> None:
    result = parley.record(pair(), TASKS, out="team.sqlite", repeats=2)
    assert (result.complete, result.progress.done, result.progress.calls) == (True, 4, 12)
    file = run_file("team.sqlite")
    file.check()
    turns = frames.turns("team.sqlite")
    first = turns[turns["unit"] == "task/0/0"]
    assert list(first["speaker"]) == ["user", "Xi", "Yu", "Xi"]
    assert list(first["round"]) == [0, 1, 1, 2]
    calls = "SELECT speaker, text = reply FROM messages JOIN calls USING (unit, seq) WHERE unit = 'task/0/0'"
    assert file.rows(calls) == [("Xi", 1), ("Yu", 1), ("Xi", 1)], "each message has the calls it took"
    again = parley.record(pair(), TASKS, out="team.sqlite", repeats=2)
    assert (again.complete, again.progress.calls) == (True, 0)


def test_an_agent_that_is_recorded_twice(run_file: Any) -> None:
    agent = AssistantAgent("Xi", model(SIM))
    for out in ("a.sqlite", "b.sqlite"):
        parley.record(agent, TASKS[:1], out=out)
        rows = run_file(out).rows("SELECT speaker, text = reply FROM messages JOIN calls USING (unit, seq)")
        assert rows == [("Xi", 1)]


def test_a_client_of_autogens_is_recorded_too(server: Any, run_file: Any) -> None:
    server.answer = lambda nth, body: server.reply(f"Answer {nth}.")
    result = parley.record(lambda: pair(openai(server)), TASKS, out="team.sqlite")
    assert (result.complete, result.progress.calls) == (True, 6)
    assert run_file("team.sqlite").one("SELECT DISTINCT model FROM calls") == "openai/judge"
    assert b"sk-a-secret" not in Path("team.sqlite").read_bytes()
    Path("team.sqlite").unlink()
    again = parley.record(lambda: pair(openai(server)), TASKS, out="team.sqlite")
    assert (again.complete, again.progress.calls) == (True, 6)
    assert run_file("team.sqlite").one("SELECT min(cached) FROM calls") == 1


def test_a_budget_stops_it_and_it_is_resumed() -> None:
    result = parley.record(pair(), TASKS, out="team.sqlite", options=Options(budget_calls=4))
    assert not result.complete
    assert result.stopped == "the budget of 4 calls is spent"
    assert result.progress.done == 1
    assert parley.record(pair(), TASKS, out="team.sqlite").complete


def test_a_model_that_fails_fails_its_unit() -> None:
    result = parley.record(pair(model("sim/judge?fail=1&retries=0")), TASKS[:1], out="team.sqlite")
    assert (result.progress.done, result.progress.failed) == (0, 1)
    assert "sim/judge" in str(result.first_error)
    assert "\n" not in str(result.first_error)


def test_a_team_that_has_changed_is_refused() -> None:
    parley.record(pair(), TASKS, out="team.sqlite")
    with pytest.raises(PlanChanged, match="the team has changed"):
        parley.record(pair(max_turns=1), TASKS, out="team.sqlite")
    with pytest.raises(PlanChanged, match="tasks: "):
        parley.record(pair(), TASKS[:1], out="team.sqlite")


def test_the_calls_of_a_selector_are_the_teams(run_file: Any) -> None:
    agents = [AssistantAgent(name, model(SIM)) for name in ("Xi", "Yu", "Zed")]
    team = SelectorGroupChat([*agents], model_client=model(SIM), max_turns=1, max_selector_attempts=1, name="choosers")
    result = parley.record(team, TASKS[:1], out="team.sqlite")
    assert (result.complete, result.progress.calls) == (True, 2)
    turns = frames.turns("team.sqlite")
    assert list(turns["speaker"]) == ["user", "Xi", "choosers"]


def test_typed_replies_become_verdicts_and_facets_are_kept(server: Any) -> None:
    def judge() -> AssistantAgent:
        return AssistantAgent("Judge", openai(server), output_content_type=Opinion)

    tasks = [{"task": f"Score the plan of a {who}.", "identity": who, "scenario": "plan"} for who in ("nurse", "pilot")]
    assert parley.record(judge, tasks, out="team.sqlite").complete
    verdicts = frames.verdicts("team.sqlite")
    assert set(verdicts["metric"]) == {"score"}
    assert set(verdicts["identity"]) == {"nurse", "pilot"}


def test_a_score_of_ones_own_and_a_table_of_parleys() -> None:
    def length(transcript: Transcript) -> list[Verdict]:
        return [Verdict.from_turn(turn, "length", value=len(turn.text)) for turn in transcript.spoken()]

    debate = Debate([Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")], model=SIM, rounds=1)
    assert parley.record(debate, TASKS, out="team.sqlite", score=length).complete
    assert len(frames.verdicts("team.sqlite")) == 4


ADA, BEN = Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")


def tables(name: str) -> list[Any]:
    return [
        Debate([ADA, BEN], model=name, rounds=1),
        Critique(ADA, {"bias": BEN}, criteria={"bias": "< 20"}, model=name),
        RoundRobinGroupChat([Debate([ADA, BEN], model=name, rounds=1).as_agent()], max_turns=1),
    ]


def models_in(file: Any) -> Any:
    return json.loads(file.one("SELECT value FROM run WHERE key = 'models'"))


@pytest.mark.parametrize("nth", range(3))
def test_the_models_of_a_conversation_are_known(nth: int, run_file: Any) -> None:
    assert parley.record(tables(SIM)[nth], TASKS[:1], out="team.sqlite").complete
    assert models_in(run_file("team.sqlite")) == ["sim/judge"]
    with pytest.raises(ConfigError, match="needs the price of server/judge"):
        parley.record(
            tables("server/judge?base_url=http://127.0.0.1:9/v1")[nth],
            TASKS[:1],
            out="other.sqlite",
            options=Options(budget_cost=1),
        )


def test_the_model_that_chooses_speakers_is_known(run_file: Any) -> None:
    debate = Debate([ADA, BEN], model=SIM, rounds=1, order=by_model("sim/writer"))
    assert parley.record(debate, TASKS[:1], out="team.sqlite").complete
    assert models_in(run_file("team.sqlite")) == ["sim/judge", "sim/writer"]


def test_connections_are_closed_and_the_debate_can_be_used_again(server: Any, caplog: Any) -> None:
    server.answer = lambda nth, body: server.reply(f"Answer {nth}.")
    name = f"server/judge?base_url=http://127.0.0.1:{server.port}/v1"
    debate = tables(name)[0]
    for tasks, out in ((TASKS[:1], "a.sqlite"), (TASKS[1:], "b.sqlite")):
        assert parley.record(debate, tasks, out=out).complete
    assert parley.record(lambda: tables(name)[0], ["And trains?", "And boats?"], out="c.sqlite").complete
    del debate
    gc.collect()
    assert "Unclosed" not in caplog.text


def test_the_commands_show_it(parley: Callable[..., Any]) -> None:
    from parley import record

    record(pair(), TASKS, out="team.sqlite")
    assert "Should buses be free?" in parley("show", "team.sqlite", "task/0/0").out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((3, TASKS), "3 cannot be recorded: give an AutoGen team or agent"),
        ((lambda: 3, TASKS), "3 cannot be recorded: give an AutoGen team or agent"),
        ((pair, [{"question": "Why?"}]), "a task is a text, or a mapping with the key 'task'"),
        ((pair, []), "there is nothing to run"),
        ((pair, [{"task": ["Why?"]}]), "a task is a text, or a list of pairs of source and text"),
    ],
)
def test_what_cannot_be_recorded(arguments: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parley.record(*arguments, out="team.sqlite")


async def test_in_a_notebook() -> None:
    with pytest.raises(ConfigError, match=r"use await parley\.record_async"):
        parley.record(pair(), TASKS, out="team.sqlite")
    assert (await parley.record_async(pair(), TASKS, out="team.sqlite")).complete


def test_the_commands_show_a_handoffs_tool_call(parley: Callable[..., Any]) -> None:
    calls = [FunctionCall(id="c1", name="transfer_to_ben", arguments='{"why": "buses"}')]
    reply = CreateResult(
        finish_reason="function_calls",
        content=calls,
        usage=RequestUsage(prompt_tokens=9, completion_tokens=3),
        cached=False,
    )
    ada = AssistantAgent("Ada", ReplayChatCompletionClient([reply], INFO), handoffs=["ben"])
    record(ada, TASKS[:1], out="handoff.sqlite")
    shown = parley("show", "handoff.sqlite").out
    assert 'calls transfer_to_ben({"why": "buses"})' in shown
    (call,) = json.loads(parley("show", "handoff.sqlite", "--json").out)["turns"][-1]["calls"]
    assert call["tools"] == [["transfer_to_ben", '{"why": "buses"}']]
