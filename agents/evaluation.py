"""Who judges a draft, what they say of it, and the rules a coordinator holds it to.

An evaluator is a persona or AutoGen agent that is asked for a score and a reason, an `Evaluator` that is asked for
several scores in words of its own, or a plain function of task and draft (a classifier, say).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from parley.agents.conversation import Participant
from parley.agents.errors import ConfigError
from parley.agents.structured import free_text, scale

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _prompt(name: str) -> str:
    return files("parley.agents").joinpath("prompts", name).read_text("utf-8")


PROMPTS = {name: _prompt(name) for name in ("critique_evaluate.txt", "critique_revise.txt")}


class Assessment(BaseModel):
    """What an evaluator says of a draft."""

    score: scale(0, 100)  # type: ignore[valid-type]
    reason: free_text(400) = ""  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True)
class Unscored:
    """An evaluator that could not be asked, or had nothing to judge, and why: no score, and no criterion met."""

    why: str


ScoreFunction = Callable[[str, str], Assessment | Unscored | Awaitable[Assessment | Unscored]]
"""A plain evaluator: from task and draft to an assessment."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """An agent that judges in a prompt of its own ({task}, {draft}, {criterion}), by one score or several.

    Every number of `reply_type` is a score with its field's name; that of a plain `Assessment` has the evaluator's.
    """

    who: Participant
    reply_type: type[BaseModel] = Assessment
    prompt: str = PROMPTS["critique_evaluate.txt"]
    options: Mapping[str, Any] | None = None
    """Given with every call, instead of the loop's own."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A rule of the coordinator: `"< 0.1"`."""

    sign: str
    threshold: float

    @classmethod
    def read(cls, text: str) -> Criterion:
        match = re.fullmatch(r"\s*(<=|>=|<|>)\s*(-?\d+(?:\.\d+)?)\s*", text)
        if match is None:
            raise ConfigError(f"'{text}' is not a criterion; write one like '< 0.1' or '>= 80'")
        return cls(match.group(1), float(match.group(2)))

    def met(self, score: float | None) -> bool:
        return score is not None and bool(_COMPARE[self.sign](score, self.threshold))

    def __str__(self) -> str:
        return f"{self.sign} {self.threshold:g}"


def score_names(label: str, reply_type: type[BaseModel]) -> tuple[str, ...]:
    """What the scores of such a reply are called."""
    if issubclass(reply_type, Assessment):
        return (label,)
    numbers = ("integer", "number")
    schema = reply_type.model_json_schema()["properties"]
    return tuple(name for name, node in schema.items() if node.get("type") in numbers)


def scores_of(label: str, verdict: BaseModel | None) -> dict[str, float]:
    if verdict is None:
        return {}
    if isinstance(verdict, Assessment):
        return {label: float(verdict.score)}
    return {name: float(getattr(verdict, name)) for name in score_names(label, type(verdict))}


def feedback_line(label: str, verdict: BaseModel | Unscored | None, criteria: Mapping[str, Criterion]) -> str:
    """What the generator is told of one evaluator's opinion."""
    if isinstance(verdict, Unscored):
        return f"- {label}: not scored ({verdict.why})"
    scores = scores_of(label, verdict)
    if not scores:
        return f"- {label}: no readable score"
    said = ", ".join(f"{name}: {score:g}" for name, score in scores.items())
    asked = ", ".join(f"{name} {criteria[name]}" for name in scores if name in criteria)
    reason = str(getattr(verdict, "reason", ""))
    return " ".join(filter(None, (f"- {said}.", reason, f"(asked for: {asked})" if asked else "")))
