"""How long a large run takes, and what it fills and costs: a simulation, event by event, of calls against a provider.

    forecast(Work(calls=10_000_000), Provider(requests_a_minute=10_000, latency=1.5), Machine(concurrency=512))

Simulated are the units under way, their calls one after the other, latencies that differ, the provider's limits, and
what our clients do when refused (`parley.agents.models.throttle`). A long run is simulated for its
first 100,000 calls; the rest goes on at the pace of their second half. Checked against real runs: docs/planning.md.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from dataclasses import dataclass, field
from itertools import count

from parley.agents import ConfigError
from parley.agents.models.base import ClientOptions
from parley.agents.models.throttle import Throttle

SIMULATED = 100_000
"""Calls at most; further ones are taken to go as the second half of these did."""
RETRIES: int = ClientOptions.model_fields["retries"].default
CHARACTERS_A_TOKEN = 4.5
CALL_BYTES, CACHED_BYTES, REPLY_COPIES = 545, 375, 1.05
"""Bytes of a call in the run file and in the reply cache beside its reply's text, as 10,000 calls gave them."""
BASE_MB, UNIT_MB = 65.0, 0.08
"""Memory of a process, and of each unit under way with its messages."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done; tokens are those of one call."""

    calls: int
    calls_a_unit: int = 8
    prompt_tokens: float = 1000.0
    reply_tokens: float = 150.0

    @property
    def tokens(self) -> float:
        return self.prompt_tokens + self.reply_tokens


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """Who answers: limits, seconds of latency (the median; `spread` is the deviation of its logarithm), faults."""

    requests_a_minute: float = math.inf
    tokens_a_minute: float = math.inf
    latency: float = 1.0
    spread: float = 0.0
    faults: float = 0.0
    retry_after: float = 1.0

    @property
    def mean_latency(self) -> float:
        return self.latency * math.exp(self.spread**2 / 2)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the run is held: units at once, milliseconds a call takes of one core, and processes that share the run."""

    concurrency: int = 256
    cpu_ms: float = 0.6
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Forecast:
    seconds: float
    calls_a_second: float
    bounds: dict[str, float]
    """What each limit alone would allow, in calls a second."""
    refused: float
    """Refusals (429) a call."""
    failed: float
    """Share of units that gave up after all retries."""
    cpu_hours: float
    run_gb: float
    cache_gb: float
    memory_mb: float

    @property
    def bound_by(self) -> str:
        return min(self.bounds, key=lambda name: self.bounds[name])


def forecast(work: Work, provider: ProviderLimits, machine: Machine, seed: int = 0) -> Forecast:
    """Everything about a run that has not begun."""
    for name, value in (("calls", work.calls), ("calls a unit", work.calls_a_unit), ("units", machine.concurrency)):
        if value < 1:
            raise ConfigError(f"{name}: at least 1 is needed, not {value}")
    world = _World(work, provider, machine, seed)
    world.run(SIMULATED)
    seconds = world.now
    if (left := work.calls - world.calls - world.lost) > 0:
        pace = (world.calls - world.half_calls) / max(world.now - world.half_at, 1e-9)
        seconds += left / pace if pace else math.inf
    share = work.calls / max(world.calls, 1)
    reply = work.reply_tokens * CHARACTERS_A_TOKEN
    return Forecast(
        seconds=seconds,
        calls_a_second=work.calls / seconds if seconds else math.inf,
        bounds=bounds(work, provider, machine),
        refused=world.refused / max(world.calls, 1),
        failed=world.failed / max(world.units, 1),
        cpu_hours=world.worked * share * machine.processes / 3600,
        run_gb=work.calls * (CALL_BYTES + REPLY_COPIES * reply) / 1e9,
        cache_gb=work.calls * (CACHED_BYTES + REPLY_COPIES * reply) / 1e9,
        memory_mb=machine.processes * BASE_MB + machine.concurrency * UNIT_MB,
    )


def bounds(work: Work, provider: ProviderLimits, machine: Machine) -> dict[str, float]:
    at_once = machine.concurrency / provider.mean_latency if provider.mean_latency else math.inf
    return {
        "latency": at_once,
        "requests a minute": provider.requests_a_minute / 60,
        "tokens a minute": provider.tokens_a_minute / 60 / work.tokens if work.tokens else math.inf,
        "CPU": machine.processes * 1000 / machine.cpu_ms if machine.cpu_ms else math.inf,
    }


@dataclass
class _Bucket:
    """A limit a minute, of which one second's worth may be taken at once."""

    a_second: float
    held: float = 0.0
    seen: float = 0.0

    def __post_init__(self) -> None:
        self.held = self.a_second

    def fill(self, now: float) -> None:
        if math.isfinite(self.a_second):
            self.held = min(self.a_second, self.held + (now - self.seen) * self.a_second)
            self.seen = now


