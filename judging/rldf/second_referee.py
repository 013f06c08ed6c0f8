"""Checks a debate's referee: compares its scores with a second, blind referee's; counts statements that break the
rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from parley.analysis.effects import ALL, Question, answer, share
from parley.analysis.page.report import Section, section
from parley.analysis.stats.agreement import krippendorff_alpha, weighted_kappa
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.results import About, Line
from parley.analysis.verdicts import uncategorised
from parley.base.text import plural
from parley.judging.rldf.debates import (
    CLUSTERS,
    STORED_AS,
    THRESHOLD,
    Runs,
    of_one,
    of_runs,
    prefix,
    units_of,
)
from parley.judging.rldf.referee import AGAIN, BIAS, REFEREE

WEAK_AGREEMENT, WEAK_CORRELATION = 0.75, 0.5
"""There is a warning if a blind referee is below either value."""


def _of_rule(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "label": about.role,
        "group": tuple(filter(None, [about.run])),
        "also": {"count": int(rows[measure].sum())},
    }


def _broken(lines: Sequence[Line]) -> list[Line]:
    """The lines of rules that were broken."""
    broken = {line.measure for line in lines if line.estimate}
    return [line for line in lines if line.measure in broken]


AGREEMENT = Question(
    name="refereed_again",
    ask="Does a second, blind referee agree?",
    measures={
        "kappa": "weighted kappa of scores, quadratic",
        "alpha": "Krippendorff's alpha of scores",
        "sides": f"Cohen's kappa of high and low, threshold {THRESHOLD:g}",
        "shift": "second minus first score, points of 10",
    },
    cluster="topic",
    note=CLUSTERS,
    stated=False,
)
FLAGS = Question(
    name="flags",
    ask="Which statements broke the rules of the debate?",
    measures={
        "role_break": "statements that break role",
        "leak": "statements that reveal the role",
        "refused": "statements that refuse",
        "echo": "statements that repeat instructions",
        "loop": "statements that repeat themselves",
        "cut": "statements that were cut off",
        "shortened": "replies with others' turns, which were left out",
    },
    by=("run", "role"),
    cluster="topic",
    level=share,
    scale="share",
    facets=STORED_AS,
    note=CLUSTERS,
    further=_of_rule,
    plotted=_broken,
    stated=False,
)


def agreement_section(runs: Runs) -> Section:
    """The section on whether a second, blind referee agrees."""
    by_run = {name: both_scores(verdicts) for name, verdicts in runs.items()}
    lines = [
        replace(line, about=About.of(run=name) if len(runs) > 1 else About(), group=(name,) * (len(runs) > 1))
        for name, both in by_run.items()
        for line in refereed_again(both)
    ]
    warnings = [f"{prefix(runs, name)}{warning}" for name, both in by_run.items() for warning in _on_agreement(both)]
    return replace(section(AGREEMENT, lines), warnings=warnings)


def both_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The statements that both referees scored, one row each; empty if there was no second."""
    bias = uncategorised(verdicts[verdicts["metric"] == BIAS])
    table = bias.pivot_table(index=["unit", "topic", "round", "subject"], columns="judge", values="value")
    if AGAIN not in table:
        return pd.DataFrame()
    return table.dropna(subset=[REFEREE, AGAIN]).reset_index()


def refereed_again(both: pd.DataFrame) -> list[Line]:
    """Agreement between the referee and a second, blind one.

    Args:
        both: From `both_scores`.
    """
    if both.empty:
        return []
    topics = both["topic"]
    sides = (both[[REFEREE, AGAIN]] > THRESHOLD).astype(int)
    points = both[[REFEREE, AGAIN]].round().astype(int)
    coefficients = (
        weighted_kappa(points[REFEREE], points[AGAIN], weights="quadratic", categories=range(11), clusters=topics),
        krippendorff_alpha(both[[REFEREE, AGAIN]], clusters=topics),
        weighted_kappa(sides[REFEREE], sides[AGAIN], weights="none", categories=[0, 1], clusters=topics),
        cluster_mean(both[AGAIN] - both[REFEREE], topics),
    )
    return [
        Line.of(coefficient, measure=measure, label=AGREEMENT.estimand(measure).words, units=units_of(AGAIN))
        for measure, coefficient in zip(AGREEMENT.measures, coefficients, strict=True)
    ]


def _on_agreement(both: pd.DataFrame) -> Iterator[str]:
    """A warning if the blind referee hardly agrees with the first."""
    if both.empty:
        return
    sides = (both[REFEREE] > THRESHOLD) == (both[AGAIN] > THRESHOLD)
    correlation = (
        both[REFEREE].corr(both[AGAIN]) if both[REFEREE].nunique() > 1 and both[AGAIN].nunique() > 1 else math.nan
    )
    if sides.mean() < WEAK_AGREEMENT or correlation < WEAK_CORRELATION:
        shown = "" if math.isnan(correlation) else f", with a correlation of {correlation:.2f}"
        yield (
            f"The two referees agree weakly: they put {sides.mean():.0%} of {plural(len(both), 'statement')} on the "
            f"same side of the threshold{shown}. Scores, and pairs made from them, may be mostly noise."
        )


def flags_section(runs: Runs) -> Section:
    """The section on statements that broke the rules of the debate, with a plot for each broken rule."""
    flagged = of_runs(runs, FLAGS.measures)
    if flagged.empty:
        return Section()
    flagged = flagged.assign(**{name: flagged["value"].where(flagged["metric"] == name) for name in FLAGS.measures})
    frame = pd.concat([flagged.assign(role=ALL), flagged.assign(role=flagged["subject"])])
    return section(FLAGS, answer(of_one(FLAGS, runs), frame))
