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
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, sheet
from parley.analysis.reporting.forest import Forest, estimates, filled
from parley.analysis.reporting.report import MAX_SENTENCES, NO_CONTEXT, Figure, Report, ReportContext, Table
from parley.analysis.reporting.verdicts import MissingColumns, cluster_of
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import Test
from parley.analysis.stats.signflips import clusters_to_reject
from parley.analysis.stats.tables import cell_means, cell_sums
from parley.base.text import p_text, plural

LEVEL = 0.05
CLUSTER = "cluster of the row"  # a column that no study has
TEST_COLUMNS = (
    "name", "statistic", "df", "p", "effect", "effect_name", "low", "high", "n", "clusters", "assumption", "note"
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
    means = pd.DataFrame(
        [
            _mean_row({"identity": label}, values[labels == label], clusters[labels == label])
            for label in pd.unique(labels)
        ]
    )
    cells = cell_means(values, labels, clusters)
    overall = effect_of_cells(cells, n=int(values.notna().sum()))
    gaps = _adjusted(_gaps(values, labels, clusters))
    tables = [
        Table("means", "Mean scores", means, printed=True),
        Table("differences", "First minus second, on the clusters that have both (Holm over all pairs)", gaps),
        Table("tests", "Overall test of identity", pd.DataFrame([_test_row(overall)])),
    ]
    counts = f"{plural(clusters.nunique(), 'cluster')}, {plural(int(values.notna().sum()), 'score')}"
    figure = Figure(
        "means", f"Means with 95% intervals over clusters ({counts}).", "means", lambda: _draw(means, title, counts)
    )
    return Report(
        title,
        (*infinite, *_words(gaps, overall))[:MAX_SENTENCES],
        tables=tuple(table for table in tables if len(table.frame)),
        figures=(figure,) if len(means) else (),
        forests=filled((_gap_forest(gaps, "cluster"),)),
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
        rows.append([first, second, test.effect, test.low, test.high, test.p, n, test.clusters, test.note])
    columns = ["first", "second", "difference", "low", "high", "p", "n", "clusters", "note"]
    return pd.DataFrame(rows, columns=columns)


def _adjusted(gaps: pd.DataFrame) -> pd.DataFrame:
    return gaps.assign(p_adjusted=list(holm(gaps["p"], "all pairs").adjusted))


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
    keys = [key for key in ("model", "identity", "metric", "round") if key in verdicts]
    rows = []
    for values, group in verdicts.groupby(keys, sort=False, observed=True, dropna=False):
        place = {key: str(value) if key != "round" else int(value) for key, value in zip(keys, values, strict=True)}
        rows.append(_mean_row(place, group["value"], group[CLUSTER]))
    means = pd.DataFrame(rows)
    words = list(infinite)
    if unread := int((~verdicts["status"].isin(["ok", "repaired"])).sum()) if "status" in verdicts else 0:
        words += [
            f"{unread} of {plural(len(verdicts), 'verdict')} could not be read; unreadable verdicts are left out."
        ]
    tables = [Table("means", f"Means, clustered by {cluster}", means, printed=True)]
    if "identity" in verdicts and len(gaps := _last_round_gaps(verdicts)):
        caption_text = f"First minus second after the last round, within each {cluster} (Holm over all)"
        tables.append(Table("differences", caption_text, gaps, shown=SHOWN, printed=True))
        words += _words_on_gaps(gaps, cluster)
    tables = [table for table in tables if len(table.frame)]
    shown = {table.name: table.frame for table in tables}
    forests = [_gap_forest(shown["differences"], cluster)] if "differences" in shown else []
    forests += _mean_forests(shown["means"], cluster) if "means" in shown else []
    return Report(
        title=context.title or "Report",
        words=tuple(words[:MAX_SENTENCES]),
        tables=tuple(tables),
        forests=filled(forests),
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
        estimates=estimates(
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


def _mean_forests(means: pd.DataFrame, cluster: str) -> Iterator[Forest]:
    """The means of each metric, which may have a scale of its own."""
    several = means["model"].nunique() > 1 if "model" in means else False
    facets = [name for name in ("identity", "model") if name == "identity" or several]
    for number, (metric, part) in enumerate(means.groupby("metric", sort=False)):
        keys = [name for name in facets if name in part]
        rounds = part["round"].nunique() > 1

        def label(row: Any, keys: list[str] = keys, rounds: bool = rounds) -> str:
            parts = [str(getattr(row, key)) or "no identity" for key in keys]
            return ", ".join([*parts, *([f"round {row.round}"] if rounds else [])]) or "all units"

        yield Forest(
            name=f"means-{number + 1}",
            question=f"What is the mean of '{metric}'?",
            axis=str(metric),
            estimates=estimates(
                part,
                label,
                value="mean",
                units=lambda row, keys=keys: {key: (str(getattr(row, key)),) for key in keys},  # type: ignore[misc]
            ),
            reference=None,
            table="means",
            note=f"95% intervals over {cluster}s.",
            constant=_constant(part, cluster),
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
    gaps = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return _adjusted(gaps) if len(gaps) else gaps


def _words_on_gaps(gaps: pd.DataFrame, cluster: str) -> Iterator[str]:
    yield from _out_of_reach(gaps, cluster)
    corrected = f" corrected for {len(gaps)} comparisons" if len(gaps) > 1 else ""
    for row in gaps[gaps["p_adjusted"] <= LEVEL].itertuples():
        higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
        yield (
            f"{row.model}, {row.metric}: '{higher}' scored {abs(row.difference):.2f} above '{lower}' on the same "
            f"{plural(row.clusters, cluster)} (p {p_text(row.p_adjusted)}{corrected})."
        )


def _out_of_reach(gaps: pd.DataFrame, cluster: str) -> Iterator[str]:
    """Says so where the clusters are too few for any difference to be significant."""
    clusters, needed = int(gaps["clusters"].max()), clusters_to_reject(LEVEL, max(1, int(gaps["p"].notna().sum())))
    if clusters < needed:
        yield f"With {plural(clusters, cluster)} no difference could be significant: that takes at least {needed}."


def _mean_row(place: dict[str, Any], values: pd.Series, clusters: pd.Series) -> dict[str, Any]:
    mean = cluster_mean(values, clusters)
    interval = {"mean": mean.estimate, "low": mean.low, "high": mean.high}
    return place | interval | {"n": mean.n, "clusters": mean.clusters}


def _test_row(test: Test) -> dict[str, Any]:
    return {name: getattr(test, name) for name in TEST_COLUMNS}


def _words(gaps: pd.DataFrame, overall: Test) -> Iterator[str]:
    p = f"sign flips over clusters, p {p_text(overall.p)}"
    if overall.p != overall.p:
        yield f"The effect of identity could not be tested: {overall.note or 'there are too few data'}."
    elif overall.p <= LEVEL:
        yield f"Identity affects the scores ({p})."
    else:
        yield f"No effect of identity on the scores was shown ({p}). That is not evidence of no effect."
        yield from _out_of_reach(gaps, "cluster")
    for row in gaps[gaps["p_adjusted"] <= LEVEL].itertuples():
        higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
        yield f"'{higher}' scored {abs(row.difference):.2f} above '{lower}' (p {p_text(row.p_adjusted)} corrected)."


def _draw(means: pd.DataFrame, title: str, counts: str) -> Drawing:
    figure, axes = sheet(5.2, 1.6 + LINE * len(means))
    tints = [PALETTE[0]] * len(means)
    dots(axes[0, 0], list(means["identity"]), means["mean"], means["low"], means["high"], tints)
    axes[0, 0].set_xlabel("mean score")
    caption(figure, title, f"{counts}. Dots with 95% intervals over clusters.")
    return figure
