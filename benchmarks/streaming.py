"""CPU per message of a debate and of AutoGen's team, with streaming off and with every token streamed.

    python -m benchmarks.streaming                       # 32 conversations of 8 messages, five times
    python -m benchmarks.streaming --conversations 8     # to try it out

Run from the repository's root. All cases run in this process in turn, on models that answer immediately, so that only
the frameworks are measured. Parley's cases are complete runs with every message and call in a run file; AutoGen's team
records nothing. When tokens are streamed, every word of a reply is a chunk, and both sides pass each on as an event.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ModelClientStreamingChunkEvent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import CreateResult, RequestUsage

from benchmarks.panel import PERSONAS, Panel, run_panels
from benchmarks.peers.autogen import InstantClient
from benchmarks.peers.common import Instant
from benchmarks.workload import ABOUT, MESSAGES, NAMES, ROUNDS, TASK, median, reply, verdict
from parley.agents import Debate, Models
from parley.agents.models import Reply, Request
from parley.agents.models.base import Client
from parley.agents.models.streaming import Arriving, Streams
from parley.agents.providers import register
from parley.judging import Outcome, Unit
from parley.runs.job import Job
from parley.runs.options import Options

USAGE = RequestUsage(100, 120)
OFF_TARGET, STREAMED_TARGET = 1 / 6, 1 / 3
"""The most that a message of Parley's may cost, as a share of AutoGen's."""


def words(text: str) -> list[str]:
    """The chunks of a reply."""
    return [f"{word} " for word in text.split()]


class Words(Arriving):
    """The words of a reply as they arrive."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def add(self, event: str) -> str:
        self.anything = True
        self._words.append(event)
        return event

    def reply(self) -> Reply:
        return Reply(finish_reason="stop", content="".join(self._words), usage=USAGE, cached=False)


class WordByWord(Streams, Client):
    """Answers immediately, word by word."""

    async def send(self, request: Request) -> Reply:
        return Reply(finish_reason="stop", content=reply(), usage=USAGE, cached=False)

    async def events(self, request: Request) -> AsyncGenerator[str, None]:
        await asyncio.sleep(0)
        for word in words(reply()):
            yield word

    def arriving(self) -> Arriving:
        return Words()


register("word-by-word", "benchmarks.streaming:WordByWord")


class AutoGenWordByWord(InstantClient):
    """The same for AutoGen's agents."""

    async def create_stream(self, messages: Any, **settings: Any) -> Any:
        await asyncio.sleep(0)
        text = reply()
        for word in words(text):
            yield word
        yield CreateResult(finish_reason="stop", content=text, usage=USAGE, cached=False)


class StreamedPanel(Panel):
    """The workload's debates, each followed token by token."""

    name: ClassVar[str] = "streamed-panel"

    async def run(self, unit: Unit, models: Models) -> Outcome:
        client = models["word-by-word/bench"]
        debate = Debate(PERSONAS, model=client, rounds=ROUNDS, models=models, model_client_stream=True)
        chunks = 0
        async for item in debate.run_stream(task=TASK):
            chunks += isinstance(item, ModelClientStreamingChunkEvent)
        assert chunks > 50 * MESSAGES, "every word is a chunk"
        return Outcome(debate.transcript)


async def parley_off(conversations: int, folder: str) -> None:
    await run_panels(folder, conversations, conversations)


async def parley_streamed(conversations: int, folder: str) -> None:
    options = Options(out=str(Path(folder) / "run.sqlite"), concurrency=conversations, cache=False)
    config = {"conversations": conversations, "model": "word-by-word/bench"}
    result = await Job.make("benchmarks.streaming:StreamedPanel", config, options).execute()
    assert result.complete, result


async def autogen(conversations: int, *, streamed: bool) -> None:
    client = AutoGenWordByWord(Instant())

    async def converse() -> None:
        agents = [
            AssistantAgent(name, client, system_message=ABOUT[name], description=name, model_client_stream=streamed)
            for name in NAMES
        ]
        chunks = 0
        async for item in RoundRobinGroupChat([*agents], max_turns=MESSAGES).run_stream(task=TASK):
            chunks += isinstance(item, ModelClientStreamingChunkEvent)
        assert (chunks > 50 * MESSAGES) is streamed

    await asyncio.gather(*(converse() for _ in range(conversations)))


Case = Callable[[int, str], Any]
CASES: dict[str, Case] = {
    "AutoGen, off": lambda conversations, folder: autogen(conversations, streamed=False),
    "Parley, off": parley_off,
    "AutoGen, streamed": lambda conversations, folder: autogen(conversations, streamed=True),
    "Parley, streamed": parley_streamed,
}


def cpu_ms(case: Case, conversations: int) -> float:
    """CPU per message in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        gc.collect()
        started = time.process_time()
        asyncio.run(case(conversations, folder))
        return (time.process_time() - started) / (conversations * MESSAGES) * 1000


def measure(cases: Mapping[str, Case], about: str | None) -> dict[str, float]:
    """The median CPU per message of each case, as the command line asks for; every repeat goes through all of them."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=32, help="concurrent conversations (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of each case (default: %(default)s)")
    arguments = parser.parse_args()
    for case in cases.values():
        cpu_ms(case, 2)  # what is loaded on first use
    figures: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(arguments.repeats):
        for name, case in cases.items():
            figures[name].append(cpu_ms(case, arguments.conversations))
    for name, values in figures.items():
        print(f"{name:32} {median(values):6.3f} ms CPU per message ({min(values):.3f} to {max(values):.3f})")
    return {name: median(values) for name, values in figures.items()}


def main() -> None:
    middle = measure(CASES, __doc__)
    for way, target in (("off", OFF_TARGET), ("streamed", STREAMED_TARGET)):
        share = middle[f"Parley, {way}"] / middle[f"AutoGen, {way}"]
        print(verdict(f"Parley's share, {way}", share, target, at_least=False))


if __name__ == "__main__":
    main()
