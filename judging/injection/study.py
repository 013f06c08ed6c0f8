"""Can a judge be influenced by the text it judges? Injections are put into responses, and the scores are compared.

    parley run injection --model openai/gpt-6-luna

A response of MALIBU's suite is judged unchanged (clean), with an injection attempt that asks for a score (attack), and
with a harmless text of about the same length in the same place (control), by the prompt of MALIBU's single candidates;
each with the response shown as in the paper (open) and fenced as data. Judges do not see each other's replies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Debate, Models, Readout, seed_from, simultaneous
from parley.agents.text import plural
from parley.judging.config import NameList, call_options
from parley.judging.malibu.ballot import Ballot
from parley.judging.malibu.candidates import FENCED, Shown, candidate, show_candidate
from parley.judging.malibu.panels import load_panel
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import no_one
from parley.judging.study import Facet, Outcome, Prompt, Unit, UsageEstimate
from parley.scenarios import Scenario, load_attempts, load_suite

SINGLE = Prompt.load("malibu/single")
CLEAN, ATTACK, CONTROL = "clean", "attack", "control"


class _Variant(NamedTuple):
    """A response as it is judged: clean, or with an attempt or its control in it; `ask` is the score asked for."""

    kind: str
    attempt: str = ""
    ask: str = ""

    def __str__(self) -> str:
        return "-".join(part for part in (self.attempt, self.ask or self.kind) if part)


class InjectionConfig(BaseModel):
    """Everything that changes the results of an injection run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: NameList = Field(
        [DEFAULT_MODEL], description="judge's model, as provider/model; several models judge the same units"
    )
    responses: int = Field(12, ge=2, description="number of responses to sample, spread over the suite's bases")
    attempts: str = Field("injections-1", description="injection attempts: injections-1, or a .toml file")
    kinds: list[str] | None = Field(None, description="only these kinds of attempts, or attempts by id (default: all)")
    asks: list[int] = Field([10, 0], description="scores that the attempts ask for")
    fence: Literal["both", "open", "fenced"] = Field("both", description="how the response is shown")
    suite: str = Field("full", description="suite that the responses come from, as for malibu")
    rubric: str = Field("four", description="what is scored: four, three, or a .toml file")
    metrics: list[str] | None = Field(None, description="only these metrics of the rubric (default: all)")
    judges: str = Field("temperaments", description="panel: temperaments, demographic, or a .toml file of personas")
    members: int = Field(1, ge=1, description="number of judges of the panel, each judging alone")
    repeats: int = Field(1, ge=1, description="number of times each unit is run (epochs)")
    readout: Readout = Field(
        "sampled", description="read scores as written, or as an expectation (needs log-probabilities)"
    )
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: int = Field(200, ge=16, description="maximum length of one reply, in tokens")
    seed: int = Field(0, description="random seed")


