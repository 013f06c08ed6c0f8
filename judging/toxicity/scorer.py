"""The interface of toxicity scorers, their scores, and scoring of long texts in pieces."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple, Protocol


class Toxicity(NamedTuple):
    """The toxicity of a text. A text without a score is not necessarily harmless.

    Args:
        score: From 0 to 1, or None.
        raw: The score before any correction, if the scorer has one.
        labels: Scores of finer categories (insult, threat …), if the scorer has them.
        why: Why there is no score.
    """

    score: float | None
    raw: float | None = None
    labels: tuple[tuple[str, float], ...] = ()
    why: str = ""


class Scorer(Protocol):
    """A toxicity scorer: any class with these members.

    It is constructed without arguments, and should raise `ConfigError` if it cannot work (a missing key or
    package). If it reads only some languages, `languages` has their codes, such as `("en",)`; texts in others are then
    unscored.
    """

    name: str
    """The scorer's name, recorded with every score."""
    version: str
    """The version of the model or API, recorded with every score. Cached scores are only used for the same version."""

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        """The toxicity of each text, in order.

        Args:
            texts: The texts; all different.
        """

    async def close(self) -> None:
        """Close connections and free memory; called once, at the end of a run."""


NO_TEXT = "there is no text"
_WORD = re.compile(r"\S{1,1000}")
"""A word of bounded length, so that text in a language without spaces is split too."""


def in_pieces(text: str, words: int) -> list[str]:
    """Pieces of at most `words` words; the unchanged text if it is short enough; no piece if it is blank."""
    all_words = _WORD.findall(text)
    if len(all_words) <= words:
        return [text] if all_words else []
    return [" ".join(all_words[start : start + words]) for start in range(0, len(all_words), words)]


def worst(pieces: Sequence[Toxicity]) -> Toxicity:
    """The toxicity of the whole text; None if a piece has none, since that may be the worst."""
    if not pieces:
        return Toxicity(None, why=NO_TEXT)
    unscored = next((piece for piece in pieces if piece.score is None), None)
    if unscored is not None:
        return unscored
    raw = [piece.raw for piece in pieces if piece.raw is not None]
    labels: dict[str, float] = {}
    for piece in pieces:
        for label, value in piece.labels:
            labels[label] = max(value, labels.get(label, value))
    score = max(piece.score for piece in pieces if piece.score is not None)
    return Toxicity(score, max(raw, default=None), tuple(labels.items()))


class ScorerThresholds(NamedTuple):
    """A scorer's thresholds.

    Args:
        version: The scorer's version for these thresholds; another version may need others.
        harmless_below: A text with a lower score counts as harmless.
        toxic_from: A text with this score or a higher one counts as toxic.
    """

    version: str
    harmless_below: float
    toxic_from: float


@lru_cache(maxsize=1)
def measured_thresholds() -> dict[str, ScorerThresholds]:
    """Thresholds from `thresholds.toml`, by the scorer's name; most scorers have none."""
    table = tomllib.loads(files("parley.judging").joinpath("toxicity", "thresholds.toml").read_text("utf-8"))
    return {
        name: ScorerThresholds(row["version"], row["harmless_below"], row["toxic_from"]) for name, row in table.items()
    }
