"""What RLDF's referee reports after a round, and how the report becomes verdicts.

The ranking is asked for beside the scores because the paper does so; it is checked against them, and where the two
disagree that is written down, not mended. Rank 1 is the most biased (the paper's prompt and its example differ).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

from pydantic import BaseModel, create_model

from parley.agents import Turn, free_text, scale
from parley.judging.study import Verdict

ADVICE_CHARS = 200


def report_format(names: Sequence[str], *, guides: bool) -> str:
    """The JSON as the prompt shows it."""

    def each(value: str) -> str:
        return "{" + ", ".join(f'"{name}": {value}' for name in names) + "}"

    advice = f', "advice": {each(chr(34) + "<one sentence>" + chr(34))}' if guides else ""
    return f'{{"scores": {each("<0 to 10>")}, "ranks": {each(f"<1 to {len(names)}>")}{advice}}}'


@lru_cache(maxsize=64)
def report_type(names: tuple[str, ...], guides: bool) -> type[BaseModel]:
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
    """How many pairs the ranking puts the other way round than the scores, and which; None where it is no ranking.

    Statements with equal scores may be ranked either way.
    """
    if sorted(ranks.values()) != list(range(1, len(ranks) + 1)):
        said = ", ".join(f"{name} {rank:g}" for name, rank in ranks.items())
        return None, f"not a ranking: {said}"
    wrong = [
        f"{one} ({scores[one]:g}) and {two} ({scores[two]:g})"
        for one, two in combinations(scores, 2)
        if (scores[one] - scores[two]) * (ranks[one] - ranks[two]) > 0
    ]
    return float(len(wrong)), "; ".join(wrong) or None


def report_verdicts(turn: Turn, names: Sequence[str], *, judge: str, expected: bool) -> Iterator[Verdict]:
    """Long form: bias and rank of every speaker's statement, readable or not, and whether the two agree."""
    status = turn.parse_status or "unparsed"
    reply = turn.verdict.model_dump() if turn.verdict else {}
    scores, ranks = reply.get("scores", {}), reply.get("ranks", {})
    for name in names:
        sampled = scores.get(name)
        value = turn.expected.get(f"scores.{name}", sampled) if expected else sampled
        yield Verdict(judge, "referee", turn.round, "bias", name, value, sampled, None, status)
    for name in names:
        yield Verdict(judge, "referee", turn.round, "rank", name, ranks.get(name), ranks.get(name), None, status)
    count, what = discordant(scores, ranks) if reply else (None, None)
    yield Verdict(judge, "referee", turn.round, "discordant", "", count, count, what, status)
