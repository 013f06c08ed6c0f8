"""How long a large run takes, and its disk, memory and CPU: a discrete-event simulation of calls to a provider.

    forecast(Work(calls=10_000_000), ProviderLimits(requests_a_minute=10_000, latency=1.5), Machine(concurrency=512))

It simulates concurrent units with their calls one after the other, varying latencies, the provider's rate limits, and
how our clients retry (`parley.agents.models.throttle`). Only the first 100,000 calls of a long run are simulated; the
rest is extrapolated at the rate of their second half. Checked against real runs: docs/planning.md.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from parley.agents.models.request import ClientOptions
from parley.agents.models.throttle import Throttle

MAX_SIMULATED_CALLS = 100_000
"""Further calls are extrapolated at the rate of the second half of these."""
RETRIES: int = ClientOptions.model_fields["retries"].default
CHARACTERS_PER_TOKEN = 4.5
CALL_BYTES, CACHED_BYTES, REPLY_COPIES = 545, 375, 1.05
"""Bytes per call in the run file and in the reply cache, without the reply's text, measured over 10,000 calls."""
BASE_MB, UNIT_MB = 65.0, 0.08
"""Memory of a process, and of each unit in progress with its messages."""


@dataclass(frozen=True, slots=True)
class Work:
    """The calls of a run; tokens are those of one call."""

    calls: int
    calls_a_unit: int = 8
    prompt_tokens: float = 1000.0
    reply_tokens: float = 150.0

    @property
    def tokens(self) -> float:
        return self.prompt_tokens + self.reply_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLimits:
    """A provider's rate limits, latency and faults."""

    requests_a_minute: float = math.inf
    tokens_a_minute: float = math.inf
    latency: float = 1.0
    """Median latency of a call in seconds."""
    spread: float = 0.0
    """Standard deviation of the latency's logarithm."""
    faults: float = 0.0
    """Share of calls that fail and are retried."""
    retry_after: float = 1.0
    """Seconds that a refused call must wait."""
    capacity: int = 0
    """Calls that the server works on at a time, while the others wait in its queue; 0 if it works on all."""

    @property
    def mean_latency(self) -> float:
        return self.latency * math.exp(self.spread**2 / 2)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the run is executed."""

    concurrency: int = 256
    """Units run concurrently, in all processes together."""
    cpu_ms: float = 0.6
    """CPU milliseconds per call."""
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The expected time and resources of a run."""

    seconds: float
    calls_a_second: float
    bounds: dict[str, float]
    """The rate that each limit alone would allow, in calls per second."""
    refused: float
    """Refusals (429) per call."""
    failed: float
    """Share of units that fail after all retries."""
    unit_ends: tuple[float, ...]
    """When each simulated unit was finished, in seconds."""
    cpu_hours: float
    run_gb: float
    cache_gb: float
    memory_mb: float

    @property
    def bound_by(self) -> str:
        """The limit that determines the rate."""
        return min(self.bounds, key=lambda name: self.bounds[name])


def forecast(work: Work, provider: ProviderLimits, machine: Machine, seed: int = 0) -> Forecast:
    """Simulate a run.

    Args:
        work: Its calls.
        provider: The limits of the provider that answers them.
        machine: Where it is executed.
        seed: For latencies, faults and retries.
    """
    simulation = _Simulation(work, provider, machine, seed)
    simulation.run(MAX_SIMULATED_CALLS)
    seconds = simulation.now
    if (left := work.calls - simulation.calls - simulation.lost) > 0:
        rate = (simulation.calls - simulation.half_calls) / max(simulation.now - simulation.half_time, 1e-9)
        seconds += left / rate if rate else math.inf
    share = work.calls / max(simulation.calls, 1)
    reply_bytes = work.reply_tokens * CHARACTERS_PER_TOKEN
    return Forecast(
        seconds=seconds,
        calls_a_second=work.calls / seconds if seconds else math.inf,
        bounds=bounds(work, provider, machine),
        refused=simulation.refused / max(simulation.calls, 1),
        failed=simulation.failed / max(simulation.units, 1),
        unit_ends=tuple(simulation.unit_ends),
        cpu_hours=simulation.cpu_seconds * share * machine.processes / 3600,
        run_gb=work.calls * (CALL_BYTES + REPLY_COPIES * reply_bytes) / 1e9,
        cache_gb=work.calls * (CACHED_BYTES + REPLY_COPIES * reply_bytes) / 1e9,
        memory_mb=machine.processes * BASE_MB + machine.concurrency * UNIT_MB,
    )


def bounds(work: Work, provider: ProviderLimits, machine: Machine) -> dict[str, float]:
    """The rate that each limit alone would allow, in calls per second."""
    return {
        "latency": machine.concurrency / provider.mean_latency if provider.mean_latency else math.inf,
        "requests a minute": provider.requests_a_minute / 60,
        "tokens a minute": provider.tokens_a_minute / 60 / work.tokens if work.tokens else math.inf,
        "CPU": machine.processes * 1000 / machine.cpu_ms if machine.cpu_ms else math.inf,
    }


