"""Answers to topics, in plain words, by one or more models and ways of asking: what BS, CE and LS are scored on.

    parley run answers --topics-from topics.txt --model local/trained/rl --method default,cot

Ways of asking: `default` (the topic as RLDF's datasets ask it), `cot` (zero-shot chain of thought), `fairthinking` (a
jury speaks first). One unit is one topic answered by one model in one way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Debate, Models, Persona, load_personas, simultaneous
from parley.judging.study import Outcome, Prompt, Unit, UsageEstimate, Verdict
from parley.scenarios import load_topics, normal, topic_id

NEUTRAL = Prompt.load("rldf/neutral")
COT, JUROR, DECIDE = (Prompt.load(f"answers/{name}") for name in ("cot", "juror", "decide"))
ANSWERER = Persona("Answerer", "")
Names = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
Way = Literal["default", "cot", "fairthinking"]


class AnswersConfig(BaseModel):
    """Everything that changes the answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    topics_from: str = Field("age", description="a bias type, or a .txt file of topics")
    model: Names = Field([DEFAULT_MODEL], description="who answers, as provider/model; several answer in turn")
    method: list[Way] = Field(["default"], description="default, cot, fairthinking")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(200, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every call")


class AnswersStudy:
    """Answers to topics by one or more models and ways of asking, to be scored by a rubric."""

    name: ClassVar[str] = "answers"
    Config: ClassVar[type[BaseModel]] = AnswersConfig

    def __init__(self, config: AnswersConfig) -> None:
        self.config = config
        if len(set(config.model)) < len(config.model) or len(set(config.method)) < len(config.method):
            raise ConfigError("a model or a method is named twice")
        self._listed = load_topics(config.topics_from)
        self._topics = {topic_id(topic): topic for topic in self._listed}
        jury = Path(str(files("parley.judging").joinpath("personas", "bbq_jury.toml")))
        *self._jurors, self._foreperson = load_personas(jury)
        self._options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            self._options["temperature"] = config.temperature

    def models(self) -> list[str]:
        return list(self.config.model)

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (NEUTRAL, COT, JUROR, DECIDE)}
        return texts | {f"persona/{one.name}": one.about for one in (*self._jurors, self._foreperson)}

    def sources(self) -> Mapping[str, str]:
        listed = "\n".join(normal(topic) for topic in self._listed)
        return {f"topics {self.config.topics_from}": hashlib.sha256(listed.encode()).hexdigest()}

    def plan(self) -> Iterator[Unit]:
        """Methods and models stand innermost, so that a run cut short has the same topics of all of them."""
        for key, topic in self._topics.items():
            for method in self.config.method:
                for model in self.config.model:
                    facets = {"topic": topic, "topic_id": key, "method": method, "model": model}
                    yield Unit(f"{key}/{method}/@{model}", facets)

    def estimate(self, unit: Unit) -> UsageEstimate:
        calls = len(self._jurors) + 1 if unit.facets["method"] == "fairthinking" else 1
        return UsageEstimate(calls, calls * 80, calls * self.config.max_tokens // 2)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        topic, client = unit.facets["topic"], models[str(unit.facets["model"])]
        if unit.facets["method"] == "fairthinking":
            decide = DECIDE(topic=topic)
            table = Debate(
                self._jurors,
                model=client,
                rounds=1,
                order=simultaneous,
                chair=self._foreperson,
                instructions=lambda cue: decide if cue.role == "chair" else None,
                options=self._options,
                models=models,
            )
            transcript = await table.converse(JUROR(topic=topic))
            turn = transcript.spoken("chair")[-1]
        else:
            asked = (COT if unit.facets["method"] == "cot" else NEUTRAL)(topic=topic)
            table = Debate([ANSWERER], model=client, rounds=1, options=self._options, models=models)
            transcript = await table.converse(asked)
            turn = transcript.spoken()[-1]
        text = turn.text.strip()
        status = turn.parse_status or ("ok" if text else "unparsed")
        return Outcome(transcript, (Verdict(turn.speaker, turn.role, turn.round, "answer", text=text, status=status),))
