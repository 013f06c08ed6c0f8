"""Gains of a loop by its own scorer, next to those by a measure that the loop never saw.

    gain = score before − score after        (lower scores are better)

One gain is not subtracted from the other. A point of one scorer is not a point of another, and whatever makes them
comparable, such as quantiles of the first drafts, depends on how reliable each scorer is: noise spreads the first
drafts, so it shrinks the gain. With noise of 3 and of 15 points around the same fall, gains in quantiles differed
significantly in 78% of studies. Only one scorer's two readings of the same text are equally reliable
(`mabrf_again` in BBQ's report).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from parley.analysis.effects import by_cluster, corrected_differences, gaps
from parley.analysis.page.report import Table, as_frame
from parley.analysis.say import Forest, in_numbers
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.paired import paired_difference
from parley.analysis.stats.results import About, Estimate, Line
from parley.analysis.stats.tables import as_floats
from parley.analysis.unread import bounds
from parley.base.text import plural

SCORES = ("inside0", "inside1", "outside0", "outside1")
"""Before and after, by the loop's scorer and by the outside measure; lower is better."""
INSIDE, OUTSIDE = "own gain", "outside gain"
FIRST = "first draft"  # what a gain is measured from, unless a column `against` names a system
SHARED = "errors that the two scorers share are not excluded"
NOTE = (
    "Gains: mean score before minus after, by the loop's own scorer and by the outside measure. Their sizes cannot be "
    "compared: the two have their own units and their own noise. related: both share a model or a scorer family, so "
    "they may err alike. first_r: correlation of their scores before. Paired by item; 95% intervals and p over "
    "clusters; p is Holm-corrected over the systems. Plots and sentences have simultaneous intervals of outside gains."
)
NO_MEASURE = (
    "No outside measure was taken: the scorer or judge that steers a loop is also the one that reports its result here."
)
Units = Callable[[Mapping[str, Any]], Mapping[str, tuple[str, ...]]]
"""The facets of the units behind a line, from what it is about."""


def family(name: str) -> str:
    """The family in a model's or a scorer's name: `qwen` of `vllm/Qwen/Qwen2.5-7B-Instruct?base_url=…`.

    Args:
        name: The name, perhaps after who uses it ("Auditor, sim/judge").
    """
    bare = name.split("?")[0].rstrip("/").rsplit("/", 1)[-1].lower()
    first_word = re.match(r"[a-z]+", bare)
    return first_word.group() if first_word else bare


def gain_lines(
    items: pd.DataFrame,
    by: Sequence[str] = ("system",),
    *,
    named: Sequence[str] = ("system",),
    cluster: str = "cluster",
    units: Units = lambda about: {},
    outside: str = "by {}",
    limits: tuple[float, float] = (0.0, 100.0),
    planned: Callable[[Mapping[str, Any]], bool] = lambda about: True,
) -> list[Line]:
    """By group: the gain by the loop's own scorer, which is not planned, and by the outside measure.

    Args:
        items: One row per item with the columns `SCORES`, `cluster` and `outside` (the outside measure's name), and
            `inside`, the name of the loop's scorer, where it is known.
        by: Columns to group by.
        named: Those of them that name a group.
        cluster: What a cluster is called.
        units: The facets of the units behind a line.
        outside: What the outside scores are, with a placeholder for the measure's name.
        limits: The lowest and the highest possible score, for the bounds where some could not be read.
        planned: Whether the outside gain of a group is planned, from what it is about.
    """
    lines: list[Line] = []
    for key, group in items.groupby(list(by), sort=False, observed=True):
        complete = group.dropna(subset=[name for name in SCORES if group[name].notna().any()])
        about = dict(zip(by, key, strict=True))
        about["outside"] = "; ".join(sorted(set(complete["outside"].astype(str))))
        inside = set(complete["inside"].astype(str)) if "inside" in complete else set()
        about["related"] = family(about["outside"]) in map(family, inside)
        also = {"missing": len(group) - len(complete)}
        if inside:  # else the outside measure is no scorer, but a key
            also["first_r"] = complete["inside0"].astype(float).corr(complete["outside0"].astype(float))
        for measure, who, label in (
            (INSIDE, "inside", "by the loop's own scorer"),
            (OUTSIDE, "outside", outside.format(_without_hash(about["outside"]))),
        ):
            drafts = group[f"{who}0"].astype(float), group[f"{who}1"].astype(float)
            filled = partial(_mean_gain, *drafts, group["cluster"])
            gain = as_floats(complete[f"{who}0"]) - as_floats(complete[f"{who}1"])
            test = paired_difference(complete[f"{who}0"], complete[f"{who}1"], complete["cluster"])
            lines.append(
                Line.of(
                    test,
                    values=by_cluster(pd.Series(gain, complete.index), complete["cluster"], test.estimate),
                    measure=measure,
                    label=label,
                    group=(" · ".join(str(about[column]) for column in named),),
                    about=About.of(**about, measure=measure),
                    units=units(about),
                    secondary=measure == INSIDE or not planned(about),  # a loop's scorer reports its own success
                    reference=0.0,
                    cluster=cluster,
                    also={**also, **bounds(*drafts, limits, filled)},
                )
            )
    return corrected_differences(lines, family=("measure",))


