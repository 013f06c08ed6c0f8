"""Feeds mutated inputs to a parser. Hypothesis makes the mutations' random choices, and reduces an input that fails."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as set_seed
from hypothesis import strategies as st

from parley.agents import ParleyError
from parley.scenarios import ScenarioError

MAX_SECONDS = 1.0
"""A campaign's limit for one input of a parser, in this process's time: other load on the machine does not count."""
MAX_COMMAND_SECONDS = 5.0
"""The limit for a target that runs a whole command or makes a whole report, which is more than parsing."""
HANG_SECONDS = 20.0
"""A limit that a slow machine does not reach, for the tests: speed is not tested there."""
TIMEOUT_SECONDS = 60
"""Of real time, after which an input is interrupted."""
MAX_MEGABYTES = 500
"""Of memory for one input."""
ADDRESS_SPACE_MEGABYTES = 6_000
"""More than this raises MemoryError, before the machine runs out of memory."""


class Rejected(Exception):
    """Raised by a target for an input that was rejected without an exception: unparsed, with a problem in words."""


class TooSlow(BaseException):
    """An input took longer than the limit.

    Not an Exception: no code under test catches it, and Hypothesis does not reduce the input, which would take hours.
    """


class TooLarge(BaseException):
    """An input took more than `MAX_MEGABYTES`. Not an Exception, for the same reasons."""


@dataclass(frozen=True)
class Target:
    """Something that parses.

    Args:
        name: shown in the table.
        seeds: valid inputs.
        mutate: makes an input from the seeds.
        parse: parses an input and checks the result.
        max_seconds: a campaign's limit for one input.
    """

    name: str
    seeds: Sequence[Any]
    mutate: Callable[[random.Random, Sequence[Any]], Any]
    parse: Callable[[Any], object]
    max_seconds: float = MAX_SECONDS


@dataclass
class FuzzCounts:
    inputs: int = 0
    accepted: int = 0
    rejected: int = 0
    too_large: int = 0
    slowest: float = 0.0


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow(f"interrupted after {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


class PeakMemory:
    """How much memory this process took inside the `with` block, in megabytes; 0 where the system does not tell."""

    megabytes = 0.0
    _before = 0.0

    def __enter__(self) -> PeakMemory:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, the peak
        self._before = read_status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.megabytes = max(read_status("VmHWM") - self._before, 0.0)


def read_status(name: str) -> float:
    """One of Linux's figures about this process, in megabytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), 0.0)


@contextlib.contextmanager
def memory_limit(megabytes: int) -> Iterator[None]:
    """Limits the address space to this much more than it is now, on Linux."""
    size = int(read_status("VmSize"))
    if not size:
        yield
        return
    import resource

    previous = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, ((size + megabytes) << 20, previous[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, previous)


def fuzz(
    target: Target, inputs: int, seed: int, counts: FuzzCounts | None = None, *, max_seconds: float | None = None
) -> FuzzCounts:
    """Feed the seeds and mutated inputs to the target. The first failure is raised, with the input reduced.

    Args:
        target: what to feed.
        inputs: how many mutated inputs.
        seed: of all random choices.
        counts: updated while it runs, for a caller that wants them after a failure.
        max_seconds: the limit for one input (default: the target's).
    """
    counts = FuzzCounts() if counts is None else counts
    limit = target.max_seconds if max_seconds is None else max_seconds

    def check(content: Any) -> None:
        counts.inputs += 1
        modules = len(sys.modules)
        accepted, seconds, megabytes = measure(target, content)
        if seconds > limit and len(sys.modules) > modules:  # the first use of a module also imports it
            accepted, seconds, megabytes = measure(target, content)
        counts.accepted += accepted
        counts.rejected += not accepted
        counts.slowest = max(counts.slowest, seconds)
        if megabytes > MAX_MEGABYTES:
            counts.too_large += 1
            raise TooLarge(f"{megabytes:.0f} MB: {content!r}")
        if seconds > limit:
            raise TooSlow(f"{seconds:.1f} s: {content!r}")

    for content in target.seeds:
        check(content)
    choices = st.randoms(use_true_random=False)
    run = given(choices.map(lambda rng: target.mutate(rng, target.seeds)))(check)
    run = settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )(run)
    set_seed(seed)(run)()
    return counts


def measure(target: Target, content: Any) -> tuple[bool, float, float]:
    """Whether an input was accepted, the processor time in seconds, and the memory in megabytes."""
    memory, accepted = PeakMemory(), True
    started = time.process_time()
    try:
        with memory, time_limit(TIMEOUT_SECONDS), memory_limit(ADDRESS_SPACE_MEGABYTES):
            target.parse(content)
    except (ParleyError, ScenarioError, Rejected) as error:
        if not str(error).strip():
            raise AssertionError("rejected without a message") from error
        accepted = False
    except TooSlow as error:
        raise TooSlow(f"{error}: {content!r}") from None
    return accepted, time.process_time() - started, memory.megabytes