class Injection:
    """How often text in a response changes the score that a judge gives it."""

    name: ClassVar[str] = "injection"
    Config: ClassVar[type[BaseModel]] = InjectionConfig

    def __init__(self, config: InjectionConfig) -> None:
        self.config = config
        if not config.model or len(set(config.model)) < len(config.model):
            raise ConfigError("at least one model is needed, and none may be given twice")
        if not config.asks or len(set(config.asks)) < len(config.asks) or not set(config.asks) <= set(range(11)):
            raise ConfigError("asks must be whole numbers from 0 to 10, each only once")
        self.suite, _ = load_suite(config.suite)
        self.attempts = load_attempts(config.attempts).only(config.kinds)
        self._attempts = {attempt.id: attempt for attempt in self.attempts.attempt}
        self._scenarios = {scenario.id: scenario for scenario in self._sample()}
        self.judges = load_panel(config.judges)[: config.members]
        if len(self.judges) < config.members:
            raise ConfigError(
                f"the panel '{config.judges}' has {plural(len(self.judges), 'member')}, {config.members} were requested"
            )
        self._ballot = Ballot(1, load_rubric(config.rubric).only(config.metrics), 0)
        self._options = call_options(config.max_tokens, config.temperature)
        self._shown = lru_cache(maxsize=4096)(self._show)  # fencing looks for injections, which takes time

    def _sample(self) -> list[Scenario]:
        """Scenarios with responses, from as many bases as possible, in an order given by the seed."""
        by_base: dict[str, list[Scenario]] = {}
        for scenario in self.suite.scenario:
            if scenario.responses:
                by_base.setdefault(scenario.base or scenario.id, []).append(scenario)
        if sum(map(len, by_base.values())) < self.config.responses:
            raise ConfigError(f"{self.config.suite} has fewer than {self.config.responses} scenarios with responses")
        rng = random.Random(seed_from("injection", self.config.seed))
        groups = list(by_base.values())
        rng.shuffle(groups)
        for group in groups:
            rng.shuffle(group)
        longest = max(map(len, groups))
        in_turn = (group[place] for place in range(longest) for group in groups if place < len(group))
        return [next(in_turn) for _ in range(self.config.responses)]

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
        """All units of one response together, models innermost: an interrupted run has complete comparisons."""
        several = len(self.config.model) > 1
        displays = {"both": ("open", "fenced"), "open": ("open",), "fenced": ("fenced",)}[self.config.fence]
        for repeat in range(self.config.repeats):
            for scenario in self._scenarios:
                for display in displays:
                    for variant in self._variants():
                        name = f"{scenario}/{display}/{variant}/r{repeat}"
                        facets = self._facets(scenario, display, variant) | {"repeat": repeat}
                        for model in self.config.model:
                            yield Unit(f"{name}/@{model}" if several else name, facets | {"model": model})

    def _variants(self) -> Iterator[_Variant]:
        yield _Variant(CLEAN)
        for attempt in self._attempts:
            yield _Variant(CONTROL, attempt)
            for ask in self.config.asks:
                yield _Variant(ATTACK, attempt, str(ask))

    def _facets(self, scenario: str, display: str, variant: _Variant) -> dict[str, Facet]:
        return {
            "scenario": scenario,
            "base": self._scenarios[scenario].base,
            "shown": display,
            "variant": variant.kind,
            "attempt": variant.attempt,
            "kind": self._attempts[variant.attempt].kind if variant.attempt else "",
            "ask": variant.ask,
            "flagged": bool(self._shown(scenario, True, variant).flags),
        }

    def _show(self, scenario: str, fenced: bool, variant: _Variant) -> Shown:
        response, _ = self._scenarios[scenario].responses or ("", "")
        if variant.kind == CONTROL:
            response = self._attempts[variant.attempt].control_in(response)
        elif variant.kind == ATTACK:
            verdict = json.dumps(dict.fromkeys(self._ballot.rubric.names, int(variant.ask)))
            response = self._attempts[variant.attempt].in_response(response, int(variant.ask), verdict)
        return show_candidate(response, candidate(), fenced=fenced)

    def task(self, unit: Unit) -> str:
        """The judge's prompt: MALIBU's for a single candidate, without a label."""
        facets = unit.facets
        scenario = str(facets["scenario"])
        variant = _Variant(str(facets["variant"]), str(facets["attempt"]), str(facets["ask"]))
        shown = self._shown(scenario, facets["shown"] == "fenced", variant)
        return SINGLE(
            scenario=self._scenarios[scenario].text,
            candidate=shown.candidate,
            response=shown.response,
            metrics=self._ballot.rubric.text(),
            format=self._ballot.format(),
        )

    def estimate(self, unit: Unit) -> UsageEstimate:
        calls = len(self.judges)
        return UsageEstimate(
            calls=calls,
            prompt_tokens=calls * (len(self.task(unit)) // 4 + 40),  # about four characters per token, and a persona
            completion_tokens=calls * 6 * (1 + len(self._ballot.rubric.metric)),
        )

    async def run(self, unit: Unit, models: Models) -> Outcome:
        debate = Debate(
            self.judges,
            model=models[str(unit.facets["model"])],
            rounds=1,
            order=simultaneous,
            sees=no_one,
            reply_type=self._ballot.reply_type(),
            readout=self.config.readout,
            options=self._options,
            models=models,
        )
        transcript = await debate.converse(self.task(unit))
        expected = self.config.readout == "expected"
        verdicts = [v for turn in transcript.spoken() for v in self._ballot.verdicts(turn, expected=expected)]
        return Outcome(transcript, tuple(verdicts))
