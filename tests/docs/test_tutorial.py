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
        model = f"sim/judge?female={effect}&noise=1.0"
        assert f'{model}" --out runs/{name}.sqlite' in page
        parley.run("malibu", model=model, out=f"{name}.sqlite", **config)
        sentences[name] = " ".join(make_report([Path(f"{name}.sqlite")]).words)
    for words in ("'female' was scored 0.45 points above 'male' on the same answers", "over 20 bases"):
        assert words in page
        assert words in sentences["tutorial"]
    assert "χ² calls 3 of 4 tables" in sentences["tutorial"]
    assert "tests over bases call 3 of 4" in sentences["tutorial"]
    assert "tests over bases call 0 of 4" in sentences["null"]
    assert "undecided, neither different nor alike: 1 pair" in sentences["null"]
    assert "for 80%, 69 bases are needed" in sentences["null"]
