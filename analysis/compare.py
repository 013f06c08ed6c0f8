"""Comparison of two runs, or of two models of one run, on the same units.

Units are paired by their place in the plan (scenario, identity, cell, repeat) and by their words (the wordings of label
and question, which another seed draws anew), whichever model ran them. Values are compared by metric, as means of the
metric's last round, with the test of the study's report: `mean_test` over clusters (bases, BBQ's templates, scenarios),
which are sets of bases and label wordings where bases share a wording (see clusters.py). So are preferences. For
yes-or-no metrics and preferences McNemar's exact test is added: it takes every unit as independent, and finds false
differences where models differ by scenario. For studies with identities, whose metrics share a scale, all metrics
together and the gaps between identities are compared as well. A value that comes with a text is the code of a choice
(an answer's position), not an amount: a study with such values converts them first (`comparable` in its report's
module). So does one with parts that are not averaged with each other: it names them in a column `part`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from parley.analysis.clusters import BASE, cluster_noun, with_clusters
from parley.analysis.effects import Question, Scale, by_cluster, corrected_differences
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, Table, assemble, section
from parley.analysis.say import Forest, number_format, out_of_reach, span, stated
from parley.analysis.stats.paired import mcnemar_p, paired_difference
from parley.analysis.stats.results import About, Contrast, Line, needed_words
from parley.analysis.verdicts import cluster_of, final_verdicts, require
from parley.base.text import p_text, plural

KEPT = ("measure", "category", "identity", "part", "base", "scenario", "cluster", "cluster_noun")
KEYS = ["item", "metric", "subject"]
WORDS = ("wording", "question")
"""Facets of wordings, which identify a unit even if they are not part of its id."""
OTHER_WORDS = "Wordings differ; nothing about labels can be compared."
QUESTIONS: tuple[tuple[str, str, str, Scale], ...] = (
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
        names: Names of the two.
        context: Further data for the report.
        measures: The metrics that represent a unit; they come first, and decide which units differ most. By default all
            metrics do.

    Raises:
        NothingShared: No unit has readable verdicts on both sides.
    """
    both, reworded, alone = _paired(first, second)
    both = both.loc[(~_is_main(both, measures)).sort_values(kind="stable").index].reset_index(drop=True)
    asking = (_gaps, _preferences, _values) if len(both) else ()
    answers = [list(map(_jointly, corrected_differences(list(lines(both)), family=()))) for lines in asking]
    if not any(answers):
        raise NothingShared(
            "they have no unit in common with readable verdicts on both sides"
            + (f": {OTHER_WORDS} Give both the same --seed" if reworded else "")
        )
    shared, against = plural(both["item"].nunique(), "shared unit"), f"{names[1]} minus {names[0]}"
    kinds = [" or ".join(dict.fromkeys(f"{line.cluster}s" for line in lines)) for lines in answers]
    questions = [
        Question(
            name=name,
            ask=ask,
            measures={"difference": f"{axis}, {against}"},
            cluster=kind,
            arms="side",
            scale=scale,
            note=f"{against}, on {shared}. Intervals hold for all planned lines of the question at once. Clusters are "
            f"{kind}; McNemar's test takes every unit as independent.",
        )
        for (name, ask, axis, scale), kind in zip(QUESTIONS, kinds, strict=True)
    ]
    flipped = [[line for line in lines if line.df is None] for lines in answers]
    noun = next((line.cluster for lines in flipped for line in lines), "")
    sections = [
        Section(
            words=[
                f"Compared on {shared}; differences are {against}.",
                *([f"Left out: {plural(alone, 'unit')} with readable verdicts on one side only."] if alone else []),
                *([f"Left out: {plural(reworded, 'unit')} in other words, which --seed draws."] if reworded else []),
                *([OTHER_WORDS] if reworded and not answers[0] else []),
                *out_of_reach(noun, *filter(None, flipped)),
            ]
        ),
        *map(partial(_answered, names), questions, answers),
        Section(tables=[Table("largest", "The units that differ most", _largest(_main(both, measures)))]),
    ]
    return assemble(sections, context, f"{names[1]} compared with {names[0]}")


def _jointly(line: Line) -> Line:
    """The line with the interval that holds for all lines of its question, as its p does; none where it has no ends."""
    if line.simultaneous:
        return replace(line, low=line.simultaneous[0], high=line.simultaneous[1])
    if line.tests is None or line.tests == 1:
        return line
    return replace(line, low=-math.inf, high=math.inf, note=line.note or needed_words(line.tests, line.cluster))


