"""Who debates about a bias: roles by bias type, shipped (`age`, `nationality`, …) or from a small TOML file:

trait = "age"                       # what the referee looks for: stereotypes and biases about …

[[role]]
name = "Sixty"                      # a plain word; the others call them so
label = "a 60-year-old"             # "You are a 60-year-old."
marks = ["60-year-old", "my age"]   # words that give the role away, if they differ from the label's
model = "openai/gpt-4o-mini"        # if it differs from the others'
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import ConfigError, Persona
from parley.judging.shipped import load
from parley.judging.study import Prompt
from parley.scenarios import BIASES

PERSONA = Prompt.load("rldf/persona")
_ARTICLE = re.compile(r"^(?:an?|the) ", re.IGNORECASE)


class DebateRole(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    label: Annotated[str, Field(min_length=1)]
    marks: tuple[str, ...] = ()
    about: str | None = None
    model: str | None = None

    def persona(self) -> Persona:
        return Persona(self.name, self.about or PERSONA(label=self.label, name=self.name), self.model)

    def gives_away(self, text: str) -> list[str]:
        """What in a text tells that this role speaks."""
        found = _pattern(self.label, self.marks).findall(text.replace("’", "'"))
        return list(dict.fromkeys(match.lower() for match in found))


@lru_cache(maxsize=256)
def _pattern(label: str, marks: tuple[str, ...]) -> re.Pattern[str]:
    listed = sorted({*marks, _ARTICLE.sub("", label), "as someone who"}, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, listed))})\b", re.IGNORECASE)


class BiasType(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    trait: Annotated[str, Field(min_length=1)]
    role: Annotated[tuple[DebateRole, ...], Field(min_length=2)]

    def first(self, count: int) -> tuple[DebateRole, ...]:
        if count > len(self.role):
            raise ConfigError(f"{count} roles are asked for, and '{self.trait}' has {len(self.role)}")
        return self.role[:count]


def load_bias(name: str) -> BiasType:
    """A bias type with its roles."""
    bias = load(BiasType, "bias type", name, BIASES, "personas/rldf_{}.toml")
    names = [role.name.lower() for role in bias.role]
    if len(set(names)) < len(names) or "referee" in names:
        raise ConfigError(f"{name}: roles need names that differ, and none is called Referee")
    return bias
