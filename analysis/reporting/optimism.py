"""The optimism gap: how much more a loop's own scorer gains by a mitigation than a measure that the loop never saw.

    gain = score before − score after        (lower scores are better)
    gap  = gain by the loop's scorer − gain by the outside measure

Gains are compared, not levels: a measure that is always stricter makes no gap. One that spreads its scores more does:
with a scale 1.5 times the other's and nothing planted, every study had a gap in points. So the gap is given in
quantiles first: each score as its quantile, 0 to 100, among the first drafts of its measure; points are given too.
Quantiles assume that both measures are equally reliable, since noise spreads the first drafts and shortens every gain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, decimals, lines_of
from parley.analysis.reporting.report import Table, format_interval
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.results import ALPHA, columns
from parley.analysis.stats.tables import Column, Floats, as_floats
from parley.base.text import p_text

BY = ["system", "outside"]
SCORES = ("inside0", "inside1", "outside0", "outside1")
"""Before and after, by the loop's scorer and by the outside measure; lower is better."""
OWN = "by the loop's own scorer"
NOTE = (
    "Gain: mean score before minus after, in points. gap: the gain that the loop's own scorer sees minus the gain that "
    "the outside measure sees. Scores are first converted to quantiles (0 to 100) among the first drafts of their "
    "measure, so scales do not matter. Above 0, the loop's scorer is too optimistic. points: the same gap in points. "
    "related: both share a model or a scorer family, so errors that both make stay hidden and the gap is a lower "
    "bound. Paired by item; 95% intervals and p: sign flips over clusters; p is Holm-corrected over the table."
)
NO_MEASURE = (
    "No outside measure was taken: the scorer or judge that steers a loop is also the one that reports its result here."
)
LOWER_BOUND = "Both share a model or a scorer family, so this is a lower bound"
COLUMNS = (
    *("gain", "outside_gain", "gap", "low", "high", "p", "p_adjusted", "points", "points_low", "points_high"),
    *("related", "n", "missing", "clusters", "outside", "note"),
    *("gain_low", "gain_high", "gain_p", "outside_gain_low", "outside_gain_high", "outside_gain_p"),
)


def family(name: str) -> str:
    """The family in a model's or a scorer's name: `qwen` of `vllm/Qwen/Qwen2.5-7B-Instruct?base_url=…`.

    Args:
        name: The name, perhaps after who uses it ("Auditor, sim/judge").
    """
    bare = name.split("?")[0].rstrip("/").rsplit("/", 1)[-1].lower()
    found = re.match(r"[a-z]+", bare)
    return found.group() if found else bare