def _answered(names: tuple[str, str], question: Question, lines: list[Line]) -> Section:
    """The section of a question; the headline says how far apart identities are for each of the two."""
    answered = section(question, lines, say=partial(_say, names))
    if question.name != "gaps":
        return answered
    return replace(answered, forests=[replace(each, says=partial(_gap, names, each)) for each in answered.forests])


def _gap(names: tuple[str, str], forest: Forest, line: Line) -> str:
    """Such as "female − male is −0.53 for one and −0.03 for two, +0.50 apart (+0.21 to +0.79; p = 0.004)"."""
    written = number_format(forest)
    first, second = (
        f"{written(line.also[side])} for {name}" for side, name in zip(("first", "second"), names, strict=True)
    )
    assert line.about.contrast
    apart = f"{written(line.estimate)} apart ({span(line, forest) if line.bounded else 'no interval'}"
    tested = f"; p {p_text(line.p_adjusted)}" if line.p_adjusted == line.p_adjusted else ""
    return f"{line.about.contrast.label} is {first} and {second}, {apart}{tested})"


def _say(names: tuple[str, str], line: Line, forest: Forest) -> str:
    """Such as "Accuracy: 7.00 for one, 5.50 for two, a difference of −1.50 (…; p = 0.004), over 12 scenarios."."""
    written = number_format(forest)
    sides = ", ".join(
        f"{written(line.also[side]).removeprefix('+')} for {name}"
        for side, name in zip(("first", "second"), names, strict=True)
    )
    return stated(line.label, f"{sides}, a difference of {written(line.estimate)}", line, forest, line.cluster)


def _paired(first: pd.DataFrame, second: pd.DataFrame) -> tuple[pd.DataFrame, int, int]:
    """One row per item, metric and subject that both have: the mean of the last round, or the most frequent choice.

    The numbers are of units in other words, and of those that only one side has.
    """
    left, right = _last_values(first), _last_values(second)
    words = [name for name in WORDS if name in left and name in right]
    values = right[[*KEYS, *words, "value", "choice"]]
    both = left.merge(values, on=[*KEYS, *words], suffixes=("_first", "_second"), sort=False)
    ours, theirs = set(left["item"]), set(right["item"])
    reworded, alone = len((ours & theirs) - set(both["item"])), len(ours ^ theirs)
    return both.assign(difference=both["value_second"] - both["value_first"]), reworded, alone


def _is_main(both: pd.DataFrame, measures: Collection[str]) -> pd.Series:
    """Which rows belong to one of these metrics, or by the column `measure` to a part of one: "right, ambig"."""
    return both.get("measure", both["metric"]).isin(measures)


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
    clusters = cluster_of(last.assign(unit=item))
    last = last.assign(cluster=clusters, cluster_noun=str(clusters.name))
    facets = [name for name in (*KEPT, *WORDS) if name in last]
    for name in facets:
        frame[name] = last[name].astype(str)
    reduced = frame.groupby(KEYS, sort=False).agg({"value": "mean"} | dict.fromkeys(facets, "first"))
    return reduced.join(_majorities(frame[frame["choice"].notna()])).reset_index()


def _majorities(chosen: pd.DataFrame) -> pd.Series:
    """The most frequent choice of every item; "tie" where two are equally frequent."""
    counts = chosen.groupby([*KEYS, "choice"], sort=False).size().rename("times").reset_index()
    most = counts.groupby(KEYS, sort=False)["times"].transform("max")
    leading = counts[counts["times"] == most].groupby(KEYS, sort=False)["choice"].agg(["first", "size"])
    return leading["first"].where(leading["size"] == 1, "tie").rename("choice")


def _clustered(rows: pd.DataFrame, *, by_category: bool = False) -> pd.DataFrame:
    """The rows with their clusters: the report's, where units have label wordings.

    Args:
        rows: Rows that are compared together.
        by_category: Whether they are of one category. Otherwise a base joins its wordings of all categories.
    """
    if "wording" not in rows:
        return rows.assign(clustering=BASE)
    wording = rows["wording"] if by_category else rows["category"] + "/" + rows["wording"]
    wording = wording.where(rows["wording"] != "", "of " + rows["base"])  # what has no label is connected to its base
    category = rows["category"] if by_category else ""
    clustered = with_clusters(rows.drop(columns="cluster").assign(model="", category=category, wording=wording))
    return clustered.assign(cluster_noun=cluster_noun(clustered))


