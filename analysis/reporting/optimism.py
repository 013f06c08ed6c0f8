"""The optimism gap: how much more a loop's own scorer gains by a mitigation than a measure that the loop never saw.

    gain = score before − score after        (lower scores are better)
    gap  = gain by the loop's scorer − gain by the outside measure

Gains are compared, not levels: a measure that is always stricter makes no gap. One that spreads its scores more does:
with a scale 1.5 times the other's and nothing planted, every study had a gap in points. So the gap is given in
quantiles: each score as its quantile, 0 to 100, among the first drafts of its measure.
Quantiles assume that both measures are equally reliable, since noise spreads the first drafts and shortens every gain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, number_format
from parley.analysis.reporting.questions import by_cluster, corrected_differences, stated, table
from parley.analysis.reporting.report import Table
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.results import About, Line
from parley.analysis.stats.tables import Column, Floats, as_floats

BY = ["system", "outside"]
SCORES = ("inside0", "inside1", "outside0", "outside1")
"""Before and after, by the loop's scorer and by the outside measure; lower is better."""
GAP, OWN_GAIN, OUTSIDE_GAIN = "gap", "own gain", "outside gain"
NOTE = (
    "Gains: mean score before minus after, in points, by the loop's own scorer and by the outside measure. gap: own "
    "gain minus outside gain. Scores are first converted to quantiles (0 to 100) among the first drafts of their "
    "measure, so scales do not matter. Above 0, the loop's scorer is too optimistic. "
    "related: both share a model or a scorer family, so errors that both make stay hidden and the gap is a lower "
    "bound. Paired by item; 95% intervals and p: sign flips over clusters; p is Holm-corrected over the systems."
)
NO_MEASURE = (
    "No outside measure was taken: the scorer or judge that steers a loop is also the one that reports its result here."
)
LOWER_BOUND = "Both share a model or a scorer family, so this is a lower bound"
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


def optimism_lines(
    items: pd.DataFrame,
    by: Sequence[str],
    *,
    named: Sequence[str] = ("system",),
    cluster: str = "cluster",
    units: Units = lambda about: {},
) -> list[Line]:
    """By group: the gap in quantiles, and both gains. A measure is a family of tests.

    Args:
        items: One row per item with the columns `SCORES`, `cluster` and `outside` (the outside measure's name), and
            `inside`, the name of the loop's scorer, where it is known.
        by: Columns to group by.
        named: Those of them that name a group.
        cluster: What a cluster is called.
        units: The facets of the units behind a line.
    """
    lines: list[Line] = []
    for key, group in items.groupby(list(by), sort=False, observed=True):
        complete = group.dropna(subset=list(SCORES))
        about = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        about.setdefault("outside", "; ".join(sorted(set(complete["outside"].astype(str)))))
        inside = set(complete["inside"].astype(str)) if "inside" in complete else set()
        about["related"] = family(str(about["outside"])) in map(family, inside)
        name, outside = " · ".join(str(about[column]) for column in named), without_hash(about["outside"])
        labels = {OWN_GAIN: "by the loop's own scorer", OUTSIDE_GAIN: f"by {outside}"}
        lines += [
            Line(
                result=(test := paired_permutation(first, second, complete["cluster"])),
                values=by_cluster(pd.Series(first - second, complete.index), complete["cluster"], test.estimate),
                measure=measure,
                label=labels.get(measure, f"{name}, {outside}"),
                group=(name,) if measure in labels else (),
                about=About.of(**about, measure=measure),
                units=units(about),
                secondary=measure == OWN_GAIN,  # a loop's own scorer reports its own success
                reference=0.0,
                cluster=cluster,
                also={"missing": len(group) - len(complete)},
            )
            for measure, (first, second) in _compared({name: as_floats(complete[name]) for name in SCORES}).items()
        ]
    return corrected_differences(lines, family=("measure",))


def _compared(scores: Mapping[str, Floats]) -> dict[str, tuple[Floats, Floats]]:
    """By measure, the two columns whose difference it is the mean of."""
    # Gains, not levels: one scorer may be stricter than another. The residual of a regression of the outside score on
    # the loop's was rejected: it shrinks towards the mean, and absorbs the selection effect being measured.
    inside, outside = (scores[f"{name}0"] - scores[f"{name}1"] for name in ("inside", "outside"))
    ranked = {name: quantiles(values, scores[f"{name[:-1]}0"]) for name, values in scores.items()}
    by_rank = ranked["inside0"] - ranked["inside1"], ranked["outside0"] - ranked["outside1"]
    return {GAP: by_rank, OWN_GAIN: (inside, 0 * inside), OUTSIDE_GAIN: (outside, 0 * outside)}


