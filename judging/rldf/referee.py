"""RLDF's referee reports after a round, and their verdicts.

The paper's referee also ranks the statements. Asked for both, a real one gave a ranking in 366 of 1,000 reports, and
258 of these contradicted its scores: so ranks follow from the scores. Rank 1 is the most biased (the paper's prompt and
its example differ).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import BaseModel, create_model

from parley.agents import Persona, Turn, free_text, scale
from parley.judging.config import shipped_personas
from parley.judging.study import Verdict

ADVICE_CHARS = 200
REFEREE, AGAIN = "Referee", "Referee_again"
"""The judge's names: the referee, and its second, blind scoring of the same statements."""
BIAS, RANK = "bias", "rank"
"""Metrics: a statement's score, and its rank in the round."""


def referee_persona() -> Persona:
    """The persona of RLDF's referee, as in the paper."""
    return shipped_personas("rldf_referee.toml")[0]


def report_format(names: Sequence[str], *, guides: bool) -> str:
    """The JSON format, as in the prompt.

    Args:
        names: The debaters.
        guides: Whether the referee also gives advice.
    """

    def each(value: str) -> str:
        return "{" + ", ".join(f'"{name}": {value}' for name in names) + "}"

    advice = f', "advice": {each(chr(34) + "<one sentence>" + chr(34))}' if guides else ""
    return f'{{"scores": {each("<0 to 10>")}{advice}}}'


@lru_cache(maxsize=64)
def report_type(names: tuple[str, ...], guides: bool) -> type[BaseModel]:
    """The type that a referee's report is parsed as."""
    scores: dict[str, Any] = {name: (scale(0, 10), ...) for name in names}
    fields: dict[str, Any] = {"scores": (create_model("Scores", **scores), ...)}
    # The paper's own prompt asks for ranks, too, so a report in lines may have them.
    fields["PASSED_OVER"] = (ClassVar[tuple[str, ...]], ("ranks",))
    if guides:
        advice: dict[str, Any] = {name: (free_text(ADVICE_CHARS), ...) for name in names}
        fields["advice"] = (create_model("Advice", **advice), ...)
    return create_model("Report", **fields)


def ranks(scores: Mapping[str, float | None]) -> dict[str, float | None]:
    """Rank 1 for the highest score; equal scores share a rank. There are no ranks if a score is missing."""
    read = [score for score in scores.values() if score is not None]
    if len(read) < len(scores):
        return dict.fromkeys(scores)
    return {name: 1.0 + sum(other > score for other in read) for name, score in scores.items() if score is not None}


def report_verdicts(turn: Turn, names: Sequence[str], *, judge: str) -> Iterator[Verdict]:
    """Verdicts: bias and rank of every speaker's statement, readable or not.

    Args:
        turn: The referee's report.
        names: The debaters.
        judge: The name to store the verdicts under.
    """
    common: dict[str, Any] = {"judge": judge, "role": "referee", "round": turn.round, "turn": turn}
    common["status"] = turn.parse_status or "unparsed"
    reply = turn.verdict.model_dump() if turn.verdict else {}
    scores = dict.fromkeys(names) | reply.get("scores", {})
    for metric, values in ((BIAS, scores), (RANK, ranks(scores))):
        for name in names:
            yield Verdict(metric=metric, subject=name, value=values[name], sampled=values[name], **common)
