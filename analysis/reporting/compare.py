"""Comparison of two runs, or of two models of one run, on the same units.

Units are paired by their place in the plan (scenario, identity, cell, repeat), whichever model ran them. Values are
compared by metric, as means of the metric's last round, with a sign-flip test over clusters (bases, BBQ's templates,
scenarios: see clusters.py). So are preferences. For yes-or-no metrics and preferences McNemar's exact test is added: it
takes every unit as independent, and finds false differences where models differ by scenario. For studies with
identities, whose metrics share a scale, all metrics together and the gaps between identities are compared as well. A
value that comes with a text is the code of a choice (an answer's position), not an amount: a study with such values
converts them first (`comparable` in its report's module).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import MAX_SENTENCES, Report, Table, format_interval
from parley.analysis.reporting.verdicts import cluster_of, final_verdicts, require
from parley.analysis.stats.multiplicity import with_holm
from parley.analysis.stats.paired import mcnemar_p, paired_permutation
from parley.analysis.stats.results import ALPHA, columns
from parley.analysis.stats.signflips import clusters_to_reject
from parley.analysis.stats.tables import Column, cell_means
from parley.base.text import p_text, plural

GAPS = "gaps between identities"
FACETS = ("category", "identity", "phase", "cluster")
KEYS = ["item", "metric", "subject"]
COLUMNS = [
    "family", "what", "first", "second", "difference", "low", "high", "p", "p_adjusted", "p_mcnemar", "test", "n",
    "clusters",
]  # fmt: skip


class NothingShared(ValueError):
    """Two runs that have no unit in common."""


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    names: tuple[str, str],
    *,
    measures: Collection[str] = (),
    **about: Any,
) -> Report:
    """Second minus first, the baseline, on the units that both have, with Holm correction within each family of tests.

    Args:
        first: Verdicts of the first run or model.
        second: Verdicts of the second.
        names: What to call the two.
        measures: The metrics that stand for a unit; they come first, and decide which units differ most. By default
            all metrics do.
        about: Further fields of the report, such as `runs` and `cautions`.

    Raises:
        NothingShared: No unit has readable verdicts on both sides.
    """
    kind = str(cluster_of(first).name)
    both = _main_first(_paired(first, second), measures)
    rows = [*_gaps(both), *_preferences(both), *_values(both)] if len(both) else []
    if not rows:
        raise NothingShared("they have no unit in common with readable verdicts on both sides")
    comparison = with_holm(pd.DataFrame(rows), "family")
    shared = plural(both["item"].nunique(), "shared unit")
    return Report(
        f"{names[1]} compared with {names[0]}",
        tuple(_words(comparison, shared, names, kind))[:MAX_SENTENCES],
        tables=(
            Table(
                "comparison",
                f"{names[1]} minus {names[0]}, on {shared}",
                comparison[[*COLUMNS, "note"]],
                note=f"Means over {kind}s. p and interval come from sign flips over {kind}s and generalise to further "
                f"{kind}s of this kind. p_mcnemar treats every unit as independent.",
            ),
            Table("largest", "The units that differ most", _largest(_main(both, measures))),
        ),
        forests=tuple(_forests(comparison, names, kind)),
        **about,
    )


FAMILIES = {
    "gaps between identities": ("Do the two treat identities differently?", "difference of the gaps"),
    "preferences": ("Do the two prefer differently?", "difference in share"),
    "values by metric": ("Do the two score differently?", "difference"),
}
"""The question of each family of comparisons, and its axis, in the order in which they are shown."""


def _forests(comparison: pd.DataFrame, names: tuple[str, str], kind: str) -> Iterator[Forest]:
    for family, (question, axis) in FAMILIES.items():
        yield Forest(
            name=family.replace(" ", "-"),
            question=question,
            axis=f"{axis}, {names[1]} minus {names[0]}",
            lines=lines_of(comparison[comparison["family"] == family], lambda row: str(row.what), p="p_adjusted"),
            scale="share" if family == "preferences" else "points",
            table="comparison",
            note=f"95% intervals and p-values: sign flips over {kind}s; p-values Holm-corrected within the family.",
        )


def _paired(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row per item, metric and subject that both have: the mean of the last round, or the most frequent choice."""
    left, right = _last_values(first), _last_values(second)
    right = right.drop(columns=[name for name in FACETS if name in right])
    return left.merge(right, on=KEYS, suffixes=("_first", "_second"))


def _is_main(both: pd.DataFrame, measures: Collection[str]) -> pd.Series:
    """Which rows belong to one of these metrics or to a part of one: "right, ambig" is a part of "right"."""
    return both["metric"].str.split(", ").str[0].isin(measures)


def _main_first(both: pd.DataFrame, measures: Collection[str]) -> pd.DataFrame:
    return both.loc[(~_is_main(both, measures)).sort_values(kind="stable").index].reset_index(drop=True)


def _main(both: pd.DataFrame, measures: Collection[str]) -> pd.DataFrame:
    main = both[_is_main(both, measures)]
    return main if len(main) else both


def _last_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    ends = [final_verdicts(part) for _, part in verdicts.groupby("metric", observed=True, sort=False)]
    last = pd.concat(ends) if ends else verdicts
    item = last["unit"].astype(str).str.replace(r"/@.*$", "", regex=True)
    subject = last["subject"].astype(str) if "subject" in last else ""
    frame = pd.DataFrame(
        {"item": item, "metric": last["metric"].astype(str), "subject": subject, "value": last["value"]}
    )
    frame["choice"] = last["text"].astype(object) if "text" in last else None
    frame.loc[frame["choice"].notna() & (last["role"].astype(str) != "evaluator"), "value"] = np.nan
    last = last.assign(cluster=cluster_of(last) if "scenario" in last or "base" in last else item)
    for name in FACETS:
        if name in last:
            frame[name] = last[name].astype(str)
    facets = {name: "first" for name in FACETS if name in frame}
    reduced = frame.groupby(KEYS, sort=False).agg({"value": "mean"} | facets)
    return reduced.join(_majorities(frame[frame["choice"].notna()])).reset_index()


