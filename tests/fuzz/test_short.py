"""Every parser, with a few generated inputs: `python -m tests.fuzz` takes longer and finds more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz import files, imports, replies
from tests.fuzz.loop import Rejected, Target, TooLarge, TooSlow, fuzz
from tests.fuzz.targets import all_targets

INPUTS = 60
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
    counts = fuzz(targets[name], INPUTS, seed=0)
    assert counts.accepted + counts.rejected == counts.inputs >= INPUTS
    assert counts.accepted >= 1, "not even the seeds are accepted: nothing was tried"


def test_no_parser_is_left_out(targets: dict[str, Target]) -> None:
    assert sorted(targets) == sorted(NAMES)


def test_the_fuzzer_finds_planted_bugs() -> None:
    def broken(text: str) -> None:
        if "7" not in text:
            raise Rejected("it contains no seven")
        if text.count("[") > 20:
            raise KeyError("a bug")

    def slow(text: str) -> None:
        sum(range(60_000_000 if len(text) > 1000 else 1))

    def large(text: str) -> None:
        bytearray(600_000_000 if len(text) > 1000 else 1)

    for parse, failure in ((broken, KeyError), (slow, TooSlow), (large, TooLarge)):
        target = Target("broken", ['{"a": 7}'], replies.reply_mutator(['{"a": 7}']), parse)
        with pytest.raises(failure):
            fuzz(target, 1000, seed=1)
