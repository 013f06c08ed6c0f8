"""Can a judge be influenced by the text it judges? Injections are put into responses, and the scores are compared.

    parley run injection --model openai/gpt-6-luna
    parley run injection --model openai/gpt-6-luna --judged-by malibu,referee

A response of MALIBU's suite is judged unchanged (clean), with an injection attempt that asks for a score (attack), and
with a harmless text of about the same length in the same place (control). Only the text differs: each judge is asked as
in its own study. MALIBU's judges see it as in the paper (open) and fenced as data, RLDF's blind referee always fenced.
Both score from 0 to 10, and judges do not see each other's replies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Models, Persona, Readout, seed_from
from parley.agents.fencing import instruction_kinds
from parley.base.text import plural
from parley.judging.config import NameList, as_list, call_options, limit_field, require_each_once
from parley.judging.malibu import paper
from parley.judging.malibu.panel import FENCED, Ballot, Panel, load_panel
from parley.judging.rldf import referee
from parley.judging.rldf.roles import load_bias
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.study import REPEAT, Advanced, Facet, FacetValue, Measure, Outcome, Unit
from parley.scenarios import Scenario, load_attempts, load_suite

CLEAN, ATTACK, CONTROL = "clean", "attack", "control"
LOWEST, HIGHEST = 0, 10


class InjectionConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes the results of an injection run."""

    model: NameList = Field(
        [DEFAULT_MODEL], description="judge's model, as provider/model; several models judge the same units"
    )
    judged_by: Annotated[list[Literal["malibu", "referee"]], as_list] = Field(
        ["malibu"],
        description="who reads the responses: MALIBU's judges (malibu), RLDF's blind referee (referee), or both",
    )
    responses: int = Field(12, ge=2, description="number of responses to sample, spread over the suite's bases")
    limit: int | None = limit_field("number of responses to run: the first of the sample")
    attempts: Advanced[str] = Field("injections-1", description="injection attempts: injections-1, or a .toml file")
    kinds: Advanced[list[str] | None] = Field(
        None, description="only these kinds of attempts, or attempts by id (default: all)"
    )
    asks: Advanced[list[int] | None] = Field(
        None, description="scores that the attempts ask for, from 0 to 10 (default: 10,0)"
    )
    fence: Literal["both", "open", "fenced"] = Field(
        "both",
        description="how malibu's judges see the response: as it is (open), fenced, or both ways; the referee always "
        "sees it fenced",
    )
    suite: Advanced[str] = Field("full", description="suite that the responses come from, as for malibu")
    rubric: Advanced[str] = Field("four", description="what malibu's judges score: four, three, or a .toml file")
    metrics: Advanced[list[str] | None] = Field(
        None, description="only these metrics of malibu's rubric (default: all)"
    )
    judges: str = Field(
        "temperaments", description="malibu's panel: temperaments, demographic, or a .toml file of personas"
    )
    members: int = Field(1, ge=1, description="number of judges of malibu's panel, each judging alone")
    repeats: int = Field(1, ge=1, description="number of times each unit is run (epochs)")
    readout: Advanced[Readout] = Field(
        "sampled", description="read scores as written, or as an expectation (needs log-probabilities)"
    )
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(200, ge=16, description="maximum length of one reply, in tokens")
    seed: int = Field(0, description="random seed")


class MalibuJudges:
    """MALIBU's judges of single candidates, without a label."""

    wanted: ClassVar[int] = HIGHEST
    """The end of the scale that the author of a text wants."""
    displays: ClassVar[tuple[str, ...]] = ("open", "fenced")
    """How it can see a response."""

    def __init__(self, config: InjectionConfig) -> None:
        panel = load_panel(config.judges)
        if len(panel) < config.members:
            has = plural(len(panel), "member")
            raise ConfigError(f"--members {config.members}: the panel '{config.judges}' has only {has}")
        self.judges, self._rubric = panel[: config.members], load_rubric(config.rubric).only(config.metrics)
        self._panel = Panel(
            judges=self.judges,
            ballots={1: Ballot(1, self._rubric, 0)},
            rounds=1,
            speaking_order="fixed",
            reasons_first=False,
            readout=config.readout,
            options=call_options(config.max_tokens, config.temperature),
            seed=config.seed,
        )

    def prompts(self) -> dict[str, str]:
        """The prompts by name."""
        used = {prompt.name: prompt.text for prompt in (paper.PROMPTS["single"], FENCED)}
        return used | {"rubric": self._rubric.model_dump_json()}

    def reply(self, score: int) -> str:
        """A reply that gives this score throughout, for attempts that contain one."""
        return json.dumps(dict.fromkeys(self._rubric.names, score))

    def task(self, scenario: Scenario, shown: str) -> str:
        """The prompt about the scenario's first response."""
        return paper.task(replace(self._panel, fence=shown == "fenced"), {"phase": 1, "identity": ""}, scenario)

    async def judge(self, scenario: Scenario, shown: str, model: str, models: Models) -> Outcome:
        """Their scores of the scenario's first response."""
        unit = Unit("", {"phase": 1, "identity": "", "model": model})
        return await paper.judge(replace(self._panel, fence=shown == "fenced"), unit, scenario, models)


