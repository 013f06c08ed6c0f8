"""Two runs, or two models of one run, on the same units: what differs, by how much, and is it real?

Units are paired by their place in the plan (scenario, identity, cell, repeat), whatever model held them. Values are
compared metric by metric as means of the metric's last round, signs flipped over scenarios; yes-and-no metrics and
preferences by McNemar's exact test. For studies with identities, whose metrics share a scale, all metrics together and
the gaps between identities are compared as well. A value that stands beside words is the code of a choice (an answer's
place), not an amount: a study that has such gives `compare` what they are worth (`comparable` in its report's module).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.report import Report, Table
from parley.analysis.reporting.verdicts import final_verdicts
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import mcnemar, paired_permutation
from parley.analysis.stats.results import Test
from parley.analysis.stats.tables import cell_means

FACTS = ("scenario", "category", "identity", "phase")
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
    """First minus second on the units that both have."""
    both = _paired(first, second)
    rows = [*_values(both, draws, seed), *_preferences(both), *_gaps(both, draws, seed)] if len(both) else []
    if not rows:
        raise NothingShared("the two have no unit in common that both could read")
    found = pd.DataFrame(rows)
    found["p_adjusted"] = np.nan
    for family, part in found.groupby("family", sort=False):
        found.loc[part.index, "p_adjusted"] = holm(part["p"], str(family)).adjusted
    units = both["item"].nunique()
    title = f"{names[0]} against {names[1]}"
    largest = _largest(both)
    return Report(
        title,
        tuple(_words(found, units, names)),
        tables=(
            Table("comparison", f"{names[0]} minus {names[1]}, on {units} shared units", found[[*COLUMNS, "note"]]),
            Table("largest", "The units that differ most", largest),
        ),
        settings={"draws": draws, "seed": seed},
        **about,
    )


def _paired(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row an item, metric and subject that both have: the mean of the last round, or the most frequent word."""
    one, two = _last_values(first), _last_values(second)
    facts = list(FACTS)
    shared = [name for name in facts if name in one]
    two = two.drop(columns=[name for name in facts if name in two])
    both = one.merge(two, on=["item", "metric", "subject"], suffixes=("_first", "_second"))
    both["cluster"] = both["scenario"] if "scenario" in shared else both["item"]
    return both


def _last_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    ends = [final_verdicts(part) for _, part in verdicts.groupby("metric", observed=True, sort=False)]
    last = pd.concat(ends) if ends else verdicts
    item = last["unit"].astype(str).str.replace(r"/@.*$", "", regex=True)
    subject = last["subject"].astype(str) if "subject" in last else ""
    frame = pd.DataFrame(
        {"item": item, "metric": last["metric"].astype(str), "subject": subject, "value": last["value"]}
    )
    frame["word"] = last["text"].astype(object) if "text" in last else None
    frame.loc[frame["word"].notna() & (last["role"].astype(str) != "evaluator"), "value"] = np.nan
    keys = ["item", "metric", "subject"]
    for name in FACTS:
        if name in last:
            frame[name] = last[name].astype(str)
    facts = {name: "first" for name in FACTS if name in frame}
    reduced = frame.groupby(keys, sort=False).agg({"value": "mean"} | facts)
    return reduced.join(_majorities(frame[frame["word"].notna()], keys)).reset_index()


def _majorities(said: pd.DataFrame, keys: list[str]) -> pd.Series:
    """The most frequent word of every item; two that are as frequent are a tie."""
    counts = said.groupby([*keys, "word"], sort=False).size().rename("times").reset_index()
    most = counts.groupby(keys, sort=False)["times"].transform("max")
    leading = counts[counts["times"] == most].groupby(keys, sort=False)["word"].agg(["first", "size"])
    return leading["first"].where(leading["size"] == 1, "tie").rename("word")


