"""A line of two runs or cards on the same units: has it become worse, cluster by cluster?

Differences are taken within clusters and tested by sign flips over them; two intervals that overlap say nothing about
a difference. Where either direction is worse, sizes are compared: |new| - |old| is above the tolerance t exactly where
new - old and new + old are both above t, or both below -t (after the reference value is subtracted); each of them is
tested. Where nobody said which direction is worse, a line can only have moved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from parley.analysis.malibu.aligned import WITHHELD
from parley.analysis.stats.results import ALIKE, ALPHA, NOT_MEASURED, Line
from parley.analysis.stats.signflips import sign_flip_test, upper_tail
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

TALK = "talk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is held to requirements: the lines of a run, a card or a comparison.

    Args:
        name: Whose lines they are: the model's, or the file's.
        lines: By name.
        study: The run's study, which may stand before a line's name.
        unproven: By line, why it is not said to hold even if its interval does: "alike" would be read as fairness.
        units: What another one must share to be compared with it.
        run: The hash of its verdicts; two with the same one are the same run.
        debates: The hash of the debates that lines of the group "talk" are from.
    """

    name: str
    lines: Mapping[str, Line]
    study: str = ""
    unproven: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, object] = field(default_factory=dict)
    run: str = ""
    debates: str | None = None


def other_units(units: Mapping[str, object], others: Mapping[str, object]) -> str:
    """In what the units of two runs or cards differ; "" where they can be compared."""
    return ", ".join(name for name in {**units, **others} if units.get(name) != others.get(name))


def change(new: Checked, old: Checked, name: str, tolerance: float) -> Line:
    """The change of a line, new minus old, as a line: its margin is the tolerance.

    `p` is the two-sided p-value of having become worse by more than that. In `also` are both estimates, `gap`, how far
    the estimated worsening lies above the tolerance, and `p_moved`, the p-value of a move to the other side of the
    reference value. *Alike* is what was shown not to have become worse by more.

    Args:
        new: What is checked.
        old: The earlier one, of the same units.
        name: The line.
        tolerance: How much worse it may have become.
    """
    line, before = new.lines[name], old.lines[name]
    also = {"before": before.estimate, "after": line.estimate, "gap": 0.0, "p_moved": 1.0}
    same = Line(name=name, margin=tolerance, cluster=line.cluster, reference=line.reference, p=1.0, also=also)
    reason = _not_comparable(line, before)
    if line.group == TALK and new.debates != old.debates:
        return replace(same, note="they come from different debates")
    if reason and _unchanged(new, old, name):
        # What says nothing about a judge may still say that it has not changed.
        known = _change(same, line, before) if math.isfinite(line.estimate) and line.values else same
        return replace(known, verdict=ALIKE, note=f"unchanged; {reason}")
    return replace(same, note=reason) if reason else _change(same, line, before)


def _unchanged(new: Checked, old: Checked, name: str) -> bool:
    """Whether a line is the same in both: in every cluster, or, without values, in the same run or by design."""
    line, before = new.lines[name], old.lines[name]
    if line.values != before.values:
        return False
    return (
        bool(line.values) or (line.note == before.note and line.note.startswith(WITHHELD)) or new.run == old.run != ""
    )


def why_undecidable(line: Line) -> str:
    """Why nothing can be decided about a line: not measured, unread, constant or without an interval; "" if it can."""
    if line.verdict == NOT_MEASURED and line.note:
        return f"{NOT_MEASURED}: {line.note}"
    if math.isnan(line.estimate):
        return "nothing could be read"
    if not line.bounded:
        return line.note or f"{plural(clusters_of(line), cluster_noun(line))} are too few for an interval"
    if not counted(line) and (line.high - line.low <= 1e-12 or clusters_of(line) < 2):
        return f"the value is the same on every {cluster_noun(line)}"
    return ""


def counted(line: Line) -> bool:
    """Whether a line is a count of what there is, such as unread replies: it has no error."""
    return line.standard_error == 0


def clusters_of(line: Line) -> int:
    """How many independent parts a line has: clusters, or observations."""
    return line.n if line.clusters is None else line.clusters


def cluster_noun(line: Line) -> str:
    """What such a part is called."""
    return line.cluster or ("observation" if line.clusters is None else "cluster")


def _not_comparable(line: Line, old: Line) -> str:
    for where, each in (("", line), ("in the baseline, ", old)):
        if reason := why_undecidable(each):
            return where + reason
    # Where only one of them could read a base, the other may have failed on it: the rest would be a selection.
    if alone := len(line.values.keys() ^ old.values.keys()):
        return f"{plural(alone, cluster_noun(line))} could be read in only one of the two"
    return "" if line.values else f"it has no values by {cluster_noun(line)}"


def _change(same: Line, line: Line, old: Line) -> Line:
    null, tolerance = 0.0 if math.isnan(line.reference) else line.reference, same.margin
    new, before = (np.array([each.values[cluster] for cluster in line.values]) - null for each in (line, old))
    moved = new - before
    worse = line.worse or ("either" if math.isfinite(line.reference) else "")
    worsening = -moved if worse == "lower" else moved
    other = new + before if worse == "either" else None
    test = sign_flip_test(moved)
    size = float(abs(new.mean()) - abs(before.mean())) if other is not None else float(worsening.mean())
    p_moved = min(_p_above(moved, tolerance), _p_above(-moved, tolerance))
    turned = bool(worse == "either" and new.mean() * before.mean() < 0 and abs(new.mean()) > tolerance)
    if worse:
        kept = test.bounded and _shown_not_worse(worsening, other, tolerance)
    else:
        kept, size = test.bounded and all(_ends_below(side, tolerance) for side in (moved, -moved)), abs(size)
    return replace(
        same,
        estimate=test.estimate,
        low=test.low if test.bounded else math.nan,
        high=test.high if test.bounded else math.nan,
        p=_p_worse(worsening, other, tolerance) if worse else 1.0,
        clusters=test.n,
        standard_error=float(moved.std(ddof=1) / math.sqrt(len(moved))) if len(moved) > 1 else 0.0,
        verdict=ALIKE if kept or not moved.any() else "",
        worse=worse,
        also={**same.also, "gap": size - tolerance, "p_moved": p_moved if turned or not worse else 1.0},
    )


def _p_above(values: Floats, limit: float) -> float:
    """The two-sided p-value of a mean above the limit."""
    return min(1.0, 2 * upper_tail(values - limit))


def _p_worse(worsening: Floats, total: Floats | None, tolerance: float) -> float:
    if total is None:
        return _p_above(worsening, tolerance)
    upwards = max(_p_above(worsening, tolerance), _p_above(total, tolerance))
    downwards = max(_p_above(-worsening, tolerance), _p_above(-total, tolerance))
    return min(upwards, downwards)


def _shown_not_worse(worsening: Floats, total: Floats | None, tolerance: float) -> bool:
    if total is None:
        return _ends_below(worsening, tolerance)
    not_upwards = _ends_below(worsening, tolerance) or _ends_below(total, tolerance)
    return not_upwards and (_ends_below(-worsening, tolerance) or _ends_below(-total, tolerance))


def _ends_below(values: Floats, limit: float) -> bool:
    """Whether the 95% interval of the mean ends below the limit: the test that it inverts, which is much faster."""
    return _p_above(-values, -limit) <= ALPHA
