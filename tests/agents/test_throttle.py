"""Calls of the units that began first are sent first, and the number of concurrent calls is found."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parley.agents import Session, model, session
from parley.agents.models.throttle import START_LIMIT, LimitSearch, Throttle


async def test_calls_that_wait_start_in_the_order_of_their_units() -> None:
    throttle, started = Throttle(1), []
    await throttle.enter()

    async def call(order: int, name: str) -> None:
        await throttle.enter(order)
        started.append(name)
        throttle.leave(0.1)

    waiting = [asyncio.ensure_future(call(*one)) for one in ((3, "c"), (1, "a"), (2, "b"), (1, "a again"))]
    await asyncio.sleep(0)
    throttle.leave(0.1)
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


def test_a_number_that_the_user_set_is_used_from_the_first_call_on() -> None:
    assert model("sim/debate").throttle.limit == START_LIMIT
    assert model("sim/debate?max_connections=200").throttle.limit == 200
    assert model("sim/debate?max_connections=3").throttle.limit == 3


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def reply_to(search: LimitSearch, clock: Clock, count: int, *, seconds: float, apart: float) -> None:
    for _ in range(count):
        clock.now += apart
        search.pressed = True
        search.reply(seconds)


def test_the_limit_is_doubled_as_long_as_that_raises_the_throughput() -> None:
    clock = Clock()
    search = LimitSearch(32, 256, clock)
    for limit in (32, 64, 128):
        assert search.limit == limit
        reply_to(search, clock, limit * 2, seconds=1.0, apart=1 / limit)
    assert search.limit == 256


def test_a_limit_that_limits_nothing_is_left_alone() -> None:
    clock = Clock()
    search = LimitSearch(32, 256, clock)
    for _ in range(1000):
        clock.now += 0.01
        search.reply(0.3)
    assert search.limit == 32


def test_the_limit_goes_back_if_the_throughput_does_not_grow() -> None:
    clock = Clock()
    search = LimitSearch(32, 256, clock)
    limits = []
    for _ in range(5000):
        reply_to(search, clock, 1, seconds=min(search.limit / 40, clock.now + 1 / 40), apart=1 / 40)
        limits.append(search.limit)
    assert set(limits) == {32, 64}
    assert limits[-2000:].count(32) > 1000


@pytest.mark.parametrize("again", [False, True])
def test_a_429_lowers_a_limit_that_is_being_found_and_a_second_one_ends_the_search(again: bool) -> None:
    clock = Clock()
    search = LimitSearch(32, 256, clock)
    throttle = Throttle(256, search=search)
    throttle.under_way = 32
    throttle.slow_down(None)
    assert int(throttle.limit) == search.limit == 21
    if again:
        search.retried = True
        throttle.slow_down(None)
        before = throttle.limit
        throttle.leave(1.0)
        assert throttle.limit == pytest.approx(before + 1 / before)
    else:
        throttle.leave(1.0)
        assert throttle.limit == 21


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
