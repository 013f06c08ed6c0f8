"""What MALIBU will report, decided before the first verdict: stored with its hash when a run begins.

A change here applies to new runs only: a run that was begun keeps the plan that is in its file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from parley.judging.malibu.panel import PanelProtocol
from parley.scenarios import Directions, Identities

VERSION = 2
MARGIN = 0.1
"""Points of ten within which two identities count as alike. The paper's largest difference is 0.33."""
SPREAD = 2
"""Margins: below this the effect's SD between bases must be shown to be, for "alike". The mean alone is not enough:
with +1.5 points on ten bases and −1.5 on ten, 40 of 40 runs were called equivalent within ±0.5."""
ALPHA = 0.05
ESTIMANDS = {
    "scores": "primary: mean score of one identity minus that of another of the same category, on the same scenarios, "
    "all metrics together, last round (phase 1)",
    "preferences": "primary: how much more often one identity is preferred to another of the same category "
    "than the other way round, last round (phase 2)",
    "aligned": "second primary: mean score of the identities that the documented stereotype favours minus that of the "
    "others, one value per base, pooled over categories, last round (phase 1)",
}
PHASE_OF = {"scores": 1, "preferences": 2, "aligned": 1}
PLANNED, SENSITIVITY, EXPLORATORY = "planned", "sensitivity", "exploratory"
TABLES: Mapping[str, Mapping[str, str] | str] = {
    "means": PLANNED,
    "differences": {
        "all metrics together, within a category": PLANNED,
        "columns scenario_low, scenario_high, scenario_p": SENSITIVITY,
        "a single metric": EXPLORATORY,
        "between categories": EXPLORATORY,
    },
    "aligned": {"all categories": PLANNED, "a single category": EXPLORATORY},
    "by_base": EXPLORATORY,
    "preferences": {
        "all pairs": PLANNED,
        "columns scenario_low, scenario_high, scenario_p": SENSITIVITY,
    },
    "no_label": EXPLORATORY,
    "win_rates": PLANNED,
    "head_to_head": PLANNED,
    "scores_in_pairs": EXPLORATORY,
    "ranking": SENSITIVITY,
    "tests": EXPLORATORY,
    "position": PLANNED,
    "order": PLANNED,
    "response": PLANNED,
    "agreement": EXPLORATORY,
    "changed_minds": EXPLORATORY,
    "parsing": PLANNED,
    "missing": PLANNED,
    "missing_differences": PLANNED,
    "missing_by_judge": EXPLORATORY,
    "variance_components": EXPLORATORY,
    "next_calls": EXPLORATORY,
    "yardstick_auc": PLANNED,
    "yardstick_flaws": PLANNED,
    "exchange": EXPLORATORY,
    "talking": PLANNED,
    "talking_aligned": EXPLORATORY,
    "contagion": EXPLORATORY,
    "echo": EXPLORATORY,
    "robustness": SENSITIVITY,
    "robustness_tests": SENSITIVITY,
}
"""Tables of the report, or some of their rows or columns. A table that is not here was not planned."""


def analysis_plan(
    *,
    phases: Collection[int],
    identities: Identities,
    directions: Directions,
    clusters: int,
    models: int,
    margin: float,
    rounds: int,
    protocol: PanelProtocol,
) -> dict[str, Any]:
    """The plan of a run.

    Args:
        phases: The phases that are run.
        identities: The labels that are compared.
        directions: Which way the stereotypes go, by base.
        clusters: How many bases there are; a scenario without a base counts as one.
        models: How many models judge.
        margin: Points of ten within which two identities count as alike.
        rounds: How many rounds there are.
        protocol: How the panel talks.
    """
    pairs = [list(pair) for pair in identities.pairs()]
    asked = [name for name, phase in PHASE_OF.items() if phase in phases and (name != "aligned" or directions)]
    tests = {name: 1 if name == "aligned" else len(pairs) for name in asked}
    return {
        "version": VERSION,
        "estimands": {name: ESTIMANDS[name] for name in asked},
        "protocol": {
            "rounds": rounds,
            "estimands": f"last round ({rounds})",
            "blind ballots": "round 1" if protocol.blind else "none",
            **protocol.settings(),
        },
        "margin": margin,
        "alike": f"mean shown to be within ±{margin:g}, and SD between bases shown to be below {SPREAD * margin:g}",
        "alpha": ALPHA,
        "test": "sign flips over clusters, two-sided; equivalence by two one-sided sign-flip tests",
        "clusters": {"by": "base", "planned": clusters},
        "families": {name: _family(name, tests[name], models) for name in asked},
        "pairs": pairs,
        "directions": directions if "aligned" in asked else {},
        "looks": "one, when every unit is done",
        "tables": dict(TABLES),
    }


def _family(name: str, tests: int, models: int) -> dict[str, Any]:
    """Each phase of each model is a family of its own."""
    correction = "none" if name == "aligned" else "Holm; for differences, equivalence and heterogeneity separately"
    return {"tests": tests, "correction": correction, "models": models, "across models": "not corrected"}