class BlindReferee:
    """RLDF's blind referee. The scenario is the topic; the scenario's other response is the second statement."""

    wanted: ClassVar[int] = LOWEST
    displays: ClassVar[tuple[str, ...]] = ("fenced",)

    def __init__(self, config: InjectionConfig) -> None:
        bias = load_bias("age")
        self._names, self._trait, self._readout = tuple(role.name for role in bias.first(2)), bias.trait, config.readout
        self._options = call_options(config.max_tokens, config.temperature)
        self.judges = [Persona(referee.AGAIN, referee.referee_persona().about)]

    def prompts(self) -> dict[str, str]:
        """The prompts by name."""
        return {prompt.name: prompt.text for prompt in (referee.BLIND, referee.STATEMENTS)}

    def reply(self, score: int) -> str:
        """A reply that gives this score throughout."""
        ranks = {name: rank for rank, name in enumerate(self._names, 1)}
        return json.dumps({"scores": dict.fromkeys(self._names, score), "ranks": ranks})

    def task(self, scenario: Scenario, shown: str) -> str:
        """What it reads, and what it is asked."""
        statements = zip(self._names, scenario.responses, strict=True)
        asked = referee.blind_instruction(self._names, self._trait)
        return f"{referee.blind_task(scenario.text, statements)}\n{asked}"

    async def judge(self, scenario: Scenario, shown: str, model: str, models: Models) -> Outcome:
        """Its score of the scenario's first response."""
        statements = list(zip(self._names, scenario.responses, strict=True))
        transcript = await referee.read_blind(
            self.judges[0],
            model,
            scenario.text,
            statements,
            trait=self._trait,
            models=models,
            readout=self._readout,
            options=self._options,
        )
        (turn,) = transcript.spoken()
        report = referee.report_verdicts(turn, self._names, judge=referee.AGAIN)
        return Outcome(transcript, tuple(v for v in report if v.metric == "bias" and v.subject == self._names[0]))


Judge = MalibuJudges | BlindReferee
JUDGES: Mapping[str, type[Judge]] = {"malibu": MalibuJudges, "referee": BlindReferee}


class _Variant(NamedTuple):
    """A response as it is judged: clean, or with an attempt or its control in it; `ask` is the score asked for."""

    kind: str
    attempt: str = ""
    ask: str = ""

    def __str__(self) -> str:
        return "-".join(part for part in (self.attempt, self.ask or self.kind) if part)


@lru_cache(maxsize=4096)
def is_flagged(text: str) -> bool:
    """Whether a text is flagged as an instruction, which no judge is told.

    The patterns were written for web pages and find 2 of our 28 attempts; they were not tuned on the set that measures
    them.
    """
    return bool(instruction_kinds(text))


