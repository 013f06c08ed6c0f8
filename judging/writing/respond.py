"""Writes response pairs for scenarios: same procedure, small differences in wording, no hint of an identity.

    parley run malibu-respond --suite mine.toml --model openai/gpt-6-luna --to mine-full.toml

A pair that breaks a rule of `parley.scenarios.checks` (length, balance, similarity, identity words) is rejected, and
the next request says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import ConfigError
from parley.judging.config import limit_field
from parley.judging.study import Accepted, Advanced, Written
from parley.judging.writing.study import Assignment, ScenarioCell, WriterConfig, WritingStudy, prompts, written_suite
from parley.scenarios import Rules, Scenario, Suite, check_pair, load_suite

RULES = Rules()


class RespondConfig(WriterConfig, frozen=True):
    """All settings that change the written responses."""

    suite: str = Field("full", description="shipped suite (quick, tiny, wide, full), a .toml file, or a folder")
    scenarios: list[str] | None = Field(None, description="only these scenarios, by id or base (default: all)")
    per_base: int | None = Field(None, ge=1, description="maximum number of scenarios per base (default: all)")
    limit: int | None = limit_field("number of scenarios in all, from as many bases as possible")
    anew: bool = Field(False, description="also write for scenarios that have responses")
    tries: ClassVar[int] = 4
    max_tokens: Advanced[int] = Field(900, ge=16, description="maximum length of one reply, in tokens")


class ResponsePair(BaseModel):
    response_1: str
    response_2: str

    def texts(self) -> tuple[str, str]:
        return self.response_1.strip(), self.response_2.strip()


class Respond(WritingStudy):
    """Response pairs for scenarios: the same procedure in other words, no hint of an identity."""

    name = "malibu-respond"
    Config = RespondConfig
    Cell = ScenarioCell
    used = prompts("malibu/respond")
    reply = ResponsePair

    def __init__(self, config: RespondConfig) -> None:
        self.config: RespondConfig = config
        self.suite = load_suite(config.suite)[0].only(config.scenarios, config.per_base, config.limit)
        self._scenarios = {
            scenario.id: scenario for scenario in self.suite.scenario if config.anew or not scenario.responses
        }
        if not self._scenarios:
            raise ConfigError(f"nothing to write: every scenario of {config.suite} has responses; --anew replaces them")

    def sources(self) -> Mapping[str, str]:
        return {f"suite {self.suite.name} {self.suite.version}": self.suite.digest()}

    def cells(self) -> Iterator[tuple[str, ScenarioCell]]:
        for scenario in self._scenarios.values():
            yield f"respond/{scenario.id}", ScenarioCell(base=scenario.base, scenario=scenario.id)

    def assignment(self, cell: ScenarioCell) -> Assignment:
        situation = self._scenarios[cell.scenario or ""].text
        values = {"scenario": situation, "low": RULES.min_words, "high": RULES.max_words}
        return Assignment(values=values, check=lambda pair: check_pair(pair.texts(), RULES))

    def written(self, accepted: Iterable[Accepted]) -> Written:
        return written_suite(self.harvest(accepted))

    def harvest(self, accepted: Iterable[Accepted]) -> Suite:
        """The suite with the accepted pairs; a scenario whose pairs were all rejected has no responses."""
        written: dict[str, tuple[str, ...]] = {
            str(item.facets["scenario"]): ResponsePair.model_validate(item.reply).texts() for item in accepted
        }

        def responses(scenario: Scenario) -> tuple[str, ...]:
            return written.get(scenario.id, () if self.config.anew else scenario.responses)

        return self.suite.with_scenarios(
            [scenario.model_copy(update={"responses": responses(scenario)}) for scenario in self.suite.scenario]
        )
