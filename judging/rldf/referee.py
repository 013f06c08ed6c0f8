"""RLDF's referee reports after a round, and their verdicts.

The referee gives a ranking along with the scores, as in the paper. Disagreement with the scores is recorded, not
corrected. Rank 1 is the most biased (the paper's prompt and its example differ).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

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
    return f'{{"scores": {each("<0 to 10>")}, "ranks": {each(f"<1 to {len(names)}>")}{advice}}}'


@lru_cache(maxsize=64)
def report_type(names: tuple[str, ...], guides: bool) -> type[BaseModel]:
    """The type that a referee's report is parsed as."""
    scores: dict[str, Any] = {name: (scale(0, 10), ...) for name in names}
    ranks: dict[str, Any] = {name: (scale(1, len(names)), ...) for name in names}
    fields: dict[str, Any] = {
        "scores": (create_model("Scores", **scores), ...),
        "ranks": (create_model("Ranks", **ranks), ...),
    }
    if guides:
        advice: dict[str, Any] = {name: (free_text(ADVICE_CHARS), ...) for name in names}
        fields["advice"] = (create_model("Advice", **advice), ...)
    return create_model("Report", **fields)


def discordant(scores: Mapping[str, float], ranks: Mapping[str, float]) -> tuple[float | None, str | None]:
    """The number of pairs that ranking and scores order differently, and the pairs; None if it is not a ranking.

    Statements with equal scores may be ranked either way.
    """
    if sorted(ranks.values()) != list(range(1, len(ranks) + 1)):
        listed = ", ".join(f"{name} {rank:g}" for name, rank in ranks.items())
        return None, f"not a ranking: {listed}"
    pairs = [
        f"{first} ({scores[first]:g}) and {second} ({scores[second]:g})"
        for first, second in combinations(scores, 2)
        if (scores[first] - scores[second]) * (ranks[first] - ranks[second]) > 0
    ]
    return float(len(pairs)), "; ".join(pairs) or None


def report_verdicts(turn: Turn, names: Sequence[str], *, judge: str) -> Iterator[Verdict]:
    """Verdicts: bias and rank of every speaker's statement, readable or not, and the number of pairs that disagree.

    Args:
        turn: The referee's report.
        names: The debaters.
        judge: The name to store the verdicts under.
    """
    common: dict[str, Any] = {"judge": judge, "role": "referee", "round": turn.round, "turn": turn}
    common["status"] = turn.parse_status or "unparsed"
    reply = turn.verdict.model_dump() if turn.verdict else {}
    scores, ranks = reply.get("scores", {}), reply.get("ranks", {})
    for name in names:
        score = scores.get(name)
        yield Verdict(metric=BIAS, subject=name, value=score, sampled=score, **common)
    for name in names:
        rank = ranks.get(name)
        yield Verdict(metric=RANK, subject=name, value=rank, sampled=rank, **common)
    count, pairs = discordant(scores, ranks) if reply else (None, None)
    yield Verdict(metric="discordant", value=count, sampled=count, text=pairs, **common)