def _majorities(chosen: pd.DataFrame) -> pd.Series:
    """The most frequent choice of every item; "tie" where two are equally frequent."""
    counts = chosen.groupby([*KEYS, "choice"], sort=False).size().rename("times").reset_index()
    most = counts.groupby(KEYS, sort=False)["times"].transform("max")
    leading = counts[counts["times"] == most].groupby(KEYS, sort=False)["choice"].agg(["first", "size"])
    return leading["first"].where(leading["size"] == 1, "tie").rename("choice")


def _phase_name(phase: str) -> str:
    """The name of MALIBU's third phase in every report."""
    return "yardstick" if phase == "3" else f"phase {phase}"


def _values(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    known = both[both["value_first"].notna() & both["value_second"].notna()]
    phases = list(pd.unique(known["phase"])) if "phase" in known else []
    for phase in phases if len(phases) > 1 else [None]:
        in_phase = known if phase is None else known[known["phase"] == phase]
        metrics = list(pd.unique(in_phase["metric"]))
        for metric in (["all metrics"] if len(metrics) > 1 and "identity" in in_phase else []) + metrics:
            part = in_phase if metric == "all metrics" else in_phase[in_phase["metric"] == metric]
            name = metric if phase is None else f"{_phase_name(phase)}: {metric}"
            yield _value(name, part)


def _value(name: str, part: pd.DataFrame) -> dict[str, Any]:
    first, second = part["value_first"], part["value_second"]
    yes_or_no = set(first) | set(second) <= {0.0, 1.0}
    return _row("values by metric", name, first, second, part["cluster"], yes_or_no=yes_or_no)


def _preferences(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    chosen = both[(both["metric"] == "preferred") & both["choice_first"].notna() & both["choice_second"].notna()]
    decided = chosen[chosen["choice_first"].isin(["A", "B"]) & chosen["choice_second"].isin(["A", "B"])]
    if len(chosen):
        first, second = ((decided[f"choice_{side}"] == "A").astype(float) for side in ("first", "second"))
        row = _row("preferences", "prefers the one shown first", first, second, decided["cluster"], yes_or_no=True)
        same = (chosen["choice_first"] == chosen["choice_second"]).mean()
        agreed = f"the same preference in {same:.0%} of {plural(len(chosen), 'unit')}"
        yield row | {"note": "; ".join(filter(None, (row["note"], agreed)))}


def _gaps(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Whether the gap between two identities differs between the two runs."""
    if "identity" not in both:
        return
    require(both, texts=("category", "cluster"))
    single = both[(both["subject"] == "") & (both["identity"] != "")]
    single = single[single["value_first"].notna() & single["value_second"].notna()]
    for category, part in single[single["metric"] != "preferred"].groupby("category", sort=False):
        tables = [cell_means(part[f"value_{side}"], part["identity"], part["cluster"]) for side in ("first", "second")]
        for x, y in combinations(tables[0].columns, 2):
            gaps = [(table[x] - table[y]).reindex(tables[0].index) for table in tables]
            yield _row(GAPS, f"{category}: {x} − {y}", gaps[0], gaps[1], tables[0].index)


def _row(
    family: str, what: str, first: pd.Series, second: pd.Series, clusters: Column, *, yes_or_no: bool = False
) -> dict[str, Any]:
    """One comparison: means over clusters, the test, and McNemar's p where values are 0 or 1."""
    test = paired_permutation(second, first, clusters)
    means = [float(side.groupby(np.asarray(clusters)).mean().mean()) for side in (first, second)]
    return {
        "family": family,
        "what": what,
        "first": means[0],
        "second": means[1],
        **columns(test, "difference", "p", "n", "clusters", "note", test="method"),
        "p_mcnemar": mcnemar_p(first, second) if yes_or_no else np.nan,
    }


def _largest(both: pd.DataFrame, count: int = 20) -> pd.DataFrame:
    """The units with the largest mean difference over their metrics, to be read first."""
    gap = (both["value_second"] - both["value_first"]).groupby(both["item"]).mean().dropna()
    order = gap.abs().sort_values(ascending=False, kind="stable").index[:count]
    return pd.DataFrame({"unit": order, "mean_difference": gap.loc[order].to_numpy()})


def _words(comparison: pd.DataFrame, shared: str, names: tuple[str, str], kind: str) -> Iterator[str]:
    yield f"Compared on {shared}; differences are {names[1]} minus {names[0]}."
    clusters, tests = comparison["clusters"].max(), comparison["family"].value_counts().min()
    if clusters < (needed := clusters_to_reject(ALPHA, int(tests))):
        yield f"With {plural(int(clusters), kind)} no difference could be significant: that takes at least {needed}."
    for row in comparison[comparison["p_adjusted"] <= ALPHA].itertuples():
        interval = format_interval(row.low, row.high, "+.2f")
        yield (
            f"{row.what}: {row.first:.2f} for {names[0]}, {row.second:.2f} for {names[1]}, a difference of "
            f"{row.difference:+.2f} ({interval}; p {p_text(row.p_adjusted)}) over {plural(row.clusters, kind)}."
        )
