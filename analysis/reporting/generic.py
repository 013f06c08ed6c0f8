"""Any frame with an identity, a cluster and a score, in three lines:

    import pandas as pd
    from parley.analysis.reporting.generic import identities
    print(identities(pd.read_csv("mine.csv")).words)

And the report of any study that has none of its own: the mean of every metric, clustered by base, scenario or unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import MAX_SENTENCES, NO_CONTEXT, Report, ReportContext, Table
from parley.analysis.reporting.verdicts import MissingColumns, cluster_of
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import ALPHA, Line, columns
from parley.analysis.stats.signflips import clusters_to_reject
from parley.analysis.stats.tables import cell_means, cell_sums
from parley.base.text import p_text, plural

CLUSTER = "cluster of the row"  # a column that no study has
TEST_COLUMNS = (
    "method", "statistic", "df", "p", "estimate", "measure", "low", "high", "n", "clusters", "assumption", "note"
)  # fmt: skip
SHOWN = (
    "model", "metric", "first", "second", "difference", "low", "high", "p_adjusted", "n", "clusters", "note"
)  # fmt: skip


def identities(
    frame: pd.DataFrame,
    *,
    identity: str = "identity",
    cluster: str | None = None,
    score: str = "score",
    title: str = "Scores by identity",
    **about: Any,
) -> Report:
    """Means by identity, and every difference with its sign-flip test and interval, Holm-corrected.

    Args:
        frame: One row per score.
        identity: Column of identities.
        cluster: Column of clusters, which are taken as independent; None: `base` if there is one, else `cluster`.
        score: Column of scores; rows where it is missing or infinite are left out.
        title: Title of the report.
        about: Further fields of the report, such as `runs` and `cautions`.

    Raises:
        MissingColumns: The frame lacks one of the three columns.
    """
    cluster = cluster or ("base" if "base" in frame else "cluster")
    if missing := [name for name in (identity, cluster, score) if name not in frame]:
        raise MissingColumns(f"the frame lacks the {'column' if len(missing) == 1 else 'columns'} {', '.join(missing)}")
    values, infinite = _finite(frame[score])
    labels, clusters = frame[identity].astype(str), frame[cluster].astype(str)
    means = _means(pd.DataFrame({"identity": labels, "value": values, CLUSTER: clusters}), ["identity"])
    overall = effect_of_cells(cell_means(values, labels, clusters), n=int(values.notna().sum()))
    gaps = _gaps(values, labels, clusters)
    gaps["p_adjusted"] = holm(gaps["p"])
    tables = [
        Table("means", "Mean scores", means, printed=True),
        Table("differences", "First minus second, on the clusters that have both (Holm over all pairs)", gaps),
        Table(
            "tests",
            "Overall test of identity",
            pd.DataFrame([{name: getattr(overall, name) for name in TEST_COLUMNS}]),
        ),
    ]
    of_means = [_mean_forest(means, score, "cluster")] if len(means) else []
    return Report(
        title,
        (*infinite, *_words(gaps, overall))[:MAX_SENTENCES],
        tables=tuple(table for table in tables if len(table.frame)),
        forests=(_gap_forest(gaps, "cluster"), *of_means),
        **about,
    )


def _finite(values: pd.Series) -> tuple[pd.Series, tuple[str, ...]]:
    """The values with infinite ones as missing, and a sentence on how many there were."""
    infinite = np.isinf(values.astype(float)) if pd.api.types.is_numeric_dtype(values) else values != values
    count = int(infinite.sum())
    if not count:
        return values, ()
    words = f"{count} of {plural(len(values), 'score')} {'is' if count == 1 else 'are'} infinite and left out."
    return values.mask(infinite), (words,)


def _gaps(values: pd.Series, labels: pd.Series, clusters: pd.Series) -> pd.DataFrame:
    """The difference of every two identities, on the clusters that have both."""
    sums, counts = cell_sums(values, labels, clusters)
    cells = sums / counts.where(counts > 0)
    rows = []
    for first, second in combinations(cells.columns, 2):
        test = effect_of_cells(cells[[first, second]])
        n = int(counts.loc[cells[[first, second]].notna().all(axis=1), [first, second]].to_numpy().sum())
        rows.append([first, second, test.estimate, test.low, test.high, test.p, n, test.clusters, test.note])
    columns = ["first", "second", "difference", "low", "high", "p", "n", "clusters", "note"]
    return pd.DataFrame(rows, columns=columns)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of a study that has none of its own.

    It has the mean of every metric by model and round. Where units have an identity, every two identities are compared
    after the last round. Clusters are bases or scenarios where there are any, else units.

    Args:
        verdicts: The run's verdicts, one row each (see `parley.runs.frames`).
        context: What else the report is given.
    """
    values, infinite = _finite(verdicts["value"])
    clusters = cluster_of(verdicts)
    cluster = str(clusters.name)
    verdicts = verdicts.assign(value=values, **{CLUSTER: clusters})
    means = _means(verdicts, [key for key in ("model", "identity", "metric", "round") if key in verdicts])
    words = list(infinite)
    if unread := int((~verdicts["status"].isin(["ok", "repaired"])).sum()) if "status" in verdicts else 0:
        words += [
            f"{unread} of {plural(len(verdicts), 'verdict')} could not be read; unreadable verdicts are left out."
        ]
    tables = [Table("means", f"Means, clustered by {cluster}", means, printed=True)]
    forests = []
    if "identity" in verdicts and len(gaps := _last_round_gaps(verdicts)):
        caption_text = f"First minus second after the last round, within each {cluster} (Holm over all)"
        tables.append(Table("differences", caption_text, gaps, shown=SHOWN, printed=True))
        words += [*_out_of_reach(gaps, cluster), *_shown(gaps, cluster)]
        forests.append(_gap_forest(gaps, cluster))
    for number, (metric, part) in enumerate(means.groupby("metric", sort=False) if len(means) else (), 1):
        forests.append(_mean_forest(part, str(metric), cluster, f"-{number}"))
    return Report(
        title=context.title or "Report",
        words=tuple(words[:MAX_SENTENCES]),
        tables=tuple(table for table in tables if len(table.frame)),
        forests=tuple(forests),
        cautions=tuple(context.cautions),
        runs=tuple(context.runs),
    )


