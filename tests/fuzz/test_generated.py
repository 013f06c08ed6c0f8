"""Every parser, with generated inputs: a few in the tests, many in the nightly campaign."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.request import urlopen

import pytest

import parley
from parley.runs import RunFile
from tests.fuzz import commands, files, replies, requests, runs, verdicts
from tests.fuzz.checking import HANG_SECONDS, MAX_SECONDS, Rejected, Target, TooSlow, check_target
from tests.viewer.conftest import serving

INPUTS, CAMPAIGN = 8, 1000
COMMANDS = ("command line", "run file, reported")
"""Each of these inputs takes as long as a command: there are fewer."""
NAMES = [
    *(target.name for target in (*replies.TARGETS, *files.TARGETS)),
    *("run file", "run file, reported", "notes file", "command line", "viewer request"),
]


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    """With a temporary home, a run of a simulated model, and a viewer that serves it."""
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        path = folder / "shown" / "a.sqlite"
        parley.run("malibu", suite="tiny", model="sim/judge?female=+0.5", rounds=1, out=str(path))
        with RunFile.open(path) as file:
            units = [unit for (unit,) in file.rows("SELECT id FROM units ORDER BY position")[1]]
        with serving(path.parent) as address:
            urlopen(f"{address}api/headline?run={path.name}").close()  # the first report imports pandas
            command_line = commands.target(folder / "workshop")
            of_runs = runs.targets(path, folder / "workshop")
            request = requests.target(address, path.name, units[:3])
            found = [*replies.TARGETS, *files.TARGETS, *of_runs, command_line, request]
            assert sorted(target.name for target in found) == sorted(NAMES), "no parser is left out"
            yield {target.name: target for target in found}


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_rejected_with_a_message(targets, name):
    target, inputs = targets[name], INPUTS
    if name in COMMANDS:
        target, inputs = replace(target, seeds=target.seeds[:2]), 4
    counts = check_target(target, inputs)
    assert counts["accepted"] >= 1, "not even the seeds are accepted: nothing was tried"


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_campaign(targets, name, record_property):
    """Other inputs every time."""
    counts = check_target(targets[name], CAMPAIGN // 4 if name in COMMANDS else CAMPAIGN, MAX_SECONDS, same=False)
    record_property("generated inputs", (name, counts["accepted"], counts["rejected"]))


@pytest.mark.parametrize("count", [1500, pytest.param(30_000, marks=pytest.mark.nightly)])
async def test_no_number_is_stored_that_is_not_the_verdict(count):
    counts, faults = await verdicts.tried(count, seed=count)
    assert faults == []
    for reader in ("object", "ballot", "probabilities", "answer"):
        assert counts[reader, "asked", "read"] > count / 100, "verdicts in the asked form are read"


def has_a_bug(text):
    if "7" not in text:
        raise Rejected("it contains no seven")
    if "[[" in text:
        raise KeyError("a bug")


def is_slow(text):
    end = time.process_time() + (0.6 if len(text) > 40 else 0.0)
    while time.process_time() < end:
        pass


def is_large(text):
    bytearray(3_000_000_000 if len(text) > 40 else 1)


@pytest.mark.parametrize(
    ("parse", "failure", "seconds"),
    [(has_a_bug, KeyError, HANG_SECONDS), (is_slow, TooSlow, 0.3), (is_large, MemoryError, HANG_SECONDS)],
)
def test_a_planted_bug_is_found(parse, failure, seconds):
    target = Target("planted", ['{"a": 7}'], replies.edited_reply(['{"a": 7}']), parse)
    with pytest.raises(failure):
        check_target(target, 300, seconds)