def optimism_gaps(items: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row per group: both gains, the gap in quantiles with its interval and p-value, and the gap in points.

    Args:
        items: One row per item with the columns `SCORES`, `cluster` and `outside` (the outside measure's name), and
            `inside`, the name of the loop's scorer, where it is known.
        by: Columns to group by.
    """
    rows = []
    for key, group in items.groupby(by, sort=False, observed=True):
        complete = group.dropna(subset=list(SCORES))
        scores = {name: as_floats(complete[name]) for name in SCORES}
        row = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        row |= _gap(scores, complete["cluster"]) | {"missing": len(group) - len(complete)}
        row.setdefault("outside", "; ".join(sorted(set(complete["outside"].astype(str)))))
        inside = set(complete["inside"].astype(str)) if "inside" in complete else set()
        row["related"] = family(str(row["outside"])) in map(family, inside)
        rows.append(row)
    table = pd.DataFrame(rows, columns=[*by, *(name for name in COLUMNS if name not in by)])
    for name, adjusted in (("p", "p_adjusted"), ("outside_gain_p", "outside_gain_p")):
        table[adjusted] = holm(table[name])
    return table


def _gap(scores: dict[str, Floats], clusters: Column) -> dict[str, Any]:
    # Gains, not levels: one scorer may be stricter than another. The residual of a regression of the outside score on
    # the loop's was rejected: it shrinks towards the mean, and absorbs the selection effect being measured.
    inside, outside = (scores[f"{name}0"] - scores[f"{name}1"] for name in ("inside", "outside"))
    ranked = {name: quantiles(values, scores[f"{name[:-1]}0"]) for name, values in scores.items()}
    first, second = (ranked[f"{name}0"] - ranked[f"{name}1"] for name in ("inside", "outside"))
    compared = {"gain": (inside, 0 * inside), "outside_gain": (outside, 0 * outside), "points": (inside, outside)}
    row: dict[str, Any] = {}
    for name, pair in compared.items():
        test = paired_permutation(*pair, clusters)
        row |= {name: test.estimate} | {f"{name}_{part}": getattr(test, part) for part in ("low", "high", "p")}
    gap = paired_permutation(first, second, clusters)
    return row | columns(gap, "gap", "p", "n", "clusters", "note")


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


def gap_table(gaps: pd.DataFrame, note: str = "") -> Table:
    """The gaps as a table of a report.

    Args:
        gaps: From `optimism_gaps`.
        note: What the groups are, and what the scores mean.
    """
    measures = list(dict.fromkeys(gaps["outside"])) if "outside" in gaps else []
    named, column = (measures[0], ()) if len(measures) == 1 and measures[0] else ("an outside measure", ("outside",))
    return Table(
        name="optimism_gap",
        title=f"Optimism gap: the loop's own gain minus the gain by {named}",
        frame=gaps,
        shown=("set", "system", *column, "gain", "outside_gain", "gap", "low", "high", "p_adjusted", "points"),
        note=f"{note} {NOTE}".strip(),
        printed=True,
    )


def gap_sentences(gaps: pd.DataFrame, by: Iterable[str], unit: str) -> Iterator[str]:
    """One sentence per gap that was shown, or one saying that nothing was measured.

    Args:
        gaps: From `optimism_gaps`.
        by: The columns that name a group.
        unit: What one point is, such as "points of toxicity".
    """
    if gaps["gap"].isna().all():
        yield NO_MEASURE
        return
    digits = decimals(float(gaps[["gap", "low", "high"]].abs().max(axis=None)))  # as in the plot of the gaps
    for row in gaps[gaps["p_adjusted"] <= ALPHA].itertuples():
        group = ", ".join(str(getattr(row, name)) for name in by)
        more = "more" if row.gap > 0 else "less"
        span = format_interval(row.low, row.high, f".{digits}f")
        bound = f" {LOWER_BOUND}." if row.related and row.gap > 0 else ""
        yield (
            f"{group}: judged by its own scorer, the loop improves its drafts by {abs(row.gap):.{digits}f} percentile "
            f"points {more} than judged by {without_hash(row.outside)} ({span}; p {p_text(row.p_adjusted)}); in {unit} "
            f"the gains are {row.gain:.2f} and {row.outside_gain:.2f}.{bound}"
        )


def gap_forests(
    gaps: pd.DataFrame,
    what: str,
    *,
    name: str = "gain",
    by: Iterable[str] = ("system",),
    units: Callable[[Any], Mapping[str, tuple[str, ...]]] = lambda row: {},
) -> Iterator[Forest]:
    """The gain by the loop's own scorer and by the outside measure, and the gap between them.

    Args:
        gaps: From `optimism_gaps`.
        what: What is scored, with its unit: "toxicity (points of 100)".
        name: File name of the gains; that of the gaps ends in "-gap".
        by: The columns that name a group.
        units: The facets of the units behind a row.
    """
    names, note = list(by), "Paired by item; 95% intervals and p: sign flips over clusters, p Holm-corrected."

    def group(row: Any) -> str:
        return " · ".join(str(getattr(row, name)) for name in names)

    own = lines_of(
        gaps.drop_duplicates(names),
        lambda row: OWN,
        value="gain",
        ends=("gain_low", "gain_high"),
        p="gain_p",
        group=group,
        units=units,
        secondary=lambda row: True,  # it reports its own success
    )
    outside = lines_of(
        gaps,
        lambda row: f"by {without_hash(row.outside)}",
        value="outside_gain",
        ends=("outside_gain_low", "outside_gain_high"),
        p="outside_gain_p",
        group=group,
        units=units,
    )
    order = list(dict.fromkeys(line.group for line in (*own, *outside)))
    scored, measures = what.partition(" (")[0], {without_hash(measure) for measure in gaps["outside"]}
    measure = measures.pop() if len(measures) == 1 and all(measures) else "an outside measure"
    yield Forest(
        name=name,
        question=f"Does revising reduce {scored}, judged by {measure}?",
        axis=f"reduction of {what}, first draft minus last",
        lines=tuple(sorted((*own, *outside), key=lambda line: order.index(line.group))),
        table="optimism_gap",
        note=f"Above 0: lower after revising. {note}",
    )
    yield Forest(
        name=f"{name}-gap",
        question=f"Does the loop's own scorer see a larger reduction of {scored} than {measure}?",
        axis="optimism gap (percentile points of first drafts)",
        lines=lines_of(
            gaps, lambda row: f"{group(row)}, {without_hash(row.outside)}", value="gap", p="p_adjusted", units=units
        ),
        table="optimism_gap",
        note=f"Above 0: the loop's scorer is too optimistic. {note}",
    )


def without_hash(measure: str) -> str:
    """The name of a measure without the hash of its weights."""
    return re.sub(r",? (?:swaps )?[0-9a-f]{8}(?:-[0-9a-f]{8})?$", "", str(measure))
