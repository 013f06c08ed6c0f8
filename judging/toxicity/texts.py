"""Texts too long for a scorer: cut into pieces, and as toxic as the worst of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from parley.judging.toxicity.scorer import Toxicity

NO_TEXT = "there is no text"
_WORD = re.compile(r"\S{1,1000}")
"""A language without spaces is cut too."""


def in_pieces(text: str, words: int) -> list[str]:
    """Pieces of so many words at most; the text itself, untouched, if it is no longer; none of blank text."""
    found = _WORD.findall(text)
    if len(found) <= words:
        return [text] if found else []
    return [" ".join(found[start : start + words]) for start in range(0, len(found), words)]


def worst(pieces: Sequence[Toxicity]) -> Toxicity:
    """What the pieces say of the whole. A piece that could not be scored may be the worst: then the whole is not."""
    if not pieces:
        return Toxicity(None, why=NO_TEXT)
    unscored = next((one for one in pieces if one.score is None), None)
    if unscored is not None:
        return unscored
    raw = [one.raw for one in pieces if one.raw is not None]
    labels: dict[str, float] = {}
    for one in pieces:
        for label, value in one.labels:
            labels[label] = max(value, labels.get(label, value))
    return Toxicity(
        max(one.score for one in pieces if one.score is not None), max(raw, default=None), tuple(labels.items())
    )
