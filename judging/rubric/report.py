"""Scores by a rubric: means from 0 to 100 by group, and whether the judges agree.

A frame has one row per verdict: item, group, model, judge, metric, value, status. The same persona on another model
counts as another judge. Scores are first averaged within a text, so several judges of a text do not count as several
texts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.effects import Estimand, Question, answer
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, Table, assemble, section
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.paired import pearson
from parley.analysis.stats.results import About, Line
from parley.analysis.verdicts import require, uncategorised

BANDS = (-0.5, 3.5, 6.5, 10.5)
"""The edges of the rubric's bands: 0 to 3, 4 to 6, 7 to 10."""


def _in_words(line: Line) -> str:
    first, second = line.about.contrast.names if line.about.contrast else ("", "")
    way = "higher" if line.estimate > 0 else "lower"
    return f"{line.about.metric} is {abs(line.estimate):.1f} points of 100 {way} for '{first}' than for '{second}'"


SCORES = Question(
    name="scores",
    ask="How do the texts score by the rubric?",
    measures={},
    unit="points of 100",
    by=("group",),
    cluster="item",
    level=partial(cluster_mean, scale=(0, 100)),
    note="BS is bias severity: lower is better. Unreadable scores are left out.",
    paper="4.2, tables 2 to 5",
)
GROUPS = Question(
    name="groups",
    ask="Do groups of texts on the same topics score differently by the rubric?",
    measures={"value": Estimand(words="score", says=_in_words)},
    unit="points of 100",
    by=("metric",),
    arms="group",
    item=("topic",),
    family=(),
    limits=("lowest", "highest"),
    cluster="topic",
    facets={"metric": ()},
    note="First minus second on the same topics; Holm over all metrics and pairs.",
)
KAPPAS = ["table", "metric", "system"]
AGREEMENT = Question(
    name="agreement",
    ask="Do the judges agree?",
    measures={
        "bands": "Fleiss' kappa, bands 0–3, 4–6, 7–10",
        "points": "Fleiss' kappa, points",
        "alpha": "Krippendorff's alpha, interval",
    },
    cluster="item",
    paper="E, tables 8 and 9",
)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """Report mean scores by group, and whether the judges agree.

    Args:
        verdicts: One row per verdict.
        context: Further data for the report.
    """
    require(verdicts, texts=("item", "group", "model"))
    warning = severity_warning(verdicts)
    cluster = _cluster(verdicts)
    sections = [
        Section(warnings=[warning] if warning else []),
        _groups(verdicts),
        section(replace(SCORES, cluster=cluster, measures=_words(verdicts)), scores(verdicts)),
        section(replace(AGREEMENT, cluster=cluster), agreement(verdicts)),
        _beside_rldf(verdicts),
    ]
    return assemble(sections, context, "Rubric")


def _cluster(verdicts: pd.DataFrame) -> str:
    """The independent units: topics (what the texts answer), if known."""
    return "topic" if "topic" in verdicts and verdicts["topic"].notna().all() else "item"


def _words(verdicts: pd.DataFrame) -> dict[str, str]:
    return {str(metric): str(metric) for metric in verdicts["metric"].unique()}


def scores(verdicts: pd.DataFrame) -> list[Line]:
    """Mean of each metric, times ten (the paper's 0 to 100), by group, with intervals over topics or texts."""
    frame, words = uncategorised(verdicts), _words(verdicts)
    frame = frame.assign(**{name: 10 * frame["value"].where(frame["metric"] == name) for name in words})
    unread = frame[frame["value"].isna()].groupby(["group", "metric"]).size()

    def further(about: About, metric: str, rows: pd.DataFrame) -> dict[str, Any]:
        group = about.columns["group"]
        return {
            "label": ", ".join(filter(None, (metric, group))),
            "group": (),
            "secondary": False,  # every metric of a rubric is planned
            "also": {"unreadable": int(unread.get((group, metric), 0))},
        }

    return answer(replace(SCORES, cluster=_cluster(frame), measures=words, further=further), frame)


