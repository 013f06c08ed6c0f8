"""Writes topics for debates with a model of choice: spread evenly over areas of life, none twice.

    parley topics generate age --count 2000 --model openai/gpt-4o-mini --to age-2000.txt

One conversation an area (and part of it, where many are asked for): the writer sees what it has written, and is told
why a topic was refused (too long or short, too near to one that is there). What two conversations have in common is
found when all is gathered, so a few more are written than are asked for.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, Models
from parley.judging.rldf.roles import load_bias
from parley.judging.study import Accepted, Outcome, Prompt, Unit, UsageEstimate
from parley.judging.writing import write, writer
from parley.scenarios import BIASES, Known, load_topics, topic_areas, words
from parley.scenarios.topics import NEAR

PROMPTS = {key: Prompt.load(f"rldf/{key}") for key in ("topic", "topic_more", "topic_again")}
TOPIC_WORDS = (4, 24)
PART = 20
"""Topics in one conversation, at most: beyond that a writer repeats itself."""


class TopicsConfig(BaseModel):
    """Everything that changes which topics are written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bias: str = Field("age", description="age, nationality, institution, beauty, profession, or a .toml file of roles")
    count: int = Field(200, ge=1, description="how many topics")
    model: str = Field(DEFAULT_MODEL, description="the writer's model, as provider/model")
    spare: float = Field(0.1, ge=0, le=2, description="share written beyond the count, for those found twice")
    tries: int = Field(3, ge=1, le=20, description="replies for each wanted topic, at most")
    near: float = Field(NEAR, gt=0, le=1, description="likeness from which two topics count as the same")
    shipped: bool = Field(True, description="also differ from the shipped topics of the bias type")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(120, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every random choice")


class Topic(BaseModel):
    topic: str


@dataclass(frozen=True, slots=True)
class CollectedTopics:
    """The topics by area, those that were too near to one from another conversation, and how many are missing."""

    topics: dict[str, list[str]]
    near: list[tuple[str, str]]
    missing: int


class WriteTopics:
    """Topics for debates, spread evenly over areas of life, none twice."""

    name: ClassVar[str] = "topics"
    Config: ClassVar[type[BaseModel]] = TopicsConfig

    def __init__(self, config: TopicsConfig) -> None:
        self.config = config
        self.bias = load_bias(config.bias)
        self._there = load_topics(config.bias) if config.shipped and config.bias in BIASES else ()
        areas = topic_areas()
        each, more = divmod(config.count, len(areas))
        self._quota = {area: each + (n < more) for n, area in enumerate(areas) if each + (n < more)}

    def models(self) -> list[str]:
        return [self.config.model]

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in PROMPTS.values()} | {"persona/Writer": writer().about}

    def sources(self) -> Mapping[str, str]:
        there = "\n".join((*self._quota, *self._there))
        return {f"areas and topics {self.config.bias}": hashlib.sha256(there.encode()).hexdigest()}

    def plan(self) -> Iterator[Unit]:
        for area, quota in self._quota.items():
            wanted = quota + math.ceil(round(quota * self.config.spare, 6))
            parts = math.ceil(wanted / PART)
            for part in range(parts):
                here = wanted // parts + (part < wanted % parts)
                key = area.replace(" ", "-")
                yield Unit(f"{self.bias.trait}/{key}/{part}", {"bias": self.bias.trait, "area": area, "wanted": here})

    def estimate(self, unit: Unit) -> UsageEstimate:
        wanted = int(unit.facets["wanted"])
        return UsageEstimate(wanted, wanted * 230 + sum(range(wanted)) * 60, wanted * 25)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        config, area = self.config, str(unit.facets["area"])
        known = Known(self._there, config.near)

        def check(reply: BaseModel | None) -> list[str]:
            assert isinstance(reply, Topic), "the writer's replies are read as Topic"
            problems = topic_problems(reply.topic, known)
            if not problems:
                known.add(reply.topic)
            return problems

        def then(problems: list[str]) -> str:
            return PROMPTS["topic_again" if problems else "topic_more"](problems="; ".join(problems), area=area)

        options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            options |= {"temperature": config.temperature}
        wanted = int(unit.facets["wanted"])
        low, high = TOPIC_WORDS
        roster = ", ".join(role.label for role in self.bias.role[:3])
        some = self._there[:: max(1, len(self._there) // 3)][:3]
        there = f" For the tone, three that are there already: {' / '.join(some)}" if some else ""
        return await write(
            PROMPTS["topic"](trait=self.bias.trait, roster=roster, low=low, high=high, area=area, there=there),
            Topic,
            model=config.model,
            models=models,
            check=check,
            then=then,
            wanted=wanted,
            tries=wanted * config.tries,
            options=options,
        )

    def harvest(self, accepted: Iterable[Accepted]) -> CollectedTopics:
        """All that was accepted, once; each area gives its share, and where one falls short the others' spares do."""
        known = Known(self._there, self.config.near)
        by_area: dict[str, list[str]] = {area: [] for area in self._quota}
        near = []
        for one in accepted:
            topic = clean(Topic.model_validate(one.reply).topic)
            if (same := known.like(topic)) is not None:
                near.append((topic, same))
                continue
            known.add(topic)
            by_area[str(one.facets["area"])].append(topic)
        kept = {area: topics[: self._quota[area]] for area, topics in by_area.items()}
        missing = self.config.count - sum(map(len, kept.values()))
        for area, topics in by_area.items():
            spare = topics[self._quota[area] :][:missing]
            kept[area] += spare
            missing -= len(spare)
        return CollectedTopics(kept, near, missing)


def clean(topic: str) -> str:
    return " ".join(topic.split()).strip("\"'“”")


def topic_problems(topic: str, known: Known) -> list[str]:
    """Why a topic will not do."""
    topic = clean(topic)
    length = len(words(topic))
    if not TOPIC_WORDS[0] <= length <= TOPIC_WORDS[1]:
        return [f"it has {length} words ({TOPIC_WORDS[0]} to {TOPIC_WORDS[1]} are asked)"]
    if topic.startswith("#"):
        return ["it begins with #"]
    if (same := known.like(topic)) is not None:
        return [f"it is too near to one that is there already: {same}"]
    return []
