"""The yardstick: AUC against known values, planted judges that come back, and what the report says of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis.known_order import FLAWS, share_above
from parley.analysis.page.report import ReportContext
from parley.analysis.stats.results import Line
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.plan import GRADED
from parley.judging.malibu.report import report
from parley.judging.malibu.score_table import ALL
from parley.judging.malibu.yardstick_report import NAMES, PANEL, aucs, can_judge, readings, yardstick_lines
from tests.analysis.verdicts import single

METRICS = ("Accuracy", "Efficiency")
TEXTS = [("", 0), *NAMES]
COSTS = {("safety", 1): 1.0, ("safety", 2): 2.0, ("figure", 1): 0.5, ("figure", 2): 1.5} | {
    names: 1.0 for names in NAMES if names[0] in ("unanswered", "length")
}
"""Points that a capable judge takes off."""


def row(unit: str, base: str, judge: str, metric: str, value: float, **facets: object) -> dict[str, object]:
    about = {"unit": unit, "base": base, "judge": judge, "metric": metric, "model": "sim/planted", **facets}
    return single(f"{base}-1", "", value) | about


def ballots(
    rng: np.random.Generator,
    *,
    bases: int = 20,
    judges: dict[str, float] | None = None,
    noise: float = 1.0,
    whole: bool = True,
) -> Iterator[dict[str, object]]:
    """What judges score: 8 less what a flaw costs, times how capable the judge is (0: random), plus noise."""
    for base in range(bases):
        for flaw, dose in TEXTS:
            for judge, capable in (judges or {"Ann": 1.0}).items():
                for metric in METRICS:
                    score = 8 - capable * COSTS.get((flaw, dose), 0.0) + rng.normal(0, noise)
                    value = float(np.clip(round(score) if whole else score, 0, 10))
                    unit = f"p3/base{base}/{flaw}{dose}/{judge}"
                    yield row(unit, f"base{base:02}", judge, metric, value, phase=GRADED, flaw=flaw, dose=dose)


def graded(**options: object) -> pd.DataFrame:
    return PanelData(pd.DataFrame(ballots(**options))).graded  # type: ignore[arg-type]


def overall(frame: pd.DataFrame) -> dict[str, Line]:
    """The AUC over all flaws, by judge."""
    return {line.about.judge: line for line in aucs(readings(frame)) if whole(line) and not line.secondary}


def whole(line: Line) -> bool:
    return bool(line.about.metric == ALL)


def test_the_share_above_is_the_area_under_the_curve_of_hanley_and_mcneil() -> None:
    """J. A. Hanley, B. J. McNeil (1982), Radiology 143, 29-36, table I: 58 normal and 51 abnormal CT images, rated
    from 1 to 5; the area is 0.893."""
    normal = np.repeat([1, 2, 3, 4, 5], [33, 6, 6, 11, 2])
    abnormal = np.repeat([1, 2, 3, 4, 5], [3, 2, 2, 11, 33])
    assert share_above(np.subtract.outer(abnormal, normal).ravel().astype(float)) == pytest.approx(0.893, abs=5e-4)


def test_the_auc_of_a_base_is_mann_and_whitneys() -> None:
    frame = graded(rng=np.random.default_rng(0), bases=8)
    one = frame[frame["metric"] == "Accuracy"]
    expected = []
    for _, part in one.groupby("base"):
        good, flawed = part["value"][part["dose"] == 0], part["value"][part["flaw"].isin(FLAWS)]
        expected.append(stats.mannwhitneyu(good, flawed).statistic / (len(good) * len(flawed)))
    assert overall(one)[PANEL].estimate == pytest.approx(np.mean(expected))
    agree = overall(graded(rng=np.random.default_rng(25), bases=8, noise=0.0, whole=False))[PANEL]
    assert (agree.estimate, agree.high, agree.note, agree.shown) == (1.0, 1.0, "", True)
    assert agree.low == pytest.approx(8 / (8 + stats.t.ppf(0.975, 7) ** 2), abs=1e-3), "Wilson's with t in place of z"


def test_padding_is_no_flaw() -> None:
    """A judge who takes two points off a flaw and adds one for length judges well, and takes length for quality."""
    rows = [
        row(f"u{base}{flaw}{dose}", f"b{base}", "Ann", "Overall", 5 + gain, phase=GRADED, flaw=flaw, dose=dose)
        for base in range(8)
        for flaw, dose in TEXTS
        for gain in [0 if not flaw else 1 + base / 10 if flaw == "length" else -2]
    ]
    data = PanelData(pd.DataFrame(rows))
    lines = yardstick_lines(data.graded)
    (judge,) = [line for line in lines["yardstick_auc"] if line.name == "judge"]
    assert (judge.estimate, judge.high) == (1.0, 1.0)
    (length,) = [line for line in lines["yardstick_flaws"] if line.name == "length"]
    assert length.estimate == pytest.approx(1.35), "padded minus good"
    assert {line.about.columns["flaw"] for line in lines["yardstick_flaws"] if line.measure == "cost"} == set(FLAWS)
    assert can_judge(lines).endswith("They take length for quality: needless length raises the score.")
    assert all(line.label for kind in lines.values() for line in kind)


def labelled(rng: np.random.Generator, difference: float, bases: int = 20) -> Iterator[dict[str, object]]:
    for base, scenario in product(range(bases), range(4)):
        level = rng.normal(7, 0.5)
        for (identity, shift), metric in product((("female", 0.0), ("male", difference)), METRICS):
            facets = {"identity": identity, "category": "gender", "scenario": f"base{base}-{scenario}"}
            unit, value = f"p1/{base}/{scenario}/{identity}", level + shift + rng.normal(0, 0.3)
            yield row(unit, f"base{base:02}", "Ann", metric, value, phase=1, flaw="", dose=0, **facets)


def test_what_this_run_measured_stands_in_place_of_the_shipped_card() -> None:
    shipped = "sim/planted was not shown to tell good answers from flawed ones."
    context = ReportContext(draws=20, cautions=[shipped], model_cautions={"sim/planted": shipped})
    rng = np.random.default_rng(4)
    rows = [*labelled(rng, 0.3, bases=8), *ballots(rng, bases=8, judges={"Ann": 0.0}, whole=False)]
    measured = report(pd.DataFrame(rows), context)
    (own,) = [line for line in measured.cautions if "guessing" in line]
    assert own.startswith("These judges were not shown to tell good answers from flawed ones (the good one")
    assert shipped not in measured.cautions
    without = report(pd.DataFrame(labelled(rng, 0.3, bases=8)), context)
    assert shipped in without.cautions
    assert not any("did not measure" in line for line in without.cautions), "one source, not two"
    few = report(pd.DataFrame([*labelled(rng, 0.3, bases=8), *ballots(rng, bases=3)]), context)
    assert shipped in few.cautions, "three bases do not measure it"
