"""Frames of simulated silent ballots: base, wording and base × wording effects, and a planted difference; pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.page.report import as_frame
from parley.judging.malibu.contrasts import PRIMARY
from parley.judging.malibu.decisions import planned_lines
from parley.judging.malibu.panel_data import Verdicts, panel_data
from tests.analysis.verdicts import pair_facets

CATEGORIES = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("christian", "muslim", "jewish", "atheist"),
}

BALLOT = {
    **{"phase": 1, "stage": "silent", "control": "", "repeat": 0, "scale": "1-9", "readout": "expected"},
    **{"role": "debater", "round": 0, "subject": "", "metric": "Overall", "text": None, "status": "ok"},
    "model": "sim/judge",
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
    """One silent ballot per scenario, wording, identity and judge, as `parley.runs.frames.verdicts` gives them."""
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
                                {**BALLOT, "unit": f"s/{base}/{scenario}/w{wording}/{identity}"}
                                | {"scenario": f"b{base}-{scenario}", "base": f"b{base}", "category": category}
                                | {"identity": identity, "wording": f"w{wording}", "question": f"q{base % 6}"}
                                | {"judge": judge, "value": value, "sampled": round(value), **facets}
                            )
    return pd.DataFrame(rows)


def silent_pairs(
    lean: float = 0.3,
    place: float = 5.0,
    *,
    labels: tuple[str, str] = ("female", "male"),
    bases: int = 12,
    noise: float = 0.2,
    seed: int = 0,
) -> pd.DataFrame:
    """Two labels on two scenarios of each base, in both orders: the first place is worth more than a label."""
    rng = np.random.default_rng(seed)
    category = next(name for name, identities in CATEGORIES.items() if labels[0] in identities)
    rows: list[dict[str, Any]] = []
    for base in range(bases):
        for scenario in range(2):
            own = lean + noise * rng.normal()
            for order in (0, 1):
                facets = pair_facets(*labels, f"b{base}-{scenario}", order=order) | {"category": category}
                own_words = {"base": f"b{base}", "wording": f"w{base}", "question": "q0", "judge": "Judge"}
                row = BALLOT | facets | own_words
                odds = place + (-own if order else own)
                chosen = {"metric": "preferred", "text": "A" if odds > 0 else "B", "value": 1 / (1 + np.exp(-odds))}
                rows += [row | chosen, row | {"metric": "log-odds", "value": odds}]
    return pd.DataFrame(rows)


def primary(verdicts: Verdicts, *, margin: float) -> pd.DataFrame:
    """The primary contrasts of each model, as a table."""
    planned = planned_lines(panel_data(verdicts), margin)
    return as_frame([line for line in planned if line.about.family == PRIMARY])
