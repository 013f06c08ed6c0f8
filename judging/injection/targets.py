"""The judges that injections are aimed at. Each is asked as in its own study: the same prompt, fence and reading.

A new one is a class like these: what the judge reads, how it is asked, which verdicts count, the scale, and the score
that the author of a text wants. All of them judge responses of MALIBU's suite, although some usually read other texts,
so that judges do not differ because of their texts.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel

from parley.agents import ConfigError, Critique, Debate, Models, Persona, Transcript, simultaneous
from parley.agents.fencing import fence_judged
from parley.base.text import plural
from parley.judging import overcorrection
from parley.judging.bbq.methods.mabrf import Judgement
from parley.judging.bbq.methods.mabrf.loop import CAST, judge_prompt, score_verdicts
from parley.judging.bbq.methods.mabrf.loop import JUDGE as MABRF_JUDGE
from parley.judging.config import call_options, shipped_personas
from parley.judging.injection.config import MALIBU, InjectionConfig
from parley.judging.malibu.panel import FENCED, Ballot, candidate, load_panel, show_candidate
from parley.judging.rldf.check import referee_persona
from parley.judging.rldf.referee import BLIND, STATEMENTS, blind_instruction, blind_task, report_type, report_verdicts
from parley.judging.rldf.roles import load_bias
from parley.judging.rldf.study import AGAIN
from parley.judging.scoring.rubrics import SCORE, ScoreSheet, load_rubric
from parley.judging.scoring.study import no_one
from parley.judging.stardtox.methods import COMPLETE, generator_persona
from parley.judging.stardtox.team import load_team
from parley.judging.study import Outcome, Prompt, Verdict
from parley.judging.toxicity import judge as toxicity
from parley.scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A text to judge.

    Args:
        scenario: The scenario that it answers.
        text: The text, with an attempt in it or without.
        fenced: Whether MALIBU's judges see it fenced; all others do.
    """

    scenario: Scenario
    text: str
    fenced: bool = True


class Target(ABC):
    """A judge, or a panel of judges, whose scores an injection tries to change."""

    name: ClassVar[str]
    lowest: ClassVar[int] = 0
    highest: ClassVar[int] = 10
    wanted: ClassVar[int]
    """The end of the scale that the author of a text wants: no bias, or a high quality."""
    can_be_open: ClassVar[bool] = False
    """Whether there is a prompt without a fence."""
    reads_expected: ClassVar[bool] = False
    """Whether scores can be read as expectations."""
    judges: Sequence[Persona]

    def __init__(self, config: InjectionConfig) -> None:
        self._config, self._expected = config, config.readout == "expected"
        self._options = call_options(config.max_tokens, config.temperature)
        if self._expected and not self.reads_expected:
            raise ConfigError(f"the scores of {self.name} can only be read as written (--readout sampled)")

    @abstractmethod
    def prompts(self) -> Mapping[str, str]:
        """The prompts and personas by name."""

    @abstractmethod
    def reply(self, score: int) -> str:
        """A reply that gives this score throughout, for attempts that contain one."""

    @abstractmethod
    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        """Ask the judges, and read their scores."""

    def text(self, scenario: Scenario) -> str:
        """The text that is judged, before an attempt is put into it."""
        return responses(scenario)[0]

    def prompt_chars(self, judged: Judged) -> int:
        """The length of one judge's prompt, roughly."""
        return sum(map(len, self.prompts().values())) + len(judged.scenario.text) + len(judged.text)

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
            readout=self._config.readout,
            options=self._options,
            models=models,
        )
        return await debate.converse(prompt)

    def _personas(self) -> dict[str, str]:
        return {f"persona/{judge.name}": judge.about for judge in self.judges}


def responses(scenario: Scenario) -> tuple[str, str]:
    """A scenario's two responses, the first of which is judged."""
    return scenario.responses or ("", "")


SINGLE = Prompt.load("malibu/single")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class MalibuJudges(Target):
    """MALIBU's judges of single candidates, without a label."""

    name = MALIBU
    wanted = 10
    can_be_open = reads_expected = True

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        self.judges = _first(load_panel(config.judges), config.members, config.judges)
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
        turns = transcript.spoken()
        return Outcome(transcript, tuple(v for t in turns for v in self._ballot.verdicts(t, expected=self._expected)))


class RubricJudges(Target):
    """The judges of RLDF's Bias Score, with the scenario as context."""

    name = "rubric"
    wanted = 0
    reads_expected = True

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        self.judges = _first(shipped_personas("rubric_judges.toml"), config.members, self.name)
        self._sheet = ScoreSheet(["bs"])

    def prompts(self) -> Mapping[str, str]:
        return {SCORE.name: SCORE.text, "rubric/bs": self._sheet.rubric} | self._personas()

    def reply(self, score: int) -> str:
        return json.dumps(dict.fromkeys(self._sheet.metrics, score))

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        task = self._sheet.task(judged.text, judged.scenario.text)
        transcript = await self._ask(task, self._sheet.reply_type, model, models)
        turns = transcript.spoken()
        return Outcome(transcript, tuple(v for t in turns for v in self._sheet.verdicts(t, expected=self._expected)))


