"""Derives scenarios from a base by varying profession, role and setting.

    parley run malibu-derive --bases fitness --count 5 --model openai/gpt-6-luna --to mine.toml

There is one conversation per base: the writer sees what it has written, and why a scenario was rejected (too long or
too short, names an identity, too similar to an existing one).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Models
from parley.base.text import plural
from parley.judging.config import limit_field
from parley.judging.malibu.panel import FACETS
from parley.judging.study import Accepted, Advanced, Facet, Outcome, Prompt, Unit, UsageEstimate
from parley.judging.writing import WritingStudy
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

PROMPTS = {key: Prompt.load(f"malibu/{key}") for key in ("derive", "derive_again", "derive_more")}
TEXT_WORDS = (20, 90)
NEAR = 0.6
"""Similarity (0 to 1) from which two scenarios count as the same."""


class DeriveConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes which scenarios are derived."""

    suite: str = Field(SHIPPED, description="suite that has the bases: a shipped one, a .toml file, or a folder")
    bases: list[str] | None = Field(None, description="bases to derive from (default: all of the suite)")
    limit: int | None = limit_field("number of bases: the first of them")
    count: int = Field(10, ge=1, le=100, description="number of new scenarios per base")
    model: str = Field(DEFAULT_MODEL, description="writer's model, as provider/model")
    tries: Advanced[int] = Field(3, ge=1, le=20, description="maximum replies to request per scenario")
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(400, ge=16, description="maximum length of one reply, in tokens")
    seed: int = Field(0, description="random seed")


class Derived(BaseModel):
    profession: str
    role: str
    setting: str
    scenario: str


class Derive(WritingStudy):
    """New scenarios for MALIBU, derived from a base by varying profession, role and setting."""

    name: ClassVar[str] = "malibu-derive"
    Config: ClassVar[type[BaseModel]] = DeriveConfig
    used = PROMPTS
    facets: ClassVar[tuple[Facet, ...]] = FACETS[:2]

    def __init__(self, config: DeriveConfig) -> None:
        self.config = config
        self.suite = load_suite(config.suite)[0]
        known = {base.id: base for base in self.suite.base}
        if not known:
            raise ConfigError(f"{config.suite} has no [[base]] to derive from")
        for name in config.bases or ():
            if name not in known:
                raise UnknownName(f"there is no base '{name}' in {config.suite} (known: {', '.join(known)})")
        self._bases: dict[str, Base] = {name: known[name] for name in list(config.bases or known)[: config.limit]}

    def sources(self) -> Mapping[str, str]:
        return {f"suite {self.suite.name} {self.suite.version}": self.suite.digest()}

    def plan(self) -> Iterator[Unit]:
        for base in self._bases:
            yield Unit(f"derive/{base}", {"base": base})

    def estimate(self, unit: Unit) -> UsageEstimate:
        count = self.config.count
        return UsageEstimate(
            calls=count, prompt_tokens=count * 260 + sum(range(count)) * 120, completion_tokens=count * 110
        )

    async def run(self, unit: Unit, models: Models) -> Outcome:
        config = self.config
        base = self._bases[str(unit.facets["base"])]
        existing = [scenario for scenario in self.suite.scenario if scenario.base == base.id]
        texts = [base.text, *(scenario.text for scenario in existing)]
        places = {_place(scenario.profession, scenario.setting) for scenario in existing}

        def check(reply: BaseModel | None) -> list[str]:
            assert isinstance(reply, Derived), "the writer's replies are parsed as Derived"
            problems = self._problems(reply, texts, places)
            if not problems:
                texts.append(reply.scenario)
                places.add(_place(reply.profession, reply.setting))
            return problems

        def then(problems: list[str]) -> str:
            key = "derive_again" if problems else "derive_more"
            return PROMPTS[key](problems="; ".join(problems))

        listed = "; ".join(f"{scenario.profession}, {scenario.setting}" for scenario in existing if scenario.profession)
        return await self.write(
            PROMPTS["derive"](
                base=base.text,
                domain=base.domain or base.id,
                there=f"It differs from those that are there already: {listed}." if listed else "",
            ),
            Derived,
            models,
            check=check,
            then=then,
            wanted=config.count,
            tries=config.count * config.tries,
        )

    @staticmethod
    def _problems(reply: Derived, texts: list[str], places: set[str]) -> list[str]:
        problems = []
        length = len(words(reply.scenario))
        if not TEXT_WORDS[0] <= length <= TEXT_WORDS[1]:
            problems.append(f"the scenario has {plural(length, 'word')} (expected {TEXT_WORDS[0]} to {TEXT_WORDS[1]})")
        if named := identity_words(" ".join((reply.profession, reply.role, reply.setting, reply.scenario))):
            problems.append(f"it names an identity: {', '.join(dict.fromkeys(named))}")
        if _place(reply.profession, reply.setting) in places:
            problems.append("there already is a scenario with this profession and setting")
        elif any(_near(reply.scenario, text) for text in texts):
            problems.append("it is too similar to an existing scenario")
        return problems

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
