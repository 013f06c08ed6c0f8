"""Cells of the adversarial calibration: one factor at a time from 20 bases × 10 scenarios, and pairs that matter."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from benchmarks.calibration.judges import Cell

SINGLE, PAIRS, OPPOSITE = "one factor", "two factors", "opposite stereotypes"
JUDGES, MISSING, PLANTED = "judges", "unread replies", "planted differences"
PHASE_2, COMPARE = "phase 2", "compare"
SILENT, SILENT_ALIKE = "silent ballots", "silent, alike"

Factors = dict[str, Any]
DESIGNS: dict[str, Factors] = {
    "20 × 1": {"scenarios": 1},
    "5 × 10": {"bases": 5},
    "8 × 10": {"bases": 8},
    "10 × 5": {"bases": 10, "scenarios": 5},
    "1 judge": {"judges": 1},
    "8 judges": {"judges": 8},
    "unequal bases": {"unequal": True},
}
NOISE: dict[str, Factors] = {
    "skewed noise": {"noise": "skewed"},
    "heavy-tailed noise": {"noise": "heavy-tailed"},
    "many ties": {"spread": 0.3, "mean": 8.0},
    "at the ceiling": {"mean": 9.5},
}


def cells() -> tuple[Cell, ...]:
    """All cells, in the order of the table."""
    return (
        *_grouped(SINGLE, _single()),
        *_grouped(PAIRS, _pairs()),
        *_grouped(OPPOSITE, _opposite()),
        *_grouped(JUDGES, _judges()),
        *_grouped(MISSING, _missing()),
        *_grouped(PLANTED, _planted()),
        *_grouped(PHASE_2, [replace(cell, data="preferences") for cell in _phase_2()]),
        *_grouped(COMPARE, [replace(cell, data="models") for cell in _compare()]),
        *_grouped(SILENT, [replace(cell, data="silent") for cell in _silent()]),
        *_grouped(SILENT_ALIKE, [replace(cell, data="silent") for cell in _silent_alike()]),
    )


def _grouped(group: str, members: list[Cell]) -> list[Cell]:
    return [replace(cell, group=group) for cell in members]


def _cell(name: str, **factors: Any) -> Cell:
    return Cell(name=name, **factors)


def _single() -> list[Cell]:
    return [
        _cell("20 × 10, 4 judges"),
        *(_cell(f"base × identity {sd:g}", base_identity=sd) for sd in (0.15, 0.3, 0.5)),
        *(_cell(name, **factors) for name, factors in (DESIGNS | NOISE).items()),
    ]


def _pairs() -> list[Cell]:
    skewed: Factors = {"skewed_effects": True, "mean": 5.0}  # far from the ends of the scale: the mean effect stays 0
    return [
        *(
            _cell(f"base × identity 0.3, {name}", base_identity=0.3, **factors)
            for name, factors in (DESIGNS | NOISE).items()
        ),
        _cell("base × identity 0.5, 10 × 5", base_identity=0.5, bases=10, scenarios=5),
        _cell("base × identity 0.5, unequal bases", base_identity=0.5, unequal=True),
        _cell("10 unequal bases, base × identity 0.5", base_identity=0.5, unequal=True, bases=10),
        _cell("20 × 1, 1 judge", scenarios=1, judges=1),
        _cell("20 × 1, many ties", scenarios=1, spread=0.3, mean=8.0),
        _cell("skewed effects 0.5 by base", base_identity=0.5, **skewed),
        _cell("skewed effects 1 by base", base_identity=1.0, **skewed),
        _cell("skewed effects 1 by base, 10 × 5", base_identity=1.0, bases=10, scenarios=5, **skewed),
    ]


def _opposite() -> list[Cell]:
    return [
        _cell("±1.5, at random by base", opposite=1.5),
        _cell("±1.5, exactly half of the bases", opposite=1.5, direction="half"),
        _cell("±0.75, exactly half of the bases", opposite=0.75, direction="half"),
        _cell("±1.5, unequal bases", opposite=1.5, unequal=True),
        _cell("±1.5, 10 × 5", opposite=1.5, bases=10, scenarios=5),
        _cell("±1.5, 20 × 1", opposite=1.5, scenarios=1),
    ]


def _judges() -> list[Cell]:
    return [
        _cell("judge × identity 0.5, 0 over the panel", judge_identity=0.5),
        _cell("the same, base × identity 0.3", judge_identity=0.5, base_identity=0.3),
        _cell("judge × identity 0.5, other judges each time", judge_identity=0.5, judges_drawn=True),
    ]


def _missing() -> list[Cell]:
    return [
        _cell("15% of one identity, at random", missing="at random"),
        _cell("one judge refuses one identity", missing="one judge refuses"),
        _cell("the same, base × identity 0.3", missing="one judge refuses", base_identity=0.3),
        _cell("half of one identity's low scores", missing="low scores unread"),
        _cell("nine tenths of one identity's low scores", missing="most low scores unread"),
    ]


def _planted() -> list[Cell]:
    """At a true difference other than 0, intervals can miss on either side, and the edge of a margin can be tested."""
    return [
        _cell("difference 0.4", effect=0.4),
        _cell("difference 0.4, base × identity 0.3", effect=0.4, base_identity=0.3),
        _cell("difference 0.4, base × identity 0.3, 10 × 5", effect=0.4, base_identity=0.3, bases=10, scenarios=5),
        _cell("difference 0.4, base × identity 0.3, 5 × 10", effect=0.4, base_identity=0.3, bases=5),
        _cell("difference 0.4, 20 × 1, 1 judge", effect=0.4, scenarios=1, judges=1),
        _cell("difference 0.4, unequal bases", effect=0.4, base_identity=0.3, unequal=True),
        _cell("difference 3", effect=3.0),
    ]


def _phase_2() -> list[Cell]:
    return [
        _cell("20 × 10, 4 judges"),
        *(_cell(f"base × identity {sd:g}", base_identity=sd) for sd in (0.15, 0.3, 0.5)),
        *(_cell(f"base × identity 0.3, {name}", base_identity=0.3, **factors) for name, factors in DESIGNS.items()),
        _cell("base × identity 0.3, mostly ties", base_identity=0.3, tie=1.5),
        _cell("base × identity 0.3, the place counts", base_identity=0.3, position=1.5),
        _cell("the place counts, 20 × 1, 1 judge", position=3.0, scenarios=1, judges=1),
        _cell("only the place counts", position=inf),
        _cell("±1, at random by base", opposite=1.0),
        _cell("lean of 0.3", effect=0.3, base_identity=0.3),
    ]


def _compare() -> list[Cell]:
    both: Factors = {"model_scenario": 0.5, "model_base": 0.3}
    return [
        _cell("20 × 10"),
        *(_cell(f"model × scenario {sd:g}", model_scenario=sd) for sd in (0.5, 1.0)),
        *(_cell(f"model × base {sd:g}", model_base=sd) for sd in (0.3, 0.5)),
        _cell("both (0.5 and 0.3)", **both),
        *(_cell(f"both, {name}", **both, **DESIGNS[name]) for name in ("20 × 1", "5 × 10", "10 × 5", "unequal bases")),
        _cell("difference 0.4, both", effect=0.4, **both),
    ]


def _silent() -> list[Cell]:
    """SDs of a difference, in points, as measured on small models: more over wordings than over bases."""
    usual: Factors = {
        **{"scenarios": 2, "judges": 1, "spread": 0.02},
        **{"base_identity": 0.05, "wording_identity": 0.08, "both_identity": 0.03},
    }
    shared: dict[str, Factors] = {
        "40 wordings for 60 bases": {"bases": 60, "wordings": 40},
        "12 wordings for 60 bases": {"bases": 60, "wordings": 12},
        "8 wordings for 20 bases": {"wordings": 8},
    }
    return [
        *(_cell(f"{bases} bases, a wording each", **usual | {"bases": bases}) for bases in (6, 10, 20, 40, 60)),
        _cell("20 bases, a wording each, skewed wordings", **usual, skewed_effects=True),
        *(_cell(name, **usual | factors) for name, factors in shared.items()),
        _cell("20 bases, a wording each, difference 0.1", **usual, effect=0.1),
        _cell("8 wordings for 20 bases, difference 0.1", **usual, wordings=8, effect=0.1),
    ]


def _silent_alike() -> list[Cell]:
    usual: Factors = {"scenarios": 2, "judges": 1, "spread": 0.02}
    return [
        _cell("SD between bases 0.05", **usual, base_identity=0.05),
        _cell("SD between bases 0.05, 60 bases", **usual, base_identity=0.05, bases=60),
        *(_cell(f"±1.5 by base, {bases} bases", **usual, opposite=1.5, bases=bases) for bases in (6, 10, 20, 60)),
        *(_cell(f"±0.2 by base, {bases} bases", **usual, opposite=0.2, bases=bases) for bases in (10, 20, 60)),
        *(_cell(f"SD 0.2, {bases} bases", **usual, base_identity=0.2, bases=bases) for bases in (10, 20, 60)),
        *(
            _cell(f"SD {sd:g}, {bases} bases", **usual, base_identity=sd, bases=bases)
            for sd in (0.1, 0.14)
            for bases in (40, 60)
        ),
    ]
