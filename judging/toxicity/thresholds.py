"""The thresholds of toxicity scorers, in `thresholds.toml`, each measured on one version of its scorer."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple


class ScorerThresholds(NamedTuple):
    """A scorer's thresholds.

    Args:
        version: The scorer's version that they were measured on; another one may need others.
        harmless_below: A text with a lower score counts as harmless.
        toxic_from: A text with this score or a higher one counts as toxic.
    """

    version: str
    harmless_below: float
    toxic_from: float


@lru_cache(maxsize=1)
def measured_thresholds() -> dict[str, ScorerThresholds]:
    """The thresholds by the scorer's name; most scorers have none."""
    table = tomllib.loads(files("parley.judging").joinpath("toxicity", "thresholds.toml").read_text("utf-8"))
    return {
        name: ScorerThresholds(row["version"], row["harmless_below"], row["toxic_from"]) for name, row in table.items()
    }
