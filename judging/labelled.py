"""What of a unit people read and score (`parley export RUN --format csv`): a study declares it as it does its measures.

labelled = (Labelled(("letter",), ("warmth",), "How warm is it, from 1 to 5?"),)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from parley.agents import ConfigError

Shown = Literal["draft", "first", "last", "statements"]


@dataclass(frozen=True, slots=True)
class Labelled:
    """What people read of a unit, and what they score.

    Args:
        shown: Where the texts are. Names of the prompt's placeholders: ("response",), or ("response_a", "response_b")
            for a pair. Or replies: the "first" or the "last", the last accepted "draft" of a loop, or all "statements"
            that have a verdict on the metrics.
        metrics: The metrics of the judges' verdicts that people score too; (): all that have a number.
        question: What people are asked; {bias} stands for the unit's facet `bias`. "": the metrics with their scales.
    """

    shown: Shown | tuple[str, ...]
    metrics: tuple[str, ...] = ()
    question: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.shown, str) and self.shown not in get_args(Shown):
            allowed = ", ".join(get_args(Shown))
            raise ConfigError(f"Labelled shows {allowed}, or fields such as ('{self.shown}',), not '{self.shown}'")


COMMON_LABELLED = (
    Labelled(("response_a", "response_b"), ("preferred",), "preferred: which answer is better, A, B or tie?"),
    Labelled(("response",)),
    Labelled("draft"),
)
"""What people score of a study that declares nothing, if its prompts have such placeholders or it has drafts."""
