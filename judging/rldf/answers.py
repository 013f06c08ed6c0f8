"""Free-text answers to topics, by one or more models and methods of asking, for scoring by BS, CE and LS.

    parley run answers --topics-from topics.txt --model local/trained/rl --method default,cot

Methods: `default` (the topic as in RLDF's datasets), `cot` (zero-shot chain of thought), `fairthinking` (a jury speaks
first). One unit is one topic answered by one model with one method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Debate, Models, Persona, simultaneous
from parley.judging import Advanced, Apart, Outcome, Prompt, Verdict
from parley.judging.config import NameList, call_options, limit_field, require_each_once, shipped_personas
from parley.judging.grid import GridStudy, compared, varies
from parley.scenarios import load_topics, topic_id, topics_digest

NEUTRAL = Prompt.load("rldf/neutral")
CONTINUE = Prompt.load("rldf/continue")
"""The prompt for continuing a text, which is then the topic."""
COT, JUROR, DECIDE = (Prompt.load(f"answers/{name}", "rldf") for name in ("cot", "juror", "decide"))
ANSWERER = Persona("Answerer", "")
AnswerMethod = Literal["default", "cot", "fairthinking"]


class AnswersConfig(BaseModel, extra="forbid", frozen=True):
    """All settings that change the answers."""

    topics_from: str = Field("age", description="bias type, or a .txt file of topics")
    limit: int | None = limit_field("number of topics: the first of the list")
    model: Apart[NameList] = Field(
        [DEFAULT_MODEL], description="model that answers, as provider/model; several models answer the same topics"
    )
    method: list[AnswerMethod] = Field(["default"], description="method of asking: default, cot, fairthinking")
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(200, ge=16, description="maximum length of one reply, in tokens")
    seed: Apart[int] = Field(0, description="random seed")


@dataclass(frozen=True, kw_only=True)
class AnswerCell:
    """One topic answered with one method."""

    topic: str = varies("text", "{}")
    topic_id: str = varies("technical")
    method: str = varies("varied", "{}")
    model: str = compared()


class AnswersStudy(GridStudy):
    """Answers to topics by one or more models and methods of asking, to be scored by a rubric."""

    name = "answers"
    Config = AnswersConfig
    Cell = AnswerCell

    def __init__(self, config: AnswersConfig) -> None:
        self.config: AnswersConfig = config
        require_each_once(model=config.model, method=config.method)
        self._listed = load_topics(config.topics_from)
        self._topics = {topic_id(topic): topic for topic in self._listed[: config.limit]}
        *self._jurors, self._foreperson = shipped_personas("bbq_jury.toml")
        self._options = call_options(config.max_tokens, config.temperature)

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (NEUTRAL, COT, JUROR, DECIDE)}
        return texts | {f"persona/{juror.name}": juror.about for juror in (*self._jurors, self._foreperson)}

    def sources(self) -> Mapping[str, str]:
        return {f"topics {self.config.topics_from}": topics_digest(self._listed)}

    def cells(self) -> Iterator[tuple[str, AnswerCell]]:
        only = f"/@{self.config.model[0]}" if len(self.config.model) == 1 else ""  # ids always contain the model
        for key, topic in self._topics.items():
            for method in self.config.method:
                yield f"{key}/{method}{only}", AnswerCell(topic=topic, topic_id=key, method=method)

    async def ask(self, cell: AnswerCell, models: Models) -> Outcome:
        topic, client = cell.topic, models[cell.model]
        if cell.method == "fairthinking":
            decide = DECIDE(topic=topic)
            debate = Debate(
                self._jurors,
                model=client,
                rounds=1,
                order=simultaneous,
                chair=self._foreperson,
                instructions=lambda cue: decide if cue.role == "chair" else None,
                options=self._options,
                models=models,
            )
            transcript = await debate.converse(JUROR(topic=topic))
            turn = transcript.spoken("chair")[-1]
        else:
            prompt = COT if cell.method == "cot" else NEUTRAL
            debate = Debate([ANSWERER], model=client, rounds=1, options=self._options, models=models)
            transcript = await debate.converse(prompt(topic=topic))
            turn = transcript.spoken()[-1]
        text = turn.text.strip()
        status = turn.parse_status or ("ok" if text else "unparsed")
        return Outcome(transcript, (Verdict.from_turn(turn, "answer", text=text, status=status),))
