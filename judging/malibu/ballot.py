"""What a MALIBU judge reports, and how the report becomes verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, create_model

from parley.agents import Turn, free_text, scale
from parley.judging.scoring.rubrics import Rubric
from parley.judging.study import Verdict


@dataclass(frozen=True, slots=True)
class Ballot:
    """The report on one candidate (phase 1) or on two (phase 2).

    Args:
        phase: 1 or 2.
        rubric: The metrics to score.
        remark_chars: Maximum length of a remark or justification.
        ties: Whether a judge may state a tie instead of a preferred candidate.
    """

    phase: int
    rubric: Rubric
    remark_chars: int
    ties: bool = True

    @property
    def choices(self) -> str:
        """What a judge may state as the preferred candidate, as the prompt says it."""
        return '"A", "B", or "tie"' if self.ties else '"A" or "B": you must determine which is superior'

    def format(self, *, with_remark: bool = False) -> str:
        """The JSON format as the prompt shows it."""
        scores = ", ".join(f'"{metric}": <score>' for metric in self.rubric.names)
        if self.phase == 1:
            return "{" + ('"Remark": "<your reasons, in one or two sentences>", ' if with_remark else "") + scores + "}"
        choices = "<A, B or tie>" if self.ties else "<A or B>"
        preferred = f', "preferred": "{choices}"' if self.rubric.preference == "stated" else ""
        return (
            f'{{"A": {{{scores}}}, "B": {{{scores}}}, "justification": "<strengths, weaknesses, and why>"{preferred}}}'
        )

    def reply_type(self, *, with_remark: bool = False) -> type[BaseModel]:
        """The type that a judge's reply is parsed as."""
        choices = ("A", "B", "tie") if self.ties else ("A", "B")
        asked = choices if self.rubric.preference == "stated" else ()
        return _reply_type(self.phase, self.rubric.names, self.remark_chars, with_remark, asked)

    def verdicts(self, turn: Turn, *, expected: bool) -> Iterator[Verdict]:
        """Long form: one verdict per metric and candidate, readable or not; for a pair, also the preferred one."""
        status = turn.parse_status or "unparsed"
        reply = turn.verdict.model_dump() if turn.verdict else {}
        for side in ("",) if self.phase == 1 else ("A", "B"):
            scores = reply.get(side, {}) if side else reply
            for metric in self.rubric.names:
                sampled = scores.get(metric)
                path = f"{side}.{metric}" if side else metric
                value = turn.expected.get(path, sampled) if expected else sampled
                yield Verdict.from_turn(turn, metric, subject=side, value=value, sampled=sampled, status=status)
        if self.phase == 2:
            preferred = reply.get("preferred") if self.rubric.preference == "stated" else _inferred(reply)
            yield Verdict.from_turn(turn, "preferred", text=preferred, status=status)


def _inferred(reply: dict[str, Any]) -> str | None:
    """The candidate with the higher sum of scores."""
    if not reply:
        return None
    margin = sum(reply["A"].values()) - sum(reply["B"].values())
    return "tie" if margin == 0 else "A" if margin > 0 else "B"


@lru_cache(maxsize=64)
def _reply_type(
    phase: int, metrics: tuple[str, ...], remark_chars: int, with_remark: bool, choices: tuple[str, ...]
) -> type[BaseModel]:
    """The type that a judge's reply is parsed as; its schema constrains the decoding."""
    scores: dict[str, Any] = {metric: (scale(0, 10), ...) for metric in metrics}
    if phase == 1:
        first: dict[str, Any] = {"Remark": (free_text(remark_chars), "")} if with_remark else {}
        return create_model("Scores", **first, **scores)
    candidate = create_model("CandidateScores", **scores)
    justification = (free_text(remark_chars), "")
    comparison: dict[str, Any] = {"A": (candidate, ...), "B": (candidate, ...), "justification": justification}
    if choices:
        comparison["preferred"] = (Literal[choices], ...)
    return create_model("Comparison", **comparison)
