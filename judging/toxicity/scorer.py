"""What a toxicity scorer is, and the score it gives a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Toxicity(NamedTuple):
    """The toxicity of a text. A text that could not be scored has no score; that does not mean it is harmless.

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
    """What gives a text a toxicity score. Any class with these members is a scorer.

    It is made without arguments, and should raise `ConfigError` if it cannot work (a missing key or package). If it
    reads some languages only, it has their codes in `languages`, as `("en",)`: texts in others are then unscored.
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
