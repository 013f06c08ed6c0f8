"""MALIBU suites: scenarios with two frozen responses each, from TOML files, shipped or the user's own.

    suite, view = load_suite("quick")

A *base* is a situation in one walk of life with the stereotype that lives there; *scenarios* are derived from it by
varying profession, role and setting. A suite is one TOML file, or a folder of them beside a `suite.toml`. A *view* is
a named part of a shipped suite with settings that suit it: `quick` is for a first look, `full` is the benchmark.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parley.scenarios.errors import ScenarioError, UnknownName

Design = Literal["counterbalanced", "paper"]
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
SHIPPED = "malibu-1"


class Base(BaseModel):
    """A situation, the stereotype it probes (with the categories that concerns), and where that is documented."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id
    domain: str = ""
    text: str
    stereotype: str
    probes: tuple[str, ...] = ()
    source: str = ""


class Scenario(BaseModel):
    """A situation derived from a base, and two answers that are as good as each other (none yet, if just derived)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id
    base: str = ""
    domain: str = ""
    profession: str = ""
    role: str = ""
    setting: str = ""
    text: str
    stereotype: str = ""
    responses: tuple[str, str] | tuple[()] = ()


class Suite(BaseModel):
    """Scenarios that belong together, with their bases, version and hash."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    about: str = ""
    base: tuple[Base, ...] = ()
    scenario: tuple[Scenario, ...] = ()

    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def base_of(self, scenario: Scenario) -> Base | None:
        return next((base for base in self.base if base.id == scenario.base), None)

    def with_scenarios(self, chosen: Sequence[Scenario]) -> Suite:
        return self.model_copy(update={"scenario": tuple(chosen)})

    def only(self, names: Sequence[str] | None = None, per_base: int | None = None) -> Suite:
        """The scenarios named by their own ids or their bases', and at most so many of each base."""
        for name in names or ():
            if not any(name in (scenario.id, scenario.base) for scenario in self.scenario):
                raise UnknownName(
                    f"there is no scenario or base '{name}' among these {len(self.scenario)} of {self.name} "
                    "(parley scenarios list)"
                )
        kept: list[Scenario] = []
        seen: dict[str, int] = {}
        for scenario in self.scenario:
            if names and scenario.id not in names and scenario.base not in names:
                continue
            group = scenario.base or scenario.id
            seen[group] = seen.get(group, 0) + 1
            if per_base is None or seen[group] <= per_base:
                kept.append(scenario)
        return self.with_scenarios(kept)

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(mode="json", by_alias=True, exclude_defaults=True), multiline_strings=True)


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
        SHIPPED,
        "three scenarios, female and male, one comparison each: a few minutes on two cores",
        scenarios=("fitness-desk-worker", "engineering-garage-crack", "childcare-first-morning"),
        identities=("gender",),
        design="paper",
        controls=False,
        personas="last",
        remark_chars=80,
    ),
    "full": View(SHIPPED, "200 scenarios of 20 bases, all identities, four cells a pair, null controls"),
}


def load_suite(name: str) -> tuple[Suite, View]:
    """A shipped view by name, or a suite from a .toml file or a folder with a suite.toml."""
    if name in (*VIEWS, SHIPPED):
        view = VIEWS["full" if name == SHIPPED else name]
        suite = _shipped(view.suite)
        return (suite.only(view.scenarios) if view.scenarios else suite), view
    path = Path(name)
    if path.suffix != ".toml" and not os.path.isdir(path):  # which takes any name, however long
        raise UnknownName(f"unknown suite '{name}' (known: {', '.join(VIEWS)}, or a .toml file, or a folder of them)")
    return read_suite(path), View(name, "the user's own")


@lru_cache(maxsize=2)
def _shipped(name: str) -> Suite:
    return read_suite(Path(str(files("parley.scenarios").joinpath("data", name))))


def read_suite(path: Path) -> Suite:
    """A suite from one file, or from a folder: `suite.toml` says what it is, its neighbours hold the scenarios."""
    parts = [path]
    if path.is_dir():
        head = path / "suite.toml"
        parts = [head, *sorted(part for part in path.glob("*.toml") if part != head)]
    whole: dict[str, Any] = {}
    for part in parts:
        table = _read_toml(part)
        for key in ("base", "scenario"):
            if not isinstance(table.get(key, []), list):
                raise ScenarioError(f"{part}: {key}: write [[{key}]], one for each")
            whole[key] = [*whole.get(key, []), *table.pop(key, [])]
        if table and part is not parts[0]:
            raise ScenarioError(
                f"{part}: only [[base]] and [[scenario]] stand here; '{next(iter(table))}' is suite.toml's"
            )
        whole |= table
    return check_schema(whole, str(path))


def check_schema(table: dict[str, Any], where: str) -> Suite:
    try:
        suite = Suite.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        raise ScenarioError(f"{where}: {_place(first['loc'], table)}: {first['msg']}") from None
    if not suite.scenario and not suite.base:
        raise ScenarioError(f"{where}: no [[scenario]] and no [[base]] in it")
    for kind, rows in (("scenario", suite.scenario), ("base", suite.base)):
        ids = [row.id for row in rows]
        if twice := sorted({one for one in ids if ids.count(one) > 1}):
            raise ScenarioError(f"{where}: {kind} ids stand twice: {', '.join(twice)}")
    bases = {base.id for base in suite.base}
    for scenario in suite.scenario:
        if scenario.base and bases and scenario.base not in bases:
            raise ScenarioError(f"{where}: {scenario.id}: there is no base '{scenario.base}'")
    return suite


def _place(loc: Sequence[int | str], table: dict[str, Any]) -> str:
    """Where a fault is, with the scenario's own id where it has one."""
    place = ".".join(map(str, loc))
    if len(loc) > 1 and isinstance(loc[1], int):
        row = table[str(loc[0])][loc[1]]
        if isinstance(row, dict) and row.get("id"):
            place += f" ({row['id']})"
    return place


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: nested too deeply for a suite") from None
