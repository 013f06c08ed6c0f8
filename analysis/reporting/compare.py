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
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, Scale, number_format
from parley.analysis.reporting.questions import Question, by_cluster, corrected, out_of_reach, section
from parley.analysis.reporting.report import NO_CONTEXT, Report, ReportContext, Section, Table, assemble
from parley.analysis.reporting.verdicts import cluster_of, final_verdicts, require
from parley.analysis.stats.paired import mcnemar_p, paired_permutation
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import Column, cell_means
from parley.base.text import p_text, plural

FACETS = ("category", "identity", "phase", "cluster")
KEYS = ["item", "metric", "subject"]
ASKED: tuple[tuple[str, str, str, Scale], ...] = (
    ("gaps", "Do the two treat identities differently?", "difference of the gaps", "points"),
    ("preferences", "Do the two prefer differently?", "difference in share", "share"),
    ("values", "Do the two score differently?", "difference", "points"),
)
"""The name of each question, the question, its axis and its scale, in the order in which they are shown."""


class NothingShared(ValueError):
    """Two runs that have no unit in common."""


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    names: tuple[str, str],
    context: ReportContext = NO_CONTEXT,
    *,
    measures: Collection[str] = (),
) -> Report:
    """Second minus first, the baseline, on the units that both have, with Holm correction within each question.

    Args:
        first: Verdicts of the first run or model.
        second: Verdicts of the second.
        names: What to call the two.
        context: What else the report is given.
        measures: The metrics that stand for a unit; they come first, and decide which units differ most. By default
            all metrics do.

    Raises:
        NothingShared: No unit has readable verdicts on both sides.
    """
    kind = str(cluster_of(first).name)
    both = _main_first(_paired(first, second), measures)
    asking = (_gaps, _preferences, _values) if len(both) else ()
    found = [corrected([replace(line, cluster=kind) for line in lines(both)], family=()) for lines in asking]
    if not any(found):
        raise NothingShared("they have no unit in common with readable verdicts on both sides")
    shared, against = plural(both["item"].nunique(), "shared unit"), f"{names[1]} minus {names[0]}"
    asked = [
        Question(
            name=name,
            ask=ask,
            measures={"difference": f"{axis}, {against}"},
            cluster=kind,
            arms="side",
            scale=scale,
            note=f"{against}, on {shared}. Clusters are {kind}s; p_mcnemar takes every unit as independent.",
            printed=True,
        )
        for name, ask, axis, scale in ASKED
    ]
    sections = [
        Section(words=[f"Compared on {shared}; differences are {against}.", *out_of_reach(kind, *found)]),
        *map(partial(section, say=partial(_say, names, kind)), asked, found),
        Section(tables=[Table("largest", "The units that differ most", _largest(_main(both, measures)))]),
    ]
    return assemble(sections, context, f"{names[1]} compared with {names[0]}")


def _say(names: tuple[str, str], kind: str, line: Line, forest: Forest) -> str:
    """Such as "Accuracy: 7.00 for one, 5.50 for two, a difference of −1.50 (…; p = 0.004), over 12 scenarios."."""
    written = number_format(forest)
    sides = ", ".join(
        f"{written(line.also[side]).removeprefix('+')} for {name}"
        for side, name in zip(("first", "second"), names, strict=True)
    )
    ends = f"{written(line.low)} to {written(line.high)}" if line.bounded else "no interval"
    return (
        f"{line.label}: {sides}, a difference of {written(line.estimate)} ({ends}; p {p_text(line.p_adjusted)}), over "
        f"{plural(line.clusters or 0, kind)}."
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


def _values(both: pd.DataFrame) -> Iterator[Line]:
    known = both[both["value_first"].notna() & both["value_second"].notna()]
    phases = list(pd.unique(known["phase"])) if "phase" in known else []
    for phase in phases if len(phases) > 1 else [None]:
        in_phase = known if phase is None else known[known["phase"] == phase]
        metrics = list(pd.unique(in_phase["metric"]))
        for metric in (["all metrics"] if len(metrics) > 1 and "identity" in in_phase else []) + metrics:
            part = in_phase if metric == "all metrics" else in_phase[in_phase["metric"] == metric]
            name = metric if phase is None else f"{_phase_name(phase)}: {metric}"
            yield _line(name, part["value_first"], part["value_second"], part["cluster"])


def _preferences(both: pd.DataFrame) -> Iterator[Line]:
    chosen = both[(both["metric"] == "preferred") & both["choice_first"].notna() & both["choice_second"].notna()]
    decided = chosen[chosen["choice_first"].isin(["A", "B"]) & chosen["choice_second"].isin(["A", "B"])]
    if len(chosen):
        first, second = ((decided[f"choice_{side}"] == "A").astype(float) for side in ("first", "second"))
        line = _line("prefers the one shown first", first, second, decided["cluster"])
        same = (chosen["choice_first"] == chosen["choice_second"]).mean()
        agreed = f"the same preference in {same:.0%} of {plural(len(chosen), 'unit')}"
        yield replace(line, note="; ".join(filter(None, (line.note, agreed))))


def _gaps(both: pd.DataFrame) -> Iterator[Line]:
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
            yield _line(f"{category}: {x} − {y}", gaps[0], gaps[1], tables[0].index, of_units=False)


def _line(what: str, first: pd.Series, second: pd.Series, clusters: Column, *, of_units: bool = True) -> Line:
    """One comparison, with both means over clusters, and McNemar's p where all values of units are 0 or 1."""
    line = paired_permutation(second, first, clusters)
    also = {
        side: float(values.groupby(np.asarray(clusters)).mean().mean())
        for side, values in (("first", first), ("second", second))
    }
    if of_units and set(first) | set(second) <= {0.0, 1.0}:
        also["p_mcnemar"] = mcnemar_p(first, second)
    values = by_cluster(second - first, pd.Series(np.asarray(clusters), first.index), line.estimate)
    return replace(
        line,
        measure="difference",
        label=what,
        about={"what": what},
        also=also,
        values=values,
        reference=0.0,
    )


def _largest(both: pd.DataFrame, count: int = 20) -> pd.DataFrame:
    """The units with the largest mean difference over their metrics, to be read first."""
    gap = (both["value_second"] - both["value_first"]).groupby(both["item"]).mean().dropna()
    order = gap.abs().sort_values(ascending=False, kind="stable").index[:count]
    return pd.DataFrame({"unit": order, "mean_difference": gap.loc[order].to_numpy()})