def _groups(verdicts: pd.DataFrame) -> Section:
    """The section on differences between groups, by topic: separate intervals part in few of the studies that have one.

    Without topics nothing is paired, and texts are only described.
    """
    if verdicts["group"].nunique() < 2:
        return Section()
    if _cluster(verdicts) != "topic":
        return Section(words=["Groups are not compared, since the texts have no topic that they share (--context)."])
    frame, score = uncategorised(verdicts), 10 * verdicts["value"].astype(float)
    values = {"value": score, "lowest": score.fillna(0.0), "highest": score.fillna(100.0)}
    cells = frame.assign(**values).groupby(["metric", "group", "topic"], sort=False)[[*values]].mean().reset_index()
    return section(GROUPS, answer(GROUPS, cells))


def severity_warning(verdicts: pd.DataFrame) -> str:
    """A warning if judges give better answers a higher BS, which is severity; "" if they do not.

    Texts about one topic are not independent of each other, so their scores are averaged first. Without topics there
    is no warning: with 12 prompts of 5 texts each, treating texts as independent gave four times as many false alarms.

    Args:
        verdicts: Verdicts by one rubric, with the `topic` of each text.
    """
    if _cluster(verdicts) != "topic":
        return ""
    means = uncategorised(verdicts).pivot_table(index="topic", columns="metric", values="value")
    quality = [name for name in ("CE", "LS") if name in means]
    if "BS" not in means or not quality:
        return ""
    correlation = pearson(means["BS"], means[quality].mean(axis=1, skipna=False))
    if not correlation.low > 0:  # NaN without an interval
        return ""
    names = " and ".join(quality) + (" are" if len(quality) == 2 else " is")
    interval = f"{correlation.low:.2f} to {correlation.high:.2f}"
    return (
        f"BS is higher where {names}: r = {correlation.estimate:.2f} ({interval}) over {correlation.n} topics. The "
        "judges may give BS, where low is good, as a score of quality: do not conclude from BS alone."
    )


def agreement(verdicts: pd.DataFrame) -> list[Line]:
    """Fleiss' kappa on the rubric's bands and on single points, and Krippendorff's alpha, by metric.

    Intervals are over topics, if known: judges' errors on texts about one topic are alike. Over texts α missed the
    truth in 14 to 17% of studies, over topics in 5 to 7% (`python -m benchmarks.calibration.reviewed`).
    """
    cluster, verdicts = _cluster(verdicts), uncategorised(verdicts)
    lines: list[Line] = []
    rater = verdicts["judge"] + "@" + verdicts["model"]
    for metric, scored in verdicts.assign(rater=rater).groupby("metric", sort=False):
        table = scored.pivot_table(index="item", columns="rater", values="value", aggfunc="mean", dropna=False)
        topics = scored.groupby("item")["topic"].first().reindex(table.index) if cluster == "topic" else None
        bands = table.apply(lambda column: pd.Series(np.digitize(column, BANDS), column.index).where(column.notna()))
        agreements = (
            fleiss_kappa(bands, clusters=topics),
            fleiss_kappa(table.round(), clusters=topics),
            krippendorff_alpha(table, clusters=topics),
        )
        lines += [
            Line.of(
                replace(coefficient, method=coefficient.method.rpartition(", ")[2]),
                measure=measure,
                label=str(metric),
                about=About.of(metric=metric),
                secondary=True,
            )
            for measure, coefficient in zip(AGREEMENT.measures, agreements, strict=True)
        ]
    return lines


def _beside_rldf(verdicts: pd.DataFrame) -> Section:
    """The kappas that RLDF's paper prints of the groups that are named as its systems or modes."""
    printed = pd.read_csv(Path(__file__).with_name("published_kappa.txt"), sep=" ", comment="#").set_index(KAPPAS)
    groups = dict(list(uncategorised(verdicts).groupby("group", sort=False)))
    kappas = [
        {"system": name, "metric": line.label, "ours": line.estimate}
        for name, scored in groups.items()
        for line in agreement(scored)
        if line.measure == "bands"
    ]
    frame = printed.add_prefix("paper_").reset_index().merge(pd.DataFrame(kappas), on=KAPPAS[1:])
    agreed = Table("kappa_published", "Fleiss' kappa in RLDF's paper, and ours", frame, paper="E, tables 8 and 9")
    return Section(tables=[agreed])
