"""Any frame with an identity, a cluster and a score, in three lines:

    import pandas as pd
    from parley.analysis.reporting.generic import identities
    print(identities(pd.read_csv("mine.csv")).words)

And the report of any study that has none of its own: the mean of every metric, clustered by scenario or by unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, sheet
from parley.analysis.reporting.report import Figure, Report, Table
from parley.analysis.reporting.verdicts import MissingColumns
from parley.analysis.stats.clustered import bootstrap_difference, cluster_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.tables import cell_means

LEVEL = 0.05


def identities(
    frame: pd.DataFrame,
    *,
    identity: str = "identity",
    cluster: str = "cluster",
    score: str = "score",
    title: str = "Scores by identity",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """Means by identity, every difference with its interval and a permutation test within clusters, after Holm."""
    if missing := [name for name in (identity, cluster, score) if name not in frame]:
        raise MissingColumns(f"the frame lacks the columns {', '.join(missing)}")
    values, labels, clusters = frame[score], frame[identity].astype(str), frame[cluster].astype(str)
    means = pd.DataFrame(
        [
            _mean_row({"identity": label}, values[labels == label], clusters[labels == label])
            for label in pd.unique(labels)
        ]
    )
    cells = cell_means(values, labels, clusters)
    overall = effect_of_cells(cells, n=int(values.notna().sum()), draws=draws, seed=seed)
    gaps = _adjusted(_gaps(values, labels, clusters, draws=draws, seed=seed))
    tables = [
        Table("means", "Mean scores", means, printed=True),
        Table("differences", "First minus second, on the clusters that have both (Holm over all pairs)", gaps),
        Table("tests", "Does identity matter at all?", pd.DataFrame([_as_row(overall)])),
    ]
    counts = f"{clusters.nunique()} clusters, {int(values.notna().sum()):,} scores"
    figure = Figure(
        "means", f"Means with 95% intervals over clusters ({counts}).", "means", lambda: _drawn(means, title, counts)
    )
    return Report(
        title,
        tuple(_words(gaps, overall.p, overall.note)),
        tables=tuple(table for table in tables if len(table.frame)),
        figures=(figure,) if len(means) else (),
        settings={"draws": draws, "seed": seed},
        **about,
    )


GAP = ("first", "second", "difference", "low", "high", "p", "n", "clusters", "note")


def _gaps(values: pd.Series, labels: pd.Series, clusters: pd.Series, *, draws: int, seed: int) -> pd.DataFrame:
    """Every two identities, on the clusters that have both."""
    cells = cell_means(values, labels, clusters)
    rows = []
    for first, second in combinations(cells.columns, 2):
        gap = bootstrap_difference(values, labels, clusters, first, second, draws=draws, seed=seed)
        test = effect_of_cells(cells[[first, second]], draws=draws, seed=seed)
        rows.append(
            [first, second, gap.estimate, gap.low, gap.high, test.p, gap.n, gap.clusters, gap.note or test.note]
        )
    return pd.DataFrame(rows, columns=list(GAP))


def _adjusted(gaps: pd.DataFrame) -> pd.DataFrame:
    return gaps.assign(p_adjusted=list(holm(gaps["p"], "all pairs").adjusted))


def report(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "Report",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """The mean of every metric by model and round, its error from scenarios where there are any, else from units.

    Where units have an identity, every two are compared as they stand after the last round.
    """
    cluster = "scenario" if "scenario" in verdicts else "unit"
    keys = [key for key in ("model", "identity", "metric", "round") if key in verdicts]
    rows = []
    for values, group in verdicts.groupby(keys, sort=False, observed=True, dropna=False):
        place = {key: str(value) if key != "round" else int(value) for key, value in zip(keys, values, strict=True)}
        rows.append(_mean_row(place, group["value"], group[cluster]))
    means = pd.DataFrame(rows)
    unread = int((~verdicts["status"].isin(["ok", "repaired"])).sum()) if "status" in verdicts else 0
    words = [f"{unread} of {len(verdicts)} verdicts could not be read; they are left out."] if unread else []
    tables = [Table("means", f"Means, clustered by {cluster}", means, printed=True)]
    if "identity" in verdicts and len(gaps := _last_round_gaps(verdicts, cluster, draws=draws, seed=seed)):
        shown = (
            "model",
            "metric",
            "first",
            "second",
            "difference",
            "low",
            "high",
            "p_adjusted",
            "n",
            "clusters",
            "note",
        )
        what = f"First minus second after the last round, within each {cluster} (Holm over all)"
        tables.append(Table("differences", what, gaps, shown, printed=True))
        words += _in_words(gaps, cluster)
    kept = tuple(table for table in tables if len(table.frame))
    return Report(title, tuple(words), tables=kept, settings={"draws": draws, "seed": seed}, **about)


def _last_round_gaps(verdicts: pd.DataFrame, cluster: str, *, draws: int, seed: int) -> pd.DataFrame:
    known = verdicts[verdicts["identity"].notna() & verdicts["value"].notna()]
    found = []
    for (model, metric), group in known.groupby(["model", "metric"], sort=False, observed=True):
        last = group[group["round"] == group["round"].max()]
        gaps = _gaps(last["value"], last["identity"].astype(str), last[cluster].astype(str), draws=draws, seed=seed)
        found.append(gaps.assign(model=str(model), metric=str(metric)))
    met = pd.concat([one[one["clusters"] > 0] for one in found], ignore_index=True) if found else pd.DataFrame()
    return _adjusted(met) if len(met) else met


def _in_words(gaps: pd.DataFrame, cluster: str) -> Iterator[str]:
    clear = gaps[gaps["p_adjusted"] < LEVEL]
    for row in clear.itertuples():
        higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
        yield (
            f"{row.model}, {row.metric}: '{higher}' scored {abs(row.difference):.2f} above '{lower}' on the same "
            f"{row.clusters} {cluster}s (p = {row.p_adjusted:.2g} after Holm over {len(gaps)})."
        )
    if clear.empty:
        most = int(gaps["clusters"].max())
        yield (
            f"Of {len(gaps)} differences between identities none stands after Holm's correction, with {most} "
            f"{cluster}s at most. That is not evidence of no bias."
        )


def _mean_row(place: dict[str, Any], values: pd.Series, clusters: pd.Series) -> dict[str, Any]:
    found = cluster_mean(values, clusters)
    interval = {"mean": found.estimate, "low": found.low, "high": found.high}
    return place | interval | {"n": found.n, "clusters": found.clusters}


def _as_row(test: Any) -> dict[str, Any]:
    names = (
        "name",
        "statistic",
        "df",
        "p",
        "effect",
        "effect_name",
        "low",
        "high",
        "n",
        "clusters",
        "assumption",
        "note",
    )
    return {name: getattr(test, name) for name in names}


def _words(gaps: pd.DataFrame, p: float, note: str) -> Iterator[str]:
    if p != p:
        yield f"Whether identity matters could not be tested: {note or 'the data are too few'}."
    else:
        verdict = "moves the scores" if p < LEVEL else "was not shown to move the scores, which is no evidence of none"
        yield f"Identity {verdict} (permuted within clusters, p = {p:.2g})."
    for row in gaps[gaps["p_adjusted"] < LEVEL].itertuples():
        higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
        yield f"'{higher}' scored {abs(row.difference):.2f} above '{lower}' (p = {row.p_adjusted:.2g} after Holm)."


def _drawn(means: pd.DataFrame, title: str, counts: str) -> Drawing:
    figure, axes = sheet(5.2, 1.6 + LINE * len(means))
    tints = [PALETTE[0]] * len(means)
    dots(axes[0, 0], list(means["identity"]), means["mean"], means["low"], means["high"], tints)
    axes[0, 0].set_xlabel("mean score")
    caption(figure, title, f"{counts}. Dots with 95% intervals over clusters.")
    return figure
