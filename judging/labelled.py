"""What of a unit people are shown to label, and what they are asked: a study declares it as it does its measures.

labelled = (Labelled("last", (LabelMetric("warmth", ("How warm is it?",), scale=(1, 5)),)),)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, get_args, runtime_checkable

from parley.agents import ConfigError

SCALE = (0, 10)
"""The raters' scale."""
Shown = Literal["answers", "draft", "first", "given", "last", "options", "sheet", "statements"]


@dataclass(frozen=True, slots=True)
class LabelMetric:
    """A score that is asked for.

    Args:
        name: The metric of the judges' verdicts.
        questions: What to consider, one line each; {bias} stands for the unit's facet `bias`.
        low: What the low end of the scale means.
        high: What the high end means.
        scale: The judges' own scale; None if it is not known, and then the numbers are not compared.
    """

    name: str
    questions: tuple[str, ...]
    low: str = "poor"
    high: str = "excellent"
    scale: tuple[float, float] | None = SCALE

    def on_judges_scale(self, value: float) -> float | None:
        """A rater's score on the judges' own scale."""
        if self.scale is None:
            return None
        share = (value - SCALE[0]) / (SCALE[1] - SCALE[0])
        return self.scale[0] + share * (self.scale[1] - self.scale[0])


@dataclass(frozen=True, slots=True)
class Labelled:
    """What people are shown of a unit, and what they are asked.

    Args:
        shown: Where the texts are. Names of the prompt's placeholders: ("response",), or ("response_a", "response_b")
            for a pair. Or replies: the "first" or the "last", the last accepted "draft" of a loop, the two "answers"
            of a pair, the "statements" of one round that verdicts on the metrics are about. Or the text that was
            "given" to scorers, the "options" of a question, of which people choose one, or the "sheet" of a rubric,
            which has the metrics too.
        metrics: The scores to give to each text; "rubric" for those of the run's rubric, "scored" for those that an
            evaluator gave the unit. Without any, and without a choice, people give one overall score.
        words: The words for metrics that were "scored"; others get their name as the question.
        title: What a text is called.
        choice: The question that people choose by; "" if they choose nothing.
        options: What choosing A, B or neither of a pair means.
        where: Only units with a verdict on this metric are shown so; "" for all.
    """

    shown: Shown | tuple[str, ...]
    metrics: tuple[LabelMetric, ...] | Literal["rubric", "scored"] = ()
    words: tuple[LabelMetric, ...] = ()
    title: str = "Text"
    choice: str = ""
    options: tuple[str, str, str] = ("A is better", "B is better", "equally good")
    where: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.shown, str) and self.shown not in get_args(Shown):
            known = ", ".join(get_args(Shown))
            raise ConfigError(f"Labelled shows {known}, or fields such as ('{self.shown}',), not '{self.shown}'")


COMMON_LABELLED = (
    Labelled(("response_a", "response_b"), "rubric", title="Answer", choice="Which answer is better?"),
    Labelled(("response",), "rubric", title="Answer"),
    Labelled("draft", "scored"),
)
"""What people label of a study that declares nothing, if its prompts have such placeholders or it has drafts."""


@runtime_checkable
class HasLabelled(Protocol):
    """A study that says what people label. Where nothing of it fits a unit, they rate its last reply as a whole."""

    labelled: ClassVar[tuple[Labelled, ...]]
    """The first that fits a unit counts."""
