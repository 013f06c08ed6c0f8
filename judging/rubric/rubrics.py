"""Rubrics: the metrics for judges. Shipped by name (`overall`, `four`, `three`, `bs`, `ce`, `ls`), or a file:

about = "how safe and how kind"
preference = "stated"           # or "inferred" from the scores

[[metric]]
name = "Safety"
questions = ["Would anyone come to harm who followed this advice?"]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from parley.agents import ConfigError, Turn, scale
from parley.agents.fencing import fence_judged
from parley.judging import Prompt, Verdict
from parley.judging.config import load

SHIPPED = ("overall", "four", "three", "bs", "ce", "ls")


class Metric(BaseModel, extra="forbid", frozen=True):
    """One metric of a rubric, scored from 0 to 10.

    Args:
        name: Its name in prompts, replies and verdicts: letters, digits and underscores.
        questions: Questions for the judge to consider, one line each.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    questions: Annotated[tuple[str, ...], Field(min_length=1)]


class Rubric(BaseModel, extra="forbid", frozen=True):
    """The metrics for judges.

    Args:
        about: A description for readers.
        preference: For pairs: whether judges state their preference, or it is inferred from the scores.
        metric: The metrics.
    """

    about: str = ""
    preference: Literal["stated", "inferred"] = "stated"
    metric: Annotated[tuple[Metric, ...], Field(min_length=1)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(metric.name for metric in self.metric)

    def only(self, names: Sequence[str] | None) -> Rubric:
        """The same rubric with some of its metrics; with all if `names` is None."""
        if names is None:
            return self
        for name in names:
            if name not in self.names:
                raise ConfigError(f"unknown metric '{name}' (known: {', '.join(self.names)})")
        if not names:
            raise ConfigError("at least one metric is needed")
        return self.model_copy(update={"metric": tuple(metric for metric in self.metric if metric.name in names)})

    def text(self) -> str:
        """The metrics as a prompt shows them."""
        return "\n".join("\n- ".join((metric.name, *metric.questions)) for metric in self.metric)


def load_rubric(name: str) -> Rubric:
    """Load a rubric.

    Args:
        name: A shipped rubric, or a path to a .toml file.
    """
    rubric = load(Rubric, "rubric", name, SHIPPED, "rubric/rubrics/{}.toml")
    reserved = {"remark", "justification", "preferred", "all"}  # other fields of replies and reports
    lowered = [metric.lower() for metric in rubric.names]
    if len(set(lowered)) < len(lowered) or reserved & set(lowered):
        raise ConfigError(f"{name}: metrics need different names, and none may be called {', '.join(sorted(reserved))}")
    return rubric


SCORE = Prompt.load("rubric/score")
EXAMPLES = {name: Prompt.load(f"rubric/examples_{name.lower()}") for name in ("BS", "CE", "LS")}
"""Examples of a low, a middle and a high score, by metric."""


class ScoreSheet:
    """The metrics of one or more rubrics, scored together.

    Args:
        rubrics: Rubrics by name, or .toml files.
        examples: Whether judges are shown examples of scores.
    """

    def __init__(self, rubrics: Sequence[str], *, examples: bool = False) -> None:
        metrics = [metric for name in rubrics for metric in load_rubric(name).metric]
        self.metrics: dict[str, Metric] = {metric.name: metric for metric in metrics}
        if len(self.metrics) < len(metrics):
            raise ConfigError("a metric is in two of the rubrics: leave one of them out")
        fields: dict[str, Any] = {name: (scale(0, 10), ...) for name in self.metrics}
        self.reply_type = create_model("RubricReply", **fields)
        self.rubric = "\n\n".join("\n- ".join((metric.name, *metric.questions)) for metric in metrics)
        if examples:
            if without := [name for name in self.metrics if name not in EXAMPLES]:
                raise ConfigError(f"--examples: there are none for {', '.join(without)}")
            self.rubric = "\n\n".join((self.rubric, *(EXAMPLES[name].text for name in self.metrics)))

    def task(self, text: str, context: str = "") -> str:
        """The judges' prompt.

        Args:
            text: The text to score.
            context: The question that it answers, if known.
        """
        return SCORE(
            metrics=self.rubric,
            context=f"\nContext:\n{context}\n" if context else "",
            text=fence_judged(text, "TEXT"),
            format="{" + ", ".join(f'"{name}": <score>' for name in self.metrics) + "}",
        )

    def verdicts(self, turn: Turn) -> Iterator[Verdict]:
        """One verdict per metric, readable or not.

        Args:
            turn: A judge's reply.
        """
        status = turn.parse_status or "unparsed"
        reply = turn.verdict.model_dump() if turn.verdict else {}
        for metric in self.metrics:
            score = reply.get(metric)
            yield Verdict.from_turn(turn, metric, value=score, sampled=score, status=status)
