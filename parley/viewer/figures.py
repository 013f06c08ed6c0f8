"""What a finished unit comes to, for the panel and for each of its judges: score, margin, choice, changes of mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

PANEL = ""
EVALUATOR = "evaluator"
WORST_FIRST = ("unscored", "refused", "unparsed", "repaired", "ok")


class UnitFigures(NamedTuple):
    """A unit through one pair of eyes. What is not there is None, never 0."""

    score: float | None
    """Mean of the values of the last word; none where several evaluators measure on scales of their own."""
    margin: float | None
    """For pairs: mean of subject A minus mean of subject B."""
    choice: str | None
    """What was said in words, by majority: A, B or tie for pairs."""
    changed: bool | None
    """Whether the first word on the choice (or else the mean score) differs from the last one."""
    parse: str | None
    """The worst parse status among the replies."""


class Spent(NamedTuple):
    messages: int
    tokens: int
    latency: float
    cost: float | None
    cached: int


class VerdictRow(NamedTuple):
    judge: str
    role: str
    round: int
    subject: str
    value: float | None
    text: str | None


def unit_figures(verdicts: Sequence[VerdictRow], replies: Iterable[tuple[str, str | None]]) -> dict[str, UnitFigures]:
    """By judge, and under "" as the panel. `replies` are speakers with the parse status of what they said."""
    statuses: dict[str, list[str]] = {}
    for speaker, status in replies:
        if status is not None:
            statuses.setdefault(speaker, []).append(status)
    chair = [row for row in verdicts if row.role == "chair"]
    everyone = [status for found in statuses.values() for status in found]
    seen = {PANEL: _seen(verdicts, chair or _round(verdicts, max), everyone)}
    by_judge: dict[str, list[VerdictRow]] = {}
    for row in verdicts:
        by_judge.setdefault(row.judge, []).append(row)
    for judge in dict.fromkeys([*by_judge, *statuses]):
        mine = by_judge.get(judge, [])
        seen[judge] = _seen(mine, _round(mine, max), statuses.get(judge, []))
    return seen


def _round(rows: Sequence[VerdictRow], which: Any) -> list[VerdictRow]:
    if not rows:
        return []
    wanted = which(row.round for row in rows)
    return [row for row in rows if row.round == wanted]


def _seen(rows: Sequence[VerdictRow], last: Sequence[VerdictRow], statuses: Sequence[str]) -> UnitFigures:
    score, choice = _mean(last), _choice(last)
    first = _round(rows, min)
    changed: bool | None = None
    if last and first and first[0].round != last[0].round:
        before, after = (_choice(first), choice) if choice else (_mean(first), score)
        changed = before != after if before is not None and after is not None else None
    sides = [_mean([row for row in last if row.subject == side]) for side in ("A", "B")]
    margin = sides[0] - sides[1] if sides[0] is not None and sides[1] is not None else None
    return UnitFigures(score, margin, choice, changed, min(statuses, key=_badness) if statuses else None)


def _badness(status: str) -> int:
    return WORST_FIRST.index(status) if status in WORST_FIRST else len(WORST_FIRST)


def _mean(rows: Sequence[VerdictRow]) -> float | None:
    """A value beside words is the code of a choice (an answer's place), unless the words are an evaluator's reason."""
    scored = [row for row in rows if row.value is not None and (row.text is None or row.role == EVALUATOR)]
    if len({row.judge for row in scored if row.role == EVALUATOR}) > 1:
        return None
    return sum(row.value or 0.0 for row in scored) / len(scored) if scored else None


def _choice(rows: Sequence[VerdictRow]) -> str | None:
    return majority(row.text for row in rows if row.role != EVALUATOR)


def majority(votes: Iterable[str | None]) -> str | None:
    """What most said; "tie" if two choices have equally many votes; None if nobody could be read."""
    heard = [vote for vote in votes if vote is not None]
    if not heard:
        return None
    counted = Counter(heard).most_common(2)
    return "tie" if len(counted) == 2 and counted[0][1] == counted[1][1] else counted[0][0]
