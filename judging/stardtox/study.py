"""STARDTOX on RealToxicityPrompts: sentences completed by several methods, and measured at every iteration.

    parley run stardtox --data prompts.jsonl --sets moderate,high --prompts 100 --completions 25

A unit is one completion of one prompt by one method. Its verdicts hold the toxicity (by which scorer, of which version)
and the judged fluency, coherence and relevance of every draft; the round is the iteration, 0 being the first draft.
An item that is not revised any more keeps its last scores in the later iterations (`parley.analysis.stardtox.scores`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Models, require_next_token_probabilities, seed_from
from parley.judging.methods import read_settings
from parley.judging.stardtox.method import CompletionContext
from parley.judging.stardtox.registry import METHODS_OF_STARDTOX
from parley.judging.stardtox.team import load_team
from parley.judging.study import Facet, Outcome, Unit, UsageEstimate
from parley.scenarios.rtp import HUB, Rtp, RtpRow, draw, load, load_hub

Names = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class StardtoxConfig(BaseModel):
    """Everything that changes the results."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: str = Field(HUB, description="RealToxicityPrompts as a .jsonl file, or hub (Hugging Face)")
    sets: Names = Field(
        ["moderate", "high"], description="prompts by their toxicity: moderate [0.5, 0.6], high [0.8, 1]"
    )
    prompts: int = Field(100, ge=1, description="prompts drawn of each set")
    completions: int = Field(25, ge=1, description="completions of each prompt")
    model: Names = Field([DEFAULT_MODEL], description="the model under test, as provider/model; several in turn")
    method: Names = Field(
        ["default", "fairness-prompt", "stardtox", "stardtox-no-performance"],
        description="how sentences are completed; also self-debias-gen, or your own as file.py:Class",
    )
    settings: list[str] = Field([], description="settings of the methods, as key=value")
    judge: str | None = Field(None, description="the judges' model (default: the model under test)")
    scorer: str | None = Field(None, description="the toxicity scorer (default: the team's, embedded)")
    team: str = Field("stardtox", description="the evaluators: stardtox, or a .toml file of your own")
    without: Names = Field([], description="evaluators of the team that are left out altogether")
    criteria: Names = Field([], description="other thresholds of the coordinator, as 'toxicity < 0.05'")
    max_iterations: int = Field(2, ge=0, description="revisions of a draft, at most")
    temperature: float | None = Field(None, ge=0, le=2, description="of the generator (default: the model's own)")
    max_tokens: int = Field(40, ge=1, description="length of a completion, at most")
    judge_tokens: int = Field(160, ge=16, description="length of a judge's reply, at most")
    seed: int = Field(0, description="of the sample and of every call")


class StardtoxStudy:
    """Completions of RealToxicityPrompts, criticised and revised."""

    name: ClassVar[str] = "stardtox"
    Config: ClassVar[type[BaseModel]] = StardtoxConfig

    def __init__(self, config: StardtoxConfig) -> None:
        self.config = config
        self.team = load_team(config.team).with_scorer(config.scorer).without(config.without).asking(config.criteria)
        if not self.team.evaluators:
            raise ConfigError("every evaluator was left out: nothing would be measured")
        self.team.check_scorers()
        self.methods = METHODS_OF_STARDTOX.make(config.method, read_settings(config.settings))
        for method in self.methods.values():
            self.team.without(list(method.ignores))
            if method.needs_next_tokens:
                for model in config.model:
                    require_next_token_probabilities(model, method.name)
        for what, names in (("set", config.sets), ("model", config.model)):
            if len(set(names)) < len(names):
                raise ConfigError(f"a {what} is named twice")
        self.rtp: Rtp = load_hub() if config.data == HUB else load(config.data)
        self._rows: dict[str, tuple[RtpRow, ...]] = {
            name: tuple(draw(self.rtp.rows, name, config.prompts, config.seed)) for name in config.sets
        }
        self._by_id = {row.id: row for rows in self._rows.values() for row in rows}

    def models(self) -> list[str]:
        judges = [self.config.judge] if self.config.judge else []
        return list(dict.fromkeys([*self.config.model, *judges, *self.team.models()]))

    def prompts(self) -> Mapping[str, str]:
        used = {name: text for method in self.methods.values() for name, text in method.prompts().items()}
        rules = "\n".join(f"{score} {rule}" for score, rule in self.team.criteria.items())
        return used | self.team.prompts() | {"criteria": rules}

    def sources(self) -> Mapping[str, str]:
        return self.rtp.sources

    def plan(self) -> Iterator[Unit]:
        """Sets, methods and models stand innermost, so that a run cut short has the same prompts of all of them."""
        several = len(self.config.model) > 1
        for at in range(self.config.prompts):
            for completion in range(self.config.completions):
                for name, rows in self._rows.items():
                    for method in self.methods:
                        for model in self.config.model:
                            unit = f"{name}/{rows[at].id}/c{completion}/{method}"
                            facets: dict[str, Facet] = {
                                "set": name,
                                "prompt": rows[at].id,
                                "completion": completion,
                                "method": method,
                                "model": model,
                                "iterations": self.methods[method].drafts(self.config.max_iterations) - 1,
                            }
                            yield Unit(f"{unit}/@{model}" if several else unit, facets)

    def estimate(self, unit: Unit) -> UsageEstimate:
        """At most: as if every draft were revised as often as it may be."""
        drafts = self.methods[str(unit.facets["method"])].drafts(self.config.max_iterations)
        judges = sum(one.about is not None for one in self.team.evaluators)
        opening = len(self._by_id[str(unit.facets["prompt"])].text) // 4 + 80
        heard = sum(range(drafts)) * (self.config.max_tokens + 120)
        read = drafts * (opening + judges * (opening + 150)) + heard
        return UsageEstimate(drafts * (1 + judges), read, drafts * (self.config.max_tokens + judges * 60))

    async def run(self, unit: Unit, models: Models) -> Outcome:
        config, facets = self.config, unit.facets
        row, model = self._by_id[str(facets["prompt"])], str(facets["model"])
        # The same for all methods: where a model honours seeds, the loops begin with the default's very draft.
        options: dict[str, Any] = {"seed": seed_from(config.seed, row.id, facets["completion"])}
        judge_options = {**options, "max_tokens": config.judge_tokens}
        options["max_tokens"] = config.max_tokens
        if config.temperature is not None:
            options["temperature"] = config.temperature
        context = CompletionContext(
            models[model], models, self.team, config.judge or model, options, judge_options, config.max_iterations
        )
        transcript = await self.methods[str(facets["method"])].complete(row, context)
        return Outcome(transcript, tuple(self.team.verdicts(transcript)))
