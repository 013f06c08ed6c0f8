"""The evaluators of a critique loop, their scores, and the coordinator's criteria.

An evaluator is a persona or AutoGen agent that is asked for a score and a reason, an `Evaluator` with its own prompt
and one or more scores, or a plain function of task and draft (a classifier, say).
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
from parley.agents.structured import free_text, scale
from parley.base.errors import ConfigError

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


_PROMPTS = files("parley.agents").joinpath("prompts")
EVALUATE_PROMPT = _PROMPTS.joinpath("critique_evaluate.txt").read_text("utf-8")
REVISE_PROMPT = _PROMPTS.joinpath("critique_revise.txt").read_text("utf-8")


class Assessment(BaseModel):
    """An evaluator's score of a draft, with its reason."""

    score: scale(0, 100)  # type: ignore[valid-type]
    reason: free_text(400) = ""  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True)
class Unscored:
    """Returned by a plain evaluator that has no score: it was down, or had nothing to judge. No criterion is met."""

    why: str


ScoreFunction = Callable[[str, str], Assessment | Unscored | Awaitable[Assessment | Unscored]]
"""A plain evaluator: a function from task and draft to an assessment; may be async."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """An agent that evaluates drafts with its own prompt, by one score or several.

    Args:
        agent: A persona, an AutoGen agent or an AutoGen team.
        reply_type: The type of its replies. Every number in it is a score with the field's name; the score of an
            `Assessment`, the default, has the evaluator's name.
        prompt: Its prompt, with `{task}`, `{draft}` (fenced) and `{criterion}` (the evaluator's name).
        options: Passed with every call of a persona; by default the loop's own, which may allow drafts far longer
            than an evaluation.
    """

    agent: Participant
    reply_type: type[BaseModel] = Assessment
    prompt: str = EVALUATE_PROMPT
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Criterion:
    """A threshold for a score: `"< 0.1"`."""

    sign: str
    threshold: float

    @classmethod
    def read(cls, text: str) -> Criterion:
        """Parse a criterion: `<`, `<=`, `>` or `>=`, and a number."""
        match = re.fullmatch(r"\s*(<=|>=|<|>)\s*(-?\d+(?:\.\d+)?)\s*", text)
        if match is None:
            raise ConfigError(f"'{text}' is not a criterion; write one like '< 0.1' or '>= 80'")
        return cls(match.group(1), float(match.group(2)))

    def met(self, score: float | None) -> bool:
        """Whether the score meets the criterion; a missing score never does."""
        return score is not None and bool(_COMPARE[self.sign](score, self.threshold))

    def __str__(self) -> str:
        return f"{self.sign} {self.threshold:g}"


def score_names(label: str, reply_type: type[BaseModel]) -> tuple[str, ...]:
    """The names of the scores in a reply of this type."""
    if issubclass(reply_type, Assessment):
        return (label,)
    numbers = ("integer", "number")
    schema = reply_type.model_json_schema()["properties"]
    return tuple(name for name, node in schema.items() if node.get("type") in numbers)


def scores_of(label: str, verdict: BaseModel | None) -> dict[str, float]:
    """The scores in an evaluator's reply by name; empty if it could not be parsed."""
    if verdict is None:
        return {}
    if isinstance(verdict, Assessment):
        return {label: float(verdict.score)}
    return {name: float(getattr(verdict, name)) for name in score_names(label, type(verdict))}


def feedback_line(label: str, verdict: BaseModel | Unscored | None, criteria: Mapping[str, Criterion]) -> str:
    """One evaluator's line in the feedback to the generator. The model reads it: its words are part of the prompt."""
    if isinstance(verdict, Unscored):
        return f"- {label}: not scored ({verdict.why})"
    scores = scores_of(label, verdict)
    if not scores:
        return f"- {label}: no readable score"
    listed = ", ".join(f"{name}: {score:g}" for name, score in scores.items())
    required = ", ".join(f"{name} {criteria[name]}" for name in scores if name in criteria)
    reason = str(getattr(verdict, "reason", ""))
    return " ".join(filter(None, (f"- {listed}.", reason, f"(asked for: {required})" if required else "")))
