"""Feeds generated inputs to a parser: each is accepted, or rejected with an error message of Parley's."""

from __future__ import annotations

import contextlib
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psutil
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic_core import to_jsonable_python

from parley.agents import ParleyError
from parley.scenarios import ScenarioError

MAX_SECONDS = 5.0
"""A campaign's limit for one input, in this process's time: other load on the machine does not count."""
HANG_SECONDS = 20.0
"""A limit that a slow machine does not reach, for the tests: speed is not tested there."""
MAX_MEGABYTES = 2_000
"""Of memory for one input."""


class Rejected(Exception):
    """Raised by a target for an input that was rejected without an exception: unparsed, with a problem in words."""


class TooSlow(BaseException):
    """An input took longer than the limit.

    Not an Exception: no code under test catches it, and Hypothesis does not reduce the input, which would take hours.
    """


@dataclass(frozen=True)
class Target:
    """Something that parses: its name, valid inputs, inputs made from them, and what parses one and checks it."""

    name: str
    seeds: Sequence[Any]
    inputs: st.SearchStrategy[Any]
    parse: Callable[[Any], object]


def encoded(value: object) -> bytes:
    """What was read as JSON in UTF-8, as files store it: half a surrogate pair cannot be encoded."""
    return json.dumps(to_jsonable_python(value, serialize_unknown=True), ensure_ascii=False).encode()


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupts what takes more of this process's time; too much memory raises MemoryError, on Linux."""
    if not psutil.LINUX:
        yield
        return
    import resource

    def stop(*_: object) -> None:
        raise TooSlow(f"interrupted after {seconds} s")

    memory = resource.getrlimit(resource.RLIMIT_AS)
    previous = signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + (MAX_MEGABYTES << 20), memory[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
        resource.setrlimit(resource.RLIMIT_AS, memory)


def outcome(parse: Callable[[Any], object], content: Any, seconds: float) -> str:
    try:
        with limited(seconds):
            parse(content)
    except (ParleyError, ScenarioError, Rejected) as error:
        if not str(error).strip():
            raise AssertionError("rejected without a message") from error
        return "rejected"
    except TooSlow as error:
        raise TooSlow(f"{error}: {content!r}") from None
    return "accepted"


def check_target(target: Target, examples: int, seconds: float = HANG_SECONDS, *, same: bool = True) -> Counter[str]:
    """How many inputs were accepted and rejected. The first failure is raised, with the input reduced.

    Args:
        target: what to feed, with its seeds and with generated inputs.
        examples: how many generated inputs.
        seconds: the limit for one input.
        same: the same inputs every time.
    """
    counts = Counter(outcome(target.parse, seed, seconds) for seed in target.seeds)

    @settings(
        max_examples=examples,
        derandomize=same,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(target.inputs)
    def check(content: Any) -> None:
        counts[outcome(target.parse, content, seconds)] += 1

    check()
    return counts
