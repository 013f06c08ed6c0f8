"""`embedded`: a linear model of insults whose weights come by pip, mended by identity swaps. No key, no network.

The model (alt-profanity-check) takes some identities for insults: "I am a gay man." 0.95, "I am a Christian." 0.01. So
a text with identity words is scored with all others in their place. The score is their mean in log-odds, drawn towards
the worst of them as far as the rest of the text, without any identity, is hostile: "I hate X" is as bad for all X as
for those whom the model knows as targets. What the model says of the text itself is kept as `raw`.
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

from parley.agents import ConfigError
from parley.judging.toxicity.scorer import Toxicity
from parley.judging.toxicity.swaps import Swaps
from parley.judging.toxicity.texts import NO_TEXT, in_pieces, worst

PIECE_WORDS = 30
"""A longer text is scored by sentences of so many words at most, and is as toxic as the worst: else insults drown."""
KNOWN_SHARE = 0.45
"""With fewer of its words known, a text is in a language or spelling that the model cannot read."""
AT_ONCE = 256
_LOADING = threading.Lock()
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_NAMES = re.compile(r"https?://\S+|[@#]\S+")
"""Addresses and handles are no words, and say nothing of the language."""


class Embedded:
    name = "embedded"

    def __init__(self) -> None:
        if find_spec("profanity_check") is None:
            raise ConfigError("the embedded scorer needs alt-profanity-check: pip install 'parley-autogen[toxicity]'")
        self._swaps = Swaps.load()
        self.version = f"alt-profanity-check {version('alt-profanity-check')}, swaps {self._swaps.version}"

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        return await asyncio.to_thread(self._score, texts)

    def _score(self, texts: Sequence[str]) -> list[Toxicity]:
        with _LOADING:
            model = _model()
        found: list[Toxicity] = []
        for start in range(0, len(texts), AT_ONCE):
            found += self._batch(texts[start : start + AT_ONCE], model)
        return found

    def _batch(self, texts: Sequence[str], model: _Linear) -> list[Toxicity]:
        """All variants of all pieces of all texts in one call to the model."""
        why = [model.unreadable(text) for text in texts]
        pieces = [[] if reason else _pieces(text) for text, reason in zip(texts, why, strict=True)]
        versions = [self._versions(piece) for some in pieces for piece in some]
        odds = iter(model.log_odds([one for some in versions for one in some]))
        each = iter([[next(odds) for _ in some] for some in versions])
        return [
            Toxicity(None, why=reason) if reason else worst([_toxicity(next(each)) for _ in some])
            for some, reason in zip(pieces, why, strict=True)
        ]

    def _versions(self, piece: str) -> list[str]:
        if not self._swaps.found(piece):
            return [piece]
        return [piece, self._swaps.masked(piece), *self._swaps.variants(piece)]

    async def close(self) -> None:
        """Nothing to let go of."""


def _pieces(text: str) -> list[str]:
    if len(text.split()) <= PIECE_WORDS:
        return [text]
    return [piece for sentence in _SENTENCE_END.split(text) for piece in in_pieces(sentence, PIECE_WORDS)]


def _toxicity(odds: list[float]) -> Toxicity:
    return Toxicity(_mend(odds), raw=_chance(odds[0]))


def _mend(odds: list[float]) -> float:
    """From the log-odds of the text, of the text without identities, and with others in it."""
    if len(odds) == 1:
        return _chance(odds[0])
    hostile, others = _chance(odds[1]), odds[2:]
    return _chance((1 - hostile) * fmean(others) + hostile * max(others))


def _chance(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


class _Linear:
    """The pip-installed model, with the words it knows."""

    def __init__(self, vectorizer: Any, model: Any) -> None:
        self._vectorizer, self._model = vectorizer, model
        self._words = re.compile(vectorizer.token_pattern)
        self._known = vectorizer.vocabulary_.keys() | vectorizer.get_stop_words()

    def unreadable(self, text: str) -> str:
        """Why the model cannot say anything of a text, or nothing."""
        if not text.strip():
            return NO_TEXT
        words = self._words.findall(_NAMES.sub(" ", text.lower()))
        if not words:
            return "there are no words in it"
        known = sum(word in self._known for word in words)
        if known < KNOWN_SHARE * len(words):
            return "too few of its words are known to the scorer: another language, or unusual spelling"
        return ""

    def log_odds(self, texts: list[str]) -> list[float]:
        if not texts:
            return []
        import numpy as np

        chance = np.clip(self._model.predict_proba(self._vectorizer.transform(texts))[:, 1], 1e-9, 1 - 1e-9)
        found: list[float] = np.log(chance / (1 - chance)).tolist()
        return found


@lru_cache(maxsize=1)
def _model() -> _Linear:
    from profanity_check import profanity_check

    return _Linear(profanity_check.vectorizer, profanity_check.model)