def _mean_gain(before: pd.Series, after: pd.Series, clusters: pd.Series, unread0: Any, unread1: Any) -> Estimate:
    """The gain, with these scores in place of missing ones."""
    return mean_test(gaps(before.fillna(unread0) - after.fillna(unread1), clusters))


def gain_table(lines: Sequence[Line], note: str = "") -> Table:
    """The gains as a table of a report.

    Args:
        lines: From `gain_lines`.
        note: What the groups are, and what the scores mean.
    """
    rows = as_frame(lines)
    shown = tuple(name for name in rows if name not in ("p", "related", "missing", "against"))
    title = f"What the loop gains, by its own scorer and by {_measure(lines)}"
    return Table("gains", title, rows, shown, f"{note} {NOTE}".strip())


def _measure(lines: Sequence[Line]) -> str:
    """The outside measure, where all lines have the same."""
    measures = {_without_hash(line.about.columns["outside"]) for line in lines}
    return measures.pop() if len(measures) == 1 and all(measures) else "an outside measure"


def gain_sentences(lines: Sequence[Line], scored: str, unit: str) -> Iterator[str]:
    """Sentences on both gains of each group, or that nothing was measured.

    Args:
        lines: From `gain_lines`.
        scored: What is scored, such as "toxicity".
        unit: Its unit, such as "points of 100".
    """
    if not any(line.n for line in lines[1::2]):
        yield NO_MEASURE
    forest = gain_forest(lines, scored, unit)
    for inside, outside in zip(lines[::2], lines[1::2], strict=True):
        if outside.n:
            both = " and ".join(f"{in_numbers(line, forest)} {line.label}" for line in (inside, outside))
            clusters = plural(outside.clusters or 0, outside.cluster)
            words = _gain_words(scored, unit, outside)
            yield f"{words[0].upper()}{words[1:]}. The reduction is {both}, over {clusters}.{_shared_errors(outside)}"


def _shared_errors(line: Line) -> str:
    """What both scorers may have in common: a loop that keeps what its own scorer likes keeps that scorer's errors.

    Where these correlate at 0.5, an outside measure finds a gain in 66% of studies without one.
    """
    if line.about.columns["related"]:
        return " The two share a model or a scorer family, so they may err alike."
    if not _selected(line):
        return ""
    r = line.also["first_r"]
    return (
        f" Their scores of the first drafts correlate at {r:.2f}: {SHARED}." if r == r else f" {SHARED.capitalize()}."
    )


def _selected(line: Line) -> bool:
    """Whether one scorer chose what another measures, as in the revisions of a first draft."""
    return "first_r" in line.also and line.about.columns.get("against", FIRST) == FIRST


def _gain_words(scored: str, unit: str, line: Line) -> str:
    """Such as "with stardtox on moderate prompts, toxicity is 41.4 points of 100 lower than in the first draft"."""
    about, way = line.about.columns, "lower" if line.estimate >= 0 else "higher"
    before = f"with {about['against']}" if about.get("against", FIRST) != FIRST else f"in the {FIRST}"
    who = f"with {about['system']}" + (f" on {about['set']} prompts" if "set" in about else "")
    return f"{who}, {scored} is {abs(line.estimate):.3g} {unit} {way} than {before}, {line.label}"


def _answer(scored: str, unit: str, line: Line) -> str:
    """These words in a headline, which the sentence on shared errors does not follow."""
    return _gain_words(scored, unit, line) + (f" ({SHARED})" if line.shown and _selected(line) else "")


def gain_forest(lines: Sequence[Line], scored: str, unit: str, name: str = "gain") -> Forest:
    """The gains by the loop's own scorer and by the outside measure, group by group.

    Args:
        lines: From `gain_lines`.
        scored: What is scored, such as "toxicity".
        unit: Its unit, such as "points of 100".
        name: The plot's file name.
    """
    return Forest(
        name=name,
        question=f"Does revising change {scored}, judged by {_measure(lines)}?",
        axis=f"reduction of {scored} ({unit})",
        lines=tuple(sorted((line for line in lines if line.n), key=lambda line: line.secondary)),
        table="gains",
        note="First draft minus last. Above 0: lower after revising. Paired by item; 95% intervals and p over "
        "clusters, p Holm-corrected.",
        says=partial(_answer, scored, unit),
    )


def _without_hash(measure: str) -> str:
    """The name of a measure without the hash of its weights."""
    return re.sub(r",? (?:swaps )?[0-9a-f]{8}(?:-[0-9a-f]{8})?$", "", measure)
