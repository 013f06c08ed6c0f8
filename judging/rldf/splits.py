"""Train, validation and test splits by topic: no topic is in two of them, in any debate of any run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from parley.agents import ConfigError, seed_from
from parley.scenarios import normal

SPLITS = ("train", "validation", "test")


def split_topics(topics: Iterable[str], shares: Sequence[float], seed: int) -> dict[str, str]:
    """Each topic's split. Topics are ordered by a hash, so that adding a few topics moves few others.

    Args:
        topics: The topics, in any order.
        shares: The shares of train, validation and test; they must add up to 1.
        seed: Another seed gives another split.
    """
    if len(shares) != len(SPLITS) or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise ConfigError(f"splits must be three shares that add up to 1, got {', '.join(map(str, shares))}")
    keys = sorted({normal(topic) for topic in topics}, key=lambda key: (seed_from("split", seed, key), key))
    ends = [round(len(keys) * sum(shares[: n + 1])) for n in range(len(SPLITS))]
    starts = [0, *ends[:-1]]
    return {key: name for name, start, end in zip(SPLITS, starts, ends, strict=True) for key in keys[start:end]}
