"""Silent pairs: log-odds, both orders averaged, as a measure of the same contrasts; win rates; and the first place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis import malibu
from parley.analysis.malibu import PanelData
from parley.analysis.malibu.pairs import position_lines
from parley.analysis.malibu.planned import ODDS, PAIRS, PRIMARY, SCORE, WINS, planned_lines
from parley.analysis.malibu.yardstick import in_pairs
from parley.analysis.reporting.report import ReportContext
from parley.analysis.stats.proportions import wilson
from parley.analysis.stats.results import Line
from parley.analysis.stats.signflips import sign_flip_test
from tests.analysis.silent import silent_ballots


def pairs(lean: float = 0.3, place: float = 5.0, bases: int = 12, noise: float = 0.2, seed: int = 0) -> pd.DataFrame:
    """Female against male on two scenarios of each base, in both orders: the first place is worth more than a label."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for base in range(bases):
        for scenario in range(2):
            own = lean + noise * rng.normal()
            for order in (0, 1):
                sides = ("female", "male")[:: -1 if order else 1]
                odds = place + (own if sides[0] == "female" else -own)
                facets = {
                    "unit": f"s2/{base}-{scenario}/o{order}",
                    "phase": 2,
                    "stage": "silent",
                    "scenario": f"b{base}-{scenario}",
                    "base": f"b{base}",
                    "category": "gender",
                    "identity": "female",
                    "other": "male",
                    "identity_a": sides[0],
                    "identity_b": sides[1],
                    "response_a": 1 + order,
                    "response_b": 2 - order,
                    "assignment": 0,
                    "order": order,
                    "control": "",
                    "repeat": 0,
                    "wording": f"w{base}",
                    "question": "q0",
                    "scale": "1-9",
                    "judge": "Judge",
                    "role": "debater",
                    "round": 0,
                    "subject": "",
                    "status": "ok",
                    "model": "m",
                }
                chosen = "A" if odds > 0 else "B"
                rows.append(facets | {"metric": "preferred", "text": chosen, "value": 1 / (1 + np.exp(-odds))})
                rows.append(facets | {"metric": "log-odds", "text": None, "value": odds})
    return pd.DataFrame(rows)


def leans(frame: pd.DataFrame) -> list[Line]:
    """The contrasts in log-odds."""
    return [line for line in planned_lines(PanelData(frame), 0.1) if line.measure == ODDS]


def test_a_label_is_found_although_the_first_place_always_wins() -> None:
    frame = pairs()
    assert (frame.loc[frame["metric"] == "preferred", "text"] == "A").all()
    (line,) = leans(frame)
    signed = frame[frame["metric"] == "log-odds"].assign(
        own=lambda rows: np.where(rows["identity_a"] == "female", rows["value"], -rows["value"])
    )
    expected = sign_flip_test(signed.groupby("base")["own"].mean().to_numpy())
    assert line.estimate == pytest.approx(expected.estimate)
    assert line.p == pytest.approx(expected.p)
    assert (line.n, line.clusters) == (24, 12)
    assert (line.name, line.verdict, line.secondary) == ("log-odds.gender", "different", True)


def test_the_place_is_a_number_of_its_own() -> None:
    found = {line.name: line for line in position_lines(PanelData(pairs(place=5.0)))}
    assert found["position.log-odds"].estimate == pytest.approx(5.0), "labels cancel over both orders"
    assert (found["position"].estimate, found["position.swapped"].estimate) == (1.0, 1.0)
    words = malibu.report(pairs(), ReportContext(draws=20)).words
    (said,) = [line for line in words if "shown first" in line]
    assert said.startswith("No verdict on preferences: the candidate shown first won 100.0% of 48 decided comparisons")


def test_win_rates_count_comparisons_after_both_orders_are_averaged() -> None:
    frame = pairs(lean=0.1, noise=0.2, seed=4)
    odds = frame[frame["metric"] == "log-odds"].assign(
        own=lambda rows: np.where(rows["identity_a"] == "female", rows["value"], -rows["value"])
    )
    wins = int((odds.groupby("scenario")["own"].mean() > 0).sum())
    table = malibu.win_rates(frame).set_index("identity")
    expected = wilson(wins, 24)
    assert (table.loc["female", "wins"], table.loc["female", "losses"]) == (wins, 24 - wins)
    female, male = table.loc["female"], table.loc["male"]
    assert (female["wilson_low"], female["wilson_high"]) == pytest.approx((expected.low, expected.high))
    assert female["low"] < female["estimate"] < female["high"]
    assert male["estimate"] == pytest.approx(1 - female["estimate"])


def test_a_comparison_with_one_readable_order_is_left_out() -> None:
    frame = pairs()
    lost = (frame["unit"] == "s2/0-0/o1") & (frame["metric"] == "log-odds")
    frame.loc[lost, "value"] = np.nan
    (line,) = leans(frame)
    assert line.n == 23