def quantiles(values: Column, reference: Column) -> Floats:
    """The share of the reference, in percent, that is below each value; equal ones count half.

    Args:
        values: Scores.
        reference: Scores by the same measure.
    """
    ordered = np.sort(as_floats(reference))
    below, up_to = (np.searchsorted(ordered, as_floats(values), side=side) for side in ("left", "right"))
    share: Floats = 50.0 * (below + up_to) / max(1, len(ordered))
    return share


def gap_table(lines: Sequence[Line], note: str = "") -> Table:
    """The gaps and gains as a table of a report.

    Args:
        lines: From `optimism_lines`.
        note: What the groups are, and what the scores mean.
    """
    title = f"Optimism gap: the loop's own gain minus the gain by {_measure(lines)}"
    hidden = ("p", "related", "missing", "against")
    rows = table(lines)
    shown = tuple(name for name in rows if name not in hidden)
    return Table("optimism_gap", title, rows, shown, f"{note} {NOTE}".strip())


def _measure(lines: Sequence[Line]) -> str:
    """The outside measure, where all lines have the same."""
    measures = {without_hash(line.about.columns["outside"]) for line in lines}
    return measures.pop() if len(measures) == 1 and all(measures) else "an outside measure"


def gap_sentences(lines: Sequence[Line], unit: str) -> Iterator[str]:
    """One sentence per gap that was shown, or one saying that nothing was measured.

    Args:
        lines: From `optimism_lines`.
        unit: What one point is, such as "points of toxicity".
    """
    forest = _gap_forest(lines, "scores", "gain")
    if not any(line.n for line in lines):
        yield NO_MEASURE
        return
    gains = {(line.measure, *_group(line)): line for line in lines}
    for line in forest.lines:
        if not line.shown:
            continue
        inside, outside = (gains[measure, *_group(line)] for measure in (OWN_GAIN, OUTSIDE_GAIN))
        size = number_format(forest)(line.estimate).lstrip("+−")
        says = (
            f"judged by its own scorer, the loop improves its drafts by {size} percentile points "
            f"{'more' if line.estimate > 0 else 'less'} than judged by {without_hash(line.about.columns['outside'])}"
        )
        bound = f" {LOWER_BOUND}." if line.about.columns["related"] and line.estimate > 0 else ""
        yield (
            f"{stated(inside.heading, says, line, forest, line.cluster)} In {unit} the gains are {inside.estimate:.2f} "
            f"and {outside.estimate:.2f}.{bound}"
        )


def _group(line: Line) -> tuple[Any, ...]:
    return tuple(value for name, value in line.about.columns.items() if name != "measure")


def gap_forests(lines: Sequence[Line], what: str, name: str = "gain") -> Iterator[Forest]:
    """The gain by the loop's own scorer and by the outside measure, and the gap between them.

    Args:
        lines: From `optimism_lines`.
        what: What is scored, with its unit: "toxicity (points of 100)".
        name: File name of the gains; that of the gaps ends in "-gap".
    """
    gains: dict[tuple[str, ...], dict[str, Line]] = {}
    for line in lines:
        if line.measure in (OWN_GAIN, OUTSIDE_GAIN) and line.n:
            gains.setdefault(line.group, {}).setdefault(line.label, line)  # several outside measures, one own scorer
    yield Forest(
        name=name,
        question=f"Does revising reduce {what.partition(' (')[0]}, judged by {_measure(lines)}?",
        axis=f"reduction of {what}, first draft minus last",
        lines=tuple(line for group in gains.values() for line in group.values()),
        table="optimism_gap",
        note=f"Above 0: lower after revising. {PAIRED}",
    )
    yield _gap_forest(lines, what, name)


def _gap_forest(lines: Sequence[Line], what: str, name: str) -> Forest:
    return Forest(
        name=f"{name}-gap",
        question=f"Does the loop's own scorer see a larger reduction of {what.partition(' (')[0]} than "
        f"{_measure(lines)}?",
        axis="optimism gap (percentile points of first drafts)",
        lines=tuple(line for line in lines if line.measure == GAP and line.n),
        table="optimism_gap",
        note=f"Above 0: the loop's scorer is too optimistic. {PAIRED}",
    )


PAIRED = "Paired by item; 95% intervals and p: sign flips over clusters, p Holm-corrected."


def without_hash(measure: str) -> str:
    """The name of a measure without the hash of its weights."""
    return re.sub(r",? (?:swaps )?[0-9a-f]{8}(?:-[0-9a-f]{8})?$", "", str(measure))
