"""`detoxify`: the "unbiased" model of Detoxify (RoBERTa, trained to depend less on identities), on this machine.

Its weights, about 500 MB, are downloaded on first use; after that it works offline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from parley.base.errors import ConfigError, install
from parley.judging.toxicity.scorer import Toxicity, in_pieces, worst

MODEL = "unbiased"
PIECE_WORDS = 250
"""Maximum words of a piece: the model truncates its input to 512 tokens."""
BATCH_SIZE = 16


class DetoxifyScorer:
    """Detoxify's "unbiased" model."""

    name = "detoxify"
    languages = ("en",)

    def __init__(self) -> None:
        if find_spec("detoxify") is None:
            raise ConfigError(f"the detoxify scorer needs the package detoxify: {install('detoxify')}")
        self.version = f"{MODEL} {version('detoxify')}"
        self._model: Any = None
        self._lock = asyncio.Lock()

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        async with self._lock:  # one batch at a time: torch already uses all cores
            return await asyncio.to_thread(self._score, texts)

    def _score(self, texts: Sequence[str]) -> list[Toxicity]:
        pieces = [in_pieces(text, PIECE_WORDS) for text in texts]
        flat = [piece for of_text in pieces for piece in of_text]
        scores: list[Toxicity] = []
        for start in range(0, len(flat), BATCH_SIZE):
            scores += self._batch(flat[start : start + BATCH_SIZE])
        in_order = iter(scores)
        return [worst([next(in_order) for _ in of_text]) for of_text in pieces]

    def _batch(self, texts: list[str]) -> list[Toxicity]:
        if self._model is None:
            self._model = _load()
        scores = self._model.predict(texts)
        rows = [values if isinstance(values, list) else [values] for values in scores.values()]
        return [
            Toxicity(labels["toxicity"], labels=tuple(labels.items()))
            for labels in (dict(zip(scores, row, strict=True)) for row in zip(*rows, strict=True))
        ]

    async def close(self) -> None:
        self._model = None


def _load() -> Any:
    from detoxify import Detoxify

    try:
        return Detoxify(MODEL)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ConfigError(
            f"detoxify: its weights could not be loaded; they are downloaded on first use ({reason})"
        ) from None
