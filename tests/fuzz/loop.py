"""A campaign: inputs for every target in turn, what became of each, and what is worth keeping to mutate further."""

from __future__ import annotations

import contextlib
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.agents import ParleyError
from parley.scenarios import ScenarioError
from tests.fuzz.coverage import Coverage

HANG = 1.0
"""Seconds of work on one input, as this process's clock counts them: other people's jobs do not make a hang."""
GIVE_UP = 30
"""Seconds by the wall after which an input is interrupted."""
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
    slowest: float = 0.0
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
        started = time.process_time()
        try:
            with alarm(GIVE_UP):
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
        return time.process_time() - started

    def _again(self, given: Any) -> float:
        """How long it takes without anyone watching."""
        started = time.process_time()
        with contextlib.suppress(Exception, Hung), alarm(GIVE_UP):
            self.target.feed(given)
        return time.process_time() - started
