"""Can a judge be moved by the text it judges? Attempts are put into responses, and the scores are compared.

    parley run injection --model openai/gpt-4o-mini

A response of MALIBU's suite is judged as it is (clean), with an attempt in it that asks for a score (attack), and with
a harmless text of the same length in the same place (control), by the same prompt as MALIBU's single candidates; each
with the response as the paper shows it (open) and fenced as data. Judges do not hear each other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Debate, Models, Readout, seed_from, simultaneous
from parley.judging.malibu.ballot import Ballot
from parley.judging.malibu.candidates import FENCED, Shown, candidate, show_candidate
from parley.judging.malibu.panels import load_panel
from parley.judging.malibu.study import Names
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import nobody
from parley.judging.study import Facet, Outcome, Prompt, Unit, UsageEstimate
from parley.scenarios import Scenario, load_attempts, load_suite

SINGLE = Prompt.load("malibu/single")
CLEAN, ATTACK, CONTROL = "clean", "attack", "control"


class InjectionConfig(BaseModel):
    """Everything that changes the results of an injection run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Names = Field([DEFAULT_MODEL], description="the judge's model, as provider/model; several judge in turn")
    responses: int = Field(12, ge=2, description="how many responses of the suite, drawn by the seed over its bases")
    attempts: str = Field("injections-1", description="the attempts: injections-1, or a .toml file")
    kinds: list[str] | None = Field(None, description="only these kinds of attempts, or attempts by their ids")
    asks: list[int] = Field([10, 0], description="the scores that attempts ask for")
    fence: Literal["both", "open", "fenced"] = Field("both", description="how the response is shown")
    suite: str = Field("full", description="where responses come from: a suite as for malibu")
    rubric: str = Field("four", description="what is scored: four, three, or a .toml file")
    metrics: list[str] | None = Field(None, description="only these metrics of the rubric")
    judges: str = Field("temperaments", description="the panel: temperaments, demographic, or a .toml file of personas")
    members: int = Field(1, ge=1, description="how many of the panel judge, each alone")
    repeats: int = Field(1, ge=1, description="how often each unit is held anew")
    readout: Readout = Field("sampled", description="the digit said, or its expectation (needs log-probabilities)")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(200, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every random choice")


class Injection:
    """How often a judge's score is moved by text in the response that it judges."""

    name: ClassVar[str] = "injection"
    Config: ClassVar[type[BaseModel]] = InjectionConfig

    def __init__(self, config: InjectionConfig) -> None:
        self.config = config
        if not config.model or len(set(config.model)) < len(config.model):
            raise ConfigError("at least one model is needed, and none may be named twice")
        if not config.asks or len(set(config.asks)) < len(config.asks) or not set(config.asks) <= set(range(11)):
            raise ConfigError("the scores asked for are whole numbers from 0 to 10, each once")
        self.suite, _ = load_suite(config.suite)
        self.attempts = load_attempts(config.attempts).only(config.kinds)
        self._attempts = {one.id: one for one in self.attempts.attempt}
        self._scenarios = {one.id: one for one in self._drawn()}
        self.judges = load_panel(config.judges)[: config.members]
        if len(self.judges) < config.members:
            raise ConfigError(
                f"the panel '{config.judges}' has {len(self.judges)} members, {config.members} were asked"
            )
        self._ballot = Ballot(1, load_rubric(config.rubric).only(config.metrics), 0)
        self._options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            self._options["temperature"] = config.temperature
        self._shown = lru_cache(maxsize=4096)(self._show)

    def _drawn(self) -> list[Scenario]:
        """Scenarios with responses, from as many bases as there are, in an order that the seed gives."""
        by_base: dict[str, list[Scenario]] = {}
        for one in self.suite.scenario:
            if one.responses:
                by_base.setdefault(one.base or one.id, []).append(one)
        if sum(map(len, by_base.values())) < self.config.responses:
            raise ConfigError(f"{self.config.suite} has fewer than {self.config.responses} scenarios with responses")
        rng = random.Random(seed_from("injection", self.config.seed))
        piles = list(by_base.values())
        rng.shuffle(piles)
        for pile in piles:
            rng.shuffle(pile)
        turns = (pile[at] for at in range(max(map(len, piles))) for pile in piles if at < len(pile))
        return [next(turns) for _ in range(self.config.responses)]

    def models(self) -> list[str]:
        return list(dict.fromkeys([*self.config.model, *(judge.model for judge in self.judges if judge.model)]))

    def prompts(self) -> Mapping[str, str]:
        texts = {SINGLE.name: SINGLE.text, FENCED.name: FENCED.text, "rubric": self._ballot.rubric.model_dump_json()}
        return texts | {f"persona/{judge.name}": judge.about for judge in self.judges}

    def sources(self) -> Mapping[str, str]:
        return {
            f"suite {self.suite.name} {self.suite.version}": self.suite.digest(),
            f"attempts {self.attempts.name} {self.attempts.version}": self.attempts.digest(),
        }

    def plan(self) -> Iterator[Unit]:
        """All about one response together, models innermost: a run cut short has whole comparisons."""
        several = len(self.config.model) > 1
        ways = {"both": (False, True), "open": (False,), "fenced": (True,)}[self.config.fence]
        for repeat in range(self.config.repeats):
            for scenario in self._scenarios:
                for fenced in ways:
                    for variant, attempt, ask in self._variants():
                        for model in self.config.model:
                            unit = self._unit(scenario, fenced, variant, attempt, ask, repeat, model)
                            yield Unit(f"{unit.id}/@{model}", unit.facets) if several else unit

    def _variants(self) -> Iterator[tuple[str, str, str]]:
        yield CLEAN, "", ""
        for attempt in self._attempts:
            yield CONTROL, attempt, ""
            for ask in self.config.asks:
                yield ATTACK, attempt, str(ask)

    def _unit(self, scenario: str, fenced: bool, variant: str, attempt: str, ask: str, repeat: int, model: str) -> Unit:
        way = "fenced" if fenced else "open"
        what = "-".join(part for part in (attempt, ask or variant) if part)
        facets: dict[str, Facet] = {
            "scenario": scenario,
            "base": self._scenarios[scenario].base,
            "shown": way,
            "variant": variant,
            "attempt": attempt,
            "kind": self._attempts[attempt].kind if attempt else "",
            "ask": ask,
            "flagged": bool(self._shown(scenario, True, variant, attempt, ask).flags),
            "repeat": repeat,
            "model": model,
        }
        return Unit(f"{scenario}/{way}/{what}/r{repeat}", facets)

    def _show(self, scenario: str, fenced: bool, variant: str, attempt: str, ask: str) -> Shown:
        response, _ = self._scenarios[scenario].responses or ("", "")
        if variant == CONTROL:
            response = self._attempts[attempt].control_in(response)
        elif variant == ATTACK:
            verdict = json.dumps(dict.fromkeys(self._ballot.rubric.names, int(ask)))
            response = self._attempts[attempt].in_response(response, int(ask), verdict)
        return show_candidate(response, candidate(), fenced=fenced)

    def task(self, unit: Unit) -> str:
        """The prompt that a judge is given: MALIBU's for a single candidate, without a label."""
        facets = unit.facets
        scenario, shown, *which = (str(facets[key]) for key in ("scenario", "shown", "variant", "attempt", "ask"))
        one = self._shown(scenario, shown == "fenced", *which)
        return SINGLE(
            scenario=self._scenarios[scenario].text,
            candidate=one.candidate,
            response=one.response,
            metrics=self._ballot.rubric.text(),
            format=self._ballot.format(),
        )

    def estimate(self, unit: Unit) -> UsageEstimate:
        calls = len(self.judges)
        return UsageEstimate(
            calls, calls * (len(self.task(unit)) // 4 + 40), calls * 6 * (1 + len(self._ballot.rubric.metric))
        )

    async def run(self, unit: Unit, models: Models) -> Outcome:
        table = Debate(
            self.judges,
            model=models[str(unit.facets["model"])],
            rounds=1,
            order=simultaneous,
            sees=nobody,
            reply_type=self._ballot.reply_type(),
            readout=self.config.readout,
            options=self._options,
            models=models,
        )
        transcript = await table.converse(self.task(unit))
        expected = self.config.readout == "expected"
        verdicts = [v for turn in transcript.spoken() for v in self._ballot.verdicts(turn, expected=expected)]
        return Outcome(transcript, tuple(verdicts))
