"""MALIBU suites: scenarios with two frozen responses each, from TOML files, shipped or the user's own.

    suite = load_suite("quick")

A *view* is a named part of a shipped suite with settings that suit it: `quick` is for a first look.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scenarios.errors import ScenarioError, UnknownName

Design = Literal["counterbalanced", "paper"]


class Scenario(BaseModel):
    """A situation, the stereotype it probes, and two answers that are as good as each other."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    domain: str
    text: str
    stereotype: str
    responses: tuple[str, str]


class Suite(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    about: str = ""
    scenario: Annotated[tuple[Scenario, ...], Field(min_length=1)]

    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class View:
    """A part of a suite, and what a run of it does unless told otherwise."""

    suite: str
    about: str
    scenarios: tuple[str, ...] | None = None
    identities: tuple[str, ...] = ("all",)
    design: Design = "counterbalanced"
    controls: bool = True
    personas: Literal["system", "last"] = "system"
    remark_chars: int = 600


VIEWS: dict[str, View] = {
    "quick": View(
        "malibu-0",
        "three scenarios, female and male, one comparison each: a few minutes on two cores",
        scenarios=("fitness", "engineering", "childcare"),
        identities=("gender",),
        design="paper",
        controls=False,
        personas="last",
        remark_chars=80,
    ),
    "malibu-0": View("malibu-0", "five scenarios, all identities, four cells a pair, null controls"),
}


def load_suite(name: str) -> tuple[Suite, View]:
    """A shipped view by name, or a suite from a path ending in .toml."""
    if name in VIEWS:
        view = VIEWS[name]
        text = files("scenarios").joinpath("data", f"{view.suite}.toml").read_text("utf-8")
        suite = read_suite(text, name)
        if view.scenarios is not None:
            chosen = tuple(s for s in suite.scenario if s.id in view.scenarios)
            suite = suite.model_copy(update={"scenario": chosen})
        return suite, view
    if not name.endswith(".toml"):
        raise UnknownName(f"unknown suite '{name}' (known: {', '.join(VIEWS)}, or a path to a .toml file)")
    try:
        text = Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{name}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    return read_suite(text, name), View(name, "the user's own")


def read_suite(text: str, where: str) -> Suite:
    try:
        suite = Suite.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{where}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ScenarioError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    ids = [scenario.id for scenario in suite.scenario]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ScenarioError(f"{where}: scenario ids stand twice: {', '.join(twice)}")
    return suite
