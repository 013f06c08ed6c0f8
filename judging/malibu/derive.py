"""Derives scenarios from a base by varying profession, role and setting.

    parley scenarios derive fitness --count 5 --model openai/gpt-4o-mini --to mine.toml

One conversation a base: the writer sees what it has written, and is told why a scenario was refused (too long or
short, an identity named, too near to one that is there).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Models
from parley.judging.study import Accepted, Outcome, Prompt, Unit, UsageEstimate
from parley.judging.writing import write, writer
from parley.scenarios import (
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


class DeriveConfig(BaseModel):
    """Everything that changes which scenarios are derived."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str = Field("full", description="where the bases are: full, a .toml file, or a folder of them")
    bases: list[str] | None = Field(None, description="the bases to derive from (default: all of the suite's)")
    count: int = Field(10, ge=1, le=100, description="new scenarios for each base")
    model: str = Field(DEFAULT_MODEL, description="the writer's model, as provider/model")
    tries: int = Field(3, ge=1, le=20, description="replies for each wanted scenario, at most")
    near: float = Field(0.6, gt=0, le=1, description="likeness from which two scenarios count as the same")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(400, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every random choice")


class Derived(BaseModel):
    profession: str
    role: str
    setting: str
    scenario: str


class Derive:
    """New scenarios for MALIBU, derived from a base by varying profession, role and setting."""

    name: ClassVar[str] = "malibu-derive"
    Config: ClassVar[type[BaseModel]] = DeriveConfig

    def __init__(self, config: DeriveConfig) -> None:
        self.config = config
        self.suite = load_suite(config.suite)[0]
        known = {base.id: base for base in self.suite.base}
        if not known:
            raise ConfigError(f"{config.suite} has no [[base]] to derive from")
        for name in config.bases or ():
            if name not in known:
                raise UnknownName(f"there is no base '{name}' in {config.suite} (known: {', '.join(known)})")
        self._bases: dict[str, Base] = {name: known[name] for name in config.bases or known}

    def models(self) -> list[str]:
        return [self.config.model]

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in PROMPTS.values()} | {"persona/Writer": writer().about}

    def sources(self) -> Mapping[str, str]:
        return {f"suite {self.suite.name} {self.suite.version}": self.suite.digest()}

    def plan(self) -> Iterator[Unit]:
        for base in self._bases:
            yield Unit(f"derive/{base}", {"base": base})

    def estimate(self, unit: Unit) -> UsageEstimate:
        count = self.config.count
        return UsageEstimate(count, count * 260 + sum(range(count)) * 120, count * 110)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        config = self.config
        base = self._bases[str(unit.facets["base"])]
        here = [scenario for scenario in self.suite.scenario if scenario.base == base.id]
        texts = [base.text, *(scenario.text for scenario in here)]
        places = {_place(scenario.profession, scenario.setting) for scenario in here}

        def check(reply: BaseModel | None) -> list[str]:
            assert isinstance(reply, Derived), "the writer's replies are read as Derived"
            problems = self._problems(reply, texts, places)
            if not problems:
                texts.append(reply.scenario)
                places.add(_place(reply.profession, reply.setting))
            return problems

        def then(problems: list[str]) -> str:
            key = "derive_again" if problems else "derive_more"
            return PROMPTS[key](problems="; ".join(problems))

        options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            options |= {"temperature": config.temperature}
        listed = "; ".join(f"{one.profession}, {one.setting}" for one in here if one.profession)
        return await write(
            PROMPTS["derive"](
                base=base.text,
                domain=base.domain or base.id,
                there=f"It differs from those that are there already: {listed}." if listed else "",
            ),
            Derived,
            model=config.model,
            models=models,
            check=check,
            then=then,
            wanted=config.count,
            tries=config.count * config.tries,
            options=options,
        )

    def _problems(self, reply: Derived, texts: list[str], places: set[str]) -> list[str]:
        found = []
        length = len(words(reply.scenario))
        if not TEXT_WORDS[0] <= length <= TEXT_WORDS[1]:
            found.append(f"the scenario has {length} words ({TEXT_WORDS[0]} to {TEXT_WORDS[1]} are asked)")
        if named := identity_words(" ".join((reply.profession, reply.role, reply.setting, reply.scenario))):
            found.append(f"it names an identity: {', '.join(dict.fromkeys(named))}")
        if _place(reply.profession, reply.setting) in places:
            found.append("there is one with this profession and setting already")
        elif any(self._near(reply.scenario, text) for text in texts):
            found.append("it is too near to one that is there already")
        return found

    def _near(self, one: str, other: str) -> bool:
        return similarity(one, other) >= self.config.near or any(shared_runs({"one": one, "other": other}))

    def harvest(self, accepted: Iterable[Accepted]) -> Suite:
        """A suite of the bases and what was derived from them, responses still to be written."""
        taken = {scenario.id for scenario in self.suite.scenario}
        kept: list[Scenario] = []
        for one in accepted:
            base, new = str(one.facets["base"]), Derived.model_validate(one.reply)
            if any(self._near(new.scenario, other.text) for other in kept):  # two bases were held at once
                continue
            name = _free_name(f"{base}-{_slug(new.profession)}", taken)
            taken.add(name)
            kept.append(
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
            scenario=tuple(kept),
        )


def _place(profession: str, setting: str) -> str:
    return " ".join(words(f"{profession} | {setting}"))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "scenario"


def _free_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name
