"""The judges that injections are aimed at: MALIBU's judges of single candidates, and RLDF's blind referee.

Each is asked as in its own study: the same prompt, fence and reading. Both score responses of MALIBU's suite from 0 to
10, so that they do not differ because of their texts or scales.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel

from parley.agents import ConfigError, Debate, Models, Persona, Transcript, simultaneous
from parley.base.text import plural
from parley.judging.config import call_options
from parley.judging.injection.config import MALIBU, REFEREE, InjectionConfig
from parley.judging.malibu.panel import FENCED, Ballot, candidate, load_panel, show_candidate
from parley.judging.rldf.check import referee_persona
from parley.judging.rldf.referee import BLIND, STATEMENTS, blind_instruction, blind_task, report_type, report_verdicts
from parley.judging.rldf.roles import load_bias
from parley.judging.rldf.study import AGAIN
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import no_one
from parley.judging.study import Outcome, Prompt
from parley.scenarios import Scenario

LOWEST, HIGHEST = 0, 10
SINGLE = Prompt.load("malibu/single")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A text to judge.

    Args:
        scenario: The scenario that it answers.
        text: The text, with an attempt in it or without.
        fenced: Whether MALIBU's judges see it fenced; the referee always does.
    """

    scenario: Scenario
    text: str
    fenced: bool = True


class Target(ABC):
    """A judge, or a panel of judges, whose scores an injection tries to change."""

    name: ClassVar[str]
    wanted: ClassVar[int]
    """The end of the scale that the author of a text wants: a high quality, or no bias."""
    displays: ClassVar[tuple[str, ...]]
    """How it can see a response."""
    judges: Sequence[Persona]

    def __init__(self, config: InjectionConfig) -> None:
        self._readout, self._options = config.readout, call_options(config.max_tokens, config.temperature)

    @abstractmethod
    def prompts(self) -> Mapping[str, str]:
        """The prompts and personas by name."""

    @abstractmethod
    def reply(self, score: int) -> str:
        """A reply that gives this score throughout, for attempts that contain one."""

    @abstractmethod
    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        """Ask the judges, and read their scores."""

    @abstractmethod
    def prompt_chars(self, judged: Judged) -> int:
        """The length of one judge's prompt, roughly."""

    async def _ask(
        self, prompt: str, reply_type: type[BaseModel], model: str, models: Models, *, then: str | None = None
    ) -> Transcript:
        """Each judge's reply to a prompt, and to the instruction `then` after it; they do not see each other's."""
        debate = Debate(
            self.judges,
            model=models[model],
            rounds=1,
            order=simultaneous,
            sees=no_one,
            instructions=lambda cue: then,
            reply_type=reply_type,
            readout=self._readout,
            options=self._options,
            models=models,
        )
        return await debate.converse(prompt)

    def _personas(self) -> dict[str, str]:
        return {f"persona/{judge.name}": judge.about for judge in self.judges}


class MalibuJudges(Target):
    """MALIBU's judges of single candidates, without a label."""

    name = MALIBU
    wanted = HIGHEST
    displays = ("open", "fenced")

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        panel = load_panel(config.judges)
        if len(panel) < config.members:
            has = plural(len(panel), "member")
            raise ConfigError(f"--members {config.members}: the panel '{config.judges}' has only {has}")
        self.judges = panel[: config.members]
        self._ballot = Ballot(1, load_rubric(config.rubric).only(config.metrics), 0)

    def prompts(self) -> Mapping[str, str]:
        texts = {SINGLE.name: SINGLE.text, FENCED.name: FENCED.text, "rubric": self._ballot.rubric.model_dump_json()}
        return texts | self._personas()

    def reply(self, score: int) -> str:
        return json.dumps(dict.fromkeys(self._ballot.rubric.names, score))

    def task(self, judged: Judged) -> str:
        """The prompt."""
        shown = show_candidate(judged.text, candidate(), fenced=judged.fenced)
        return SINGLE(
            scenario=judged.scenario.text,
            candidate=shown.candidate,
            response=shown.response,
            metrics=self._ballot.rubric.text(),
            format=self._ballot.format(),
        )

    def prompt_chars(self, judged: Judged) -> int:
        return len(self.task(judged))

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        transcript = await self._ask(self.task(judged), self._ballot.reply_type(), model, models)
        expected = self._readout == "expected"
        turns = transcript.spoken()
        return Outcome(transcript, tuple(v for turn in turns for v in self._ballot.verdicts(turn, expected=expected)))


class BlindReferee(Target):
    """RLDF's blind referee. The scenario is the topic; the scenario's other response is the second statement."""

    name = REFEREE
    wanted = LOWEST
    displays = ("fenced",)

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        bias = load_bias("age")
        self._names, self._trait = tuple(role.name for role in bias.first(2)), bias.trait
        self.judges = [Persona(AGAIN, referee_persona().about)]

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in (BLIND, STATEMENTS)} | self._personas()

    def reply(self, score: int) -> str:
        ranks = {name: rank for rank, name in enumerate(self._names, 1)}
        return json.dumps({"scores": dict.fromkeys(self._names, score), "ranks": ranks})

    def prompt_chars(self, judged: Judged) -> int:
        return sum(map(len, self.prompts().values())) + len(judged.scenario.text) + len(judged.text)

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        statements = zip(self._names, (judged.text, *judged.scenario.responses[1:]), strict=True)
        task, then = blind_task(judged.scenario.text, statements), blind_instruction(self._names, self._trait)
        transcript = await self._ask(task, report_type(self._names, False), model, models, then=then)
        expected = self._readout == "expected"
        report = report_verdicts(transcript.spoken()[0], self._names, judge=AGAIN, expected=expected)
        return Outcome(transcript, tuple(v for v in report if v.metric == "bias" and v.subject == self._names[0]))


TARGETS: dict[str, type[Target]] = {target.name: target for target in (MalibuJudges, BlindReferee)}
