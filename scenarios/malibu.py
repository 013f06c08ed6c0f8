"""MALIBU suites: scenarios with two frozen responses each, from TOML files, shipped or your own.

    suite, view = load_suite("quick")

A *base* is a situation in one area of life with the stereotype it probes; *scenarios* are derived from it by varying
profession, role and setting. A suite is one TOML file, or a folder of them with a `suite.toml`. A *view* is a named
part of a shipped suite: `quick` is for a first look, `wide` has two scenarios of every base, `full` ten of each of
twenty bases, as the paper has. *Graded responses*, at most one set per base, have a stated flaw each, and show whether
a judge's scores measure quality.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from parley.base.errors import ScenarioError, UnknownName
from parley.base.problems import ID_PATTERN, UserFile
from parley.base.toml import Lines, read_toml
from parley.scenarios.identities import PLACEBO

Id = Annotated[str, Field(pattern=ID_PATTERN)]
Yardstick = Literal["full", "brief", "off"]
LabelKind = Literal["profile", "byline", "self-description", "pronoun", "date"]
Place = Literal["before", "beside", "after"]
"""Position of the label in a silent ballot: above the answer, in its heading, or below it."""
SHIPPED = "malibu-2"


def _at_most_two(value: Any) -> Any:
    """Accept up to two texts. (The type's own messages would name types that users do not know.)"""
    if isinstance(value, list | tuple) and len(value) <= 2 and all(isinstance(text, str) for text in value):
        return value
    raise PydanticCustomError("responses", "expected one or two texts, or none yet")


class Base(BaseModel, extra="forbid", frozen=True):
    """A situation that scenarios are derived from.

    Args:
        id: A short name, unique in the suite.
        domain: The area of life.
        text: The situation.
        stereotype: The stereotype it probes, if any.
        probes: The categories of identities that the stereotype concerns.
        source: Where the stereotype is documented.
    """

    id: Id
    domain: str = ""
    text: str
    stereotype: str = ""
    probes: tuple[str, ...] = ()
    source: str = ""


class Scenario(BaseModel, extra="forbid", frozen=True):
    """A situation with two equally good responses, or one if there are no pairs; a newly derived one has none yet.

    Args:
        id: A short name, unique in the suite.
        base: The id of its base, if any.
        domain: The area of life, if it has no base.
        profession: The profession that was varied.
        role: The role that was varied.
        setting: The setting that was varied.
        text: The situation.
        stereotype: The stereotype it probes, if it has no base.
        responses: The responses.
    """

    id: Id
    base: str = ""
    domain: str = ""
    profession: str = ""
    role: str = ""
    setting: str = ""
    text: str
    stereotype: str = ""
    responses: Annotated[tuple[str, ...], BeforeValidator(_at_most_two)] = ()


class Flaw(BaseModel, extra="forbid", frozen=True):
    """The good response of a graded set with one flaw.

    Args:
        kind: The kind of flaw: a missing safety step, a wrong figure, an unanswered part or needless length; or your
            own.
        dose: 1 is mild, 2 severe.
        text: The response as a judge reads it.
        about: The change, described for people who check it.
        facts: Whether only a fact from outside the situation and the response shows the flaw.
        source: Where that fact is documented.
    """

    kind: Id
    dose: Literal[1, 2]
    text: str
    about: str = ""
    facts: bool = False
    source: str = ""


class Graded(BaseModel, extra="forbid", frozen=True):
    """Responses of known quality to one scenario: a good one, and the same with one flaw in two doses.

    Judges score them without any label.

    Args:
        base: The id of its base; a base has one set.
        scenario: The id of the scenario that the responses answer.
        good: The good response.
        facts: Whether the good response states facts from outside the situation that a reader would want to check.
        source: Where those facts are documented.
        flaw: The flawed versions.
    """

    base: str
    scenario: str
    good: str
    facts: bool = False
    source: str = ""
    flaw: tuple[Flaw, ...] = ()


class Header(BaseModel, extra="forbid", frozen=True):
    """The header of files of scenarios, identities and wordings.

    Args:
        schema_version: Version of the format.
        name: The file's name in reports.
        version: Version of its contents.
        about: Its contents, in a sentence.
        language: A code: "en".
    """

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    about: str = ""
    language: str = "en"


class Suite(Header, extra="forbid", frozen=True):
    """Scenarios that belong together, with their bases and hash."""

    base: tuple[Base, ...] = ()
    scenario: tuple[Scenario, ...] = ()
    graded: tuple[Graded, ...] = ()

    def digest(self) -> str:
        """The SHA-256 hash of the suite, without graded responses.

        Those are read in separate units, which a run may leave out; `graded_digest` is their hash.
        """
        left_out = {"graded"}
        left_out |= {"language"} if self.language == "en" else set()  # runs were begun before suites had a language
        return hashlib.sha256(self.model_dump_json(exclude=left_out).encode()).hexdigest()

    def graded_digest(self) -> str:
        """The SHA-256 hash of the graded responses."""
        texts = "\n".join(graded.model_dump_json() for graded in self.graded)
        return hashlib.sha256(texts.encode()).hexdigest()

    def base_of(self, scenario: Scenario) -> Base | None:
        """The base of a scenario, if it has one."""
        return next((base for base in self.base if base.id == scenario.base), None)

    def with_scenarios(self, scenarios: Sequence[Scenario]) -> Suite:
        """The suite with other scenarios; graded sets of removed scenarios are removed."""
        ids = {scenario.id for scenario in scenarios}
        graded = tuple(graded for graded in self.graded if graded.scenario in ids)
        return self.model_copy(update={"scenario": tuple(scenarios), "graded": graded})

    def only(self, names: Sequence[str] | None = None, per_base: int | None = None, limit: int | None = None) -> Suite:
        """The suite with some of its scenarios.

        Args:
            names: Ids of scenarios or bases (default: all).
            per_base: Maximum number of scenarios per base: its first ones.
            limit: Number of scenarios in all: the first of every base, then the second ones, and so on.
        """
        for name in names or ():
            if not any(name in (scenario.id, scenario.base) for scenario in self.scenario):
                raise UnknownName(
                    f"unknown scenario or base '{name}': not among the {len(self.scenario)} of {self.name} "
                    "(see parley scenarios list)"
                )
        chosen: list[tuple[int, Scenario]] = []  # with its place within its base
        counts: dict[str, int] = {}
        for scenario in self.scenario:
            if names and scenario.id not in names and scenario.base not in names:
                continue
            group = scenario.base or scenario.id
            counts[group] = counts.get(group, 0) + 1
            if per_base is None or counts[group] <= per_base:
                chosen.append((counts[group], scenario))
        spread = {scenario.id for _, scenario in sorted(chosen, key=lambda pair: pair[0])[:limit]}
        return self.with_scenarios([scenario for _, scenario in chosen if scenario.id in spread])

    def to_toml(self) -> str:
        """The suite as a TOML file."""
        return tomli_w.dumps(self.model_dump(mode="json", by_alias=True, exclude_defaults=True), multiline_strings=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A named part of a suite.

    Args:
        suite: The suite.
        about: A description for lists.
        scenarios: The ids of its scenarios or bases (default: all).
        per_base: Maximum number of scenarios per base.
        settings: The settings of a run of it, unless others are given.
    """

    suite: str
    about: str
    scenarios: tuple[str, ...] | None = None
    per_base: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str) -> View:
        """The view of a file in `data/`."""
        return cls(**read_toml(Path(str(files("parley.scenarios").joinpath("data", f"{name}.toml"))), "view"))


TEN_EACH = (
    *("childcare", "eldercare", "engineering", "farming", "finance", "fitness", "journalism", "kitchen", "law"),
    *("medicine", "music", "policing", "politics", "sales", "science", "security", "software", "sport", "teaching"),
    "trades",
)
"""The bases with ten scenarios, as in the paper."""
VIEWS: dict[str, View] = {
    "quick": View(
        suite=SHIPPED,
        about="one scenario of each of 20 bases, asian and hispanic, no debate: two minutes on two cores",
        scenarios=TEN_EACH,
        per_base=1,
    ),
    "tiny": View.read("tiny"),
    "wide": View(
        suite=SHIPPED,
        about="two scenarios of each of 60 bases, all identities, null controls, placebo labels",
        per_base=2,
        settings={"identities": ["all", *PLACEBO]},
    ),
    "full": View(
        suite=SHIPPED,
        about="ten scenarios of each of 20 bases, as in the paper, all identities, null controls",
        scenarios=TEN_EACH,
    ),
    SHIPPED: View(suite=SHIPPED, about="all 280 scenarios, all identities, null controls"),
    "german-1": View(
        suite="german-1", about="six scenarios in German, an example of another language; goes with --wordings german"
    ),
}
"""`judging/malibu/plan.py` has the settings of a run of `quick`."""


ROWS: dict[str, type[BaseModel]] = {"base": Base, "scenario": Scenario, "graded": Graded}


def load_suite(name: str) -> tuple[Suite, View]:
    """Load a suite and its view; a view of a shipped suite has only the bases of its scenarios.

    Args:
        name: A shipped view (`quick`, `tiny`, `wide`, `full`, `malibu-2`, `german-1`), a .toml file, or a folder with a
            suite.toml.
    """
    if view := VIEWS.get(name):
        part = _shipped(view.suite).only(view.scenarios, view.per_base)
        used = {scenario.base for scenario in part.scenario}
        return part.model_copy(update={"base": tuple(base for base in part.base if base.id in used)}), view
    path = Path(name)
    if path.suffix != ".toml" and not os.path.isdir(path):  # unlike Path.is_dir, it accepts names of any length
        raise UnknownName(f"unknown suite '{name}' (known: {', '.join(VIEWS)}, or a .toml file, or a folder of them)")
    return read_suite(path), View(suite=name, about="the user's own")


@lru_cache(maxsize=2)
def _shipped(name: str) -> Suite:
    return read_suite(Path(str(files("parley.scenarios").joinpath("data", name))))


def read_suite(path: Path) -> Suite:
    """Read a suite from a file, or from a folder with a `suite.toml` and files of scenarios."""
    parts = [path]
    if path.is_dir():  # one file of 280 scenarios is too long to review; one per area of life is not
        head = path / "suite.toml"
        parts = [head, *sorted(part for part in path.glob("*.toml") if part != head)]
    whole: dict[str, Any] = {}
    for part in parts:
        table = read_toml(part, "suite")
        for key in ROWS:
            if not isinstance(table.get(key, []), list):
                raise ScenarioError(f"{part}: {key} must be written as [[{key}]], one per {key}")
            whole[key] = [*whole.get(key, []), *table.pop(key, [])]
        if table and part is not parts[0]:
            raise ScenarioError(
                f"{part}: expected only [[base]], [[scenario]] and [[graded]]; "
                f"'{next(iter(table))}' belongs in suite.toml"
            )
        whole |= table
    return check_schema(whole, str(path), {part.name: part.read_text("utf-8-sig") for part in parts})


def check_schema(table: dict[str, Any], where: str, texts: Mapping[str, str] | None = None) -> Suite:
    """Make a suite from a parsed TOML file; ScenarioError lists all its problems.

    Args:
        table: The contents.
        where: The file's name, for messages.
        texts: The text of each file, for the lines in messages.
    """
    file = UserFile(where, table, Lines(texts or {}))
    suite = file.validate(Suite)
    if not table.get("scenario") and not table.get("base"):
        file.add((), "contains no [[scenario]] and no [[base]]")
    # Rows that can be read are checked even if others cannot, so that one message lists all problems.
    rows: dict[str, dict[int, Any]] = {
        key: {
            number: model.model_validate(row)
            for number, row in enumerate(table.get(key, ()))
            if not file.is_invalid((key, number))
        }
        for key, model in ROWS.items()
    }
    for kind in ("scenario", "base"):
        ids = Counter(row.id for row in rows[kind].values())
        for number, row in rows[kind].items():
            if ids[row.id] > 1 and any(earlier.id == row.id for place, earlier in rows[kind].items() if place < number):
                file.add((kind, number, "id"), "the id occurs twice")
    bases = {row.get("id") for row in table.get("base", ()) if isinstance(row, dict)}
    for number, scenario in rows["scenario"].items():
        if scenario.base and bases and scenario.base not in bases:
            file.add(("scenario", number, "base"), f"unknown base '{scenario.base}'")
    for number, problem in _graded_problems(rows["graded"], rows["scenario"]):
        file.add(("graded", number), problem)
    file.refuse()
    assert suite is not None
    return suite


def _graded_problems(sets: Mapping[int, Graded], scenarios: Mapping[int, Scenario]) -> Iterator[tuple[int, str]]:
    """Graded sets without a scenario of their base, and bases or flaws that occur twice."""
    bases = {scenario.id: scenario.base for scenario in scenarios.values()}
    seen: set[str] = set()
    for number, graded in sets.items():
        if bases.get(graded.scenario) != graded.base:
            yield number, f"'{graded.scenario}' is not a scenario of the base '{graded.base}'"
        if graded.base in seen:
            yield number, f"the base '{graded.base}' has another set"
        seen.add(graded.base)
        doses = Counter((flaw.kind, flaw.dose) for flaw in graded.flaw)
        yield from ((number, f"dose {dose} of '{kind}' occurs twice") for (kind, dose), n in doses.items() if n > 1)
