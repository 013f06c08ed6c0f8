"""Spans of conversations outside a run: those of AutoGen's teams, and only where a tracer provider is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient

from parley.agents import Debate, Persona, Session, session
from tests.agents.common import TASK

trace = pytest.importorskip("opentelemetry.trace")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

ADA, BEN = Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")
SIM = "sim/judge?latency=0.01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Any]]:
    """A tracer provider that the program has set, and the spans it received."""
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return lambda: list(exporter.get_finished_spans())


def invoked(spans: list[Any]) -> list[dict[str, Any]]:
    """What the spans of the agents' turns say, in their order."""
    named = [span for span in spans if span.attributes.get("gen_ai.agent.name") in ("Ada", "Ben")]
    return [
        {
            "name": span.name,
            "kind": span.kind,
            **{key: span.attributes[key] for key in ("gen_ai.operation.name", "gen_ai.system", "gen_ai.agent.name")},
        }
        for span in named
        if span.name.startswith("invoke_agent")
    ]


async def test_a_debate_sends_the_spans_of_turns_that_a_team_sends(spans: Any) -> None:
    agents = [AssistantAgent(name, ReplayChatCompletionClient(["Yes."] * 2)) for name in ("Ada", "Ben")]
    await RoundRobinGroupChat([*agents], max_turns=4).run(task=TASK)
    stock = invoked(spans())
    await Debate([ADA, BEN], model=SIM, rounds=2).run(task=TASK)
    assert len(stock) == 4
    assert invoked(spans())[4:] == stock


async def test_calls_are_within_turns_and_turns_within_the_debate(spans: Any) -> None:
    await Debate([ADA, BEN], model=SIM, rounds=1, blind_rounds=1).converse(TASK)
    by_id = {span.context.span_id: span for span in spans()}
    calls = [span for span in by_id.values() if span.name == "chat judge"]
    turns = [by_id[span.parent.span_id] for span in calls]
    assert sorted(span.name for span in turns) == ["invoke_agent Ada", "invoke_agent Ben"]
    assert {by_id[span.parent.span_id].name for span in turns} == {"invoke_agent debate"}
    assert all(call.end_time - call.start_time >= 10_000_000 for call in calls)
    assert calls[0].attributes["gen_ai.usage.input_tokens"] > 0
    assert TASK not in "".join(span.to_json() for span in spans())


async def test_a_turn_that_fails_says_so(spans: Any) -> None:
    with pytest.raises(Exception, match="simulated"):
        await Debate([ADA], model="sim/judge?fail=1&retries=0", rounds=1).converse(TASK)
    (turn,) = (span for span in spans() if span.name == "invoke_agent Ada")
    assert turn.status.status_code.name == "ERROR"
    assert "invoke_agent debate" in [span.name for span in spans()]


async def test_within_a_run_only_its_flag_decides(spans: Any) -> None:
    with session(Session("unit")):
        await Debate([ADA], model=SIM, rounds=1).converse(TASK)
    assert spans() == []


async def test_without_a_provider_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a tracer was made")

    monkeypatch.setattr(trace, "get_tracer", refuse)
    assert len((await Debate([ADA], model=SIM, rounds=1).converse(TASK)).spoken()) == 1
