"""The figures of a finished unit, for the panel and for each judge: score, margin, choice, changes of mind."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from parley.judging import Facet, Measure
from parley.judging.squad.scores import normalise

PANEL = ""
"""The key of the panel's figures; its judges' are keyed by name."""
EVALUATOR = "evaluator"
WORST_FIRST = ("unscored", "cut", "refused", "unparsed", "empty", "copied", "repaired", "ok")


class UnitFigures(NamedTuple):
    """A unit's figures according to the panel or one judge. A missing figure is None, never 0."""

    score: float | None
    """Mean value of the final verdicts, or the share of right answers; by the study's measure."""
    margin: float | None
    """For pairs: mean of subject A minus mean of subject B."""
    choice: str | None
    """The majority of the final verdicts in words: A, B or tie for pairs."""
    changed: bool | None
    """Whether the first round's choice (or, without choices, its mean score) differs from the final one."""
    parse: str | None
    """The worst parse status among the replies."""
    read: bool
    """Whether any measured value was readable, in any round."""


class UnitUsage(NamedTuple):
    messages: int
    tokens: int
    latency: float | None
    cost: float | None
    cached: int


class IndexedUnit(NamedTuple):
    """A finished unit in the index, and for the page."""

    position: int
    by_judge: Mapping[str, UnitFigures]
    answers: Sequence[str]
    """The answer to a question with options: right or wrong, stereotyped, unknown; or unparsed."""
    usage: UnitUsage


class VerdictRow(NamedTuple):
    judge: str
    role: str
    round: int
    subject: str
    value: float | None
    text: str | None
    metric: str = ""


class MeasuredRows(NamedTuple):
    """The verdicts that make a unit's score (their mean) and its choice (their majority)."""

    scored: Sequence[VerdictRow]
    chosen: Sequence[VerdictRow]


def unit_figures(
    verdicts: Sequence[VerdictRow],
    replies: Iterable[tuple[str, str | None]],
    measures: Sequence[Measure] = (),
    facets: Mapping[str, str] | None = None,
) -> dict[str, UnitFigures]:
    """Figures by judge, and under `PANEL` for the panel.

    Args:
        verdicts: all verdicts of the unit.
        replies: speaker and parse status of each reply.
        measures: what the study's units are shown by; without any, the mean of all scores and the majority of texts.
        facets: the unit's facets, one of which may have the right answer.
    """
    statuses: dict[str, list[str]] = {}
    for speaker, status in replies:
        if status is not None:
            statuses.setdefault(speaker, []).append(status)
    all_statuses = [status for by_speaker in statuses.values() for status in by_speaker]
    rows = measured_rows(verdicts, measures, facets or {})
    figures = {PANEL: _figures(rows, all_statuses, panel=True)}
    for judge in dict.fromkeys([*(row.judge for row in verdicts), *statuses]):
        judged = MeasuredRows(*([row for row in part if row.judge == judge] for part in rows))
        figures[judge] = _figures(judged, statuses.get(judge, []))
    return figures


def answers_given(
    verdicts: Sequence[VerdictRow], facets: Mapping[str, str], declared: Sequence[Facet]
) -> tuple[str, ...]:
    """Properties of a unit's last answer; a stereotyped one can be right, if the context says so.

    Args:
        verdicts: all verdicts of the unit.
        facets: its facets, among them the numbers of the options that are right, stereotyped, …
        declared: what the study says about them.
    """
    options = {facet.label: facets.get(facet.name) for facet in declared if facet.kind == "answer"}
    if not options or None in options.values():
        return ()
    values = [row.value for row in verdicts if row.metric == "answer"]
    if not values or (value := values[-1]) is None:
        return ("unparsed",)
    given = tuple(label for label, option in options.items() if option == f"{value:g}")
    return given if "right" in given else ("wrong", *given)