@dataclass
class _Unit:
    calls_left: int
    attempt: int = 0


@dataclass
class _World:
    """The state of a simulated run; `now` moves from event to event."""

    work: Work
    provider: ProviderLimits
    machine: Machine
    seed: int
    now: float = 0.0
    calls: int = 0
    lost: int = 0
    units: int = 0
    refused: int = 0
    failed: int = 0
    worked: float = 0.0
    half_at: float = 0.0
    half_calls: int = 0
    _events: list[tuple[float, int, str, _Unit]] = field(default_factory=list)
    _waiting: deque[_Unit] = field(default_factory=deque)
    _paused_until: float = 0.0
    _cpu_free: float = 0.0

    def __post_init__(self) -> None:
        self._throttle = Throttle(self.machine.concurrency)
        self._dice = random.Random(self.seed)
        self._number = count()
        self._begun = 0
        self._requests = _Bucket(self.provider.requests_a_minute / 60)
        self._tokens = _Bucket(self.provider.tokens_a_minute / 60)
        self._step = self.machine.cpu_ms / 2000 / self.machine.processes

    def run(self, most: int) -> None:
        """To the end of the plan, or for so many calls of it."""
        self._half = min(most, self.work.calls) // 2
        for _ in range(self.machine.concurrency):
            self._begin()
        while self._events and self.calls + self.lost < most:
            self.now, _, kind, unit = heapq.heappop(self._events)
            getattr(self, f"_{kind}")(unit)

    def _at(self, time: float, kind: str, unit: _Unit) -> None:
        heapq.heappush(self._events, (time, next(self._number), kind, unit))

    def _begin(self) -> None:
        """The next unit of the plan, if there is one."""
        if self._begun < self.work.calls:
            unit = _Unit(min(self.work.calls_a_unit, self.work.calls - self._begun))
            self._begun += unit.calls_left
            self.units += 1
            self._at(self.now, "ask", unit)

    def _compute(self) -> float:
        """One core does everything in turn: half a call's work now, at the earliest."""
        self._cpu_free = max(self._cpu_free, self.now) + self._step
        self.worked += self._step
        return self._cpu_free

    def _ask(self, unit: _Unit) -> None:
        if self.now < self._paused_until:
            self._at(self._paused_until, "ask", unit)
        elif self._throttle.under_way < int(self._throttle.limit) and not self._waiting:
            self._throttle.under_way += 1
            self._send(unit)
        else:
            self._waiting.append(unit)

    def _send(self, unit: _Unit) -> None:
        if self.now < self._paused_until:
            self._at(self._paused_until, "send", unit)
            return
        unit.attempt += 1
        there = self._compute()
        if not self._admitted(there):
            self._at(there, "refuse", unit)
            return
        spread = self.provider.spread
        latency = self.provider.latency * (self._dice.lognormvariate(0, spread) if spread else 1.0)
        kind = "fault" if self._dice.random() < self.provider.faults else "answer"
        self._at(there + latency, kind, unit)

    def _admitted(self, now: float) -> bool:
        """Both limits have room; a call larger than a second's worth of tokens passes when the bucket is full."""
        self._requests.fill(now)
        self._tokens.fill(now)
        needed = min(self.work.tokens, self._tokens.a_second)
        if self._requests.held < 1 or self._tokens.held < needed:
            return False
        self._requests.held -= 1
        self._tokens.held -= self.work.tokens
        return True

    def _refuse(self, unit: _Unit) -> None:
        self.refused += 1
        if self.now >= self._paused_until:
            self._throttle.slow_down(None)
        self._paused_until = max(self._paused_until, self.now + self.provider.retry_after)
        self._fault(unit, self.provider.retry_after)

    def _fault(self, unit: _Unit, asked_for: float = 0.0) -> None:
        self._leave()
        if unit.attempt > RETRIES:
            self.failed += 1
            self.lost += unit.calls_left
            self._begin()
            return
        backoff = min(30.0, 0.5 * 2.0 ** (unit.attempt - 1)) * (0.5 + self._dice.random())  # as clients wait
        self._at(self.now + max(backoff, asked_for), "ask", unit)

    def _answer(self, unit: _Unit) -> None:
        self._at(self._compute(), "done", unit)

    def _done(self, unit: _Unit) -> None:
        self._leave(ok=True)
        self.calls += 1
        if self.calls == self._half:
            self.half_at, self.half_calls = self.now, self.calls
        unit.calls_left, unit.attempt = unit.calls_left - 1, 0
        if unit.calls_left:
            self._ask(unit)
        else:
            self._begin()

    def _leave(self, *, ok: bool = False) -> None:
        self._throttle.leave(ok=ok)
        while self._waiting and self._throttle.under_way < int(self._throttle.limit):
            self._throttle.under_way += 1
            self._send(self._waiting.popleft())
