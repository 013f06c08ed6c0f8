"""Frames of MALIBU's verdicts: single rows by hand, and whole runs with planted effects; answers to BBQ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.page.report import as_frame
from parley.analysis.stats.results import Line
from parley.judging.malibu.panel_data import PanelData

CATEGORIES = {"female": "gender", "male": "gender", "black": "race", "white": "race", "asian": "race"}
CATEGORIES |= {"hispanic": "race", "they/them": "x", "he/him": "x"}
GENDER, FOUR = ("female", "male"), ("female", "male", "black", "white")
METRICS = ("Accuracy", "Creativity")
CHOICES = {"A": "A", "B": "B", "t": "tie", "?": None}
Score = Callable[[Mapping[str, Any], str, np.random.Generator], float]
Choice = Callable[[Mapping[str, Any], np.random.Generator], str]


def single(scenario: str, identity: str, value: float | None, **others: Any) -> dict[str, Any]:
    """One judge's score of one candidate; None where the reply could not be read."""
    return {
        "unit": f"p1/{scenario}/{identity or 'none'}",
        "phase": 1,
        "scenario": scenario,
        "category": CATEGORIES.get(identity, ""),
        "identity": identity,
        "judge": "J",
        "role": "debater",
        "round": 1,
        "subject": "",
        "metric": "Accuracy",
        "value": value,
        "text": None,
        "status": "ok" if value is not None else "unparsed",
        "control": "",
        "repeat": 0,
        **others,
    }


def pair_facets(x: str, y: str, scenario: str, assignment: int = 0, order: int = 0) -> dict[str, Any]:
    """A comparison as the study plans it: x has response 1 (assignment 0) and is shown first (order 0)."""
    (a, response_a), (b, response_b) = [(x, 1 + assignment), (y, 2 - assignment)][:: -1 if order else 1]
    return {
        **{"unit": f"p2/{scenario}/{x}-{y}/a{assignment}o{order}", "phase": 2, "identity": x, "other": y},
        **{"category": CATEGORIES.get(x, ""), "scenario": scenario, "identity_a": a, "identity_b": b},
        **{"response_a": response_a, "response_b": response_b, "assignment": assignment, "order": order},
        **{"control": "" if x != y else "same label" if x else "no label", "repeat": 0, "subject": ""},
    }


def comparison(
    x: str, y: str, choices: str, scenario: str = "s", assignment: int = 0, order: int = 0, **others: Any
) -> list[dict[str, Any]]:
    """The votes of some judges on one comparison, a letter each: A, B, t(ie), or ? for an unreadable reply."""
    facets = pair_facets(x, y, scenario, assignment, order)
    vote = {"role": "debater", "round": 1, "metric": "preferred", "value": None}
    return [
        {**facets, **vote, "judge": f"J{n}", "text": CHOICES[choice], "status": "ok" if choice != "?" else "unparsed"}
        | others
        for n, choice in enumerate(choices)
    ]


def study(
    labels: Sequence[str] = GENDER,
    *,
    bases: int = 12,
    scenarios: int = 1,
    judges: int = 1,
    phases: Sequence[int] = (1,),
    metrics: Sequence[str] = METRICS,
    rounds: int = 1,
    repeats: int = 1,
    effects: Mapping[str, float] | None = None,
    noise: float = 1.0,
    score: Score | None = None,
    choice: Choice | None = None,
    seed: int = 0,
    **others: Any,
) -> pd.DataFrame:
    """A whole run: every label alone, every pair of a category in four cells, and a label with itself in two."""
    rng, effects = np.random.default_rng(seed), effects or {}

    def usual_score(row: Mapping[str, Any], label: str, rng: np.random.Generator) -> float:
        return float(np.clip(6 + effects.get(label, 0.0) + noise * rng.normal(), 0, 10))

    def usual_choice(row: Mapping[str, Any], rng: np.random.Generator) -> str:
        lead = effects.get(row["identity_a"], 0.0) - effects.get(row["identity_b"], 0.0) + noise * rng.normal()
        return "tie" if abs(lead) < 0.2 else "A" if lead > 0 else "B"

    def verdicts() -> Iterator[dict[str, Any]]:
        for base, n, repeat in product(range(bases), range(scenarios), range(repeats)):
            place = {"base": f"b{base}", "scenario": f"b{base}-{n}", "repeat": repeat}
            alone = [single(place["scenario"], label, 0.0, control="" if label else "no label") for label in labels]
            pairs = [
                (x, y)
                for x, y in combinations_with_replacement(labels, 2)
                if x and CATEGORIES.get(x) == CATEGORIES.get(y)
            ]
            cells = [(x, y, a, o) for (x, y), a, o in product(pairs, (0, 1), (0, 1)) if x != y or a == 0]
            compared = [pair_facets(x, y, place["scenario"], a, o) for x, y, a, o in cells]
            units = [*(alone if 1 in phases else ()), *(compared if 2 in phases else ())]
            for unit, number, judge in product(units, range(1, rounds + 1), range(judges)):
                about = {"unit": f"{unit['unit']}/r{repeat}", "judge": f"J{judge}", "round": number, **others}
                row = unit | place | {"role": "debater", "status": "ok", "text": None} | about
                if row["phase"] == 1:
                    for metric in metrics:
                        yield row | {"metric": metric, "value": (score or usual_score)(row, unit["identity"], rng)}
                else:
                    yield row | {"metric": "preferred", "value": None, "text": (choice or usual_choice)(row, rng)}

    return pd.DataFrame(verdicts())


def without(frame: pd.DataFrame, rows: pd.Series, status: str = "refused") -> pd.DataFrame:
    """The frame in which these replies gave no verdict."""
    given = {name: frame[name].mask(rows) for name in ("value", "text")}
    return frame.assign(**given, status=frame["status"].mask(rows, status))


def as_table(lines: Callable[..., list[Line]], frame: pd.DataFrame, *more: Any, **options: Any) -> pd.DataFrame:
    """The lines that a function finds in a frame of verdicts."""
    return as_frame(lines(PanelData(frame), *more, **options))


def bbq_answer(number: int, value: float | None, **others: Any) -> dict[str, Any]:
    """An answer to a row of BBQ: 0 or 1 names a person, and 2 says that it is unknown.

    Every second row is ambiguous, and the target is 0, 0, 1, 1 in turn.
    """
    ambiguous = number % 2 == 0
    return {
        **{"unit": f"Age/{number}", "category": "Age", "example_id": number, "repeat": 0, "names": False},
        **{"condition": "ambig" if ambiguous else "disambig", "label": 2 if ambiguous else 0, "unknown": 2},
        **{"target": 0 if number % 4 < 2 else 1, "scenario": f"s{number // 4}", "question": number // 8},
        **{"method": "default", "model": "m", "metric": "answer", "round": 1, "value": value, "status": "ok"},
        **others,
    }
