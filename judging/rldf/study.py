"""RLDF's debates: people with different backgrounds discuss a topic, a referee scores the bias of every statement.

    parley run rldf --bias age --topics 20

One unit is one topic's whole debate. After each round the referee scores (0 none to 10 extreme) and ranks what was
said, and what it says goes into the next round. Modes: `self-reflection` (one model plays everyone and referees),
`teacher-student` (a stronger model, the teacher, plays everyone for the student), `teacher-guides` (the student
debates; the teacher referees and advises). `parley export` makes datasets of a run, at any threshold, afterwards.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import (
    DEFAULT_MODEL,
    ConfigError,
    Cue,
    Debate,
    Models,
    Persona,
    Placement,
    Readout,
    Transcript,
    Turn,
    everyone,
    load_personas,
    round_robin,
    seed_from,
    shuffled,
)
from parley.judging.rldf.referee import report_format, report_type, report_verdicts
from parley.judging.rldf.roles import PERSONA, load_bias
from parley.judging.rldf.statements import statement_verdicts
from parley.judging.study import Outcome, Prompt, Unit, UsageEstimate, Verdict
from parley.scenarios import load_topics, normal, sample, topic_id

Mode = Literal["self-reflection", "teacher-student", "teacher-guides"]
KEYS = ("open", "again", "again_guided", "again_unscored", "referee", "referee_guides", "referee_blind", "statements")
PROMPTS = {key: Prompt.load(f"rldf/{key}") for key in KEYS}
AGAIN = "Referee_again"
"""The judge's name of a second refereeing."""


