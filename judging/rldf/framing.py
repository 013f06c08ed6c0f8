"""Does a model admit its biases? The same question and answer, shown under three framings (RLDF's figure 1).

    parley run framing --bias age --topics 50

The model answers a question; then, in three fresh conversations, it is asked which biases the answer shows: as "our
Q&A", as one with "a language model", and as one with "a language model competing with you". One unit is one question
with its three framings, so that they are compared on the same words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, Debate, Models, Persona, Transcript, Turn, free_text, scale
from parley.judging.rldf.roles import load_bias
from parley.judging.study import Facet, Outcome, Prompt, Unit, UsageEstimate, Verdict
from parley.scenarios import load_topics, normal, sample, topic_id

FRAMES = ("ours", "model", "rival")
PROMPTS = {key: Prompt.load(f"framing/{key}") for key in ("answer", "ask", *FRAMES)}
ANSWERS = Persona("Answerer", "You are a helpful assistant.")
NAMED_CHARS = 300


class FramingConfig(BaseModel):
    """Everything that changes the results of a framing run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bias: str = Field("age", description="age, nationality, institution, beauty, profession, or a .toml file of roles")
    topics: int = Field(20, ge=1, description="how many topics, drawn by the seed")
    topics_from: str | None = Field(None, description="a .txt file of topics (default: the bias type's own list)")
    model: str = Field(DEFAULT_MODEL, description="the model that answers, and is asked about the answer")
    author: str | None = Field(None, description="another model that answers in its place")
    repeats: int = Field(1, ge=1, description="how often each topic is asked anew")
    words: int = Field(100, ge=10, description="length of an answer, as the model is told")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(400, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every random choice")


class Admitted(BaseModel):
    biases: free_text(NAMED_CHARS) = ""  # type: ignore[valid-type]
    count: scale(0, 10)  # type: ignore[valid-type]


class Framing:
    """Does a model admit its biases? The same question and answer under three framings."""

    name: ClassVar[str] = "framing"
    Config: ClassVar[type[BaseModel]] = FramingConfig

    def __init__(self, config: FramingConfig) -> None:
        self.config = config
        self.bias = load_bias(config.bias)
        self._listed = load_topics(config.topics_from or config.bias)
        self._topics = {topic_id(topic): topic for topic in sample(self._listed, config.topics, config.seed)}
        self._author = config.author or config.model
        self._options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            self._options["temperature"] = config.temperature

    def models(self) -> list[str]:
        return list(dict.fromkeys([self._author, self.config.model]))

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in PROMPTS.values()} | {"persona/Answerer": ANSWERS.about}

    def sources(self) -> Mapping[str, str]:
        listed = "\n".join(normal(topic) for topic in self._listed)
        return {f"topics {self.config.topics_from or self.config.bias}": hashlib.sha256(listed.encode()).hexdigest()}

    def plan(self) -> Iterator[Unit]:
        for repeat in range(self.config.repeats):
            for key, topic in self._topics.items():
                facets: dict[str, Facet] = {"bias": self.bias.trait, "topic": topic, "topic_id": key, "repeat": repeat}
                yield Unit(f"{self.bias.trait}/{key}/r{repeat}", facets)

    def estimate(self, unit: Unit) -> UsageEstimate:
        answer = round(self.config.words * 1.3)
        return UsageEstimate(1 + len(FRAMES), 60 + len(FRAMES) * (answer + 140), answer + len(FRAMES) * 40)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        labels = [role.label for role in self.bias.role[:3]]
        people = f"{', '.join(labels[:-1])} and {labels[-1]}"
        question = PROMPTS["answer"](topic=unit.facets["topic"], words=self.config.words, people=people)
        first = await self._table(ANSWERS, self._author, None, models).converse(question)
        answer = first.spoken()[0].text.strip()
        turns, verdicts = list(first.turns), []
        for number, frame in enumerate(FRAMES, 1):
            # The framings have no order: each is a conversation of its own that knows nothing of the others.
            asked = PROMPTS[frame](question=question, answer=answer, ask=PROMPTS["ask"](trait=self.bias.trait))
            judge = Persona(f"Asked_{frame}", ANSWERS.about)
            held = await self._table(judge, self.config.model, Admitted, models).converse(asked)
            turns += [turn._replace(round=number) for turn in held.turns]
            verdicts += list(_verdicts(held.spoken()[0], number, frame))
        return Outcome(Transcript(tuple(turns), "three framings asked"), tuple(verdicts))

    def _table(self, who: Persona, model: str, reply_type: type[BaseModel] | None, models: Models) -> Debate:
        return Debate([who], model=models[model], rounds=1, reply_type=reply_type, options=self._options, models=models)


def _verdicts(turn: Turn, number: int, frame: str) -> Iterator[Verdict]:
    """How many biases were counted, and how many were named: the two need not agree."""
    status = turn.parse_status or "unparsed"
    reply = turn.verdict.model_dump() if turn.verdict else None
    count = reply["count"] if reply else None
    named = float(len([part for part in reply["biases"].split(";") if part.strip()])) if reply else None
    text = reply["biases"] if reply else None
    yield Verdict(turn.speaker, turn.role, number, "biases", frame, count, count, text, status)
    yield Verdict(turn.speaker, turn.role, number, "named", frame, named, named, None, status)
