"""What orchestration costs: CPU time a message on a model that answers at once.

    python -m benchmarks.overhead --inspect-python inspect-env/bin/python

Run from the repository's root. Rounds are interleaved and the median is shown, so that a noisy machine
disturbs all rows alike. Parley's row includes the whole run: plan, run file, every message and call recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient, CreateResult, ModelFamily, ModelInfo, RequestUsage

from benchmarks.panel import hold_panels
from benchmarks.workload import ABOUT, MESSAGES, NAMES, ROUNDS, TASK, Message, converse, median, reply, verdict

PARLEY, TEAM, DIRECT, RAW, INSPECT = (
    "Parley, everything recorded",
    "AutoGen RoundRobinGroupChat",
    "AutoGen AssistantAgent.on_messages",
    "raw calls",
    "Inspect AI with its log",
)
TARGETS = {TEAM: 1 / 6, INSPECT: 1 / 15}
"""Parley's cost over that row's, at most."""


class InstantAutoGen(ChatCompletionClient):
    """An AutoGen client that answers at once and records nothing."""

    component_type = "model"

    async def create(self, messages: Any, **settings: Any) -> CreateResult:
        await asyncio.sleep(0)
        return CreateResult(finish_reason="stop", content=reply(), usage=RequestUsage(100, 120), cached=False)

    async def create_stream(self, messages: Any, **settings: Any) -> Any:
        yield await self.create(messages)

    async def close(self) -> None:
        return None

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, messages: Any, **settings: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Any, **settings: Any) -> int:
        return 100_000

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=False,
            json_output=True,
            structured_output=True,
            family=ModelFamily.UNKNOWN,
        )

    capabilities = model_info  # type: ignore[assignment]


def assistants(client: ChatCompletionClient) -> list[AssistantAgent]:
    return [AssistantAgent(name, client, system_message=ABOUT[name], description=name) for name in NAMES]


async def one_raw() -> None:
    async def call(messages: list[Message]) -> str:
        await asyncio.sleep(0)
        return reply()

    await converse(call)


async def one_team(client: ChatCompletionClient) -> None:
    result = await RoundRobinGroupChat([*assistants(client)], max_turns=MESSAGES).run(task=TASK)
    assert sum(message.source != "user" for message in result.messages) == MESSAGES


async def one_direct(client: ChatCompletionClient) -> None:
    agents, token = assistants(client), CancellationToken()
    said: list[BaseChatMessage] = [TextMessage(content=TASK, source="user")]
    read = dict.fromkeys(NAMES, 0)
    for agent in agents * ROUNDS:
        unread = [message for message in said[read[agent.name] :] if message.source != agent.name]
        said.append((await agent.on_messages(unread, token)).chat_message)
        read[agent.name] = len(said)


async def together(one: Callable[[], Awaitable[None]], conversations: int) -> None:
    await asyncio.gather(*(one() for _ in range(conversations)))


def measure(hold: Callable[[int], Awaitable[None]], conversations: int) -> float:
    """CPU milliseconds a message."""
    gc.collect()
    before = time.process_time()
    asyncio.run(hold(conversations))  # type: ignore[arg-type]
    return 1e3 * (time.process_time() - before) / (conversations * MESSAGES)


async def parley(conversations: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await hold_panels(folder, conversations, concurrency=conversations)


class InspectPeer:
    """Inspect AI in a process of its own environment; it measures itself in the same way when asked."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.inspect_peer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, conversations: int) -> float:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        print(conversations, file=asked, flush=True)
        line = answers.readline()
        if not line:
            raise SystemExit("the Inspect AI process ended; is `inspect-ai` installed in its environment?")
        return float(line)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def take(conversations: int, rounds: int, inspect_python: str | None) -> dict[str, list[float]]:
    """All figures, round by round; the first round only warms up."""
    client = InstantAutoGen()
    holds: dict[str, Callable[[int], Awaitable[None]]] = {
        RAW: lambda n: together(one_raw, n),
        DIRECT: lambda n: together(lambda: one_direct(client), n),
        TEAM: lambda n: together(lambda: one_team(client), n),
        PARLEY: parley,
    }
    rows: dict[str, Callable[[int], float]] = {
        name: lambda n, hold=hold: measure(hold, n)  # type: ignore[misc]
        for name, hold in holds.items()
    }
    peer = InspectPeer(inspect_python) if inspect_python else None
    if peer:
        rows[INSPECT] = peer.measure
    figures: dict[str, list[float]] = {name: [] for name in rows}
    for count in [8] + [conversations] * rounds:
        for name, row in rows.items():
            figures[name].append(row(count))
    if peer:
        peer.close()
    return {name: values[1:] for name, values in figures.items()}


def ratios(figures: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Parley's cost over each other row's: the median of the ratios within rounds."""
    return {
        name: median([ours / theirs for ours, theirs in zip(figures[PARLEY], values, strict=True)])
        for name, values in figures.items()
        if name != PARLEY
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--conversations", type=int, default=128, help="held at once, eight messages each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--inspect-python", help="the python of an environment with inspect-ai")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    figures = take(wanted.conversations, wanted.rounds, wanted.inspect_python)
    compared = ratios(figures)
    if wanted.json:
        print(json.dumps({"cpu_ms_a_message": figures, "parley_over": compared, "targets": TARGETS}, indent=2))
        return
    print(f"{'CPU ms a message':<36} {'median':>8} {'least':>8} {'most':>8} {'Parley over it':>15}")
    for name in (RAW, DIRECT, TEAM, INSPECT, PARLEY):
        if name not in figures:
            print(f"{name:<36} not run (give --inspect-python)")
            continue
        values = figures[name]
        ratio = f"{compared[name]:.3f}" if name in compared else ""
        print(f"{name:<36} {median(values):8.3f} {min(values):8.3f} {max(values):8.3f} {ratio:>15}")
    for name, target in TARGETS.items():
        if name in compared:
            print(verdict(f"Parley over {name}", compared[name], target, at_least=False))


if __name__ == "__main__":
    main()
