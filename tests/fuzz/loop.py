"""A campaign: inputs for every target in turn, what became of each, and what is worth keeping to mutate further."""

from __future__ import annotations

import contextlib
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parley.agents import ParleyError
from parley.scenarios import ScenarioError
from tests.fuzz.coverage import Coverage

HANG = 1.0
"""Seconds of work on one input, as this process's clock counts them: other people's jobs do not make a hang."""
GIVE_UP = 30
"""Seconds by the wall after which an input is interrupted."""
LARGE = 500
"""Megabytes of memory that one input may take."""
MOST = 6_000
"""Megabytes of address space for the whole process: an input that wants more gets a MemoryError, not the machine."""
KEPT = 400
"""Inputs a target keeps to mutate."""


class Rejected(Exception):
    """What a target raises for a refusal that is no exception of ours: unparsed, with the problem in words."""


class Hung(BaseException):
    """Raised by the alarm; nothing catches it on the way."""


@dataclass(frozen=True)
class Target:
    """Something that parses. `make` writes the next input from what is kept; `feed` parses it and checks what is said
    of an accepted input; `weight` is the share of inputs it gets."""

    name: str
    seeds: Sequence[Any]
    make: Callable[[random.Random, Sequence[Any]], Any]
    feed: Callable[[Any], object]
    weight: float = 1.0


@dataclass
class Tally:
    inputs: int = 0
    accepted: int = 0
    rejected: int = 0
    crashes: list[tuple[Any, str]] = field(default_factory=list)
    hangs: list[tuple[Any, float]] = field(default_factory=list)
    large: list[tuple[Any, float]] = field(default_factory=list)
    slowest: float = 0.0
    largest: float = 0.0
    lines: int = 0


@contextlib.contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Memory:
    """How far this process's memory rose at its highest, in megabytes; 0 where the system does not tell."""

    def __init__(self) -> None:
        self.rose = 0.0
        self._before = 0.0

    def __enter__(self) -> Memory:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
        self._before = self._read("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.rose = max(self._read("VmHWM") - self._before, 0.0)

    @staticmethod
    def _read(name: str) -> float:
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
        except OSError:
            return 0.0
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), 0.0)


@contextlib.contextmanager
def bounded_memory(megabytes: int) -> Iterator[None]:
    """At most so much more address space than now."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Memory._read("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, ((now + megabytes) << 20 if now else before[0], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


class Campaign:
    """One target's inputs, one after the other."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.tally = Tally()
        self._rng = random.Random(f"{seed}/{target.name}")
        self._kept = list(target.seeds)
        self._coverage = Coverage()

    def go(self, inputs: int) -> None:
        for number in range(inputs):
            first = self.tally.inputs < len(self.target.seeds)
            given = self._kept[self.tally.inputs] if first else self.target.make(self._rng, self._kept)
            before = self._coverage.reached
            # Tracing is dear, so a part of the inputs goes without; the seeds never do.
            if first or number % 3 == 0:
                with self._coverage.watching():
                    took = self._try(given)
                if took > HANG:
                    took = self._again(given)
            else:
                took = self._try(given)
            self.tally.slowest = max(self.tally.slowest, took)
            if took > HANG:
                self.tally.hangs.append((given, took))
            if self._coverage.reached > before and not first and len(self._kept) < KEPT:
                self._kept.append(given)
        self.tally.lines = self._coverage.reached

    def _try(self, given: Any) -> float:
        """What becomes of it; the seconds it took."""
        tally = self.tally
        tally.inputs += 1
        memory = Memory()
        started = time.process_time()
        try:
            with memory, alarm(GIVE_UP), bounded_memory(MOST):
                self.target.feed(given)
            tally.accepted += 1
        except (ParleyError, ScenarioError, Rejected) as error:
            if str(error).strip():
                tally.rejected += 1
            else:
                tally.crashes.append((given, "rejected without a word"))
        except Hung:
            pass  # its time tells
        except Exception:
            tally.crashes.append((given, traceback.format_exc(limit=-4)))
        took = time.process_time() - started
        tally.largest = max(tally.largest, memory.rose)
        if memory.rose > LARGE:
            tally.large.append((given, memory.rose))
        return took

    def _again(self, given: Any) -> float:
        """How long it takes without anyone watching."""
        started = time.process_time()
        with contextlib.suppress(Exception, Hung), alarm(GIVE_UP):
            self.target.feed(given)
        return time.process_time() - started
