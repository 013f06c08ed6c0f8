"""Calls of the units that began first are sent first, and a 429 lowers the number of concurrent calls."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parley.agents import Session, model, session
from parley.agents.models.throttle import Throttle


async def test_calls_that_wait_start_in_the_order_of_their_units() -> None:
    throttle, started = Throttle(1), []
    await throttle.enter()

    async def call(order: int, name: str) -> None:
        await throttle.enter(order)
        started.append(name)
        throttle.leave(succeeded=True)

    waiting = [asyncio.ensure_future(call(*one)) for one in ((3, "c"), (1, "a"), (2, "b"), (1, "a again"))]
    await asyncio.sleep(0)
    throttle.leave(succeeded=True)
    await asyncio.gather(*waiting)

    assert started == ["a", "a again", "b", "c"]
    assert throttle.under_way == 0


async def test_a_cancelled_call_gives_its_place_to_the_next() -> None:
    throttle = Throttle(1)
    await throttle.enter()
    cancelled, waiting = (asyncio.ensure_future(throttle.enter(order)) for order in (1, 2))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.sleep(0)
    throttle.leave()
    await asyncio.wait_for(waiting, 5)
    assert throttle.under_way == 1


async def test_a_client_sends_the_calls_of_the_older_unit_first() -> None:
    client = model("sim/debate?latency=0.01&max_connections=1")
    older, newer = Session("older"), Session("newer")
    finished = []

    async def ask(unit: Session, text: str) -> None:
        from autogen_core.models import UserMessage

        with session(unit):
            await client.create([UserMessage(content=text, source="user")])
        finished.append((unit.sample, text))

    await asyncio.gather(ask(newer, "1"), ask(newer, "2"), ask(newer, "3"), ask(older, "4"))

    assert finished[:2] == [("newer", "1"), ("older", "4")]


def test_a_vendor_gets_more_calls_at_a_time_than_a_server_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert model("openai/gpt-4o-mini").throttle.limit == 256
    assert model("ollama/m").throttle.limit == model("server/m?base_url=http://localhost/v1").throttle.limit == 64
    assert model("ollama/m?max_connections=3").throttle.limit == 3


def test_a_429_lowers_the_limit_by_a_third_and_successful_calls_raise_it_by_one() -> None:
    throttle = Throttle(32)
    throttle.under_way = 31
    throttle.slow_down(None)
    assert throttle.limit == pytest.approx(32 * 0.67)
    throttle.leave()
    assert throttle.limit == pytest.approx(32 * 0.67)
    throttle.leave(succeeded=True)
    assert throttle.limit == pytest.approx(32 * 0.67 + 1 / (32 * 0.67))


def test_few_open_files_are_few_connections() -> None:
    """In a process of its own: a limit of open files cannot be raised again."""
    resource = pytest.importorskip("resource")
    program = (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nfrom parley.agents import model\n"
        "client = model('server/m?base_url=http://127.0.0.1:1/v1', max_connections=256)\n"
        "print(client.concurrency, client.throttle.limit)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    concurrency, limit = (int(float(word)) for word in out.stdout.split())
    assert 1 <= limit == concurrency < 40
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64