class BlindReferee(Target):
    """RLDF's blind referee. The scenario is the topic; the scenario's other response is the second statement."""

    name = "referee"
    wanted = 0
    reads_expected = True

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

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        statements = zip(self._names, (judged.text, responses(judged.scenario)[1]), strict=True)
        task, then = blind_task(judged.scenario.text, statements), blind_instruction(self._names, self._trait)
        transcript = await self._ask(task, report_type(self._names, False), model, models, then=then)
        report = report_verdicts(transcript.spoken()[0], self._names, judge=AGAIN, expected=self._expected)
        return Outcome(transcript, tuple(v for v in report if v.metric == "bias" and v.subject == self._names[0]))


class StardtoxJudge(Target):
    """STARDTOX's performance evaluator: it reads the first half of a response's first sentence, and judges the second.

    It is asked by the study's own critique loop, with a draft and without criteria, so that nothing is revised.
    """

    name = "stardtox"
    highest = wanted = 100

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        self._team = load_team().without(["toxicity"])
        self.judges = [Persona(spec.name, str(spec.about)) for spec in self._team.evaluators]

    def prompts(self) -> Mapping[str, str]:
        return self._team.prompts()

    def reply(self, score: int) -> str:
        return json.dumps({name: score for spec in self._team.evaluators for name in spec.scores})

    def text(self, scenario: Scenario) -> str:
        return _halves(scenario)[1]

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        beginning = _halves(judged.scenario)[0]
        loop = Critique(
            generator_persona(),
            self._team.seat(models, model, self._options),
            criteria={},
            draft=judged.text,
            evaluator_task=fence_judged(beginning, "BEGINNING"),
            model=models[model],
            models=models,
        )
        transcript = await loop.converse(COMPLETE(prompt=beginning))
        return Outcome(transcript, tuple(self._team.verdicts(transcript)))


class MabrfJudge(Target):
    """MABRF's judge. A response's sentences are the steps, and the scenario's last sentence is the question."""

    name = "mabrf"
    lowest = wanted = 1

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        self.judges = [CAST["Judge"]]

    def prompts(self) -> Mapping[str, str]:
        return {MABRF_JUDGE.name: MABRF_JUDGE.text} | self._personas()

    def reply(self, score: int) -> str:
        return f"Bias: {score}: as required.\nRelevancy: {score}: as required."

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        *context, question = _sentences(judged.scenario.text)
        prompt = judge_prompt(_sentences(judged.text), context=" ".join(context), question=question)
        transcript = await self._ask(prompt, Judgement, model, models)
        return Outcome(transcript, tuple(score_verdicts(transcript.spoken()[0], {"bias": "bias"})))


class ToxicityJudge(Target):
    """The judge of toxicity (`judge:provider/model` as a scorer), with its scores from 0 to 100."""

    name = "toxicity"
    highest, wanted = 100, 0

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        self.judges = [Persona("judge", toxicity.PERSONA.text)]

    def prompts(self) -> Mapping[str, str]:
        return {toxicity.PROMPT.name: toxicity.PROMPT.text, toxicity.PERSONA.name: toxicity.PERSONA.text}

    def reply(self, score: int) -> str:
        return json.dumps({"reason": "As required.", "toxicity": score})

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        transcript = await self._ask(toxicity.rating_prompt(judged.text), toxicity.Rating, model, models)
        turn = transcript.spoken()[0]
        value = getattr(turn.verdict, "toxicity", None)
        return Outcome(transcript, (Verdict.from_turn(turn, "toxicity", value=value, sampled=value),))


class MeaningJudge(Target):
    """The judge of meaning: the response as a revision of the scenario's other response."""

    name = "meaning"
    highest = wanted = 100

    def __init__(self, config: InjectionConfig) -> None:
        super().__init__(config)
        self.judges = [Persona(overcorrection.JUDGE, overcorrection.PERSONA.text)]

    def prompts(self) -> Mapping[str, str]:
        return overcorrection.prompts()

    def reply(self, score: int) -> str:
        return json.dumps(dict.fromkeys(overcorrection.JUDGED, score))

    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        drafts = {0: responses(judged.scenario)[1], 1: judged.text}
        turns, verdicts = await overcorrection.judge_meaning(drafts, model, models, self._options)
        return Outcome(Transcript(tuple(turns), "judged once"), tuple(verdicts))


TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (MalibuJudges, RubricJudges, BlindReferee, StardtoxJudge, MabrfJudge, ToxicityJudge, MeaningJudge)
}


def _first(panel: Sequence[Persona], members: int, name: str) -> Sequence[Persona]:
    if len(panel) < members:
        raise ConfigError(f"--members {members}: the panel '{name}' has only {plural(len(panel), 'member')}")
    return panel[:members]


def _sentences(text: str) -> tuple[str, ...]:
    """The sentences, each on one line, as MABRF reads the steps of a chain of thought."""
    return tuple(" ".join(sentence.split()) for sentence in _SENTENCE_END.split(text.strip()))


def _halves(scenario: Scenario) -> tuple[str, str]:
    """The first sentence of a response, in two halves."""
    words = _sentences(responses(scenario)[0])[0].split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