def measured_rows(
    verdicts: Sequence[VerdictRow], measures: Sequence[Measure], facets: Mapping[str, str]
) -> MeasuredRows:
    """The verdicts on the study's first measure of each kind that the unit has."""
    if not measures:
        return MeasuredRows(_plain_scores(verdicts), [row for row in verdicts if row.role != EVALUATOR])
    scored: list[VerdictRow] = []
    chosen: list[VerdictRow] = []
    for measure in measures:
        measured = (
            [row for row in verdicts if row.metric == measure.metric] if measure.metric else _plain_scores(verdicts)
        )
        if measure.kind == "correct":
            chosen = chosen or measured
            measured = [row._replace(value=is_right(row, facets.get(measure.key))) for row in measured]
        if measure.kind == "choice":
            chosen = chosen or measured
        else:
            scored = scored or measured
    return MeasuredRows(scored, chosen)


def _plain_scores(verdicts: Sequence[VerdictRow]) -> list[VerdictRow]:
    """A value with a text is the number of a chosen option, not a score, unless the text is an evaluator's reason."""
    return [row for row in verdicts if row.text is None or row.role == EVALUATOR]


def is_right(row: VerdictRow, key: str | None) -> float | None:
    """1 for the right answer, 0 for another; None if the answer is unreadable or the right one unknown.

    Args:
        row: the answer.
        key: the number of the right option, or a JSON list of accepted texts, which is empty if there is no answer.
    """
    if row.value is None or key is None:
        return None
    if not key.startswith("["):
        return float(str(int(row.value)) == key)
    accepted = {normalise(str(text)) for text in json.loads(key)} - {""}
    answer = normalise(row.text or "") if row.value else ""
    return float(answer in accepted if accepted else not answer)


def _of_round(rows: Sequence[VerdictRow], which: Callable[[Iterable[int]], int]) -> list[VerdictRow]:
    """The verdicts of the first (`min`) or last (`max`) round."""
    if not rows:
        return []
    chosen_round = which(row.round for row in rows)
    return [row for row in rows if row.round == chosen_round]


def _figures(rows: MeasuredRows, statuses: Sequence[str], *, panel: bool = False) -> UnitFigures:
    scored, chosen = (_final(part, panel=panel) for part in rows)
    score, choice = _mean(scored), majority(row.text for row in chosen)
    part, final = (rows.chosen, chosen) if choice else (rows.scored, scored)
    first = _of_round(part, min)
    changed: bool | None = None
    if final and first and first[0].round != final[0].round:
        before, after = (majority(row.text for row in first), choice) if choice else (_mean(first), score)
        changed = before != after if before is not None and after is not None else None
    a, b = (_mean([row for row in scored if row.subject == subject]) for subject in ("A", "B"))
    if not scored and choice in ("A", "B", "tie") and (share := _mean(chosen)) is not None:
        a, b = share, 1 - share  # a silent ballot's choice between two has the probability of the first
    return UnitFigures(
        score=score,
        margin=finite_or_none(a - b) if a is not None and b is not None else None,
        choice=choice,
        changed=changed,
        parse=min(statuses, key=_severity) if statuses else None,
        read=any(row.value is not None for row in rows.scored) or any(row.text is not None for row in rows.chosen),
    )


def _final(rows: Sequence[VerdictRow], *, panel: bool) -> Sequence[VerdictRow]:
    """The verdicts of the last round; for a panel with a chair, the chair's."""
    chair = [row for row in rows if row.role == "chair"] if panel else []
    return chair or _of_round(rows, max)


def _severity(status: str) -> int:
    return WORST_FIRST.index(status) if status in WORST_FIRST else len(WORST_FIRST)


def _mean(rows: Sequence[VerdictRow]) -> float | None:
    """The mean value; None if evaluators with different metrics use different scales."""
    evaluated = [row for row in rows if row.role == EVALUATOR]
    if len({row.judge for row in evaluated}) > 1 and len({row.metric for row in evaluated}) > 1:
        return None
    values = [row.value for row in rows if row.value is not None]
    return finite_or_none(sum(values) / len(values)) if values else None


def finite_or_none(value: float | None) -> float | None:
    """The number, or None if JSON does not have it, as in files from others."""
    return value if value is not None and math.isfinite(value) else None


def majority(votes: Iterable[str | None]) -> str | None:
    """The most frequent vote; "tie" if two are equally frequent; None without a readable vote."""
    readable = [vote for vote in votes if vote is not None]
    if not readable:
        return None
    top = Counter(readable).most_common(2)
    return "tie" if len(top) == 2 and top[0][1] == top[1][1] else top[0][0]
