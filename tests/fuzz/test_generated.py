"""Every parser, with generated inputs: a few in the tests, many in the nightly campaign."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.fuzz import files, imports, replies, verdicts
from tests.fuzz.checking import HANG_SECONDS, MAX_SECONDS, Rejected, Target, TooSlow, check_target
from tests.fuzz.targets import all_targets

INPUTS, CAMPAIGN = 8, 1000
COMMANDS = ("command line", "run file, reported")
"""Each of these inputs takes as long as a command: there are fewer."""
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
    target, inputs = targets[name], INPUTS
    if name in COMMANDS:
        target, inputs = replace(target, seeds=target.seeds[:2]), 4
    counts = check_target(target, inputs)
    assert counts["accepted"] >= 1, "not even the seeds are accepted: nothing was tried"


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_campaign(targets: dict[str, Target], name: str, record_property: Callable[[str, object], None]) -> None:
    """Other inputs every time."""
    counts = check_target(targets[name], CAMPAIGN // 4 if name in COMMANDS else CAMPAIGN, MAX_SECONDS, same=False)
    record_property("generated inputs", (name, counts["accepted"], counts["rejected"]))


@pytest.mark.parametrize("count", [1500, pytest.param(30_000, marks=pytest.mark.nightly)])
async def test_no_number_is_stored_that_is_not_the_verdict(count: int) -> None:
    counts, faults = await verdicts.tried(count, seed=count)
    assert faults == []
    for reader in ("object", "ballot", "probabilities", "answer"):
        assert counts[reader, "asked", "read"] > count / 100, "verdicts in the asked form are read"


def test_no_parser_is_left_out(targets: dict[str, Target]) -> None:
    assert sorted(targets) == sorted(NAMES)


def has_a_bug(text: str) -> None:
    if "7" not in text:
        raise Rejected("it contains no seven")
    if "[[" in text:
        raise KeyError("a bug")


def is_slow(text: str) -> None:
    end = time.process_time() + (0.6 if len(text) > 40 else 0.0)
    while time.process_time() < end:
        pass


def is_large(text: str) -> None:
    bytearray(3_000_000_000 if len(text) > 40 else 1)


@pytest.mark.parametrize(
    ("parse", "failure", "seconds"),
    [(has_a_bug, KeyError, HANG_SECONDS), (is_slow, TooSlow, 0.3), (is_large, MemoryError, HANG_SECONDS)],
)
def test_a_planted_bug_is_found(parse: Callable[[str], None], failure: type[BaseException], seconds: float) -> None:
    target = Target("planted", ['{"a": 7}'], replies.edited_reply(['{"a": 7}']), parse)
    with pytest.raises(failure):
        check_target(target, 300, seconds)
