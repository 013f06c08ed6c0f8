"""Every parser, with a few generated inputs: `python -m tests.fuzz` takes longer and finds more."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from tests.fuzz import files, imports, replies
from tests.fuzz.loop import HANG_SECONDS, Rejected, Target, TooLarge, TooSlow, fuzz, read_status
from tests.fuzz.targets import all_targets

INPUTS = 60
FEWER = {"command line": 15, "run file, reported": 15}
"""Each of these inputs takes as long as a command."""
NAMES = [
    *(target.name for target in (*replies.TARGETS, *files.TARGETS, *imports.TARGETS)),
    *("run file", "run file, reported", "notes file", "command line", "viewer request"),
]


@pytest.fixture(scope="module")
def targets() -> Iterator[dict[str, Target]]:
    with all_targets() as found:
        yield {target.name: target for target in found}


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_rejected_with_a_message(targets: dict[str, Target], name: str) -> None:
    inputs = FEWER.get(name, INPUTS)
    counts = fuzz(targets[name], inputs, seed=0, max_seconds=HANG_SECONDS)
    assert counts.accepted + counts.rejected == counts.inputs >= inputs
    assert counts.accepted >= 1, "not even the seeds are accepted: nothing was tried"


def test_no_parser_is_left_out(targets: dict[str, Target]) -> None:
    assert sorted(targets) == sorted(NAMES)


def has_a_bug(text: str) -> None:
    if "7" not in text:
        raise Rejected("it contains no seven")
    if text.count("[") > 20:
        raise KeyError("a bug")


def is_slow(text: str) -> None:
    end = time.process_time() + (0.6 if len(text) > 1000 else 0.0)
    while time.process_time() < end:
        pass


def is_large(text: str) -> None:
    bytearray(600_000_000 if len(text) > 1000 else 1)


@pytest.mark.parametrize(
    ("parse", "failure", "max_seconds"),
    [(has_a_bug, KeyError, HANG_SECONDS), (is_slow, TooSlow, 0.5), (is_large, TooLarge, HANG_SECONDS)],
)
def test_the_fuzzer_finds_a_planted_bug(
    parse: Callable[[str], None], failure: type[BaseException], max_seconds: float
) -> None:
    if failure is TooLarge and not read_status("VmHWM"):
        pytest.skip("memory is measured on Linux only")
    target = Target("planted", ['{"a": 7}'], replies.reply_mutator(['{"a": 7}']), parse)
    with pytest.raises(failure):
        fuzz(target, 1000, seed=1, max_seconds=max_seconds)


def test_importing_is_not_timed() -> None:
    """The first use of a module takes as long as its import."""
    name = "tests.fuzz.a_module_that_is_new"
    is_slow_at_first = iter([True])

    def parse(text: str) -> None:
        sys.modules.setdefault(name, ModuleType(name))
        is_slow("x" * 2000 if next(is_slow_at_first, False) else "")

    try:
        counts = fuzz(Target("planted", ["x"], replies.reply_mutator(["x"]), parse), 1, seed=1, max_seconds=0.5)
    finally:
        del sys.modules[name]
    assert counts.accepted == counts.inputs >= 2
