"""`parley.record`: users' own AutoGen teams in run files, with resume, budget, cache and the viewer's data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

from parley import Debate, Options, Persona, record, record_async
from parley.agents import ConfigError, Critique, PersonaAgent, model
from parley.judging import Verdict
from parley.runs import PlanChanged, frames
from tests.agents.common import openai

SIM = "sim/judge?base=6&noise=0"
TASKS = ["Should buses be free?", "Should trams be free?"]
INFO = ModelInfo(
    vision=False, function_calling=True, json_output=True, structured_output=True, family=ModelFamily.UNKNOWN
)
CALLS = "SELECT speaker, text = reply FROM messages JOIN calls USING (unit, seq) WHERE unit = 'task/0/0'"
ADA, BEN = Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")


def pair(client: Any = None, **settings: Any) -> RoundRobinGroupChat:
    agents = [AssistantAgent(name, client or model(SIM), system_message=f"You are {name}.") for name in ("Xi", "Yu")]
    return RoundRobinGroupChat([*agents], termination_condition=MaxMessageTermination(4), **settings)


def test_cases_are_named_by_their_first_words_and_clusters_stay_apart(run_file):
    letter = "Is this letter polite? " + "Dear neighbour, your hedge is very high and keeps the sun from us. " * 3
    talk = [("user", "Hear them out."), ("Ada", "I waited for two hours.")]
    record(pair(), [letter, letter + "Thank you.", {"task": talk, "identity": "nurse"}, "Short?"], out="named.sqlite")
    scenarios = [
        json.loads(facets)["scenario"]
        for (facets,) in run_file("named.sqlite").rows("SELECT facets FROM units ORDER BY position")
    ]
    first = "Is this letter polite? Dear neighbour, your…"
    assert scenarios == [first, f"{first} (1)", "I waited for two hours.", "Short?"]


def test_a_team_is_recorded_stopped_by_a_budget_and_resumed(run_file, parley):
    stopped = record(pair(), TASKS, out="team.sqlite", repeats=2, options=Options(budget_calls=4, cache=False))
    assert (stopped.complete, stopped.stopped, stopped.progress.done) == (False, "the budget of 4 calls is spent", 1)
    result = record(pair(), TASKS, out="team.sqlite", repeats=2)
    assert (result.complete, result.progress.done) == (True, 4)
    file = run_file("team.sqlite")
    file.check()
    turns = frames.turns("team.sqlite")
    first = turns[turns["unit"] == "task/0/0"]
    assert (list(first["speaker"]), list(first["round"])) == (["user", "Xi", "Yu", "Xi"], [0, 1, 1, 2])
    assert file.rows(CALLS) == [("Xi", 1), ("Yu", 1), ("Xi", 1)], "each message has the calls it took"
    assert dict(file.rows("SELECT DISTINCT speaker, persona FROM transcript WHERE role = 'debater'")) == {
        "Xi": "You are Xi.",  # the system message, not AutoGen's "An agent that provides assistance with ability…"
        "Yu": "You are Yu.",
    }
    again = record(pair(), TASKS, out="team.sqlite", repeats=2)
    assert (again.complete, again.progress.calls) == (True, 0)
    assert "Should buses be free?" in parley("show", "team.sqlite", "task/0/0").out
    with pytest.raises(PlanChanged, match="the team has changed"):
        record(pair(max_turns=1), TASKS, out="team.sqlite", repeats=2)
    with pytest.raises(PlanChanged, match="tasks: "):
        record(pair(), TASKS[:1], out="team.sqlite", repeats=2)
    failed = record(pair(model("sim/judge?fail=1&retries=0")), TASKS[:1], out="failed.sqlite")
    assert (failed.progress.done, failed.progress.failed) == (0, 1)
    assert "sim/judge" in str(failed.first_error)
    assert "\n" not in str(failed.first_error)


def test_an_agent_is_recorded_twice_and_a_selectors_calls_are_the_teams(run_file):
    agent = AssistantAgent("Xi", model(SIM))
    for out in ("a.sqlite", "b.sqlite"):
        record(agent, TASKS[:1], out=out)
        assert run_file(out).rows(CALLS) == [("Xi", 1)]
    agents = [AssistantAgent(name, model(SIM)) for name in ("Xi", "Yu", "Zed")]
    team = SelectorGroupChat([*agents], model_client=model(SIM), max_turns=1, max_selector_attempts=1, name="choosers")
    result = record(team, TASKS[:1], out="team.sqlite")
    assert (result.complete, result.progress.calls) == (True, 2)
    assert list(frames.turns("team.sqlite")["speaker"]) == ["user", "Xi", "choosers"]


def test_a_client_of_autogens_is_recorded_too(server, run_file):
    server.answer = lambda nth, body: server.reply(f"Answer {nth}.")
    for cached in (0, 1):
        result = record(lambda: pair(openai(server, "judge", model_info=INFO)), TASKS, out="team.sqlite")
        assert (result.complete, result.progress.calls) == (True, 6)
        assert run_file("team.sqlite").rows("SELECT DISTINCT model, cached FROM calls") == [("openai/judge", cached)]
        assert b"sk-a-secret" not in Path("team.sqlite").read_bytes()
        Path("team.sqlite").unlink()


class Opinion(BaseModel):
    score: float


def test_typed_replies_become_verdicts_facets_are_kept_and_a_score_may_be_ones_own(server):
    def judge():
        return AssistantAgent("Judge", openai(server, "judge", model_info=INFO), output_content_type=Opinion)

    tasks = [{"task": f"Score the plan of a {who}.", "identity": who, "scenario": "plan"} for who in ("nurse", "pilot")]
    assert record(judge, tasks, out="team.sqlite").complete
    verdicts = frames.verdicts("team.sqlite")
    assert (set(verdicts["metric"]), set(verdicts["identity"])) == ({"score"}, {"nurse", "pilot"})

    def length(transcript):
        return [Verdict.from_turn(turn, "length", value=len(turn.text)) for turn in transcript.spoken()]

    assert record(Debate([ADA, BEN], model=SIM, rounds=1), TASKS, out="own.sqlite", score=length).complete
    assert len(frames.verdicts("own.sqlite")) == 4


def tables(name: str) -> list[Any]:
    return [
        Debate([ADA, BEN], model=name, rounds=1),
        Critique(ADA, {"bias": BEN}, criteria={"bias": "< 20"}, model=name),
        RoundRobinGroupChat([Debate([ADA, BEN], model=name, rounds=1).as_agent()], max_turns=1),
    ]


def test_the_models_of_a_conversation_are_known(run_file):
    for nth, table in enumerate(tables(SIM)):
        assert record(table, TASKS[:1], out=f"{nth}.sqlite").complete
        models = json.loads(run_file(f"{nth}.sqlite").one("SELECT value FROM run WHERE key = 'models'"))
        assert models == ["sim/judge"]
    for unknown in tables("server/judge?base_url=http://127.0.0.1:9/v1"):
        with pytest.raises(ConfigError, match="needs the price of server/judge"):
            record(unknown, TASKS[:1], out="other.sqlite", options=Options(budget_cost=1))


CHANGED = (
    Debate([ADA, BEN], model=SIM, rounds=2),
    Debate([ADA, Persona("Ben", "You are a baker.")], model=SIM, rounds=1),
    Debate([ADA, BEN], model="sim/writer", rounds=1),
    RoundRobinGroupChat([Debate([ADA, BEN], model=SIM, rounds=1).as_agent()], max_turns=1),
)


def test_a_conversation_that_has_changed_does_not_resume_a_run():
    same = Debate([ADA, BEN], model=SIM, rounds=1)
    for _ in range(2):
        assert record(same, TASKS, out="own.sqlite").complete
    for changed in CHANGED:
        with pytest.raises(PlanChanged, match="the team has changed"):
            record(changed, TASKS, out="own.sqlite")
    people = [PersonaAgent(persona, model(SIM)) for persona in (ADA, BEN)]
    assert record(RoundRobinGroupChat([*people], max_turns=1), TASKS, out="stock.sqlite").complete
    with pytest.raises(PlanChanged, match="the team has changed"):
        record(RoundRobinGroupChat([*people], max_turns=2), TASKS, out="stock.sqlite")


WRONG = [
    ((3, TASKS), "3 cannot be recorded: give an AutoGen team or agent"),
    ((lambda: 3, TASKS), "3 cannot be recorded: give an AutoGen team or agent"),
    ((pair, [{"question": "Why?"}]), "a task is a text, or a mapping with the key 'task'"),
    ((pair, []), "there is nothing to run"),
    ((pair, [{"task": ["Why?"]}]), "a task is a text, or a list of pairs of source and text"),
]


async def test_what_cannot_be_recorded_and_how_in_a_notebook():
    for arguments, problem in WRONG:
        with pytest.raises(ConfigError, match=problem):
            await record_async(*arguments, out="team.sqlite")
    with pytest.raises(ConfigError, match=r"use await parley\.record_async"):
        record(pair(), TASKS, out="team.sqlite")
    assert (await record_async(pair(), TASKS, out="team.sqlite")).complete


def test_the_commands_show_a_handoffs_tool_call(parley):
    calls = [FunctionCall(id="c1", name="transfer_to_ben", arguments='{"why": "buses"}')]
    usage = RequestUsage(prompt_tokens=9, completion_tokens=3)
    reply = CreateResult(finish_reason="function_calls", content=calls, usage=usage, cached=False)
    record(
        AssistantAgent("Ada", ReplayChatCompletionClient([reply], INFO), handoffs=["ben"]), TASKS[:1], out="h.sqlite"
    )
    assert 'calls transfer_to_ben({"why": "buses"})' in parley("show", "h.sqlite").out
    (call,) = parley("show", "h.sqlite", "--json").json["turns"][-1]["calls"]
    assert call["tools"] == [["transfer_to_ben", '{"why": "buses"}']]
