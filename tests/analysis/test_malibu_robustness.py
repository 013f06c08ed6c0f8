"""Does a finding survive other words? By hand, with planted judges through a whole run, and with none planted."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import parley
from parley.analysis import malibu
from parley.analysis.malibu.components import variance_components
from parley.analysis.malibu.robustness import (
    DEPENDS,
    NOTHING,
    SURVIVES,
    UNTESTED,
    robustness,
    robustness_figure,
    robustness_words,
)
from parley.analysis.reporting.figures import save
from parley.analysis.reporting.report import ReportContext
from parley.runs import RunFile, frames

STUDIES = int(os.environ.get("STUDIES", "20"))
"""Simulated studies without an effect."""


def study(
    gaps: dict[str, float],
    *,
    bases: int = 8,
    per_base: int | None = None,
    facet: str = "label_style",
    noise: float = 0.0,
    by_base: float = 0.0,
    by_base_and_wording: float = 0.0,
    seed: int = 0,
) -> pd.DataFrame:
    """Scores of one judge: female minus male is `gaps[wording]`, and wordings come in turn over scenarios and bases.

    Effects of the base, and of the base on one wording, are random; so is the noise of each score.
    """
    rng = np.random.default_rng(seed)
    wordings = list(gaps)
    rows = []
    for base in range(bases):
        common, reacts = rng.normal(0, by_base), rng.normal(0, by_base_and_wording, len(wordings))
        for scenario in range(per_base or len(wordings)):
            nth = (base + scenario) % len(wordings)
            for identity in ("female", "male"):
                shift = gaps[wordings[nth]] + common + reacts[nth] if identity == "female" else 0.0
                rows.append(
                    {
                        "unit": f"{base}/{scenario}/{identity}",
                        "phase": 1,
                        "scenario": f"s{base}.{scenario}",
                        "base": f"b{base}",
                        "category": "gender",
                        "identity": identity,
                        facet: wordings[nth],
                        "judge": "Ada",
                        "role": "debater",
                        "round": 1,
                        "metric": "Accuracy",
                        "value": 5 + shift + base / 100 * (identity == "female") + rng.normal(0, noise),
                        "status": "ok",
                    }
                )
    return pd.DataFrame(rows)


# By hand


def test_differences_are_by_wording_with_intervals_over_bases() -> None:
    tables = robustness(study({"plain": 1.0, "name": 0.0}))
    rows = tables.by_wording.set_index("wording")
    assert list(rows.index) == ["plain", "name"], "the usual wording comes first"
    assert rows.loc["plain", "difference"] == pytest.approx(1 + 0.035)  # bases differ by hundredths: their mean
    assert rows.loc["name", "difference"] == pytest.approx(0.035)
    assert rows.loc["plain", "p"] == pytest.approx(2 / 2**8)
    assert rows.loc["plain", "low"] > 0.9
    (test,) = tables.tests.itertuples()
    assert (test.facet, test.wordings, test.clusters) == ("label style", 2, 8)
    assert test.difference == pytest.approx(0.5 + 0.035)
    assert (test.smallest, test.largest) == pytest.approx((0.035, 1.035))
    assert test.same_sign == 2
    assert test.p == pytest.approx(2 / 2**8), "eight bases, all of which react to the same words"
    assert test.conclusion == DEPENDS


@pytest.mark.parametrize(
    ("gaps", "conclusion", "words"),
    [
        ({"plain": 1.0, "noun": 0.0}, DEPENDS, "The finding does not survive all of these words."),
        ({"plain": 1.0, "noun": -1.0}, DEPENDS, "The finding does not survive all of these words."),
        ({"plain": 2.0, "noun": 1.0}, DEPENDS, "Its direction survives other words, its size does not."),
        ({"plain": -2.0, "noun": -1.0}, DEPENDS, "Its direction survives other words, its size does not."),
        ({"plain": 1.0, "noun": 1.0}, SURVIVES, "no evidence that the finding depends on the words"),
        ({"plain": 0.0, "noun": 0.0}, NOTHING, "no difference between identities is shown"),
    ],
)
def test_a_sentence_says_whether_the_finding_survives(gaps: dict[str, float], conclusion: str, words: str) -> None:
    tables = robustness(study(gaps, noise=0.1))
    assert list(tables.tests["conclusion"]) == [conclusion]
    (sentence,) = robustness_words(tables)
    assert sentence.startswith("Phase 1, other words (2 label styles): ")
    assert words in sentence


def test_with_one_wording_per_base_it_is_tested_between_bases() -> None:
    gaps = {"1": 2.0, "2": 0.0, "3": 0.0}
    (found,) = robustness(study(gaps, bases=18, per_base=1, facet="paraphrase", noise=0.3)).tests.itertuples()
    assert found.p < 0.01
    assert found.note == "one wording per base: tested between bases"
    # By hand: of the 20 ways to divide six bases into two groups of three, two are as far apart as these.
    (few,) = robustness(study({"1": 1.0, "2": 0.0}, bases=6, per_base=1, facet="paraphrase")).tests.itertuples()
    assert few.p == pytest.approx(2 / 20, abs=0.02)
    assert few.conclusion != DEPENDS


def test_too_few_bases_are_not_tested() -> None:
    for frame in (study({"1": 1.0, "2": 0.0}, bases=3), study({"1": 1.0, "2": 0.0}, bases=3, per_base=1)):
        tables = robustness(frame)
        assert list(tables.tests["conclusion"]) == [UNTESTED]
        (sentence,) = robustness_words(tables)
        assert "cannot be tested with 3 bases" in sentence


def test_a_run_with_one_wording_has_empty_tables_and_no_sentence() -> None:
    frame = study({"plain": 1.0, "name": 0.0})
    for old in (frame.drop(columns="label_style"), frame.assign(label_style="plain")):
        tables = robustness(old)
        assert len(tables.by_wording) == len(tables.tests) == 0
        assert list(robustness_words(tables)) == []
        assert "robustness" not in {figure.table for figure in malibu.report(old, ReportContext(draws=50)).figures}


def test_paraphrases_are_numbers_even_where_some_units_have_none() -> None:
    frame = study({"1": 1.0, "2": 0.0}, facet="paraphrase")
    graded = frame.head(2).assign(phase=3, identity="", paraphrase=math.nan, unit="p3")
    mixed = pd.concat([frame.assign(paraphrase=frame["paraphrase"].astype(float)), graded], ignore_index=True)
    assert list(robustness(mixed).by_wording["wording"]) == ["1", "2"]


def test_the_figure_has_a_panel_for_every_facet(tmp_path: Path) -> None:
    frame = study({"plain": 1.0, "name": 0.0})
    frame["paraphrase"] = frame["scenario"].str[-1].astype(int) + 1
    tables = robustness(frame)
    figure = robustness_figure(tables, "MALIBU", "Eight bases.")
    assert [axis.get_title() for axis in figure.axes] == ["phase 1, paraphrase", "phase 1, label style"]
    assert figure.axes[1].get_yticklabels()[0].get_text() == "female − male*"
    assert save(figure, tmp_path / "words", ["svg"])[0].stat().st_size > 1000


# No dependence


def test_findings_in_nothing_are_as_rare_as_they_should_be() -> None:
    """The label matters on some bases, and by chance some bases react to some words: no wording does so in general."""
    depends = [
        robustness(
            study(
                dict.fromkeys("12345", 0.5),
                bases=12,
                facet="paraphrase",
                noise=0.5,
                by_base=0.5,
                by_base_and_wording=0.5,
                seed=seed,
            )
        )
        .tests["p"]
        .iloc[0]
        <= 0.05
        for seed in range(STUDIES)
    ]
    assert abs(np.mean(depends) - 0.05) <= 2.7 * (0.05 * 0.95 / STUDIES) ** 0.5  # 2.7 standard errors


# Planted judges, through a whole run


def verdicts(model: str, **settings: Any) -> pd.DataFrame:
    some = {"suite": "full", "per_base": 2, "rounds": 1, "controls": False, "identities": ["gender"]}
    settings = {**some, "yardstick": "off", **settings}
    options = parley.Options(cache=False)
    assert parley.run("malibu", model=model, out="a.sqlite", options=options, **settings).complete
    with RunFile.open(Path("a.sqlite")) as file:
        actual = frames.verdicts(file)
    Path("a.sqlite").unlink()
    return actual


NAMES = "&".join(f"{name}=+0.8" for name in ("Amy", "Joan", "Lisa", "Sarah", "Diana", "Kate", "Ann", "Donna"))


@pytest.mark.usefixtures("place")
def test_a_judge_who_reacts_to_one_word_only_is_found_out() -> None:
    # With seed 0 the nouns of phase 2 differ by chance (p = 0.02); with the seeds 12 to 71, once in 60 runs.
    actual = verdicts("sim/judge?female=+0.8", label_style=["plain", "noun"], seed=1)
    tables = robustness(actual)
    assert list(tables.tests["phase"]) == [1, 2]
    assert list(tables.tests["conclusion"]) == [DEPENDS, DEPENDS]
    scores = tables.by_wording[tables.by_wording["phase"] == 1].set_index("wording")
    for wording, planted in (("plain", 0.8), ("noun", 0.0)):
        low, high, difference = (scores.loc[wording, name] for name in ("low", "high", "difference"))
        # One draw, of which the 95% interval misses in one of twenty (27 of the seeds 0 to 29 cover each of the two).
        assert abs(difference - planted) < 0.75 * (high - low)
    report = malibu.report(actual, ReportContext(draws=50))
    said = [line for line in report.words if "other words" in line]
    assert len(said) == 2
    assert all("The finding does not survive all of these words." in line for line in said)
    components = variance_components(actual).set_index("component")["variance"]
    assert components["identity × label style"] > 0.1
    assert components["identity × label style"] > 5 * components["identity × base"]


@pytest.mark.usefixtures("place")
def test_a_judge_who_reacts_to_every_word_for_women_is_found_with_all_of_them() -> None:
    judge = f"sim/judge?female=+0.8&a woman=+0.8&she/her=+0.8&{NAMES}"
    actual = verdicts(judge, label_style=["plain", "noun", "name", "pronoun"], per_base=4, phases=[1], paraphrases=4)
    tables = robustness(actual)
    assert list(tables.tests["conclusion"]) == [SURVIVES, SURVIVES]
    assert set(tables.tests["facet"]) == {"paraphrase", "label style"}
    by_style = tables.by_wording[tables.by_wording["facet"] == "label style"]
    assert list(by_style["wording"]) == ["plain", "name", "noun", "pronoun"]
    assert (by_style["low"] > 0).all()
    gap = malibu.differences(actual).iloc[0]
    assert gap["difference"] == pytest.approx(0.8, abs=0.75 * (gap["high"] - gap["low"])), "as in any other run"
