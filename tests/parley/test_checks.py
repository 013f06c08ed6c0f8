"""Checksums by unit: the same for the same rows in every version, and true of whatever a study returns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parley.agents.transcripts import Call, PromptMessage, Transcript, Turn
from parley.judging import Outcome, Unit, Verdict
from parley.runs import RunFile
from parley.runs.rows import Record
from parley.runs.schema import checksum

INFO = {"study": "by-hand", "models": [], "config": {}, "plan": "", "versions": {}}


def test_the_definition_has_not_changed():
    """Otherwise every run that is stored would be reported as damaged."""
    verdicts = [
        (0, "Ada", "debater", 1, "", "Accuracy", 7.0, None, "schön", "ok"),
        (1, "Bob", "debater", 1, "x", "Accuracy", 0.1 + 0.2, 6.0, None, "ok"),
    ]
    assert checksum(verdicts) == 2815429927
    assert checksum(verdicts[1:], checksum(verdicts[:1])) == 2815429927
    assert checksum([(1, "x")]) == 1665165832
    assert checksum([]) == 0


def write(path: Path, *verdicts: Verdict) -> None:
    unit = Unit("u", {})
    with RunFile.create(path, INFO, {}, [unit]) as file:
        file.write([Record(unit=unit, started_at=1.0, finished_at=2.0, outcome=Outcome(Transcript(()), verdicts))])


def test_the_definition_of_an_outcome_has_not_changed(tmp_path):
    """Thoughts and cuts are checked after all other columns, and only where there are any."""
    call = Call("sim/a", (PromptMessage("user", "", "Why?"),), "So.", 3, 1, 0.5, None, cached=False, attempts=1)
    turns = [
        Turn("user", "narrator", 0, "Why?"),
        Turn("Ada", "debater", 1, "So.", "You are Ada.", calls=(call, call._replace(thought="Hm.", thought_tokens=0))),
        Turn("Ben", "debater", 1, "Because", expected={"Accuracy": 6.5}, parse_status="cut", cut=True, thought="Hm."),
    ]
    unit, outcome = Unit("u", {"identity": "x"}), Outcome(Transcript(tuple(turns), "done"), (verdict(value=0.5),))
    with RunFile.create(tmp_path / "a.sqlite", INFO, {}, [unit]) as file:
        file.write([Record(unit=unit, started_at=1.0, finished_at=2.5, outcome=outcome)])
        assert file.rows("SELECT * FROM checks")[1] == [("u", 3940885311, 3451774442, 1325094307)]
        file.check_unit("u")


def verdict(**fields: Any) -> Verdict:
    return Verdict(**{"judge": "Ada", "role": "debater", "round": 1, "metric": "m", **fields})


ODD_VALUES = (7, True, math.nan, -0.0, math.inf, np.float64(0.1), np.float64("nan"), 2**53 + 1, 5e-324, "7", "1e3", "x")
ODD_TEXTS = ("nan", "-0.0", "a\x00b", "\ud83d", "7", "\x1f")


@pytest.mark.parametrize(
    "odd",
    [
        *({"value": value} for value in ODD_VALUES),
        *({"text": text} for text in ODD_TEXTS),
        {"round": 1.0},
        {"round": "1"},
    ],
    ids=repr,
)
def test_what_a_study_returns_is_never_reported_as_damaged(tmp_path, odd):
    """SQLite stores some of these as others."""
    path = tmp_path / "a.sqlite"
    write(path, verdict(**odd), verdict(value=0.1 + 0.2))
    with RunFile.open(path) as file:
        file.check_unit("u")
        file.check_verdicts()
        assert len(list(file.verdicts())) == 2