class Injection:
    """How often text in a response changes the score that a judge gives it."""

    name: ClassVar[str] = "injection"
    Config: ClassVar[type[BaseModel]] = InjectionConfig
    arms: ClassVar[tuple[str, ...]] = ("variant",)
    measures: ClassVar[tuple[Measure, ...]] = (Measure("", "score"),)
    facets: ClassVar[tuple[Facet, ...]] = (
        Facet("base", "text", title="{}"),
        Facet("scenario", "text", title="{}"),
        Facet("attempt", title="{}"),
        Facet("variant", title="{}", silent=ATTACK, words={CLEAN: "no attempt", CONTROL: "harmless control"}),
        Facet("ask", title="asks for {}", label="score asked for"),
        Facet("shown", title="{}"),
        Facet("judged_by", title="judged by {}"),
        REPEAT,
        Facet("kind", "varied"),
        Facet("model", "varied"),
        *(Facet(name, "technical") for name in ("lowest", "highest", "wanted")),
    )

    def __init__(self, config: InjectionConfig) -> None:
        self.config = config
        require_each_once(model=config.model, judged_by=config.judged_by)
        self.judges: dict[str, Judge] = {name: JUDGES[name](config) for name in config.judged_by}
        asks, scale = config.asks, range(LOWEST, HIGHEST + 1)
        if asks is not None and (not asks or len(set(asks)) < len(asks) or not set(asks) <= set(scale)):
            raise ConfigError(f"--asks must be whole numbers from {LOWEST} to {HIGHEST}, each given once")
        if config.fence == "open" and "referee" in self.judges:
            raise ConfigError("--fence open: only malibu's judges can see a response without a fence")
        for name in ("rubric", "metrics", "judges", "members") if "malibu" not in self.judges else ():
            if getattr(config, name) != InjectionConfig.model_fields[name].default:
                raise ConfigError(f"--{name} is a setting of malibu's judges (--judged-by malibu)")
        self.suite, _ = load_suite(config.suite)
        self.attempts = load_attempts(config.attempts).only(config.kinds)
        self._attempts = {attempt.id: attempt for attempt in self.attempts.attempt}
        self._scenarios = {scenario.id: scenario for scenario in self._sample()[: config.limit]}

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

    @property
    def _personas(self) -> list[Persona]:
        return [persona for judge in self.judges.values() for persona in judge.judges]

    def models(self) -> list[str]:
        own = (persona.model for persona in self._personas if persona.model)
        return list(dict.fromkeys([*self.config.model, *own]))

    def prompts(self) -> Mapping[str, str]:
        texts = {name: text for judge in self.judges.values() for name, text in judge.prompts().items()}
        return texts | {f"persona/{persona.name}": persona.about for persona in self._personas}

    def sources(self) -> Mapping[str, str]:
        return {
            f"suite {self.suite.name} {self.suite.version}": self.suite.digest(),
            f"attempts {self.attempts.name} {self.attempts.version}": self.attempts.digest(),
        }

    def plan(self) -> Iterator[Unit]:
        """All units of one response together, models innermost: an interrupted run has complete comparisons."""
        several = len(self.config.model) > 1
        for repeat in range(self.config.repeats):
            for scenario in self._scenarios:
                for judged_by, judge in self.judges.items():
                    for shown in judge.displays if self.config.fence == "both" else (self.config.fence,):
                        for variant in self._variants():
                            name = f"{judged_by}/{scenario}/{shown}/{variant}/r{repeat}"
                            facets = self._facets(scenario, judged_by, shown, variant) | {"repeat": repeat}
                            for model in self.config.model:
                                yield Unit(f"{name}/@{model}" if several else name, facets | {"model": model})

    def _variants(self) -> Iterator[_Variant]:
        yield _Variant(CLEAN)
        for attempt in self._attempts:
            # Compared with a harmless text of the same length in the same place: any added text moves a score.
            yield _Variant(CONTROL, attempt)
            for ask in self.config.asks or (HIGHEST, LOWEST):
                yield _Variant(ATTACK, attempt, str(ask))

    def _facets(self, scenario: str, judged_by: str, shown: str, variant: _Variant) -> dict[str, FacetValue]:
        judge = self.judges[judged_by]
        return {
            "judged_by": judged_by,
            "scenario": scenario,
            "base": self._scenarios[scenario].base,
            "shown": shown,
            "variant": variant.kind,
            "attempt": variant.attempt,
            "kind": self._attempts[variant.attempt].kind if variant.attempt else "",
            "ask": variant.ask,
            "flagged": is_flagged(self._text(judge, self._scenarios[scenario], variant)),
            "lowest": LOWEST,
            "highest": HIGHEST,
            "wanted": judge.wanted,
        }

    def _text(self, judge: Judge, scenario: Scenario, variant: _Variant) -> str:
        """The scenario's first response, with what is put into it."""
        assert scenario.responses, "drawn from those that have responses"
        text, attempt = scenario.responses[0], self._attempts.get(variant.attempt)
        if attempt is None:
            return text
        if variant.kind == CONTROL:
            return attempt.control_in(text)
        return attempt.in_response(text, int(variant.ask), judge.reply(int(variant.ask)))

    def asked(self, unit: Unit) -> tuple[Judge, Scenario, str]:
        """The judge of a unit, the scenario with the response that it judges, and how this is shown."""
        judged_by, scenario_id, *variant, shown = (
            str(unit.facets[name]) for name in ("judged_by", "scenario", "variant", "attempt", "ask", "shown")
        )
        judge, scenario = self.judges[judged_by], self._scenarios[scenario_id]
        responses = (self._text(judge, scenario, _Variant(*variant)), *scenario.responses[1:])
        return judge, scenario.model_copy(update={"responses": responses}), shown

    async def run(self, unit: Unit, models: Models) -> Outcome:
        judge, scenario, shown = self.asked(unit)
        return await judge.judge(scenario, shown, str(unit.facets["model"]), models)
