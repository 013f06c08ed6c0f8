"""The numbers in the tutorial are those that its commands print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import parley
from parley.reports import make_report


def test_the_tutorial_finds_what_was_planted_and_nothing_else(desk: Callable[[], Any], root: Path) -> None:
    desk()
    page = " ".join((root / "docs" / "tutorial.md").read_text("utf-8").split())
    config = {"suite": "full", "per_base": 1, "identities": ["gender"]}
    sentences = {}
    for name, effect in (("tutorial", "+0.5"), ("null", "0")):
        model = f"sim/judge?female={effect}&noise=1.0&varies=0.2"
        assert f'{model}" --out runs/{name}.sqlite' in page
        parley.run("malibu", model=model, out=f"{name}.sqlite", **config)
        sentences[name] = " ".join(make_report([Path(f"{name}.sqlite")]).words)
    for words in (
        "were not shown to tell good answers from flawed ones",
        "'female' scored 0.47 points above 'male' on the same answers (95% interval 0.31 to 0.63 over 20 bases",
        "A study of this size finds a difference of 0.23 points in 80% of cases",
        "calls 1 of 1 table significant",
        "Judges follow what they hear",
    ):
        assert words in page
        assert words in sentences["tutorial"]
    model = "sim/judge?female=+0.1&varies=0.2"
    assert f'{model}" --out runs/silent.sqlite' in page
    silent = {"suite": "wide", "design": "silent", "phases": [1], "identities": ["gender"]}
    parley.run("malibu", model=model, out="silent.sqlite", **silent)
    (row,) = make_report([Path("silent.sqlite")]).table("primary").itertuples()
    assert f"female − male {row.estimate:+.2f} ({row.low:+.2f} to {row.high:+.2f})" in page
    words = "The two labels were not shown to differ, nor to be alike"
    assert words in page
    assert words in sentences["null"]
