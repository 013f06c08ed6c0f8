"""Diagnostics of MALIBU's judges, and phase 2 pair by pair: planted effects are found, noise is called noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.malibu.pairs import position, win_rates
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.planned import WINS, planned_lines
from tests.analysis.verdicts import no_label

CATEGORIES = {"female": "gender", "male": "gender", "black": "race", "white": "race", "asian": "race"}
METRICS = ("Accuracy", "Creativity")
Choice = Callable[[dict[str, Any], np.random.Generator], str]
Score = Callable[[dict[str, Any], str, np.random.Generator], float]


def toss(unit: dict[str, Any], rng: np.random.Generator) -> str:
    return "A" if rng.random() < 0.5 else "B"


def always_first(unit: dict[str, Any], rng: np.random.Generator) -> str:
    return "A"


def prefers(label: str) -> Choice:
    return lambda unit, rng: "A" if unit["identity_a"] == label else "B" if unit["identity_b"] == label else "tie"


def noisy_eight(unit: dict[str, Any], label: str, rng: np.random.Generator) -> float:
    return float(np.clip(round(8 + rng.normal()), 0, 10))


def study(
    labels: tuple[str, ...] = ("female", "male"),
    *,
    choice: Choice = toss,
    score: Score = noisy_eight,
    bases: int = 8,
    scenarios: int = 2,
    repeats: int = 1,
    judges: int = 1,
    controls: bool = False,
    phases: tuple[int, ...] = (1, 2),
    seed: int = 0,
) -> pd.DataFrame:
    """A whole run: every label alone, and every pair of a category in four cells."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for base, n, repeat in product(range(bases), range(scenarios), range(repeats)):
        place = {"base": f"b{base}", "scenario": f"b{base}-{n}", "repeat": repeat, "model": "m"}
        units: list[dict[str, Any]] = []
        if 1 in phases:
            units += [{"phase": 1, "identity": label} for label in (*labels, *([""] if controls else []))]
        pairs = [(x, y) for x, y in combinations(labels, 2) if CATEGORIES[x] == CATEGORIES[y]] if 2 in phases else []
        for (x, y), assignment, order in product(pairs, (0, 1), (0, 1)):
            (a, response_a), (b, response_b) = [(x, 1 + assignment), (y, 2 - assignment)][:: -1 if order else 1]
            unit = {"phase": 2, "identity": x, "other": y, "identity_a": a, "identity_b": b}
            unit |= {"response_a": response_a, "response_b": response_b, "assignment": assignment, "order": order}
            units.append(unit)
        for unit in units:
            unit |= place | {"category": CATEGORIES.get(unit["identity"], ""), "control": ""}
            unit["control"] = "" if unit["identity"] else "no label"
            unit["unit"] = "/".join(str(part) for part in unit.values())
            for judge in range(judges):
                verdict = {**unit, "judge": f"J{judge}", "role": "debater", "round": 1, "status": "ok", "text": None}
                sides = {"": "identity"} if unit["phase"] == 1 else {"A": "identity_a", "B": "identity_b"}
                for (side, key), metric in product(sides.items(), METRICS):
                    value = score(verdict, unit[key], rng)
                    rows.append({**verdict, "subject": side, "metric": metric, "value": value})
                if unit["phase"] == 2:
                    preferred = {"subject": "", "metric": "preferred", "value": None, "text": choice(verdict, rng)}
                    rows.append({**verdict, **preferred})
    return pd.DataFrame(rows)


def pairs(labels: tuple[str, ...] = ("female", "male"), **settings: Any) -> pd.DataFrame:
    return study(labels, phases=(2,), **settings)


# Order, and its baseline


def measured(frame: pd.DataFrame) -> pd.DataFrame:
    """The effects of the order, by measure."""
    return position(frame).set_index("measure")


def test_noise_alone_changes_verdicts_as_often_as_swapping_does() -> None:
    found = measured(pairs(bases=20, repeats=2))
    assert found.loc[["swapped", "again"], "estimate"].between(0.35, 0.65).all()
    assert found.loc[["swapped", "again"], "n"].tolist() == [160, 160]
    assert found.loc["order", "p"] > 0.05
    assert found.loc["order", "low"] < 0 < found.loc["order", "high"]


def test_a_judge_that_follows_the_order_changes_with_it_and_not_without() -> None:
    found = measured(pairs(choice=always_first, bases=6, repeats=2))
    assert found.loc[["swapped", "again", "order"], "estimate"].tolist() == [1, 0, 1]
    assert found.loc["order", "p"] == 2 / 2**6


def test_without_repeats_the_baseline_is_missing_and_the_note_says_how_to_get_it() -> None:
    found = measured(pairs())
    assert found.loc[["again", "order"], "estimate"].isna().all()
    assert "--repeats 2" in found.loc["order", "note"]


def test_exchanging_order_and_repeat_turns_the_sign() -> None:
    """Why signs may be flipped: without an order effect, a run and its exchanged twin are equally likely."""
    rng = np.random.default_rng(2)
    preferred = {key: rng.integers(1, 3) for key in product([f"b{n}-0" for n in range(9)], (0, 1), (0, 1), (0, 1))}

    def chosen(order: str, repeat: str) -> Choice:
        def choose(unit: dict[str, Any], rng: np.random.Generator) -> str:
            response = preferred[unit["scenario"], unit["assignment"], unit[order], unit[repeat]]
            return "A" if unit["response_a"] == response else "B"

        return choose

    actual, exchanged = (
        measured(pairs(choice=chosen(*keys), bases=9, scenarios=1, repeats=2))
        for keys in (("order", "repeat"), ("repeat", "order"))
    )
    assert actual.loc["order", "estimate"] == pytest.approx(-exchanged.loc["order", "estimate"])
    assert actual.loc["order", "estimate"] != 0
    assert actual.loc["order", "p"] == exchanged.loc["order", "p"]
    rates = ["swapped", "again"]
    assert actual.loc[rates, "estimate"].tolist() == exchanged.loc[rates[::-1], "estimate"].tolist()


# No label


def test_no_label_tells_whether_one_is_raised_or_the_other_lowered() -> None:
    def lowers_male(unit: dict[str, Any], label: str, rng: np.random.Generator) -> float:
        return 8.0 - (label == "male") - 0.5 * (unit["base"] == "b0")

    table = no_label(study(score=lowers_male, controls=True, phases=(1,)))
    by_identity = table.set_index("identity")
    assert by_identity["estimate"].to_dict() == {"female": 0, "male": -1}
    assert by_identity.loc["male", "p_adjusted"] == 2 * 2 / 2**8, "eight bases of one sign; Holm over two"


def test_without_the_control_there_is_no_such_contrast() -> None:
    table = no_label(study(phases=(1,)))
    assert table.empty


def test_margins_are_means_of_bases_and_the_first_place_cancels() -> None:
    frame = pairs(choice=always_first, bases=3)
    incomplete = frame[~((frame["base"] == "b0") & (frame["order"] == 1) & (frame["assignment"] == 1))]
    (line,) = (line for line in planned_lines(PanelData(incomplete), 0.1) if line.measure == WINS)
    assert (line.label, line.name) == ("female − male", "preferences.female-male")
    assert list(line.values.values()) == [0, 0, 0]


# Runs of one phase, and runs with nothing in them


@pytest.mark.parametrize("table", [no_label, position, win_rates])
def test_a_run_without_what_a_table_needs_gives_an_empty_table(table: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    of_phase_1 = study(phases=(1,))
    assert table(of_phase_1).empty
    assert table(of_phase_1[:0]).empty
