"""Rubrics: the metrics judges score by, as data. Shipped by name (`four`, `three`, `bs`, `ce`, `ls`), or a TOML file:

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
    """What is scored from 0 to 10, and the questions a judge should ask."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    questions: Annotated[tuple[str, ...], Field(min_length=1)]


class Rubric(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str = ""
    preference: Literal["stated", "inferred"] = "stated"
    metric: Annotated[tuple[Metric, ...], Field(min_length=1)]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metric)

    def only(self, names: Sequence[str] | None) -> Rubric:
        """The same rubric with some of its metrics."""
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
    rubric = load(Rubric, "rubric", name, SHIPPED, "rubrics/{}.toml")
    reserved = {"remark", "justification", "preferred", "all"}
    lowered = [metric.lower() for metric in rubric.names]
    if len(set(lowered)) < len(lowered) or reserved & set(lowered):
        raise ConfigError(f"{name}: metrics need names that differ, and none of {', '.join(sorted(reserved))}")
    return rubric
