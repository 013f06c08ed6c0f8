"""Comparison of two runs, or of two models of one run, on the same units.

Units are paired by their place in the plan (scenario, identity, cell, repeat), whichever model ran them. Values are
compared by metric, as means of the metric's last round, with a sign-flip test over scenarios; yes-or-no metrics and
preferences with McNemar's exact test. For studies with identities, whose metrics share a scale, all metrics together
and the gaps between identities are compared as well. A value with a text beside it is the code of a choice (an
answer's position), not an amount: a study with such values converts them first (`comparable` in its report's module).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.report import Report, Table
from parley.analysis.reporting.text import plural
from parley.analysis.reporting.verdicts import final_verdicts, require
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import mcnemar, paired_permutation
from parley.analysis.stats.results import Test
from parley.analysis.stats.tables import cell_means

LEVEL = 0.05
FACETS = ("scenario", "category", "identity", "phase")
KEYS = ["item", "metric", "subject"]
COLUMNS = ["family", "what", "first", "second", "difference", "low", "high", "p", "p_adjusted", "test", "n", "clusters"]


class NothingShared(ValueError):
    """Two runs that have no unit in common."""


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    names: tuple[str, str],
    *,
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """First minus second on the units that both have, with Holm correction within each family of tests.

    Args:
        first: Verdicts of the first run or model.
        second: Verdicts of the second.
        names: What to call the two.
        draws: Bootstrap and permutation draws.
        seed: Seed of the draws.
        about: Further fields of the report, such as `runs` and `cautions`.

    Raises:
        NothingShared: No unit has readable verdicts on both sides.
    """
    both = _paired(first, second)
    rows = [*_values(both, draws, seed), *_preferences(both), *_gaps(both, draws, seed)] if len(both) else []
    if not rows:
        raise NothingShared("the two have no unit in common with readable verdicts on both sides")
    comparison = pd.DataFrame(rows)
    comparison["p_adjusted"] = np.nan
    for family, part in comparison.groupby("family", sort=False):
        comparison.loc[part.index, "p_adjusted"] = holm(part["p"], str(family)).adjusted
    shared = plural(both["item"].nunique(), "shared unit")
    return Report(
        f"{names[0]} against {names[1]}",
        tuple(_words(comparison, shared, names)),
        tables=(
            Table("comparison", f"{names[0]} minus {names[1]}, on {shared}", comparison[[*COLUMNS, "note"]]),
            Table("largest", "The units that differ most", _largest(both)),
        ),
        settings={"draws": draws, "seed": seed},
        **about,
    )


def _paired(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row per item, metric and subject that both have: the mean of the last round, or the most frequent choice."""
    left, right = _last_values(first), _last_values(second)
    right = right.drop(columns=[name for name in FACETS if name in right])
    both = left.merge(right, on=KEYS, suffixes=("_first", "_second"))
    both["cluster"] = both["scenario"] if "scenario" in left else both["item"]
    return both


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


def _values(both: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    known = both[both["value_first"].notna() & both["value_second"].notna()]
    phases = list(pd.unique(known["phase"])) if "phase" in known else []
    for phase in phases if len(phases) > 1 else [None]:
        in_phase = known if phase is None else known[known["phase"] == phase]
        metrics = list(pd.unique(in_phase["metric"]))
        for metric in (["all metrics"] if len(metrics) > 1 and "identity" in in_phase else []) + metrics:
            part = in_phase if metric == "all metrics" else in_phase[in_phase["metric"] == metric]
            name = metric if phase is None else f"phase {phase}: {metric}"
            yield _value(name, part, draws, seed)


def _value(name: str, part: pd.DataFrame, draws: int, seed: int) -> dict[str, Any]:
    first, second = part["value_first"], part["value_second"]
    if set(first) | set(second) <= {0.0, 1.0}:
        test = mcnemar(first, second)
    else:
        test = paired_permutation(first, second, part["cluster"])
    first_mean, second_mean = (float(side.groupby(part["cluster"]).mean().mean()) for side in (first, second))
    return _row("values by metric", name, first_mean, second_mean, test)


def _preferences(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    chosen = both[(both["metric"] == "preferred") & both["choice_first"].notna() & both["choice_second"].notna()]
    decided = chosen[chosen["choice_first"].isin(["A", "B"]) & chosen["choice_second"].isin(["A", "B"])]
    if len(chosen):
        first, second = ((decided[f"choice_{side}"] == "A").astype(float) for side in ("first", "second"))
        test = mcnemar(first, second)
        row = _row("preferences", "prefers the one shown first", first.mean(), second.mean(), test)
        same = (chosen["choice_first"] == chosen["choice_second"]).mean()
        yield row | {
            "note": f"{row['note']} the same preference in {same:.0%} of {plural(len(chosen), 'unit')}".strip()
        }


def _gaps(both: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Whether the gap between two identities differs between the two runs."""
    if "identity" not in both:
        return
    require(both, texts=("category", "scenario"))
    single = both[(both["subject"] == "") & (both["identity"] != "")]
    single = single[single["value_first"].notna() & single["value_second"].notna()]
    for category, part in single[single["metric"] != "preferred"].groupby("category", sort=False):
        tables = [cell_means(part[f"value_{side}"], part["identity"], part["scenario"]) for side in ("first", "second")]
        for x, y in combinations(tables[0].columns, 2):
            gaps = [(table[x] - table[y]).reindex(tables[0].index) for table in tables]
            test = paired_permutation(gaps[0], gaps[1], tables[0].index)
            yield _row("gaps between identities", f"{category}: {x} − {y}", gaps[0].mean(), gaps[1].mean(), test)


def _row(family: str, what: str, first: float, second: float, test: Test) -> dict[str, Any]:
    return {
        "family": family,
        "what": what,
        "first": first,
        "second": second,
        "difference": first - second,
        "low": test.low if "difference" in test.effect_name else np.nan,
        "high": test.high if "difference" in test.effect_name else np.nan,
        "p": test.p,
        "test": test.name,
        "n": test.n,
        "clusters": test.clusters,
        "note": test.note,
    }


def _largest(both: pd.DataFrame, count: int = 20) -> pd.DataFrame:
    """The units with the largest mean difference over their metrics, to be read first."""
    gap = (both["value_first"] - both["value_second"]).groupby(both["item"]).mean().dropna()
    order = gap.abs().sort_values(ascending=False, kind="stable").index[:count]
    return pd.DataFrame({"unit": order, "mean_difference": gap.loc[order].to_numpy()})


def _words(comparison: pd.DataFrame, shared: str, names: tuple[str, str]) -> Iterator[str]:
    yield f"Compared on {shared}."
    significant = comparison[comparison["p_adjusted"] < LEVEL]
    for row in significant.itertuples():
        yield (
            f"{row.what}: {row.first:.2f} for {names[0]}, {row.second:.2f} for {names[1]} "
            f"(p = {row.p_adjusted:.2g} after Holm correction within the family '{row.family}')."
        )
    if significant.empty:
        yield "No difference is significant after Holm correction. That is not evidence that the two are alike."