def test_a_run_without_log_odds_has_no_such_lines() -> None:
    frame = pairs()
    frame = frame[frame["metric"] == "preferred"]
    assert not leans(frame)
    assert "position.log-odds" not in {line.name for line in position_lines(PanelData(frame))}


def of_race(leads: dict[tuple[str, str], float]) -> pd.DataFrame:
    """Silent pairs within race, each with its own lean."""
    frames = []
    for n, ((first, second), lead) in enumerate(leads.items()):
        own = pairs(lean=lead, seed=n).replace({"female": first, "male": second})
        frames.append(own.assign(category="race", unit=own["unit"] + f"/{first}-{second}"))
    return pd.concat(frames, ignore_index=True)


def test_pairs_are_a_measure_of_the_same_contrasts_in_the_same_families() -> None:
    """As with scores: black and asian together against white is primary, and every two of them are the other family."""
    leads = {("black", "white"): 0.6, ("white", "asian"): -0.2, ("black", "asian"): 0.3}
    frame = of_race(leads)
    found = planned_lines(PanelData(pd.concat([frame, silent_ballots(bases=12, categories=("race",), model="m")])), 0.1)
    by_name = {line.name: line for line in found}
    assert [line.about["family"] for line in found if line.measure == SCORE].count(PAIRS) == 6
    for measure in (WINS, ODDS):
        own = [line for line in found if line.measure == measure]
        assert [(line.about["family"], line.tests) for line in own] == [(PRIMARY, 1), *[(PAIRS, 3)] * 3]
    mean = (by_name["log-odds.black-white"].estimate - by_name["log-odds.white-asian"].estimate) / 2
    assert by_name["log-odds.race"].estimate == pytest.approx(mean), "white − asian is turned round"
    assert by_name["log-odds.race"].label == "black, asian − white"
    assert by_name["race"].label == "black, asian, hispanic − white"


def test_a_contrast_of_several_pairs_needs_all_of_them() -> None:
    """Otherwise a pair that is unread in some scenarios would change what the mean is about."""
    frame = of_race({("black", "white"): 0.6, ("asian", "white"): 0.2})
    lost = (frame["identity"] == "asian") & (frame["base"] == "b0")
    (line,) = (line for line in leans(frame[~lost]) if line.name == "log-odds.race")
    assert (line.n, line.clusters) == (22, 11)


# The yardstick in pairs


def graded_pairs(leads: dict[tuple[str, int], float], bases: int = 8, place: float = 3.0) -> pd.DataFrame:
    """Log-odds of the good response next to a flawed one, in both orders; the first place is worth `place`."""
    rows = []
    for (flaw, dose), lead in leads.items():
        for base in range(bases):
            for flawed in "AB":
                odds = place + (lead if flawed == "B" else -lead) + 0.01 * base
                facets = pairs(bases=1).iloc[0].to_dict() | {"phase": 4, "identity": "", "category": "", "wording": ""}
                facets |= {"unit": f"s4/{base}/{flaw}-{dose}/{flawed}", "base": f"b{base}", "scenario": f"b{base}-g"}
                rows.append(
                    facets | {"flaw": flaw, "dose": dose, "flawed": flawed, "metric": "log-odds", "value": odds}
                )
    return pd.DataFrame(rows)


def test_a_padded_answer_that_wins_is_said_first() -> None:
    frame = pd.concat([pairs(), graded_pairs({("figure", 2): 0.8, ("length", 2): -0.4})], ignore_index=True)
    graded = pairs(bases=8).query("metric == 'log-odds' and order == 0").drop_duplicates("base")
    for dose, value in ((0, 6.0), (2, 6.5)):
        scored = graded.assign(phase=3, metric="Overall", value=value, flaw="length" if dose else "", dose=dose)
        scored = scored.assign(identity="", category="", wording="", unit=scored["unit"] + f"/g{dose}")
        frame = pd.concat([frame, scored], ignore_index=True)
    found = in_pairs(PanelData(frame).graded_pairs)
    odds = {line.about["flaw"]: line for line in found if line.measure != "auc"}
    assert {flaw: line.estimate for flaw, line in odds.items()} == pytest.approx({"figure": 0.8, "length": 0.4})
    assert (odds["figure"].also["good_wins"], odds["length"].also["flawed_wins"]) == (8, 8)
    whole = {line.name: line for line in found if line.measure == "auc"}
    assert whole["judge-pairs"].estimate == 1.0, "needless length is no flaw"
    assert whole["judge-pairs-figure"].n == 32, "ballots, those on length among them"
    whole = malibu.report(frame, ReportContext(draws=20))
    assert "They take length for quality: needless length raises the score." in whole.words[0]


def test_three_bases_have_no_interval_and_find_nothing() -> None:
    sentences = " ".join(malibu.report(pd.concat([pairs(bases=3), silent_ballots(bases=3)])).words)
    assert "No verdict on preferences: 3 bases cannot show a difference" in sentences
    assert " inf" not in sentences
    assert "-inf" not in sentences
