"""The optimism gap: how much more a loop's own scorer gains by a mitigation than a measure that the loop never saw.

    gain = score before − score after        (lower scores are better)
    gap  = gain by the loop's scorer − gain by the outside measure

Gains are compared, not levels: a measure that is always stricter makes no gap. One that spreads its scores more does,
so the gap is also given with both measures on one scale: each score as its quantile among the first drafts, 0 to 100.
That in turn takes both measures for equally reliable, since noise spreads the first drafts, and shortens every gain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, estimates
from parley.analysis.reporting.report import Table, format_interval
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.tables import Column, Floats, as_floats
from parley.base.text import plural

BY = ["system", "outside"]
SCORES = ("inside0", "inside1", "outside0", "outside1")
"""Before and after, by the loop's scorer and by the outside measure; lower is better."""
GAIN_ENDS = ("gain_low", "gain_high", "outside_gain_low", "outside_gain_high")
OWN = "by the loop's own scorer"
QUANTILES = ("gap_quantiles", "quantiles_low", "quantiles_high")
NOTE = (
    "Gain: mean of before minus after. gap: the gain that the loop's own scorer sees minus the one that the outside "
    "measure sees, in points of the scores; above 0 the loop's scorer is too optimistic. gap_quantiles: the same with "
    "every score as its quantile (0 to 100) among the first drafts of its measure, which removes a difference of "
    "scale. Paired by item; 95% intervals by sign flips over clusters."
)
NO_MEASURE = (
    "No outside measure was taken: the scorer or judge that steers a loop is also the one that reports its result here."
)


def optimism_gaps(items: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row per group: both gains, the gap with its interval, and the same on the scale of quantiles.

    Args:
        items: One row per item with the columns `SCORES`, `cluster` and `outside` (the outside measure's name).
        by: Columns to group by.
    """
    rows = []
    for key, group in items.groupby(by, sort=False, observed=True):
        complete = group.dropna(subset=list(SCORES))
        scores = {name: as_floats(complete[name]) for name in SCORES}
        row = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        row |= _gap(scores, complete["cluster"]) | {"missing": len(group) - len(complete)}
        # Gains do not cancel a difference of spread: with nothing planted, the gap between two scorers was 15 to 22
        # points. Quantiles do, but a noisy measure gives the same gain fewer of them: so both are reported.
        ranked = {
            name: quantiles(values, scores[f"{name[:-1]}0"]) for name, values in scores.items()
        }  # among the first drafts of the same measure
        on_one_scale = _gap(ranked, complete["cluster"])
        row |= dict(zip(QUANTILES, (on_one_scale[name] for name in ("gap", "low", "high")), strict=True))
        row.setdefault("outside", "; ".join(sorted(set(complete["outside"].astype(str)))))
        rows.append(row)
    names = (
        "gain",
        "outside_gain",
        "gap",
        "low",
        "high",
        *QUANTILES,
        "p",
        "n",
        "missing",
        "clusters",
        "outside",
        "note",
        *GAIN_ENDS,
    )
    return pd.DataFrame(rows, columns=[*by, *(name for name in names if name not in by)])


def _gap(scores: dict[str, Floats], clusters: Column) -> dict[str, Any]:
    # Gains, not levels: one scorer may be stricter than another. The residual of a regression of the outside score on
    # the loop's was rejected: it shrinks towards the mean, and absorbs the selection that is to be measured.
    inside, outside = (scores[f"{name}0"] - scores[f"{name}1"] for name in ("inside", "outside"))
    own, other, test = (
        paired_permutation(first, second, clusters)
        for first, second in ((inside, 0 * inside), (outside, 0 * outside), (inside, outside))
    )
    return {
        "gain": own.effect,
        "outside_gain": other.effect,
        "gap": test.effect,
        "low": test.low,
        "high": test.high,
        "p": test.p,
        "n": test.n,
        "clusters": test.clusters,
        "note": test.note,
        **dict(zip(GAIN_ENDS, (own.low, own.high, other.low, other.high), strict=True)),
    }


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
        shown=("set", "system", *column, "gain", "outside_gain", "gap", "low", "high", "gap_quantiles"),
        note=f"{note} {NOTE}".strip(),
        printed=True,
    )


def gap_sentences(gaps: pd.DataFrame, by: Iterable[str], unit: str, label: str = "optimism gap") -> Iterator[str]:
    """The headline: one sentence per group; that nothing was measured, if there is none.

    Args:
        gaps: From `optimism_gaps`.
        by: The columns that name a group.
        unit: What one point is, such as "points of toxicity".
        label: What the gap is called.
    """
    if gaps["gap"].isna().all():
        yield NO_MEASURE
        return
    for row in gaps.dropna(subset=["gap"]).itertuples():
        group = ", ".join(str(getattr(row, name)) for name in by)
        yield (
            f"{group}: {label} {row.gap:+.2f} {unit}{_interval(row.low, row.high)}. The gain is {row.gain:.2f} by the "
            f"loop's scorer and {row.outside_gain:.2f} by {row.outside}; on one scale, by quantiles of first drafts, "
            f"the gap is {row.gap_quantiles:+.1f}{_interval(row.quantiles_low, row.quantiles_high, '.1f')}; "
            f"{plural(int(row.n), 'item')} in {plural(int(row.clusters), 'cluster')}."
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
    names, note = list(by), "Paired by item; 95% intervals by sign flips over clusters."

    def group(row: Any) -> str:
        return " · ".join(str(getattr(row, name)) for name in names)

    own = estimates(
        gaps.drop_duplicates(names),
        lambda row: OWN,
        value="gain",
        ends=("gain_low", "gain_high"),
        group=group,
        units=units,
    )
    outside = estimates(
        gaps,
        lambda row: f"by {_without_hash(row.outside)}",
        value="outside_gain",
        ends=("outside_gain_low", "outside_gain_high"),
        group=group,
        units=units,
    )
    own = tuple(replace(line, secondary=True) for line in own)
    order = list(dict.fromkeys(line.group for line in (*own, *outside)))
    yield Forest(
        name=name,
        question=f"Does revising lower {what.partition(' (')[0]}?",
        axis=f"reduction of {what}, first draft minus last",
        estimates=tuple(sorted((*own, *outside), key=lambda line: order.index(line.group))),
        table="optimism_gap",
        note=f"Above 0: lower after revising. {note}",
    )
    yield Forest(
        name=f"{name}-gap",
        question="Does the loop's own scorer see more than an outside measure?",
        axis=f"optimism gap in {what}",
        estimates=estimates(
            gaps, lambda row: f"{group(row)}, {_without_hash(row.outside)}", value="gap", p="p", units=units
        ),
        table="optimism_gap",
        note=f"Above 0: the loop's scorer is too optimistic. {note} p-values are not corrected.",
    )


def _without_hash(measure: str) -> str:
    """The name of a measure without the hash of its weights."""
    return re.sub(r",? (?:swaps )?[0-9a-f]{8}(?:-[0-9a-f]{8})?$", "", str(measure))


def _interval(low: float, high: float, form: str = ".2f") -> str:
    ends = format_interval(low, high, form)
    return f" ({ends})" if ends else " (no interval)"
