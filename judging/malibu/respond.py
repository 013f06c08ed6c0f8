"""Writes response pairs for scenarios: same procedure, small differences of wording, no identity given away.

    parley scenarios respond mine.toml --model openai/gpt-4o-mini --to mine-full.toml

A pair that breaks a rule of `parley.scenarios.checks` (length, balance, likeness, identity words) is refused, and the
writer is told why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from parley.agents import DEFAULT_MODEL, Models
from parley.judging.study import Accepted, Outcome, Prompt, Unit, UsageEstimate
from parley.judging.writing import write, writer
from parley.scenarios import Rules, Suite, check_pair, load_suite

PROMPTS = {key: Prompt.load(f"malibu/{key}") for key in ("respond", "respond_again")}
_RULES = Rules()


class RespondConfig(BaseModel):
    """Everything that changes which responses are written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str = Field("full", description="a shipped suite (quick, full), a .toml file, or a folder of them")
    model: str = Field(DEFAULT_MODEL, description="the writer's model, as provider/model")
    scenarios: list[str] | None = Field(None, description="only these, by their ids or their bases'")
    per_base: int | None = Field(None, ge=1, description="at most so many scenarios of each base")
    anew: bool = Field(False, description="write for scenarios that have responses, too")
    tries: int = Field(4, ge=1, le=20, description="how often a refused pair is asked for again, at most")
    min_words: int = Field(_RULES.min_words, ge=1, description="length of a response, at least")
    max_words: int = Field(_RULES.max_words, ge=1, description="length of a response, at most")
    alike: float = Field(_RULES.alike, ge=0, le=1, description="likeness of the two, at least")
    copied: float = Field(_RULES.copied, ge=0, le=1, description="likeness of the two, at most")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(900, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every random choice")

    @model_validator(mode="after")
    def _can_be_met(self) -> RespondConfig:
        if self.min_words > self.max_words or self.alike > self.copied:
            raise ValueError("no pair can meet these rules: min_words above max_words, or alike above copied")
        return self


class ResponsePair(BaseModel):
    response_1: str
    response_2: str

    def texts(self) -> tuple[str, str]:
        return self.response_1.strip(), self.response_2.strip()


class Respond:
    """Response pairs for scenarios: the same procedure in other words, no identity given away."""

    name: ClassVar[str] = "malibu-respond"
    Config: ClassVar[type[BaseModel]] = RespondConfig

    def __init__(self, config: RespondConfig) -> None:
        self.config = config
        self.suite = load_suite(config.suite)[0].only(config.scenarios, config.per_base)
        self.rules = Rules(
            min_words=config.min_words, max_words=config.max_words, alike=config.alike, copied=config.copied
        )
        self._scenarios = {one.id: one for one in self.suite.scenario if config.anew or not one.responses}

    def models(self) -> list[str]:
        return [self.config.model]

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in PROMPTS.values()} | {"persona/Writer": writer().about}

    def sources(self) -> Mapping[str, str]:
        return {f"suite {self.suite.name} {self.suite.version}": self.suite.digest()}

    def plan(self) -> Iterator[Unit]:
        for scenario in self._scenarios.values():
            yield Unit(f"respond/{scenario.id}", {"scenario": scenario.id, "base": scenario.base})

    def estimate(self, unit: Unit) -> UsageEstimate:
        return UsageEstimate(1, 330, 340)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        config = self.config
        scenario = self._scenarios[str(unit.facets["scenario"])]
        options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            options |= {"temperature": config.temperature}
        return await write(
            PROMPTS["respond"](scenario=scenario.text, low=config.min_words, high=config.max_words),
            ResponsePair,
            model=config.model,
            models=models,
            check=lambda reply: (
                check_pair(reply.texts(), self.rules) if isinstance(reply, ResponsePair) else ["no pair"]
            ),
            then=lambda problems: PROMPTS["respond_again"](problems="; ".join(problems)),
            wanted=1,
            tries=config.tries,
            options=options,
        )

    def harvest(self, accepted: Iterable[Accepted]) -> Suite:
        """The suite with the accepted pairs in place; a scenario whose pairs were all refused has none."""
        written = {str(one.facets["scenario"]): ResponsePair.model_validate(one.reply).texts() for one in accepted}
        return self.suite.with_scenarios(
            [
                one.model_copy(update={"responses": written.get(one.id, () if self.config.anew else one.responses)})
                for one in self.suite.scenario
            ]
        )
