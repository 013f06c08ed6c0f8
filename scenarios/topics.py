"""Topics to debate, for five bias types: shipped lists of 200 each, or a user's own text file, one topic a line.

    topics = load_topics("age")
    twenty = sample(topics, 20, seed=0)

A list is checked for topics that stand in it twice, word for word or nearly so.
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

from parley.scenarios.checks import words
from parley.scenarios.errors import ScenarioError, UnknownName

BIASES = ("age", "nationality", "institution", "beauty", "profession")
LONGEST = 2000
"""Characters of a topic."""
NEAR = 0.7
"""Likeness from which two topics count as the same."""


def load_topics(name: str) -> tuple[str, ...]:
    """The topics of a bias type, or of a text file; blank lines and lines that begin with # are passed over."""
    if name in BIASES:
        text = files("parley.scenarios").joinpath("data", "topics", f"{name}.txt").read_text("utf-8")
    elif not name.endswith(".txt"):
        raise UnknownName(f"no topics for '{name}' (known: {', '.join(BIASES)}, or a path to a .txt file)")
    else:
        try:
            text = Path(name).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{name}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    topics = tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if not topics:
        raise ScenarioError(f"{name}: there is no topic in it")
    if too_long := [topic for topic in topics if len(topic) > LONGEST]:
        raise ScenarioError(f"{name}: '{too_long[0][:40]}…' has {len(too_long[0]):,} characters, and no topic has")
    known: dict[str, str] = {}
    for topic in topics:
        if (same := known.get(normal(topic))) is not None:
            raise ScenarioError(f"{name}: '{topic}' stands in it twice (as '{same}')")
        known[normal(topic)] = topic
    return topics


def topic_areas() -> tuple[str, ...]:
    """The areas of life that generated topics are spread over."""
    lines = files("parley.scenarios").joinpath("data", "topics", "areas.txt").read_text("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def normal(topic: str) -> str:
    """A topic without case, punctuation and spacing: what two spellings of one topic share."""
    return " ".join(words(topic))


def topic_id(topic: str) -> str:
    """A short name that stays the same wherever the topic stands in a list."""
    slug = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-")[:32].strip("-")
    return f"{slug or 'topic'}-{hashlib.sha256(normal(topic).encode()).hexdigest()[:6]}"


def sample(topics: Sequence[str], count: int, seed: int) -> list[str]:
    """So many topics, drawn by the seed; a larger count holds all that a smaller one has."""
    if count > len(topics):
        raise ScenarioError(f"{count} topics are asked for and the list has {len(topics)}; parley topics generate")
    mixed = list(topics)
    random.Random(seed).shuffle(mixed)
    return mixed[:count]


class Known:
    """The topics that are there, and a quick answer to whether another is one of them, or near to one."""

    def __init__(self, topics: Iterable[str] = (), near: float = NEAR) -> None:
        self.near = near
        self._normal: dict[str, str] = {}
        self._counts: list[tuple[str, Counter[str], float]] = []
        self._holding: dict[str, list[int]] = defaultdict(list)
        for topic in topics:
            self.add(topic)

    def add(self, topic: str) -> None:
        stems = _stems(topic)
        self._normal.setdefault(normal(topic), topic)
        for stem in stems:
            self._holding[stem].append(len(self._counts))
        self._counts.append((topic, stems, _length(stems)))

    def like(self, topic: str) -> str | None:
        """A topic that says the same in the same words, or nearly the same ones."""
        if (same := self._normal.get(normal(topic))) is not None:
            return same
        stems = _stems(topic)
        size = _length(stems)
        shared: Counter[int] = Counter()
        for stem, count in stems.items():
            for at in self._holding.get(stem, ()):
                shared[at] += count * self._counts[at][1][stem]
        for at, dot in shared.items():
            if dot >= self.near * size * self._counts[at][2]:
                return self._counts[at][0]
        return None


def near_duplicates(topics: Iterable[str], near: float = NEAR) -> list[tuple[str, str]]:
    """Topics that are too near to an earlier one, each with that one."""
    known = Known(near=near)
    found = []
    for topic in topics:
        if (same := known.like(topic)) is not None:
            found.append((topic, same))
        known.add(topic)
    return found


_COMMON = """
about after also because been before between both could does from have into more most much only other ought over
should some such than that their them then there these they this those under very what when where which while who
whom whose will with without would your
"""


@lru_cache(maxsize=1)
def _common() -> frozenset[str]:
    return frozenset(_COMMON.split())


def _stems(topic: str) -> Counter[str]:
    """What a topic is about: beginnings of its words, without those that every question has."""
    return Counter(word[:6] for word in words(topic) if len(word) > 3 and word not in _common())


def _length(stems: Counter[str]) -> float:
    return float(sum(count * count for count in stems.values()) ** 0.5)
