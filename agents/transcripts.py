"""What was said at a table: turns in order, with what each cost. Plain data, free of AutoGen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import BaseModel

from parley.agents.calls import Call

ParseStatus = Literal["ok", "repaired", "unparsed", "refused", "unscored"]
"""How a reply could be read; `unscored`: an evaluator gave no score at all (it was down, or had nothing to judge)."""
Role = Literal["narrator", "debater", "referee", "chair", "generator", "evaluator", "coordinator"]


class Turn(NamedTuple):
    """One thing said. `verdict` is the reply read as the type that was asked for, or None if it could not be."""

    speaker: str
    role: Role
    round: int
    text: str
    persona: str = ""
    verdict: BaseModel | None = None
    expected: Mapping[str, float] = MappingProxyType({})
    parse_status: ParseStatus | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent; `cost` is None as soon as one call's price is unknown."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0

    def plus(self, call: Call) -> Usage:
        return Usage(
            self.calls + 1,
            self.prompt_tokens + call.prompt_tokens,
            self.completion_tokens + call.completion_tokens,
            None if self.cost is None or call.cost is None else self.cost + call.cost,
        )


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole conversation."""

    turns: tuple[Turn, ...]
    stop_reason: str = ""

    def spoken(self, role: Role | None = None, round: int | None = None) -> list[Turn]:
        """The turns of agents (not the narrator), of one role or round if asked."""
        return [
            turn
            for turn in self.turns
            if turn.role != "narrator"
            and (role is None or turn.role == role)
            and (round is None or turn.round == round)
        ]

    def usage(self) -> dict[str, Usage]:
        """What each speaker spent."""
        spent: dict[str, Usage] = defaultdict(Usage)
        for turn in self.turns:
            for call in turn.calls:
                spent[turn.speaker] = spent[turn.speaker].plus(call)
        return dict(spent)

    def __str__(self) -> str:
        return "\n\n".join(f"[{turn.round}] {turn.speaker}: {turn.text}" for turn in self.turns)
