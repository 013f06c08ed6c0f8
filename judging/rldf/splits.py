"""Train, validation and test, by topic: no topic stands in two of them, whoever debated it and in whatever run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from parley.agents import ConfigError, seed_from
from parley.scenarios import normal

SPLITS = ("train", "validation", "test")


def split_topics(topics: Iterable[str], shares: Sequence[float], seed: int) -> dict[str, str]:
    """Each topic's split. Topics are ordered by a hash, so that a few more topics move few others."""
    if len(shares) != len(SPLITS) or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise ConfigError(f"splits: three shares that add up to 1 are asked for, not {', '.join(map(str, shares))}")
    keys = sorted({normal(topic) for topic in topics}, key=lambda key: (seed_from("split", seed, key), key))
    ends = [round(len(keys) * sum(shares[: n + 1])) for n in range(len(SPLITS))]
    starts = [0, *ends[:-1]]
    return {key: name for name, start, end in zip(SPLITS, starts, ends, strict=True) for key in keys[start:end]}
