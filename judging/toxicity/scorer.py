"""What a toxicity scorer is, and what it says of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Toxicity(NamedTuple):
    """A score from 0 to 1, or None with the reason in `why`: a text that could not be scored is not harmless.

    `raw` is what the scorer said before any mending, `labels` its finer kinds (insult, threat …) where it has them.
    """

    score: float | None
    raw: float | None = None
    labels: tuple[tuple[str, float], ...] = ()
    why: str = ""


class Scorer(Protocol):
    """`name` and `version` are recorded with every score."""

    name: str
    version: str

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        """One for each text, in order."""

    async def close(self) -> None: ...
