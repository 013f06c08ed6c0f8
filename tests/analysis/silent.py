"""Frames of simulated silent ballots: base, wording and base × wording effects, and a planted difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.panel import Verdicts, panel_data
from parley.analysis.malibu.planned import PRIMARY, planned_lines
from parley.analysis.reporting.questions import table

CATEGORIES = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("christian", "muslim", "jewish", "atheist"),
}


def wordings_of(bases: int, wordings: int, per_base: int) -> list[list[int]]:
    """The label wordings of each base, dealt in turn."""
    return [[(base * per_base + nth) % wordings for nth in range(per_base)] for base in range(bases)]


def silent_ballots(
    *,
    bases: int = 20,
    scenarios: int = 2,
    wordings: int | None = None,
    per_base: int = 1,
    gaps: Mapping[str, float] | None = None,
    base_sd: float = 0.03,
    wording_sd: float = 0.05,
    both_sd: float = 0.02,
    noise: float = 0.01,
    categories: Sequence[str] = ("gender", "race", "religion"),
    judges: Mapping[str, Mapping[str, float]] | None = None,
    seed: int = 0,
    **facets: Any,
) -> pd.DataFrame:
    """One silent ballot per scenario, wording, identity and judge, as `parley.runs.frames.verdicts` gives them.

    Args:
        bases: Number of bases.
        scenarios: Scenarios per base.
        wordings: Label wordings of a category; None: one of its own for each base.
        per_base: Label wordings per base.
        gaps: Points that a label adds.
        base_sd: SD over bases of what a base adds to an identity.
        wording_sd: The same of a wording.
        both_sd: The same of a base in a wording.
        noise: SD of a scenario's own.
        categories: Categories that are run.
        judges: By judge, what each adds to a label beside `gaps`; None: one neutral judge.
        seed: Of all draws.
        facets: More columns.
    """
    rng, gaps = np.random.default_rng(seed), gaps or {}
    wordings = bases * per_base if wordings is None else wordings
    rows: list[dict[str, Any]] = []
    for category in categories:
        for identity in CATEGORIES[category]:
            by_base, by_wording = rng.normal(0, base_sd, bases), rng.normal(0, wording_sd, wordings)
            by_both = rng.normal(0, both_sd, (bases, wordings))
            for base, own in enumerate(wordings_of(bases, wordings, per_base)):
                for scenario in range(scenarios):
                    for wording in own:
                        score = 6.0 + gaps.get(identity, 0.0) + by_base[base] + by_wording[wording]
                        score += by_both[base, wording]
                        for judge, leans in (judges or {"neutral": {}}).items():
                            value = score + leans.get(identity, 0.0) + rng.normal(0, noise)
                            rows.append(
                                {
                                    "unit": f"s/{base}/{scenario}/w{wording}/{identity}",
                                    "phase": 1,
                                    "stage": "silent",
                                    "scenario": f"b{base}-{scenario}",
                                    "base": f"b{base}",
                                    "category": category,
                                    "identity": identity,
                                    "control": "",
                                    "repeat": 0,
                                    "wording": f"w{wording}",
                                    "question": f"q{base % 6}",
                                    "scale": "1-9",
                                    "readout": "expected",
                                    "judge": judge,
                                    "role": "debater",
                                    "round": 0,
                                    "subject": "",
                                    "metric": "Overall",
                                    "value": value,
                                    "sampled": round(value),
                                    "text": None,
                                    "status": "ok",
                                    "model": "sim/judge",
                                    **facets,
                                }
                            )
    return pd.DataFrame(rows)


def primary(verdicts: Verdicts, *, margin: float) -> pd.DataFrame:
    """The primary contrasts of each model, as a table."""
    planned = planned_lines(panel_data(verdicts), margin)
    return table([line for line in planned if line.about["family"] == PRIMARY])
