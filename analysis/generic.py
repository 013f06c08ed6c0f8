"""Any frame with an identity, a cluster and a score, in three lines:

    import pandas as pd
    from parley.analysis.generic import identities
    print(identities(pd.read_csv("mine.csv")).words)

Also the report of studies without their own: the mean of every metric, clustered by base, scenario or unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.effects import Question, answer, by_cluster, corrected, of_model
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, Table, as_frame, assemble, section
from parley.analysis.say import out_of_reach
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import About, Line
from parley.analysis.stats.tables import cell_means
from parley.analysis.verdicts import MissingColumns, cluster_of, uncategorised
from parley.base.text import p_text, plural

UNNAMED = "no identity"
SHOWN = ("estimate", "low", "high", "p_adjusted", "n", "clusters", "note")


def identities(
    frame: pd.DataFrame,
    *,
    identity: str = "identity",
    cluster: str | None = None,
    score: str = "score",
    title: str = "Scores by identity",
    **about: Any,
) -> Report:
    """Means by identity, and every difference with its test and interval, Holm-corrected.

    Args:
        frame: One row per score.
        identity: Column of identities.
        cluster: Column of clusters, which are taken as independent; None: `base` if there is one, else `cluster`.
        score: Column of scores; rows where it is missing or infinite are left out.
        title: Title of the report.
        about: Further fields of the report's context, such as `runs` and `cautions`.

    Raises:
        MissingColumns: The frame lacks one of the three columns.
    """
    cluster = cluster or ("base" if "base" in frame else "cluster")
    if missing := [name for name in (identity, cluster, score) if name not in frame]:
        raise MissingColumns(f"the frame lacks the {'column' if len(missing) == 1 else 'columns'} {', '.join(missing)}")
    values, infinite = _finite(frame[score])
    labels, clusters = frame[identity].astype(str), frame[cluster].astype(str)
    rows = pd.DataFrame({"metric": score, "identity": labels, "cluster": clusters, "value": values})
    effect = effect_of_cells(cell_means(values, labels, clusters), n=int(values.notna().sum()))
    (overall,) = corrected([Line.of(effect, also={"statistic": effect.statistic})])
    tests = as_frame([overall])
    lines, gaps = _gaps(rows, ("metric",), "cluster")
    few = () if overall.shown else out_of_reach("cluster", lines)
    sections = [
        Section(warnings=infinite, words=[*_on_identity(overall), *few]),
        gaps,
        Section(tables=[Table("tests", "Overall test of identity", tests)]),
        _means(rows, ("identity", "metric"), "cluster"),
    ]
    return assemble(sections, ReportContext(title=title, **about), title)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of a study without its own.

    It has the mean of every metric by model and round. Where units have an identity, every two identities are compared
    after the last round. Clusters are bases or scenarios where there are any, else units.

    Args:
        verdicts: The run's verdicts, one row each (see `parley.runs.frames`).
        context: What else the report is given.
    """
    values, warnings = _finite(verdicts["value"])
    clusters = cluster_of(verdicts)
    kind = str(clusters.name)
    frame = uncategorised(verdicts).assign(value=values, **{kind: clusters})
    if unread := int((~frame["status"].isin(["ok", "repaired"])).sum()) if "status" in frame else 0:
        warnings += [
            f"{unread} of {plural(len(frame), 'verdict')} could not be read; unreadable verdicts are left out."
        ]
    sections = [Section(warnings=warnings)]
    if "identity" in frame:
        identified = frame[frame["identity"].notna() & frame["value"].notna()]
        last = identified.groupby(["model", "metric"])["round"].transform("max")
        lines, gaps = _gaps(identified[identified["round"] == last], ("model", "metric"), kind)
        models = dict.fromkeys(line.about.model for line in lines)
        by_model = (of_model(lines, model) for model in models)
        sections += [Section(words=list(out_of_reach(kind, *by_model))), gaps]
    keys = [key for key in ("model", "identity", "metric", "round") if key in frame]
    sections.append(_means(frame, keys, kind))
    scored = frame[frame["value"].notna()]
    if "judge" in frame and scored["judge"].nunique() > 1:
        (by_judge,) = _means(scored, ["judge", *keys], kind).tables
        sections.append(Section(tables=[replace(by_judge, name="by_judge", title=f"By judge, clustered by {kind}")]))
    return assemble(sections, context, "Report")


