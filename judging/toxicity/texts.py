"""Texts that are too long for a scorer: split into pieces, and as toxic as the worst of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from parley.judging.toxicity.scorer import Toxicity

NO_TEXT = "there is no text"
_WORD = re.compile(r"\S{1,1000}")
"""Bounded, so that text in a language without spaces is split too."""


def in_pieces(text: str, words: int) -> list[str]:
    """Pieces of at most `words` words; the unchanged text if it is short enough; no piece if it is blank."""
    all_words = _WORD.findall(text)
    if len(all_words) <= words:
        return [text] if all_words else []
    return [" ".join(all_words[start : start + words]) for start in range(0, len(all_words), words)]


def worst(pieces: Sequence[Toxicity]) -> Toxicity:
    """The toxicity of the whole text. It has no score if a piece has none: that piece may be the worst."""
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