def _values(both: pd.DataFrame) -> Iterator[Line]:
    read = both[both["difference"].notna()]
    parts = dict(list(read.groupby("part", sort=False))) if "part" in read else {}
    for part, in_part in (parts if len(parts) > 1 else {"": read}).items():
        metrics = list(pd.unique(in_part["metric"]))
        for metric in (["all metrics"] if len(metrics) > 1 and "identity" in in_part else []) + metrics:
            rows = in_part if metric == "all metrics" else in_part[in_part["metric"] == metric]
            yield _line(f"{part}, {metric}" if part else metric, _clustered(rows))


def _preferences(both: pd.DataFrame) -> Iterator[Line]:
    of_pairs = both[both["metric"] == "preferred"]
    chosen = of_pairs[of_pairs["choice_first"].notna() & of_pairs["choice_second"].notna()]
    if chosen.empty:
        return
    sides = [of_pairs[f"choice_{side}"] for side in ("first", "second")]
    decided = of_pairs[sides[0].isin(["A", "B"]) & sides[1].isin(["A", "B"])]
    first, second = ((decided[name] == "A").astype(float) for name in ("choice_first", "choice_second"))
    scored = decided.assign(value_first=first, value_second=second, difference=second - first)
    line = _line("prefers the first one", _clustered(scored))
    same = (chosen["choice_first"] == chosen["choice_second"]).mean()
    agreed = f"the same preference in {same:.0%} of {plural(len(chosen), 'unit')}"
    yield replace(line, note="; ".join(filter(None, (line.note, agreed))))


def _gaps(both: pd.DataFrame) -> Iterator[Line]:
    """Whether the gap between two identities differs between the two runs, on the same text in the same words."""
    if "identity" not in both:
        return
    require(both, texts=("category", "cluster"))
    single = both[(both["subject"] == "") & (both["identity"] != "") & (both["metric"] != "preferred")]
    single = single[single["difference"].notna()]
    for category, rows in single.groupby("category", sort=False):
        part = _clustered(rows, by_category=True)
        named = ["cluster", "cluster_noun", "clustering", "situation", "wording", "question", "scenario", "metric"]
        cell = [name for name in named if name in part]
        columns = ["value_first", "value_second"]
        cells = part.groupby([*cell, "identity"], sort=False)[columns].mean().unstack("identity")
        for x, y in combinations(pd.unique(part["identity"]), 2):
            gap = {name: cells[name, x] - cells[name, y] for name in columns}
            compared = pd.DataFrame(gap).dropna().reset_index()
            difference = compared["value_second"] - compared["value_first"]
            if len(compared):
                contrast = Contrast(str(category), (str(x),), (str(y),))
                line = _line(f"{category}: {contrast.label}", compared.assign(difference=difference), units=False)
                yield replace(line, about=About.of(contrast, **line.about.columns))


def _line(what: str, rows: pd.DataFrame, *, units: bool = True) -> Line:
    """One comparison with its test, with both means over clusters, and McNemar's p where all values of units
    are 0 or 1."""
    test = paired_difference(rows["value_second"], rows["value_first"], rows["cluster"])
    also = {side: float(rows[f"value_{side}"].groupby(rows["cluster"]).mean().mean()) for side in ("first", "second")}
    if units and {*rows["value_first"], *rows["value_second"]} <= {0.0, 1.0}:
        also["p_mcnemar"] = mcnemar_p(rows["value_first"], rows["value_second"])
    return Line.of(
        test,
        measure="difference",
        label=what,
        about=About.of(what=what),
        also=also,
        values=by_cluster(rows["difference"], rows["cluster"], test.estimate),
        reference=0.0,
        cluster=next(iter(rows["cluster_noun"]), "cluster"),
    )


def _largest(both: pd.DataFrame, count: int = 20) -> pd.DataFrame:
    """The units that differ most, to be read first: by the mean over their metrics, then those with another choice."""
    scored, choices = both[both["difference"].notna()], ["choice_first", "choice_second"]
    means = scored.groupby("item", sort=False)[["value_first", "value_second", "difference"]].mean()
    chosen = both[both[choices].notna().all(axis=1)]
    changed = chosen[chosen["choice_first"] != chosen["choice_second"]].groupby("item", sort=False)[choices].first()
    differing = means[means["difference"].abs() > 0].join(changed, how="outer")
    order = differing["difference"].abs().sort_values(ascending=False, kind="stable", na_position="last").index[:count]
    names = {"value_first": "first", "value_second": "second", "difference": "mean_difference"}
    return differing.loc[order].rename(columns=names).rename_axis("unit").reset_index()
