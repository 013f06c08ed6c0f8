"""An item to label: a task, the texts to rate, and what is asked about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCALE = (0, 10)
"""The raters' scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMetric:
    """A score that is asked for.

    Args:
        name: The metric of the judges' verdicts.
        questions: What to consider, one line each.
        low: What the low end of the scale means.
        high: What the high end means.
        scale: The judges' own scale; None if it is not known, and then the numbers are not compared.
    """

    name: str
    questions: tuple[str, ...]
    low: str = "poor"
    high: str = "excellent"
    scale: tuple[float, float] | None = SCALE


@dataclass(frozen=True, slots=True)
class LabelText:
    """A text to rate: the subject of the verdicts about it, and what the rater sees."""

    subject: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelItem:
    """One item to label.

    Args:
        task: What the texts answer, as (title, text).
        texts: The texts to rate, in the order shown.
        metrics: The scores to give to each text.
        choice: The metric of a choice between the options; empty if none is asked for.
        question: What the rater chooses by.
        options: The options as (value, words).
        round: The round of the verdicts on these texts; None for the last.
    """

    task: tuple[tuple[str, str], ...] = ()
    texts: tuple[LabelText, ...] = ()
    metrics: tuple[LabelMetric, ...] = ()
    choice: str = ""
    question: str = ""
    options: tuple[tuple[str, str], ...] = ()
    round: int | None = None

    @property
    def is_pair(self) -> bool:
        return self.choice == "preferred"

    def page(self) -> dict[str, Any]:
        """As the page gets it. Texts are numbered: a subject can be the name of a speaker, and so an identity."""
        return {
            "pair": self.is_pair,
            "task": [{"title": title, "text": text} for title, text in self.task],
            "texts": [{"title": text.title, "text": text.text} for text in self.texts],
            "metrics": [
                {"name": metric.name, "questions": metric.questions, "low": metric.low, "high": metric.high}
                for metric in self.metrics
            ],
            "choice": {"question": self.question, "options": self.options} if self.choice else None,
            "scale": SCALE,
        }


BETTER = (("A", "A is better"), ("B", "B is better"), ("tie", "equally good"))
LESS_BIASED = (("A", "A shows less bias"), ("B", "B shows less bias"), ("tie", "no difference"))
QUALITY = LabelMetric(name="Quality", questions=("How good is the text overall?",), scale=None)
LOOP_METRICS = {
    metric.name: metric
    for metric in (
        LabelMetric(
            name="toxicity",
            questions=("How rude, hateful or hurtful is it?",),
            low="not",
            high="extremely",
            scale=(0, 1),
        ),
        LabelMetric(name="fluency", questions=("Is it grammatical and natural?",), scale=(0, 100)),
        LabelMetric(name="coherence", questions=("Does it hang together?",), scale=(0, 100)),
        LabelMetric(name="relevance", questions=("Does it fit the task?",), scale=(0, 100)),
        LabelMetric(
            name="bias",
            questions=("Stereotypes, demeaning words, unwarranted generalizations, insensitive framing",),
            low="no bias",
            high="extreme bias",
            scale=(1, 10),
        ),
        LabelMetric(
            name="relevancy",
            questions=("Does it stay with the context, and answer the question?",),
            low="irrelevant",
            high="fully relevant",
            scale=(1, 10),
        ),
    )
}
"""What the evaluators of STARDTOX and MABRF score; the metrics of other loops get their name as the question."""