def _finite(values: pd.Series) -> tuple[pd.Series, list[str]]:
    """The values with infinite ones as missing, and a sentence on how many there were."""
    infinite = np.isinf(values.astype(float)) if pd.api.types.is_numeric_dtype(values) else values != values
    count = int(infinite.sum())
    if not count:
        return values, []
    words = f"{count} of {plural(len(values), 'score')} {'is' if count == 1 else 'are'} infinite and left out."
    return values.mask(infinite), [words]


def _on_identity(overall: Line) -> Iterator[str]:
    test = f"{plural(overall.clusters or 0, 'cluster')}, p {p_text(overall.p)}"
    if overall.p != overall.p:
        yield f"The effect of identity could not be tested: {overall.note or 'there are too few data'}."
    elif overall.shown:
        yield f"Identity affects the scores ({test})."
    else:
        yield f"No effect of identity on the scores was shown ({test}). That is not evidence of no effect."


def _gaps(frame: pd.DataFrame, by: tuple[str, ...], kind: str) -> tuple[list[Line], Section]:
    """The section on whether scores depend on identity: every two identities, on the clusters that have both."""
    metrics = list(frame["metric"].astype(str).unique())
    question = Question(
        name="differences",
        ask="Do the scores depend on the identity?",
        measures={"value": metrics[0] if len(metrics) == 1 else "score"},
        by=by,
        arms="identity",
        pairs=lambda labels: combinations(labels, 2),
        item=(kind,),
        cluster=kind,
        facets={"identity": (("identity", "stored"),), "metric": ()},
        note=f"First minus second within each {kind}; n counts pairs of means.",
    )
    stored = frame["identity"].astype(str)
    named = frame.assign(stored=stored, identity=stored.replace("", UNNAMED))
    cells = named.groupby([*by, "identity", "stored", kind], sort=False)["value"].mean().reset_index()
    lines = answer(question, cells) if len(cells) else []
    made = section(question, lines)
    return lines, replace(made, tables=[replace(made.tables[0], shown=(*by, "first", "second", *SHOWN))])


def _means(frame: pd.DataFrame, keys: Sequence[str], kind: str) -> Section:
    """The section on the mean of each metric, with a plot for each, since scales may differ."""
    several = [key for key in ("model", "round") if key in keys and frame[key].nunique() > 1]
    lines: dict[str, list[Line]] = {}
    for values, rows in frame.groupby(list(keys), sort=False, dropna=False):
        about: dict[str, Any] = {
            key: int(value) if key == "round" else "" if pd.isna(value) else str(value)
            for key, value in zip(keys, values, strict=True)
        }
        named = [about["identity"] or UNNAMED] if "identity" in keys else []
        mean = cluster_mean(rows["value"], rows[kind])
        line = Line.of(
            mean,
            values=by_cluster(rows["value"], rows[kind], mean.estimate),
            cluster=kind,
            measure="mean",
            about=About.of(**about),
            label=", ".join([*named, *([f"round {about['round']}"] if "round" in several else [])]) or "all units",
            group=(about["model"],) if "model" in several else (),
            units={key: (about[key],) for key in keys if key == "identity" or (key == "model" and key in several)},
            name=".".join([about["metric"], *named, *([f"round-{about['round']}"] if "round" in several else [])]),
        )
        lines.setdefault(about["metric"], []).append(line)
    forests = []
    for number, (metric, of_metric) in enumerate(lines.items(), 1):
        ask = f"What is the mean of '{metric}'?"
        (forest,) = section(Question(name="means", ask=ask, measures={"mean": metric}, cluster=kind), of_metric).forests
        forests.append(replace(forest, name=f"means-{number}", constant=_constant(of_metric, kind)))
    every = as_frame([line for of_metric in lines.values() for line in of_metric])
    means = Table("means", f"Means, clustered by {kind}", every, shown=(*keys, *SHOWN))
    return Section(tables=[means], forests=forests)


def _constant(lines: Sequence[Line], kind: str) -> str:
    """A note if all values are the same (as opposed to too few)."""
    clusters = [line.clusters or 0 for line in lines]
    if any(line.bounded for line in lines) or min(clusters) < 2 or len({line.estimate for line in lines}) != 1:
        return ""
    return f"Always {lines[0].estimate:g}: it does not vary over {plural(max(clusters), kind)}."