def _gap_forest(gaps: pd.DataFrame, cluster: str) -> Forest:
    """Differences between identities, by metric where there are several."""
    by = [name for name in ("metric", "model") if name in gaps and gaps[name].nunique() > 1]
    return Forest(
        name="differences",
        question="Do the scores depend on the identity?",
        axis="difference in score",
        lines=lines_of(
            gaps,
            lambda row: f"{row.first or 'no label'} − {row.second or 'no label'}",
            p="p_adjusted",
            group=lambda row: " · ".join(str(getattr(row, name)) for name in by),
            units=lambda row: {
                "identity": (row.first, row.second),
                **({"model": (row.model,)} if "model" in by else {}),
            },
        ),
        table="differences",
        note=f"95% intervals and p-values: sign flips over {cluster}s; p-values Holm-corrected over all.",
    )


def _mean_forest(means: pd.DataFrame, metric: str, cluster: str, number: str = "") -> Forest:
    """The means of one metric, which may have a scale of its own."""
    several = "model" in means and means["model"].nunique() > 1
    keys = [name for name in ("identity", "model") if name in means and (name == "identity" or several)]
    rounds = "round" in means and means["round"].nunique() > 1

    def label(row: Any) -> str:
        parts = [str(getattr(row, key)) or "no identity" for key in keys]
        return ", ".join([*parts, *([f"round {row.round}"] if rounds else [])]) or "all units"

    return Forest(
        name=f"means{number}",
        question=f"What is the mean of '{metric}'?",
        axis=metric,
        lines=lines_of(means, label, value="mean", units=lambda row: {key: (str(getattr(row, key)),) for key in keys}),
        reference=None,
        table="means",
        note=f"95% intervals over {cluster}s.",
        constant=_constant(means, cluster),
    )


def _constant(means: pd.DataFrame, cluster: str) -> str:
    """Says so where all values are the same, which is not the same as having too few."""
    if means["low"].notna().any() or means["clusters"].min() < 2 or means["mean"].nunique() != 1:
        return ""
    return f"Always {means['mean'].iloc[0]:g}: it does not vary over {plural(int(means['clusters'].max()), cluster)}."


def _last_round_gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    known = verdicts[verdicts["identity"].notna() & verdicts["value"].notna()]
    parts = []
    for (model, metric), group in known.groupby(["model", "metric"], sort=False, observed=True):
        last = group[group["round"] == group["round"].max()]
        gaps = _gaps(last["value"], last["identity"].astype(str), last[CLUSTER])
        parts.append(gaps[gaps["clusters"] > 0].assign(model=str(model), metric=str(metric)))
    gaps = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"p": []})
    return gaps.assign(p_adjusted=holm(gaps["p"]))


def _shown(gaps: pd.DataFrame, cluster: str) -> Iterator[str]:
    """A sentence on every significant difference."""
    corrected = f" corrected for {len(gaps)} comparisons" if len(gaps) > 1 else ""
    for row in gaps[gaps["p_adjusted"] <= ALPHA].itertuples():
        higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
        place = f"{row.model}, {row.metric}: " if "metric" in gaps else ""
        yield (
            f"{place}'{higher}' scored {abs(row.difference):.2f} above '{lower}' on the same "
            f"{plural(row.clusters, cluster)} (p {p_text(row.p_adjusted)}{corrected})."
        )


def _out_of_reach(gaps: pd.DataFrame, cluster: str) -> Iterator[str]:
    """Says so where the clusters are too few for any difference to be significant."""
    clusters, needed = int(gaps["clusters"].max()), clusters_to_reject(ALPHA, max(1, int(gaps["p"].notna().sum())))
    if clusters < needed:
        yield f"With {plural(clusters, cluster)} no difference could be significant: that takes at least {needed}."


def _means(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The mean value of every group over its clusters."""
    rows = []
    for values, group in frame.groupby(keys, sort=False, observed=True, dropna=False):
        place = {key: str(value) if key != "round" else int(value) for key, value in zip(keys, values, strict=True)}
        rows.append(place | columns(cluster_mean(group["value"], group[CLUSTER]), "mean", "n", "clusters"))
    return pd.DataFrame(rows)


def _words(gaps: pd.DataFrame, overall: Line) -> Iterator[str]:
    p = f"sign flips over clusters, p {p_text(overall.p)}"
    if overall.p != overall.p:
        yield f"The effect of identity could not be tested: {overall.note or 'there are too few data'}."
    elif overall.p <= ALPHA:
        yield f"Identity affects the scores ({p})."
    else:
        yield f"No effect of identity on the scores was shown ({p}). That is not evidence of no effect."
        yield from _out_of_reach(gaps, "cluster")
    yield from _shown(gaps, "cluster")
