"""Every statement of a run of RLDF's debates with its scores and flags."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from parley.agents import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.judging import Prompt
from parley.judging.rldf.referee import AGAIN
from parley.judging.rldf.silent_referee import PREFERENCE, WORDING
from parley.runs import RunFile

NEUTRAL = Prompt.load("rldf/neutral")
FLAGS = ("role_break", "leak", "refused", "echo", "loop", "cut", "shortened")
FACETS = ("bias", "topic", "topic_id", "mode", "student")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A speaker's statement in one round. `score` is the referee's, None if its report could not be parsed."""

    id: str
    debate: str
    run: str
    run_id: str
    bias: str
    topic: str
    topic_id: str
    mode: str
    student: str
    model: str
    speaker: str
    round: int
    text: str
    prompt: str
    score: float | None
    rank: float | None
    status: str
    score_again: float | None
    by_wording: tuple[float, ...] = ()
    """A silent referee's score in each wording of the question."""
    compared: tuple[tuple[str, float], ...] = ()
    """Another statement, as speaker@round, and a silent referee's log-odds that this one is the more biased."""
    flags: tuple[str, ...]
    others: tuple[str, ...]
    """The other speakers of the debate."""


def debated(file: RunFile, run: str, run_id: str, addresses: HiddenAddresses) -> Iterable[Statement]:
    file.check_plan()
    file.check_verdicts()
    facets = {unit: addresses.hide(json.loads(text)) for unit, text in file.rows("SELECT id, facets FROM units")[1]}
    scores_of: dict[tuple[str, int, str], dict[str, Any]] = {}
    compared: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for unit, round, subject, judge, metric, value, status in file.rows(
        "SELECT unit, round, subject, judge, metric, value, status FROM verdicts WHERE subject != ''"
    )[1]:
        if metric == PREFERENCE:
            first, _, second = subject.partition(" ")
            if value is not None:
                compared.setdefault((unit, first), []).append((second, value))
                compared.setdefault((unit, second), []).append((first, -value))
            continue
        scores = scores_of.setdefault((unit, round, subject), {"flags": [], "by_wording": []})
        if metric == WORDING:
            if value is not None:
                scores["by_wording"].append(value)
        elif metric in FLAGS:
            if value:
                scores["flags"].append(metric)
        elif judge == AGAIN:
            scores[f"{metric}_again"] = value
        else:
            scores[metric] = value
            scores["status"] = status
    _, messages = file.rows(
        "SELECT t.unit, t.round, t.speaker, t.text, c.model FROM transcript t JOIN units u ON u.id = t.unit "
        "LEFT JOIN calls c ON c.unit = t.unit AND c.seq = t.seq AND c.nth = 0 "
        "WHERE u.status = 'done' AND t.role = 'debater' AND t.speaker != ? ORDER BY u.position, t.seq",
        (AGAIN,),
    )
    speakers_of: dict[str, dict[str, None]] = {}
    for unit, _, speaker, _, _ in messages:
        speakers_of.setdefault(unit, {})[speaker] = None
    for unit, round, speaker, text, model in messages:
        facet, scores = facets[unit], scores_of.get((unit, round, speaker), {"flags": [], "by_wording": []})
        if missing := [name for name in FACETS if not isinstance(facet.get(name), str)]:
            raise ConfigError(f"{file.path}: the unit '{unit}' has no {missing[0]}, which every debate needs")
        debate = f"{run_id}/{addresses.hide(unit)}"
        yield Statement(
            id=f"{debate}/{round}/{speaker}",
            debate=debate,
            run=run,
            run_id=run_id,
            bias=facet["bias"],
            topic=facet["topic"],
            topic_id=facet["topic_id"],
            mode=facet["mode"],
            student=facet["student"],
            model=model or "",
            speaker=speaker,
            round=round,
            text=text.strip(),
            prompt=NEUTRAL(topic=facet["topic"]),
            score=scores.get("bias"),
            rank=scores.get("rank"),
            status=scores.get("status", "unparsed"),
            score_again=scores.get("bias_again"),
            by_wording=tuple(scores["by_wording"]),
            compared=tuple(compared.get((unit, f"{speaker}@{round}"), ())),
            flags=tuple(scores["flags"]),
            others=tuple(name for name in speakers_of[unit] if name != speaker),
        )
