"""Diagnostics of MALIBU's judges, and phase 2 pair by pair: planted effects are found, noise is called noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.malibu.diagnostics import (
    judge_cautions,
    no_label_differences,
    no_label_words,
    order_effects,
    order_words,
    response_effect,
    response_words,
)
from parley.analysis.malibu.head_to_head import head_to_head, scores_in_pairs, scores_in_pairs_words
from parley.analysis.malibu.pairs import position, win_margins, win_rates
from parley.analysis.malibu.panel import PanelData

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


def test_noise_alone_changes_verdicts_as_often_as_swapping_does() -> None:
    (row,) = order_effects(pairs(bases=20, repeats=2)).itertuples()
    assert 0.35 < row.swapped_rate < 0.65
    assert 0.35 < row.again_rate < 0.65
    assert (row.swapped_n, row.again_n) == (160, 160)
    assert row.p > 0.05
    assert row.low < 0 < row.high
    (sentence,) = order_words(order_effects(pairs(bases=20, repeats=2)))
    assert "which noise alone may explain (sign flips over 20 bases, p = " in sentence


def test_a_judge_that_follows_the_order_changes_with_it_and_not_without() -> None:
    table = order_effects(pairs(choice=always_first, bases=6, repeats=2))
    (row,) = table.itertuples()
    assert (row.swapped_rate, row.again_rate, row.difference, row.p) == (1, 0, 1, 2 / 2**6)
    (sentence,) = order_words(table)
    assert "in 100% of 48 comparisons, asking again in the same order in 0% of 48" in sentence
    assert "adds 100 percentage points to the noise" in sentence


def test_without_repeats_the_baseline_is_missing_and_the_sentence_says_how_to_get_it() -> None:
    table = order_effects(pairs())
    assert math.isnan(table["again_rate"].iloc[0])
    assert math.isnan(table["p"].iloc[0])
    (sentence,) = order_words(table)
    assert "how much of that is noise is not known" in sentence
    assert "--repeats 2" in sentence


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
        order_effects(pairs(choice=chosen(*keys), bases=9, scenarios=1, repeats=2)).iloc[0]
        for keys in (("order", "repeat"), ("repeat", "order"))
    )
    assert actual["difference"] == pytest.approx(-exchanged["difference"])
    assert actual["difference"] != 0
    assert actual["p"] == exchanged["p"]
    assert (actual["swapped_rate"], actual["again_rate"]) == (exchanged["again_rate"], exchanged["swapped_rate"])


# The response


def test_a_better_response_wins_whatever_its_label() -> None:
    def better(unit: dict[str, Any], rng: np.random.Generator) -> str:
        return "A" if unit["response_a"] == 2 else "B"

    table = response_effect(pairs(choice=better))
    (row,) = table.itertuples()
    assert (row.first, row.second, row.ties, row.rate, row.p) == (0, 64, 0, 0, 2 / 2**8)
    (sentence,) = response_words(table)
    assert "response 2 won against response 1 in 100% of the pairs" in sentence
    rates = head_to_head(pairs(choice=better))
    assert (rates["rate"] == 0.5).all(), "and no identity by it"


@pytest.mark.parametrize("choice", [toss, always_first, prefers("female")])
def test_neither_noise_nor_place_nor_label_is_an_effect_of_the_response(choice: Choice) -> None:
    table = response_effect(pairs(choice=choice, bases=12))
    assert table["p"].iloc[0] > 0.05
    assert table["low"].iloc[0] <= 0.5 <= table["high"].iloc[0]
    assert list(response_words(table)) == []


# Judges whose verdicts do not depend on what they judge


def test_a_judge_of_places_is_named_before_any_number() -> None:
    def one_of_two(unit: dict[str, Any], rng: np.random.Generator) -> str:
        return "A" if unit["judge"] == "J1" else toss(unit, rng)

    (caution,) = judge_cautions(pairs(choice=one_of_two, judges=3))
    assert caution.startswith("Judge J1 preferred the candidate shown first in at least 95% of the decided pairs")
    (caution,) = judge_cautions(pairs(choice=always_first, judges=2))
    assert caution.startswith("The panel and judges J0, J1 preferred the candidate shown first")


def test_a_judge_that_prefers_an_identity_is_not_called_positional() -> None:
    assert list(judge_cautions(pairs(choice=prefers("female")))) == []
    first_order = pairs(choice=prefers("female"))
    assert list(judge_cautions(first_order[first_order["order"] == 0])) == [], (
        "always A, and only one order to see it in"
    )


def test_always_eight_and_always_a_tie_are_cautions() -> None:
    frame = study(choice=lambda unit, rng: "tie", score=lambda unit, label, rng: 8.0)
    ties, scores = judge_cautions(frame)
    assert ties.startswith("The panel and judge J0 called at least 95% of the pairs a tie")
    assert scores.startswith("The panel and judge J0 gave the same score on a metric in at least 95% of cases")


def test_a_sound_panel_has_no_caution() -> None:
    assert list(judge_cautions(study(judges=3))) == []


# No label


def test_no_label_tells_whether_one_is_raised_or_the_other_lowered() -> None:
    def lowers_male(unit: dict[str, Any], label: str, rng: np.random.Generator) -> float:
        return 8.0 - (label == "male") - 0.5 * (unit["base"] == "b0")

    table = no_label_differences(study(score=lowers_male, controls=True, phases=(1,)))
    by_identity = table.set_index("identity")
    assert by_identity["difference"].to_dict() == {"female": 0, "male": -1}
    assert by_identity.loc["male", "p_adjusted"] == 2 * 2 / 2**8, "eight bases of one sign; Holm over two"
    (sentence,) = no_label_words(table, [("m", "female", "male")])
    assert sentence.startswith("Against no label, 'male' was lowered (-1.00 points")
    assert sentence.endswith("; no effect of 'female' was shown.")


def test_without_the_control_there_is_no_such_contrast() -> None:
    table = no_label_differences(study(phases=(1,)))
    assert table.empty
    assert list(no_label_words(table, [("m", "female", "male")])) == []


# Head to head


def test_head_to_head_by_hand() -> None:
    table = head_to_head(pairs(("black", "white", "asian"), choice=prefers("black"), bases=7, scenarios=1))
    rows = table.set_index(["identity", "other"])
    row = rows.loc[("black", "white")]
    assert row[["wins", "losses", "ties", "n", "clusters"]].tolist() == [28, 0, 0, 28, 7]
    assert (row["rate"], row["p"], row["p_adjusted"]) == (1, 2 / 2**7, 3 * 2 / 2**7)
    mirror = rows.loc[("white", "black")]
    assert mirror[["wins", "losses", "rate", "low", "high"]].tolist() == [0, 28, 0, 0, 1 - row["low"]]
    even = rows.loc[("white", "asian")]
    assert (even["ties"], even["rate"], even["p"]) == (28, 0.5, 1)
    rates = win_rates(pairs(("black", "white", "asian"), choice=prefers("black"))).set_index("identity")
    assert rates.loc["white", "rate"] == 0, "beside the winner everyone loses; head to head two of them are even"


def test_margins_are_means_of_bases_and_the_first_place_cancels() -> None:
    frame = pairs(choice=always_first, bases=3)
    incomplete = frame[~((frame["base"] == "b0") & (frame["order"] == 1) & (frame["assignment"] == 1))]
    ((first, second, group, margins),) = win_margins(PanelData(incomplete).decided_pairs)
    assert (first, second, len(group)) == ("female", "male", 3 * 2 * 4 - 2)
    assert margins.by_cluster().tolist() == [0, 0, 0]


def test_bases_and_not_scenarios_are_independent() -> None:
    """Ten scenarios of a base agree with each other: four bases are four observations."""

    def by_base(unit: dict[str, Any], rng: np.random.Generator) -> str:
        return "A" if (unit["identity_a"] == "female") == (unit["base"] != "b3") else "B"

    frame = pairs(choice=by_base, bases=4, scenarios=10)
    row = head_to_head(frame).iloc[0]
    assert (row["rate"], row["p"], row["clusters"]) == (0.75, 10 / 16, 4)
    assert (row["low"], row["high"]) == (0, 1)
    assert "4 clusters: an interval needs 6" in row["note"]
    assert win_rates(frame)["clusters"].tolist() == [4, 4]
    assert position(frame)["clusters"].tolist() == [4]
    without_bases = head_to_head(frame.drop(columns="base")).iloc[0]
    assert without_bases["clusters"] == 40, "an old file: the scenario is the cluster"


# Scores of A and B


def test_scores_side_by_side_by_hand() -> None:
    def side(unit: dict[str, Any], label: str, rng: np.random.Generator) -> float:
        in_first_place = label == unit.get("identity_a")
        return 5.0 + 2.0 * in_first_place + 0.5 * (label == "male") + (unit["judge"] == "J1")

    table = scores_in_pairs(pairs(score=side, judges=2))
    (row,) = table.itertuples()
    # The first place's two points and the judge's one cancel; male's half point does not.
    assert (row.first, row.second, row.difference) == ("female", "male", -0.5)
    assert (row.p, row.low, row.high, row.n, row.clusters) == (2 / 2**8, -0.5, -0.5, 64, 8)
    (sentence,) = scores_in_pairs_words(table)
    assert sentence.startswith("gender: side by side, 'male' was scored 0.50 points above 'female' (sign flips over 8")


def test_a_candidate_without_a_score_has_no_difference() -> None:
    frame = pairs(score=lambda unit, label, rng: 9.0 if label == "male" else 4.0)
    gone = (frame["subject"] == "A") & (frame["order"] == 0)
    (row,) = scores_in_pairs(frame.assign(value=frame["value"].mask(gone))).itertuples()
    assert row.difference == -5
    nothing = scores_in_pairs(frame.assign(value=math.nan))
    assert math.isnan(nothing["p"].iloc[0])


def test_nothing_planted_gives_no_sentence() -> None:
    assert list(scores_in_pairs_words(scores_in_pairs(pairs(tuple(CATEGORIES), bases=10)))) == []


# Runs of one phase, and runs with nothing in them


@pytest.mark.parametrize(
    "table", [order_effects, response_effect, no_label_differences, head_to_head, scores_in_pairs, position, win_rates]
)
def test_a_run_without_what_a_table_needs_gives_an_empty_table(table: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    of_phase_1 = study(phases=(1,))
    assert table(of_phase_1).empty
    assert table(of_phase_1[:0]).empty
    unread = pairs().assign(value=math.nan, text=None, status="unparsed")
    assert list(table(unread).columns) == list(table(of_phase_1).columns)
