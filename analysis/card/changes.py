"""A line of two cards on the same units: has the judge become worse, cluster by cluster?

Differences are taken within clusters and tested by sign flips over them; two intervals that overlap say nothing about
a difference. Where either direction is worse, sizes are compared: |new| - |old| is above the tolerance t exactly where
new - old and new + old are both above t, or both below -t (after the null value is subtracted); each of them is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from parley.analysis.card.record import Card, Line
from parley.analysis.malibu.aligned import WITHHELD
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.signflips import sign_flip_test, upper_tail
from parley.analysis.stats.tables import Floats
from parley.base.errors import ConfigError
from parley.base.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A line compared with the same line of an earlier card.

    Args:
        line: The new card's line.
        old: The earlier card's.
        tolerance: How much worse it may have become.
        estimate: New minus earlier; None where they cannot be compared.
        low: Lower end of its 95% interval; None where the clusters are too few.
        high: Upper end.
        sd: Standard deviation of a cluster's difference.
        clusters: Number of clusters that were compared.
        gap: How far the estimated worsening lies above the tolerance; below 0 where it lies below.
        p_worse: Two-sided p-value of having become worse by more than the tolerance.
        p_changed: Two-sided p-value of having moved by more than it, in either direction.
        not_worse: Whether intervals show that it has not become worse by more.
        reversed: Whether the new value lies on the other side of the null value, beyond the tolerance.
        reason: Why they cannot be compared, or say nothing but that nothing has changed.
    """

    line: Line
    old: Line
    tolerance: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float = 0.0
    clusters: int = 0
    gap: float = 0.0
    p_worse: float = 1.0
    p_changed: float = 1.0
    not_worse: bool = False
    reversed: bool = False
    reason: str = ""

    def outcome(self, corrected: float, tests: int) -> Literal["holds", "broken", "changed", "undecided"]:
        """The outcome for the line.

        Args:
            corrected: `p_worse` after the correction over the check.
            tests: Number of tests in the check.
        """
        if corrected <= ALPHA:
            return "broken"
        if self.reversed and self.p_changed * tests <= ALPHA:
            return "changed"
        return "holds" if self.not_worse else "undecided"


def units_of(card: Card) -> dict[str, object]:
    """What two cards must share for their units to be the same."""
    return {
        "battery": (card.battery.name, card.battery.version, card.battery.sha256),
        "size of the battery": card.battery.size,
        "read-out": (card.model.readout, card.model.scale),
        "data": card.data,
    }


def other_units(card: Card, other: Card) -> str:
    """Why two cards do not have the same units; "" where they can be compared."""
    theirs = units_of(other)
    return ", ".join(name for name, part in units_of(card).items() if part != theirs[name])


def compare_lines(card: Card, baseline: Card, line_id: str, tolerance: float | None = None) -> Change:
    """Compare a line of a card with the same line of an earlier one.

    Args:
        card: The new card.
        baseline: The earlier one; ConfigError if its units differ.
        line_id: The line.
        tolerance: How much worse it may have become (default: the line's margin).
    """
    if different := other_units(card, baseline):
        raise ConfigError(
            f"the cards of {card.model.name} and {baseline.model.name} do not cover the same units: "
            f"they differ in {different}"
        )
    line, old = card.line(line_id), baseline.line(line_id)
    limit = line.margin if tolerance is None else tolerance
    reason = _not_comparable(line, old)
    if line.group == "talk" and card.battery.talk_sha256 != baseline.battery.talk_sha256:
        reason = "the cards come from different debates"
    elif reason and _unchanged(card, baseline, line_id):
        # What says nothing about a judge may still say that it has not changed.
        known = line.estimate is not None and bool(line.values)
        change = (
            _change(line, old, *_values(line, old), limit) if known else Change(line=line, old=old, tolerance=limit)
        )
        return replace(change, not_worse=True, reason=f"unchanged; {reason}")
    if reason:
        return Change(line=line, old=old, tolerance=limit, reason=reason)
    return _change(line, old, *_values(line, old), limit)


def _values(line: Line, old: Line) -> tuple[Floats, Floats]:
    """The two lines' values by cluster, in the same order, as distances from the null value."""
    new, before = (np.array([each.values[cluster] for cluster in line.values]) - line.null for each in (line, old))
    return new, before


def _unchanged(card: Card, baseline: Card, line_id: str) -> bool:
    """Whether a line is the same in two cards: in every cluster, or, without values, in the same run or by design."""
    line, old = card.line(line_id), baseline.line(line_id)
    if line.values != old.values:
        return False
    withheld = line.because == old.because and (line.because or "").startswith(WITHHELD)
    return bool(line.values) or withheld or card.run.sha256 == baseline.run.sha256


def why_undecidable(line: Line) -> str:
    """Why nothing can be decided about a line: blocked, unread, constant or without an interval; "" where it can."""
    if line.verdict == "blocked":
        return f"blocked: {line.because or 'the card does not say why'}"
    if line.estimate is None:
        return "nothing could be read"
    if line.low is None or line.high is None:
        return line.because or f"{plural(line.clusters, line.cluster)} are too few for an interval"
    if line.high - line.low <= 1e-12 or line.clusters < 2:
        return f"the value is the same on every {line.cluster}"
    return ""


def _not_comparable(line: Line, old: Line) -> str:
    for where, each in (("", line), ("in the baseline, ", old)):
        if reason := why_undecidable(each):
            return where + reason
    # Where only one of them could read a base, the other may have failed on it: the rest would be a selection.
    if alone := len(line.values.keys() ^ old.values.keys()):
        return f"{plural(alone, line.cluster)} could be read in only one of the two cards"
    return "" if line.values else "the cards have no values by cluster"


def _change(line: Line, old: Line, new: Floats, before: Floats, tolerance: float) -> Change:
    moved = new - before
    worsening = -moved if line.worse == "lower" else moved
    other = new + before if line.worse == "either" else None
    test = sign_flip_test(moved)
    bounded = bool(np.isfinite(test.low))
    size = float(abs(new.mean()) - abs(before.mean())) if other is not None else float(worsening.mean())
    return Change(
        line=line,
        old=old,
        tolerance=tolerance,
        estimate=test.estimate,
        low=test.low if bounded else None,
        high=test.high if bounded else None,
        sd=float(moved.std(ddof=1)) if len(moved) > 1 else 0.0,
        clusters=test.n,
        gap=size - tolerance,
        p_worse=_p_worse(worsening, other, tolerance),
        p_changed=min(_p_above(moved, tolerance), _p_above(-moved, tolerance)),
        not_worse=not moved.any() or (bounded and _shown_not_worse(worsening, other, tolerance)),
        reversed=bool(line.worse == "either" and new.mean() * before.mean() < 0 and abs(new.mean()) > tolerance),
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
