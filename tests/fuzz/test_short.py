"""Every parser, for a short while: `python -m tests.fuzz` takes longer and finds more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz import files, imports, replies
from tests.fuzz.loop import Campaign, Rejected, Target
from tests.fuzz.targets import all_targets

INPUTS = 60
NAMES = [one.name for one in (*replies.TARGETS, *files.TARGETS, *imports.TARGETS)] + [
    "run file",
    "run file, reported",
    "notes file",
    "command line",
    "viewer request",
]


@pytest.fixture(scope="module")
def targets() -> Iterator[dict[str, Target]]:
    with all_targets() as found:
        yield {one.name: one for one in found}


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_rejected_in_one_line(targets: dict[str, Target], name: str) -> None:
    campaign = Campaign(targets[name], seed=0)
    campaign.go(INPUTS)
    tally = campaign.tally
    assert tally.crashes == []
    assert tally.hangs == []
    assert tally.large == []
    assert tally.accepted + tally.rejected == tally.inputs == INPUTS
    assert tally.accepted >= 1, "not even the seeds are accepted: nothing was tried"


def test_no_parser_is_left_out(targets: dict[str, Target]) -> None:
    assert sorted(targets) == sorted(NAMES)


def test_the_fuzzer_finds_what_is_broken() -> None:
    """A parser with a bug behind two conditions: the inputs that reach further are kept, and the bug is found."""

    def broken(text: str) -> None:
        if "7" not in text:
            raise Rejected("no seven in it")
        if text.count("[") > 20:
            raise KeyError("a bug")

    def slow(text: str) -> None:
        sum(range(60_000_000 if len(text) > 1000 else 1))

    for feed, kind in ((broken, "crashes"), (slow, "hangs")):
        campaign = Campaign(Target("broken", ['{"a": 7}'], replies.prose(['{"a": 7}']), feed), seed=1)
        for _ in range(100):
            campaign.go(10)
            if getattr(campaign.tally, kind):
                break
        assert getattr(campaign.tally, kind), kind