@dataclass
class _Bucket:
    """A token bucket: it refills at the limit's rate, and one second's worth may be taken at a time."""

    per_second: float
    level: float = 0.0
    filled_at: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.per_second

    def fill(self, now: float) -> None:
        if math.isfinite(self.per_second):
            self.level = min(self.per_second, self.level + (now - self.filled_at) * self.per_second)
            self.filled_at = now


@dataclass
class _Unit:
    number: int
    calls_left: int
    attempt: int = 0


@dataclass
class _Simulation:
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
    cpu_seconds: float = 0.0
    half_time: float = 0.0
    half_calls: int = 0
    unit_ends: list[float] = field(default_factory=list)
    _events: list[tuple[float, int, str, _Unit]] = field(default_factory=list)
    _paused_until: float = 0.0
    _cpu_free: float = 0.0

    def __post_init__(self) -> None:
        # The client's own throttle: a formula is wrong once clients are refused and slow down, and a copy would drift.
        self._throttle = Throttle(self.machine.concurrency)
        self._places_free_at = [0.0] * self.provider.capacity
        self._random = random.Random(self.seed)
        self._event_numbers = count()  # ties in time are resolved in order
        self._started_calls = 0
        self._requests = _Bucket(self.provider.requests_a_minute / 60)
        self._tokens = _Bucket(self.provider.tokens_a_minute / 60)
        self._step = self.machine.cpu_ms / 2000 / self.machine.processes

    def run(self, max_calls: int) -> None:
        """Simulate the whole plan, or at most this many calls of it."""
        self._half = min(max_calls, self.work.calls) // 2
        for _ in range(self.machine.concurrency):
            self._start_unit()
        while self._events and self.calls + self.lost < max_calls:
            self.now, _, kind, unit = heapq.heappop(self._events)
            getattr(self, f"_{kind}")(unit)

    def _schedule(self, time: float, kind: str, unit: _Unit) -> None:
        heapq.heappush(self._events, (time, next(self._event_numbers), kind, unit))

    def _start_unit(self) -> None:
        """Start the next unit of the plan, if there is one."""
        if self._started_calls < self.work.calls:
            unit = _Unit(self.units, min(self.work.calls_a_unit, self.work.calls - self._started_calls))
            self._started_calls += unit.calls_left
            self.units += 1
            self._schedule(self.now, "ask", unit)

    def _compute(self) -> float:
        """Do half of a call's CPU work, after all work before it; returns when it is done."""
        self._cpu_free = max(self._cpu_free, self.now) + self._step
        self.cpu_seconds += self._step
        return self._cpu_free

    def _ask(self, unit: _Unit) -> None:
        if self.now < self._paused_until:
            self._schedule(self._paused_until, "ask", unit)
        elif self._throttle.take():
            self._send(unit)
        else:
            self._throttle.queue(unit.number, partial(self._send, unit))

    def _send(self, unit: _Unit) -> bool:
        """Send a unit's call; always true, since no simulated call is cancelled while it waits."""
        if self.now < self._paused_until:
            self._schedule(self._paused_until, "send", unit)
            return True
        unit.attempt += 1
        arrival = self._compute()
        if not self._admitted(arrival):
            self._schedule(arrival, "refuse", unit)
            return True
        spread = self.provider.spread
        latency = self.provider.latency * (self._random.lognormvariate(0, spread) if spread else 1.0)
        kind = "fault" if self._random.random() < self.provider.faults else "answer"
        if self._places_free_at:
            arrival = max(arrival, self._places_free_at[0])
            heapq.heapreplace(self._places_free_at, arrival + latency)
        self._schedule(arrival + latency, kind, unit)
        return True

    def _admitted(self, now: float) -> bool:
        """Whether both limits have room; a call of more than a second's worth of tokens needs a full bucket."""
        self._requests.fill(now)
        self._tokens.fill(now)
        needed = min(self.work.tokens, self._tokens.per_second)
        if self._requests.level < 1 or self._tokens.level < needed:
            return False
        self._requests.level -= 1
        self._tokens.level -= self.work.tokens
        return True

    def _refuse(self, unit: _Unit) -> None:
        self.refused += 1
        if self.now >= self._paused_until:
            self._throttle.slow_down(None)
        self._paused_until = max(self._paused_until, self.now + self.provider.retry_after)
        self._fault(unit, self.provider.retry_after)

    def _fault(self, unit: _Unit, retry_after: float = 0.0) -> None:
        self._throttle.leave()
        if unit.attempt > RETRIES:
            self.failed += 1
            self.lost += unit.calls_left
            self._start_unit()
            return
        backoff = min(30.0, 0.5 * 2.0 ** (unit.attempt - 1)) * (0.5 + self._random.random())  # as our clients do
        self._schedule(self.now + max(backoff, retry_after), "ask", unit)

    def _answer(self, unit: _Unit) -> None:
        self._schedule(self._compute(), "done", unit)

    def _done(self, unit: _Unit) -> None:
        self._throttle.leave(succeeded=True)
        self.calls += 1
        if self.calls == self._half:
            self.half_time, self.half_calls = self.now, self.calls
        unit.calls_left, unit.attempt = unit.calls_left - 1, 0
        if unit.calls_left:
            self._ask(unit)
        else:
            self.unit_ends.append(self.now)
            self._start_unit()
