"""Topics of debates: shipped lists of 200 for each of five bias types, or your own text file with one topic per line.

    topics = load_topics("age")
    twenty = sample(topics, 20, seed=0)

A list may not contain a topic twice; near duplicates can be found.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from parley.base.errors import ScenarioError, UnknownName
from parley.base.problems import MAX_PROBLEMS
from parley.base.text import normal, words

BIASES = ("age", "nationality", "institution", "beauty", "profession")
MAX_TOPIC_CHARS = 2000
NEAR = 0.7
"""Similarity (0 to 1) from which two topics count as the same."""


def load_topics(name: str) -> tuple[str, ...]:
    """The topics of a list.

    Args:
        name: A bias type, or a path to a .txt file; blank lines and lines that begin with # are skipped.
    """
    if name in BIASES:
        text = files("parley.scenarios").joinpath("data", "topics", f"{name}.txt").read_text("utf-8")
    elif not name.endswith(".txt"):
        raise UnknownName(f"unknown bias type '{name}' (known: {', '.join(BIASES)}, or a path to a .txt file)")
    else:
        try:
            text = Path(name).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{name}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    problems: list[str] = []
    topics: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        topic = line.strip()
        if not topic or line.startswith("#"):
            continue
        if len(topic) > MAX_TOPIC_CHARS:
            problems.append(
                f"line {number}: '{topic[:40]}…' has {len(topic):,} characters; the limit is {MAX_TOPIC_CHARS:,}"
            )
        elif (same := topics.get(normal(topic))) is not None:
            problems.append(f"line {number}: '{topic}' occurs twice (also as '{same}')")
        else:
            topics[normal(topic)] = topic
    if not topics and not problems:
        problems.append("contains no topic")
    if problems:
        raise ScenarioError(f"{name}: {'; '.join(problems[:MAX_PROBLEMS])}")
    return tuple(topics.values())


def topic_areas() -> tuple[str, ...]:
    """The areas of life over which generated topics are spread."""
    lines = files("parley.scenarios").joinpath("data", "topics", "areas.txt").read_text("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def topics_digest(topics: Iterable[str]) -> str:
    """The SHA-256 hash of a list of topics, independent of case, punctuation and spacing."""
    return hashlib.sha256("\n".join(map(normal, topics)).encode()).hexdigest()


def topic_id(topic: str) -> str:
    """A short name that does not depend on the position in a list."""
    slug = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-")[:32].strip("-")
    return f"{slug or 'topic'}-{hashlib.sha256(normal(topic).encode()).hexdigest()[:6]}"


def sample(topics: Sequence[str], count: int, seed: int) -> list[str]:
    """A random sample; a larger sample contains every smaller one of the same seed.

    Args:
        topics: The list.
        count: Number of topics.
        seed: The random seed.
    """
    if count > len(topics):
        raise ScenarioError(
            f"{count} topics were requested, but the list has only {len(topics)}; "
            f"write them with `parley run topics --count {count} --to topics.txt`, then use --topics-from topics.txt"
        )
    mixed = list(topics)
    random.Random(seed).shuffle(mixed)
    return mixed[:count]


class TopicIndex:
    """An index of topics that quickly finds similar ones.

    Args:
        topics: The topics to start with.
        near: Similarity (0 to 1) from which two topics count as the same.
    """

    def __init__(self, topics: Iterable[str] = (), near: float = NEAR) -> None:
        self.near = near
        self._normal: dict[str, str] = {}
        self._counts: list[tuple[str, Counter[str], float]] = []
        self._with_stem: dict[str, list[int]] = defaultdict(list)
        for topic in topics:
            self.add(topic)

    def add(self, topic: str) -> None:
        """Add a topic."""
        stems = _stems(topic)
        self._normal.setdefault(normal(topic), topic)
        for stem in stems:
            self._with_stem[stem].append(len(self._counts))
        self._counts.append((topic, stems, _length(stems)))

    def like(self, topic: str) -> str | None:
        """A topic in the index with the same or nearly the same words; None if there is none."""
        if (same := self._normal.get(normal(topic))) is not None:
            return same
        stems = _stems(topic)
        size = _length(stems)
        shared: Counter[int] = Counter()
        for stem, count in stems.items():
            for place in self._with_stem.get(stem, ()):
                shared[place] += count * self._counts[place][1][stem]
        for place, dot in shared.items():
            if dot >= self.near * size * self._counts[place][2]:
                return self._counts[place][0]
        return None


def near_duplicates(topics: Iterable[str]) -> list[tuple[str, str]]:
    """Topics that are too similar to an earlier one, with the earlier one."""
    earlier = TopicIndex()
    duplicates = []
    for topic in topics:
        if (same := earlier.like(topic)) is not None:
            duplicates.append((topic, same))
        earlier.add(topic)
    return duplicates


_COMMON = """
about after also because been before between both could does from have into more most much only other ought over
should some such than that their them then there these they this those under very what when where which while who
whom whose will with without would your
"""


@lru_cache(maxsize=1)
def _common() -> frozenset[str]:
    return frozenset(_COMMON.split())


def _stems(topic: str) -> Counter[str]:
    """Counts of a topic's word stems (six letters), without common words."""
    return Counter(word[:6] for word in words(topic) if len(word) > 3 and word not in _common())


def _length(stems: Counter[str]) -> float:
    return float(sum(count * count for count in stems.values()) ** 0.5)
