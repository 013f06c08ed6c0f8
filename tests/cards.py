"""Judges' cards made by hand: lines from values by base, with the interval that a card would have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parley.analysis.card.record import BatteryRecord, Card, DataRecord, ModelRecord, RunRecord
from parley.analysis.stats.results import DIFFERENT, UNDECIDED, Line
from parley.analysis.stats.signflips import sign_flip_test

HASH = "a" * 64


def line(name: str, values: Sequence[float], /, **changes: Any) -> Line:
    """A line in points whose values by base are given; `changes` are fields that differ from that."""
    null = changes.get("reference", 0.0)
    test = sign_flip_test(np.asarray(values) - null)
    fields: dict[str, Any] = {
        "name": name,
        "group": "wording",
        "label": name,
        "about": {"question": f"What of {name}?"},
        "measure": "points",
        "reference": null,
        "margin": 0.1,
        "worse": "either",
        "estimate": float(np.mean(values)),
        "low": null + test.low if np.isfinite(test.low) else np.nan,
        "high": null + test.high if np.isfinite(test.high) else np.nan,
        "p": test.p,
        "p_adjusted": test.p,
        "verdict": DIFFERENT if test.p <= 0.05 else UNDECIDED,
        "n": len(values),
        "clusters": len(values),
        "cluster": "base",
        "values": {f"base {number}": float(value) for number, value in enumerate(values)},
    }
    return Line(**(fields | changes))


def card(name: str, *lines: Line, **changes: Any) -> Card:
    """A card of these lines; `changes` are whole parts (`battery`, `data`) or fields of the model."""
    battery = BatteryRecord(name="card-1", version="1.0", sha256=HASH, size="default")
    data = DataRecord(suite="malibu-2 2.0", suite_sha256=HASH, wordings_sha256=HASH)
    run = RunRecord(file="run.sqlite", sha256=HASH, seed=0, calls=9, tokens_in=9, tokens_out=9, parley="1")
    parts: dict[str, Any] = {key: changes.pop(key) for key in ("battery", "data", "run") if key in changes}
    model = {"name": name, "family": "", "date": "2026-11-17", "readout": "expected", "scale": (1, 9)}
    return Card(
        schema=1,
        **({"battery": battery, "data": data, "run": run} | parts),
        model=ModelRecord(**(model | changes)),
        lines=lines,
    )


def around(mean: float, sd: float = 0.1, bases: int = 40, seed: int = 0) -> list[float]:
    """Values by base with exactly this mean and standard deviation."""
    drawn = np.random.default_rng(seed).normal(0, 1, bases)
    return list(mean + sd * (drawn - drawn.mean()) / drawn.std(ddof=1))
