"""The figures of a finished unit, for the panel and for each judge: score, margin, choice, changes of mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

PANEL = ""
"""The key of the panel's figures, beside those of its judges by name."""
EVALUATOR = "evaluator"
WORST_FIRST = ("unscored", "cut", "refused", "unparsed", "repaired", "ok")


class UnitFigures(NamedTuple):
    """A unit's figures according to the panel or one judge. A missing figure is None, never 0."""

    score: float | None
    """Mean value of the final verdicts; None where evaluators use different scales."""
    margin: float | None
    """For pairs: mean of subject A minus mean of subject B."""
    choice: str | None
    """The majority of the final verdicts in words: A, B or tie for pairs."""
    changed: bool | None
    """Whether the first round's choice (or, without choices, its mean score) differs from the final one."""
    parse: str | None
    """The worst parse status among the replies."""


class UnitUsage(NamedTuple):
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
    """Figures by judge, and under `PANEL` for the panel.

    Args:
        verdicts: all verdicts of the unit.
        replies: speaker and parse status of each reply.
    """
    statuses: dict[str, list[str]] = {}
    for speaker, status in replies:
        if status is not None:
            statuses.setdefault(speaker, []).append(status)
    all_statuses = [status for by_speaker in statuses.values() for status in by_speaker]
    chair = [row for row in verdicts if row.role == "chair"]  # the chair states the panel's verdict
    figures = {PANEL: _figures(verdicts, chair or _of_round(verdicts, max), all_statuses)}
    by_judge: dict[str, list[VerdictRow]] = {}
    for row in verdicts:
        by_judge.setdefault(row.judge, []).append(row)
    for judge in dict.fromkeys([*by_judge, *statuses]):
        rows = by_judge.get(judge, [])
        figures[judge] = _figures(rows, _of_round(rows, max), statuses.get(judge, []))
    return figures


def _of_round(rows: Sequence[VerdictRow], which: Callable[[Iterable[int]], int]) -> list[VerdictRow]:
    """The verdicts of the first (`min`) or last (`max`) round."""
    if not rows:
        return []
    chosen_round = which(row.round for row in rows)
    return [row for row in rows if row.round == chosen_round]


def _figures(rows: Sequence[VerdictRow], final: Sequence[VerdictRow], statuses: Sequence[str]) -> UnitFigures:
    score, choice = _mean(final), _choice(final)
    first = _of_round(rows, min)
    changed: bool | None = None
    if final and first and first[0].round != final[0].round:
        before, after = (_choice(first), choice) if choice else (_mean(first), score)
        changed = before != after if before is not None and after is not None else None
    a, b = (_mean([row for row in final if row.subject == subject]) for subject in ("A", "B"))
    return UnitFigures(
        score=score,
        margin=a - b if a is not None and b is not None else None,
        choice=choice,
        changed=changed,
        parse=min(statuses, key=_severity) if statuses else None,
    )


def _severity(status: str) -> int:
    return WORST_FIRST.index(status) if status in WORST_FIRST else len(WORST_FIRST)


def _mean(rows: Sequence[VerdictRow]) -> float | None:
    """A value with a text is the number of a chosen option, not a score, unless the text is an evaluator's reason."""
    scored = [row for row in rows if row.value is not None and (row.text is None or row.role == EVALUATOR)]
    if len({row.judge for row in scored if row.role == EVALUATOR}) > 1:
        return None
    return sum(row.value or 0.0 for row in scored) / len(scored) if scored else None


def _choice(rows: Sequence[VerdictRow]) -> str | None:
    return majority(row.text for row in rows if row.role != EVALUATOR)


def majority(votes: Iterable[str | None]) -> str | None:
    """The most frequent vote; "tie" if two are equally frequent; None without a readable vote."""
    readable = [vote for vote in votes if vote is not None]
    if not readable:
        return None
    top = Counter(readable).most_common(2)
    return "tie" if len(top) == 2 and top[0][1] == top[1][1] else top[0][0]
