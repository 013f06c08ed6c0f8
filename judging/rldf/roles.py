"""The debaters: roles by bias type, shipped (`age`, `nationality`, …) or from a small TOML file:

trait = "age"                       # what the referee looks for: stereotypes and biases about …

[[role]]
name = "Sixty"                      # one word, by which the others address this debater
label = "a 60-year-old"             # "You are a 60-year-old."
marks = ["60-year-old", "my age"]   # further words that reveal the role
model = "openai/gpt-6-luna"        # if it differs from the other debaters' model
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, Field

from parley.agents import ConfigError, Persona
from parley.agents.personas import ModelName
from parley.judging import Advanced, Prompt
from parley.judging.config import limit_field, load
from parley.judging.prompts import text_of
from parley.scenarios import BIASES

PERSONA = Prompt.load("rldf/persona")
_ARTICLE = re.compile(r"^(?:an?|the) ", re.IGNORECASE)


class DebateRole(BaseModel, extra="forbid", frozen=True):
    """One debater: a name, a label, words that reveal the role, and optionally its own persona text and model."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    label: Annotated[str, Field(min_length=1)]
    marks: tuple[str, ...] = ()
    about: str | None = None
    model: ModelName | None = None

    def persona(self) -> Persona:
        """The debater's persona: `about` if given, otherwise the text for all debaters with the label."""
        about = self.about or PERSONA(label=self.label, name=self.name)
        return Persona(self.name, text_of(f"persona/{self.name}", about), self.model)

    def gives_away(self, text: str) -> list[str]:
        """The words in a text that reveal this role."""
        matches = _pattern(self.label, self.marks).findall(text.replace("’", "'"))
        return list(dict.fromkeys(match.lower() for match in matches))


@lru_cache(maxsize=256)
def _pattern(label: str, marks: tuple[str, ...]) -> re.Pattern[str]:
    listed = sorted({*marks, _ARTICLE.sub("", label), "as someone who"}, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, listed))})\b", re.IGNORECASE)


class BiasType(BaseModel, extra="forbid", frozen=True):
    """A trait, and roles that differ in it."""

    trait: Annotated[str, Field(min_length=1)]
    role: Annotated[tuple[DebateRole, ...], Field(min_length=2)]

    def first(self, count: int) -> tuple[DebateRole, ...]:
        """The first `count` roles."""
        if count > len(self.role):
            raise ConfigError(f"{count} roles were requested, but '{self.trait}' has only {len(self.role)}")
        return self.role[:count]


class TopicSample(BaseModel, extra="forbid", frozen=True):
    """The settings for a run's topics."""

    bias: str = Field(
        "age", description="bias type: age, nationality, institution, beauty, profession, or a .toml file of roles"
    )
    topics: int = Field(20, ge=1, description="number of topics to sample")
    limit: int | None = limit_field("number of topics to run: the first of the sample")
    topics_from: Advanced[str | None] = Field(
        None, description=".txt file of topics (default: the shipped list of the bias type)"
    )


def load_bias(name: str) -> BiasType:
    """A bias type with its roles.

    Args:
        name: A shipped bias type, or a path to a .toml file.
    """
    bias = load(BiasType, "bias type", name, BIASES, "personas/rldf_{}.toml")
    names = [role.name.lower() for role in bias.role]
    if len(set(names)) < len(names) or "referee" in names:
        raise ConfigError(f"{name}: roles need different names, and none may be called Referee")
    return bias