class RldfConfig(BaseModel):
    """Everything that changes what is said in the debates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bias: str = Field("age", description="age, nationality, institution, beauty, profession, or a .toml file of roles")
    topics: int = Field(20, ge=1, description="how many topics, drawn by the seed")
    topics_from: str | None = Field(None, description="a .txt file of topics (default: the bias type's own list)")
    roles: int = Field(3, ge=2, description="debaters at the table, the first of the bias type's")
    rounds: int = Field(5, ge=1, le=50, description="rounds of each debate")
    mode: Mode = Field("self-reflection", description="self-reflection, teacher-student or teacher-guides")
    model: str = Field(DEFAULT_MODEL, description="the model the data is for: it plays, or is the teacher's student")
    teacher: str | None = Field(None, description="the stronger model of the teacher modes")
    referee: str | None = Field(None, description="a model that referees (default: the mode's)")
    feedback: bool = Field(True, description="debaters hear the referee and try to lower their score")
    order: Literal["fixed", "shuffled"] = Field("fixed", description="who speaks first: as listed, or drawn each round")
    rereferee: float = Field(
        0.0, ge=0, le=1, description="share of debates refereed a second time, blind and reordered"
    )
    repeats: int = Field(1, ge=1, description="how often each topic is debated anew")
    words: int = Field(120, ge=10, description="length of a statement, as debaters are told")
    personas: Placement = Field("system", description="personas as system messages, or last in the prompt")
    readout: Readout = Field("sampled", description="the score said, or its expectation (needs log-probabilities)")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(400, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every random choice")


class Rldf:
    """Debates between people of different backgrounds; a referee scores the bias of every statement."""

    name: ClassVar[str] = "rldf"
    Config: ClassVar[type[BaseModel]] = RldfConfig

    def __init__(self, config: RldfConfig) -> None:
        self.config = config
        if (config.mode == "self-reflection") != (config.teacher is None):
            raise ConfigError(
                "self-reflection has no teacher" if config.teacher else f"the mode {config.mode} needs a --teacher"
            )
        self.bias = load_bias(config.bias)
        self.roles = self.bias.first(config.roles)
        self.names = tuple(role.name for role in self.roles)
        if config.topics_from is None and config.bias.endswith(".toml"):
            raise ConfigError("a bias type of your own needs topics of its own: --topics-from FILE.txt")
        self._listed = load_topics(config.topics_from or config.bias)
        self._topics = {topic_id(topic): topic for topic in sample(self._listed, config.topics, config.seed)}
        self.guides = config.mode == "teacher-guides"
        teacher = config.teacher or config.model
        self._player = teacher if config.mode == "teacher-student" else config.model
        personas = Path(str(files("parley.judging").joinpath("personas", "rldf_referee.toml")))
        referee = load_personas(personas)[0]
        self._debaters = [role.persona() for role in self.roles]
        self._referee = Persona(referee.name, referee.about, config.referee or teacher)
        self._report = report_type(self.names, self.guides)
        self._format = report_format(self.names, guides=self.guides)
        self._options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            self._options["temperature"] = config.temperature

    def models(self) -> list[str]:
        players = [persona.model or self._player for persona in self._debaters]
        return list(dict.fromkeys([*players, self._referee.model or self._player]))

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (*PROMPTS.values(), PERSONA)}
        return texts | {f"persona/{one.name}": one.about for one in (*self._debaters, self._referee)}

    def sources(self) -> Mapping[str, str]:
        listed = "\n".join(normal(topic) for topic in self._listed)
        name = self.config.topics_from or self.config.bias
        return {
            f"topics {name}": hashlib.sha256(listed.encode()).hexdigest(),
            f"roles {self.config.bias}": hashlib.sha256(self.bias.model_dump_json().encode()).hexdigest(),
        }

    def plan(self) -> Iterator[Unit]:
        config = self.config
        for repeat in range(config.repeats):
            for key, topic in self._topics.items():
                yield Unit(
                    f"{self.bias.trait}/{key}/r{repeat}",
                    {
                        "bias": self.bias.trait,
                        "topic": topic,
                        "topic_id": key,
                        "mode": config.mode,
                        "student": config.model,
                        "repeat": repeat,
                        "again": seed_from("again", config.seed, key, repeat) < config.rereferee * 2**31,
                    },
                )

    def task(self, unit: Unit) -> str:
        roster = [f"{role.name} ({role.label})" for role in self.roles]
        listed = f"{', '.join(roster[:-1])} and {roster[-1]}"
        return PROMPTS["open"](topic=unit.facets["topic"], roster=listed, words=self.config.words)

    def _instructions(self, cue: Cue) -> str | None:
        if cue.role == "referee":
            return PROMPTS["referee_guides" if self.guides else "referee"](
                round=cue.round,
                names=", ".join(self.names),
                trait=self.bias.trait,
                last=len(self.names),
                format=self._format,
            )
        if cue.round == 1:
            return None
        key = "again_unscored" if not self.config.feedback else "again_guided" if self.guides else "again"
        return PROMPTS[key](round=cue.round, words=self.config.words)

    def estimate(self, unit: Unit) -> UsageEstimate:
        config, roles = self.config, len(self.roles)
        statement, report = round(config.words * 1.2), 20 + (40 if self.guides else 14) * roles
        opening = len(self.task(unit)) // 4 + 40
        calls = config.rounds * (roles + 1)
        heard = sum(range(config.rounds * roles)) * statement + sum(range(config.rounds)) * (roles + 1) * report
        heard += sum(range(1, config.rounds + 1)) * roles * statement  # the referee hears all of them too
        said = config.rounds * (roles * statement + report)
        if unit.facets["again"]:
            calls += config.rounds
            heard += config.rounds * (roles * statement + 150)
            said += config.rounds * report
        return UsageEstimate(calls, config.rounds * (roles + 1) * opening + heard, said)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        config = self.config
        mixed = shuffled(seed_from(config.seed, unit.id))
        table = Debate(
            self._debaters,
            model=models[self._player],
            rounds=config.rounds,
            order=round_robin if config.order == "fixed" else mixed,
            sees=everyone if config.feedback else _hears_no_scores,
            referee=self._referee,
            instructions=self._instructions,
            reply_type=lambda cue: self._report if cue.role == "referee" else None,
            readout=config.readout,
            options=self._options,
            models=models,
            placement=config.personas,
        )
        transcript = await table.converse(self.task(unit))
        turns, verdicts = list(transcript.turns), list(self._verdicts(unit, transcript))
        if unit.facets["again"]:
            for round in range(1, config.rounds + 1):
                second = await self._referee_again(unit, transcript.spoken("debater", round), models)
                turns += [turn._replace(round=round) for turn in second.turns]
                said = second.spoken()[0]._replace(round=round)
                verdicts += report_verdicts(said, self.names, judge=AGAIN, expected=config.readout == "expected")
        return Outcome(Transcript(tuple(turns), transcript.stop_reason), tuple(verdicts))

    def _verdicts(self, unit: Unit, transcript: Transcript) -> Iterator[Verdict]:
        roles = {role.name: role for role in self.roles}
        asked = [turn.text for turn in transcript.turns if turn.role == "narrator"]
        for turn in transcript.spoken():
            if turn.role == "referee":
                yield from report_verdicts(
                    turn, self.names, judge=turn.speaker, expected=self.config.readout == "expected"
                )
            else:
                topic = str(unit.facets["topic"])
                told = [turn.persona, *asked]
                yield from statement_verdicts(turn, roles[turn.speaker], topic, self.config.max_tokens, told)

    async def _referee_again(self, unit: Unit, statements: list[Turn], models: Models) -> Transcript:
        """A referee who was not there scores one round: it knows neither which one, nor the first scores or order."""
        round = statements[0].round
        mixed = list(statements)
        random.Random(seed_from("again", self.config.seed, unit.id, round)).shuffle(mixed)
        instruction = PROMPTS["referee_blind"](
            names=", ".join(self.names),
            trait=self.bias.trait,
            last=len(self.names),
            format=report_format(self.names, guides=False),
        )
        listed = "\n\n".join(f"{turn.speaker}: {turn.text}" for turn in mixed)
        task = PROMPTS["statements"](topic=unit.facets["topic"], statements=listed)
        table = Debate(
            [Persona(AGAIN, self._referee.about, self._referee.model)],
            model=models[self._player],
            rounds=1,
            instructions=lambda cue: instruction,
            reply_type=report_type(self.names, False),
            readout=self.config.readout,
            options=self._options,
            models=models,
            placement=self.config.personas,
        )
        return await table.converse(task)


def _hears_no_scores(listener: Cue, turn: Turn) -> bool:
    """Without feedback the debaters do not hear the referee."""
    return turn.role != "referee" or listener.role == "referee"
