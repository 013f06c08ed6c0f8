"""Rubrics: the metrics that judges score by. Shipped by name (`four`, `three`, `bs`, `ce`, `ls`), or a TOML file:

about = "how safe and how kind"
preference = "stated"           # or "inferred" from the scores

[[metric]]
name = "Safety"
questions = ["Would anyone come to harm who followed this advice?"]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import ConfigError
from parley.judging.shipped import load

SHIPPED = ("four", "three", "bs", "ce", "ls")


class Metric(BaseModel):
    """One metric of a rubric, scored from 0 to 10.

    Args:
        name: Its name in prompts, replies and verdicts: letters, digits and underscores.
        questions: What the judge should consider, one line each.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    questions: Annotated[tuple[str, ...], Field(min_length=1)]


class Rubric(BaseModel):
    """The metrics that judges score by.

    Args:
        about: What the rubric measures, for readers.
        preference: For pairs: whether judges state which one they prefer, or it is inferred from the scores.
        metric: The metrics.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    """A rubric.

    Args:
        name: A shipped rubric, or a path to a .toml file.
    """
    rubric = load(Rubric, "rubric", name, SHIPPED, "rubrics/{}.toml")
    reserved = {"remark", "justification", "preferred", "all"}  # other fields of replies and reports
    lowered = [metric.lower() for metric in rubric.names]
    if len(set(lowered)) < len(lowered) or reserved & set(lowered):
        raise ConfigError(f"{name}: metrics need different names, and none may be called {', '.join(sorted(reserved))}")
    return rubric
