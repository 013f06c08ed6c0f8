"""Writes topics for debates with any model: spread evenly over areas of life, without duplicates.

    parley run topics --bias age --count 2000 --model openai/gpt-6-luna --to age-2000.txt

There is one conversation per area (several, if many topics are requested): the writer sees what it has written, and
why a topic was rejected (too long or too short, too similar to an existing one). Duplicates between conversations are
found only when all topics are collected, so a few extra topics are written.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, Field

from parley.base.text import plural
from parley.judging.config import limit_field
from parley.judging.grid import varies
from parley.judging.rldf.roles import load_bias
from parley.judging.study import Accepted, Advanced, Written
from parley.judging.writing.study import MORE, Assignment, Check, WriterConfig, WritingStudy, length_problem, prompts
from parley.scenarios import BIASES, TopicIndex, load_topics, topic_areas, words

TOPIC_WORDS = (4, 24)
SPARE = 0.1
"""Share of extra topics to write, to replace duplicates."""
TOPICS_PER_CONVERSATION = 20
"""Maximum topics per conversation: in longer ones a writer repeats itself."""


class TopicsConfig(WriterConfig, frozen=True):
    """All settings that change the written topics."""

    bias: str = Field(
        "age", description="bias type: age, nationality, institution, beauty, profession, or a .toml file of roles"
    )
    count: int = Field(200, ge=1, description="number of topics")
    limit: int | None = limit_field("number of topics to write, if fewer than --count")
    shipped: Advanced[bool] = Field(
        True, description="new topics must also differ from the shipped ones of the bias type"
    )
    max_tokens: Advanced[int] = Field(120, ge=16, description="maximum length of one reply, in tokens")


class Topic(BaseModel):
    topic: str


@dataclass(frozen=True, slots=True)
class CollectedTopics:
    """The topics of a finished run.

    Args:
        topics: The topics by area.
        near: Topics that were left out because they are too similar to another, each with that other.
        missing: The number of missing topics.
    """

    topics: dict[str, list[str]]
    near: list[tuple[str, str]]
    missing: int


@dataclass(frozen=True, kw_only=True)
class TopicsCell:
    """The topics of one conversation."""

    bias: str = varies("text", "{}")
    area: str = varies("text", "{}")
    wanted: int = varies("technical")


class WriteTopics(WritingStudy):
    """Topics for debates, spread evenly over areas of life, without duplicates."""

    name = "topics"
    Config = TopicsConfig
    Cell = TopicsCell
    writes = ".txt"
    used = prompts("rldf/topic", MORE)
    reply = Topic

    def __init__(self, config: TopicsConfig) -> None:
        self.config: TopicsConfig = config
        self.bias = load_bias(config.bias)
        self._existing = load_topics(config.bias) if config.shipped and config.bias in BIASES else ()
        areas = topic_areas()
        self._count = min(config.count, config.limit or config.count)
        each, more = divmod(self._count, len(areas))
        self._quota = {area: each + (n < more) for n, area in enumerate(areas) if each + (n < more)}

    def sources(self) -> Mapping[str, str]:
        text = "\n".join((*self._quota, *self._existing))
        return {f"areas and topics {self.config.bias}": hashlib.sha256(text.encode()).hexdigest()}

    def cells(self) -> Iterator[tuple[str, TopicsCell]]:
        trait = self.bias.trait
        for area, quota in self._quota.items():
            wanted = quota + math.ceil(round(quota * SPARE, 6))
            parts = math.ceil(wanted / TOPICS_PER_CONVERSATION)
            for part in range(parts):
                size = wanted // parts + (part < wanted % parts)
                yield f"{trait}/{area.replace(' ', '-')}/{part}", TopicsCell(bias=trait, area=area, wanted=size)

    def assignment(self, cell: TopicsCell) -> Assignment:
        low, high = TOPIC_WORDS
        examples = self._existing[:: max(1, len(self._existing) // 3)][:3]
        values = {
            "trait": cell.bias,
            "roster": ", ".join(role.label for role in self.bias.role[:3]),
            "low": low,
            "high": high,
            "area": cell.area,
            "there": f" For the tone, three that are there already: {' / '.join(examples)}" if examples else "",
        }
        return Assignment(values=values, check=_check(TopicIndex(self._existing)), wanted=cell.wanted)

    def written(self, accepted: Iterable[Accepted]) -> Written:
        """The topics, one per line."""
        collected = self.harvest(accepted)
        total = sum(map(len, collected.topics.values()))
        missing = f", {collected.missing} fewer than requested" if collected.missing else ""
        areas = (f"# {area}\n" + "".join(f"{topic}\n" for topic in topics) for area, topics in collected.topics.items())
        return Written(
            text="".join(areas) if total else "",
            remark="Edit freely, one topic per line.",
            about=f"{plural(total, 'topic')} in {plural(len(collected.topics), 'area')}{missing}; "
            f"{plural(len(collected.near), 'near-duplicate')} left out",
            missing=collected.missing > 0,
        )

    def harvest(self, accepted: Iterable[Accepted]) -> CollectedTopics:
        """The accepted topics without duplicates: each area's share, filled up from other areas if too few."""
        listed = TopicIndex(self._existing)
        by_area: dict[str, list[str]] = {area: [] for area in self._quota}
        near = []
        for item in accepted:
            topic = clean(Topic.model_validate(item.reply).topic)
            if (same := listed.like(topic)) is not None:
                near.append((topic, same))
                continue
            listed.add(topic)
            by_area[str(item.facets["area"])].append(topic)
        chosen = {area: topics[: self._quota[area]] for area, topics in by_area.items()}
        missing = self._count - sum(map(len, chosen.values()))
        for area, topics in by_area.items():
            spare = topics[self._quota[area] :][:missing]
            chosen[area] += spare
            missing -= len(spare)
        return CollectedTopics(chosen, near, missing)


def clean(topic: str) -> str:
    """A topic on one line, with single spaces and without quotation marks around it."""
    return " ".join(topic.split()).strip("\"'“”")


def _check(listed: TopicIndex) -> Check:
    def check(reply: Topic) -> list[str]:
        problems = topic_problems(reply.topic, listed)
        if not problems:
            listed.add(reply.topic)
        return problems

    return check


def topic_problems(topic: str, listed: TopicIndex) -> list[str]:
    """The problems of a topic; an empty list if it is accepted."""
    topic = clean(topic)
    if length := length_problem("it", len(words(topic)), *TOPIC_WORDS):
        return [*length]
    if topic.startswith("#"):
        return ["it begins with #"]
    if (same := listed.like(topic)) is not None:
        return [f"it is too similar to an existing topic: {same}"]
    return []
