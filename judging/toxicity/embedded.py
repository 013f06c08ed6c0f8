"""`embedded`: a linear model of insults, installed by pip and corrected by identity swaps. No key, no network.

The model (alt-profanity-check) mistakes some identities for insults: "I am a gay man." 0.95, "I am a Christian." 0.01.
So a text with identity words is scored with every other identity in their place. The score is the mean of these in
log-odds. The more hostile the text is without any identity, the closer the score is to the worst of them: "I hate X" is
as bad for every X as for those that the model knows as targets. The model's score of the text itself is `raw`.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from statistics import fmean
from typing import Any

from parley.base.errors import ConfigError, install
from parley.judging.toxicity.languages import NAMES
from parley.judging.toxicity.scorer import NO_TEXT, Toxicity, in_pieces, worst
from parley.judging.toxicity.swaps import Swaps

PIECE_WORDS = 30
"""Longer texts are split into sentences of at most this many words, and are as toxic as the worst one: in a long text
an insult would hardly change the score."""
KNOWN_SHARE = 0.45
"""Minimum share of known words; below it, the model cannot score the text's language or spelling. 40% let two German
sentences through; 45% leaves 26 of 10,000 English texts unscored."""
BATCH_SIZE = 256
_LOADING = threading.Lock()
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class Embedded:
    """The linear model with identity swaps."""

    name = "embedded"
    languages = ("en",)

    def __init__(self) -> None:
        if find_spec("profanity_check") is None:
            raise ConfigError(f"the embedded scorer needs alt-profanity-check: {install('toxicity')}")
        self._swaps = Swaps.load()
        self.version = f"alt-profanity-check {version('alt-profanity-check')}, swaps {self._swaps.version}"

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        return await asyncio.to_thread(self._score, texts)

    def _score(self, texts: Sequence[str]) -> list[Toxicity]:
        with _LOADING:
            model = _model()
        scores: list[Toxicity] = []
        for start in range(0, len(texts), BATCH_SIZE):
            scores += self._batch(texts[start : start + BATCH_SIZE], model)
        return scores

    def _batch(self, texts: Sequence[str], model: _Linear) -> list[Toxicity]:
        """Score all variants of all pieces of all texts in one call to the model."""
        reasons = [model.unreadable(text) for text in texts]
        pieces = [[] if reason else _pieces(text) for text, reason in zip(texts, reasons, strict=True)]
        versions = [self._versions(piece) for of_text in pieces for piece in of_text]
        odds = iter(model.log_odds([version for of_piece in versions for version in of_piece]))
        by_piece = iter([[next(odds) for _ in of_piece] for of_piece in versions])
        return [
            Toxicity(None, why=reason) if reason else worst([_toxicity(next(by_piece)) for _ in of_text])
            for of_text, reason in zip(pieces, reasons, strict=True)
        ]

    def _versions(self, piece: str) -> list[str]:
        """The piece and, if it has identity words, the piece without them and with each other identity."""
        if not self._swaps.identity_words(piece):
            return [piece]
        return [piece, self._swaps.masked(piece), *self._swaps.variants(piece)]

    async def close(self) -> None:
        """Nothing to close."""


def _pieces(text: str) -> list[str]:
    if len(text.split()) <= PIECE_WORDS:
        return [text]
    return [piece for sentence in _SENTENCE_END.split(text) for piece in in_pieces(sentence, PIECE_WORDS)]


def _toxicity(odds: list[float]) -> Toxicity:
    return Toxicity(_corrected(odds), raw=_probability(odds[0]))


def _corrected(odds: list[float]) -> float:
    """The score, from the log-odds of the text as it is, without identities, and with each other identity."""
    if len(odds) == 1:
        return _probability(odds[0])
    hostile, others = _probability(odds[1]), odds[2:]
    # The mean alone would hide hatred, since the model finds "I hate X" bad partly because of X: 0.57 to 0.72, against
    # 0.96 to 0.99 when moved towards the worst. For harmless sentences both are below 0.1.
    return _probability((1 - hostile) * fmean(others) + hostile * max(others))


def _probability(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


class _Linear:
    """The installed model, with its vocabulary."""

    def __init__(self, vectorizer: Any, model: Any) -> None:
        self._vectorizer, self._model = vectorizer, model
        self._words = re.compile(vectorizer.token_pattern)
        self._known = vectorizer.vocabulary_.keys() | vectorizer.get_stop_words()

    def unreadable(self, text: str) -> str:
        """Why the model cannot score a text; empty if it can."""
        if not text.strip():
            return NO_TEXT
        words = self._words.findall(NAMES.sub(" ", text.lower()))
        if not words:
            return "the text has no words"
        known_words = sum(word in self._known for word in words)
        if known_words < KNOWN_SHARE * len(words):
            return "too few of its words are known to the scorer: another language, or unusual spelling"
        return ""

    def log_odds(self, texts: list[str]) -> list[float]:
        if not texts:
            return []
        import numpy as np

        probability = self._model.predict_proba(self._vectorizer.transform(texts))[:, 1]
        probability = np.clip(probability, 1e-9, 1 - 1e-9)  # so that log-odds stay finite
        odds: list[float] = np.log(probability / (1 - probability)).tolist()
        return odds


@lru_cache(maxsize=1)
def _model() -> _Linear:
    from profanity_check import profanity_check

    return _Linear(profanity_check.vectorizer, profanity_check.model)
