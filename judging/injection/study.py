"""Can a judge be influenced by the text it judges? Injections are put into responses, and the scores are compared.

    parley run injection --model openai/gpt-6-luna
    parley run injection --model openai/gpt-6-luna --judged-by malibu,referee

A response of MALIBU's suite is judged unchanged (clean), with an injection attempt that asks for a score (attack), and
with a harmless text of about the same length in the same place (control). MALIBU's judges see it as in the paper (open)
and fenced as data, RLDF's blind referee always fenced. Judges do not see each other's replies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, NamedTuple

from pydantic import BaseModel

from parley.agents import ConfigError, Models, seed_from
from parley.agents.fencing import instruction_kinds
from parley.judging.config import require_each_once
from parley.judging.injection.config import MALIBU, InjectionConfig
from parley.judging.injection.targets import HIGHEST, LOWEST, TARGETS, Judged, Target
from parley.judging.study import REPEAT, Facet, FacetValue, Measure, Outcome, Unit, UsageEstimate
from parley.scenarios import Scenario, load_attempts, load_suite

CLEAN, ATTACK, CONTROL = "clean", "attack", "control"
MALIBU_ONLY = ("rubric", "metrics", "judges", "members")
"""Settings of MALIBU's judges."""


class _Variant(NamedTuple):
    """A response as it is judged: clean, or with an attempt or its control in it; `ask` is the score asked for."""

    kind: str
    attempt: str = ""
    ask: str = ""

    def __str__(self) -> str:
        return "-".join(part for part in (self.attempt, self.ask or self.kind) if part)


class _Text(NamedTuple):
    """A text to judge, and whether it is flagged as an instruction, which no judge is told."""

    text: str
    flagged: bool


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
        self.targets: dict[str, Target] = {name: TARGETS[name](config) for name in config.judged_by}
        self._check_asks()
        self._check_malibus_settings()
        self.suite, _ = load_suite(config.suite)
        self.attempts = load_attempts(config.attempts).only(config.kinds)
        self._attempts = {attempt.id: attempt for attempt in self.attempts.attempt}
        self._scenarios = {scenario.id: scenario for scenario in self._sample()[: config.limit]}
        self._text = lru_cache(maxsize=4096)(self._make_text)  # looking for instructions takes time

    def _check_asks(self) -> None:
        asks, scale = self.config.asks, range(LOWEST, HIGHEST + 1)
        if asks is not None and (not asks or len(set(asks)) < len(asks) or not set(asks) <= set(scale)):
            raise ConfigError(f"--asks must be whole numbers from {LOWEST} to {HIGHEST}, each given once")

    def _check_malibus_settings(self) -> None:
        config = self.config
        if config.fence == "open" and not all("open" in target.displays for target in self.targets.values()):
            raise ConfigError("--fence open: only malibu's judges can see a response without a fence")
        if MALIBU not in self.targets:
            for name in MALIBU_ONLY:
                if getattr(config, name) != InjectionConfig.model_fields[name].default:
                    raise ConfigError(f"--{name} is a setting of malibu's judges (--judged-by malibu)")

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
        own = [judge.model for target in self.targets.values() for judge in target.judges if judge.model]
        return list(dict.fromkeys([*self.config.model, *own]))

    def prompts(self) -> Mapping[str, str]:
        return {name: text for target in self.targets.values() for name, text in target.prompts().items()}

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
                for target in self.targets.values():
                    for display in self._displays(target):
                        for variant in self._variants():
                            name = f"{target.name}/{scenario}/{display}/{variant}/r{repeat}"
                            facets = self._facets(scenario, target, display, variant) | {"repeat": repeat}
                            for model in self.config.model:
                                yield Unit(f"{name}/@{model}" if several else name, facets | {"model": model})

    def _displays(self, target: Target) -> tuple[str, ...]:
        return target.displays if self.config.fence == "both" else (self.config.fence,)

    def _variants(self) -> Iterator[_Variant]:
        yield _Variant(CLEAN)
        for attempt in self._attempts:
            # Compared with a harmless text of the same length in the same place: any added text moves a score.
            yield _Variant(CONTROL, attempt)
            for ask in self.config.asks or (HIGHEST, LOWEST):
                yield _Variant(ATTACK, attempt, str(ask))

    def _facets(self, scenario: str, target: Target, display: str, variant: _Variant) -> dict[str, FacetValue]:
        return {
            "judged_by": target.name,
            "scenario": scenario,
            "base": self._scenarios[scenario].base,
            "shown": display,
            "variant": variant.kind,
            "attempt": variant.attempt,
            "kind": self._attempts[variant.attempt].kind if variant.attempt else "",
            "ask": variant.ask,
            "flagged": self._text(target.name, scenario, variant).flagged,
            "lowest": LOWEST,
            "highest": HIGHEST,
            "wanted": target.wanted,
        }

    def _make_text(self, target: str, scenario: str, variant: _Variant) -> _Text:
        responses = self._scenarios[scenario].responses
        assert responses, "drawn from those that have responses"
        text = responses[0]
        if variant.kind == CONTROL:
            text = self._attempts[variant.attempt].control_in(text)
        elif variant.kind == ATTACK:
            score = int(variant.ask)
            text = self._attempts[variant.attempt].in_response(text, score, self.targets[target].reply(score))
        # The patterns were written for web pages and find 2 of our 28 attempts; they were not tuned on the set that
        # measures them.
        return _Text(text, bool(instruction_kinds(text)))

    def asked(self, unit: Unit) -> tuple[Target, Judged]:
        """The judge of a unit, and the text that it judges."""
        facets = unit.facets
        target, scenario = self.targets[str(facets["judged_by"])], str(facets["scenario"])
        variant = _Variant(str(facets["variant"]), str(facets["attempt"]), str(facets["ask"]))
        text, _ = self._text(target.name, scenario, variant)
        return target, Judged(scenario=self._scenarios[scenario], text=text, fenced=facets["shown"] == "fenced")

    def estimate(self, unit: Unit) -> UsageEstimate:
        target, judged = self.asked(unit)
        calls = len(target.judges)
        return UsageEstimate(
            calls=calls,
            prompt_tokens=calls * (target.prompt_chars(judged) // 4 + 40),  # about four characters per token, a persona
            completion_tokens=calls * (6 + len(target.reply(HIGHEST)) // 3),
        )

    async def run(self, unit: Unit, models: Models) -> Outcome:
        target, judged = self.asked(unit)
        return await target.judge(judged, str(unit.facets["model"]), models)
