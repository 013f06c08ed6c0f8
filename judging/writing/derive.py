"""Derives scenarios from a base by varying profession, role and setting.

    parley run malibu-derive --bases fitness --count 5 --model openai/gpt-6-luna --to mine.toml

There is one conversation per base: the writer sees what it has written, and why a scenario was rejected (too long,
too short, names an identity, too similar to another one).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import BaseModel, Field

from parley.agents import ConfigError
from parley.judging.config import limit_field
from parley.judging.study import Accepted, Written
from parley.judging.writing.study import (
    MORE,
    Assignment,
    Check,
    ScenarioCell,
    WriterConfig,
    WritingStudy,
    length_problem,
    prompts,
    written_suite,
)
from parley.scenarios import (
    SHIPPED,
    Base,
    Scenario,
    Suite,
    UnknownName,
    identity_words,
    load_suite,
    shared_runs,
    similarity,
    words,
)

TEXT_WORDS = (20, 90)
NEAR = 0.6
"""Similarity (0 to 1) from which two scenarios count as the same."""


class DeriveConfig(WriterConfig, frozen=True):
    """All settings that change the derived scenarios."""

    suite: str = Field(SHIPPED, description="suite that has the bases: a shipped one, a .toml file, or a folder")
    bases: list[str] | None = Field(None, description="bases to derive from (default: all of the suite)")
    limit: int | None = limit_field("number of bases: the first of them")
    count: int = Field(10, ge=1, le=100, description="number of new scenarios per base")


class Derived(BaseModel):
    profession: str
    role: str
    setting: str
    scenario: str


class Derive(WritingStudy):
    """New scenarios for MALIBU, derived from a base by varying profession, role and setting."""

    name = "malibu-derive"
    Config = DeriveConfig
    Cell = ScenarioCell
    used = prompts("malibu/derive", MORE)
    reply = Derived

    def __init__(self, config: DeriveConfig) -> None:
        self.config: DeriveConfig = config
        self.suite = load_suite(config.suite)[0]
        bases = {base.id: base for base in self.suite.base}
        if not bases:
            raise ConfigError(f"{config.suite} has no [[base]] to derive from")
        for name in config.bases or ():
            if name not in bases:
                raise UnknownName(f"there is no base '{name}' in {config.suite} (known: {', '.join(bases)})")
        self._bases: dict[str, Base] = {name: bases[name] for name in list(config.bases or bases)[: config.limit]}

    def sources(self) -> Mapping[str, str]:
        return {f"suite {self.suite.name} {self.suite.version}": self.suite.digest()}

    def cells(self) -> Iterator[tuple[str, ScenarioCell]]:
        yield from ((f"derive/{name}", ScenarioCell(base=name)) for name in self._bases)

    def assignment(self, cell: ScenarioCell) -> Assignment:
        base = self._bases[cell.base]
        there = [scenario for scenario in self.suite.scenario if scenario.base == base.id]
        listed = "; ".join(f"{scenario.profession}, {scenario.setting}" for scenario in there if scenario.profession)
        values = {
            "base": base.text,
            "domain": base.domain or base.id,
            "there": f"It differs from those that are there already: {listed}." if listed else "",
        }
        return Assignment(values=values, check=_check(base, there), wanted=self.config.count)

    def written(self, accepted: Iterable[Accepted]) -> Written:
        return written_suite(self.harvest(accepted))

    def harvest(self, accepted: Iterable[Accepted]) -> Suite:
        """A suite of the bases and the derived scenarios, without responses yet."""
        taken = {scenario.id for scenario in self.suite.scenario}
        scenarios: list[Scenario] = []
        for item in accepted:
            base, new = str(item.facets["base"]), Derived.model_validate(item.reply)
            # Bases run concurrently, so two of them may have led to the same scenario.
            if any(_near(new.scenario, other.text) for other in scenarios):
                continue
            name = _free_name(f"{base}-{_slug(new.profession)}", taken)
            taken.add(name)
            scenarios.append(
                Scenario(
                    id=name,
                    base=base,
                    profession=new.profession.strip(),
                    role=new.role.strip(),
                    setting=new.setting.strip(),
                    text=new.scenario.strip(),
                )
            )
        return Suite(
            schema=1,
            name=f"{self.suite.name}-derived",
            version="1",
            about=f"Derived by {self.config.model} from {self.suite.name} {self.suite.version}.",
            base=tuple(self._bases.values()),
            scenario=tuple(scenarios),
        )


def _check(base: Base, there: Sequence[Scenario]) -> Check:
    """Make a check that remembers the scenarios of a base and those that it accepted."""
    texts = [base.text, *(scenario.text for scenario in there)]
    places = {_place(scenario.profession, scenario.setting) for scenario in there}

    def check(reply: Derived) -> list[str]:
        place = _place(reply.profession, reply.setting)
        problems = [*length_problem("the scenario", len(words(reply.scenario)), *TEXT_WORDS)]
        if named := identity_words(" ".join((reply.profession, reply.role, reply.setting, reply.scenario))):
            problems.append(f"it names an identity: {', '.join(dict.fromkeys(named))}")
        if place in places:
            problems.append("there already is a scenario with this profession and setting")
        elif any(_near(reply.scenario, text) for text in texts):
            problems.append("it is too similar to an existing scenario")
        if not problems:
            texts.append(reply.scenario)
            places.add(place)
        return problems

    return check


def _near(text: str, other: str) -> bool:
    return similarity(text, other) >= NEAR or any(shared_runs({"text": text, "other": other}))


def _place(profession: str, setting: str) -> str:
    return " ".join(words(f"{profession} | {setting}"))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "scenario"


def _free_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name