def _values(both: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    numbers = both[both["value_first"].notna() & both["value_second"].notna()]
    phases = list(pd.unique(numbers["phase"])) if "phase" in numbers else []
    for phase in phases if len(phases) > 1 else [None]:
        here = numbers if phase is None else numbers[numbers["phase"] == phase]
        metrics = list(pd.unique(here["metric"]))
        for metric in (["all metrics"] if len(metrics) > 1 and "identity" in here else []) + metrics:
            part = here if metric == "all metrics" else here[here["metric"] == metric]
            name = metric if phase is None else f"phase {phase}: {metric}"
            yield _value(name, part, draws, seed)


def _value(name: str, part: pd.DataFrame, draws: int, seed: int) -> dict[str, Any]:
    one, two = part["value_first"], part["value_second"]
    if set(one) | set(two) <= {0.0, 1.0}:
        test = mcnemar(one, two)
    else:
        test = paired_permutation(one, two, part["cluster"], draws=draws, seed=seed)
    mean_one, mean_two = (float(side.groupby(part["cluster"]).mean().mean()) for side in (one, two))
    return _row("values by metric", name, mean_one, mean_two, test)


def _preferences(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    words = both[(both["metric"] == "preferred") & both["word_first"].notna() & both["word_second"].notna()]
    clear = words[words["word_first"].isin(["A", "B"]) & words["word_second"].isin(["A", "B"])]
    if len(words):
        one, two = ((clear[f"word_{side}"] == "A").astype(float) for side in ("first", "second"))
        row = _row("preferences", "prefers the one shown first", one.mean(), two.mean(), mcnemar(one, two))
        same = (words["word_first"] == words["word_second"]).mean()
        yield row | {"note": f"{row['note']} the same preference in {same:.0%} of {len(words)} units".strip()}


def _gaps(both: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Is the gap between two identities another one in the first run than in the second?"""
    if "identity" not in both:
        return
    single = both[(both["subject"] == "") & (both["identity"] != "")]
    single = single[single["value_first"].notna() & single["value_second"].notna()]
    for category, part in single[single["metric"] != "preferred"].groupby("category", sort=False):
        tables = [cell_means(part[f"value_{side}"], part["identity"], part["scenario"]) for side in ("first", "second")]
        for x, y in combinations(tables[0].columns, 2):
            gaps = [(table[x] - table[y]).reindex(tables[0].index) for table in tables]
            test = paired_permutation(gaps[0], gaps[1], tables[0].index, draws=draws, seed=seed)
            yield _row("gaps between identities", f"{category}: {x} − {y}", gaps[0].mean(), gaps[1].mean(), test)


def _row(family: str, what: str, one: float, two: float, test: Test) -> dict[str, Any]:
    return {
        "family": family,
        "what": what,
        "first": one,
        "second": two,
        "difference": one - two,
        "low": test.low if "difference" in test.effect_name else np.nan,
        "high": test.high if "difference" in test.effect_name else np.nan,
        "p": test.p,
        "test": test.name,
        "n": test.n,
        "clusters": test.clusters,
        "note": test.note,
    }


def _largest(both: pd.DataFrame, most: int = 20) -> pd.DataFrame:
    """Where to look: the units with the largest mean difference over their metrics."""
    gap = (both["value_first"] - both["value_second"]).groupby(both["item"]).mean().dropna()
    order = gap.abs().sort_values(ascending=False, kind="stable").index[:most]
    return pd.DataFrame({"unit": order, "mean_difference": gap.loc[order].to_numpy()})


def _words(found: pd.DataFrame, units: int, names: tuple[str, str]) -> Iterator[str]:
    yield f"{units} units are shared."
    clear = found[found["p_adjusted"] < 0.05]
    for row in clear.itertuples():
        yield (
            f"{row.what}: {row.first:.2f} for {names[0]}, {row.second:.2f} for {names[1]} "
            f"(p = {row.p_adjusted:.2g} after Holm over the family '{row.family}')."
        )
    if clear.empty:
        yield "No difference stands after Holm's correction. That is not evidence that the two are alike."
