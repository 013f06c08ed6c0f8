"""`detoxify`: the "unbiased" model of Detoxify (RoBERTa, trained to be less moved by identities), on this machine.

Its weights, about 500 MB, come from the net on first use; later it runs without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from parley.agents import ConfigError
from parley.judging.toxicity.scorer import Toxicity
from parley.judging.toxicity.texts import in_pieces, worst

MODEL = "unbiased"
PIECE_WORDS = 250
"""The model reads 512 tokens and would drop the rest."""
AT_ONCE = 16


class DetoxifyScorer:
    name = "detoxify"

    def __init__(self) -> None:
        if find_spec("detoxify") is None:
            raise ConfigError("the detoxify scorer needs its package: pip install 'parley-autogen[detoxify]'")
        self.version = f"{MODEL} {version('detoxify')}"
        self._model: Any = None
        self._lock = asyncio.Lock()

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        async with self._lock:  # one batch at a time: torch uses all cores by itself
            return await asyncio.to_thread(self._score, texts)

    def _score(self, texts: Sequence[str]) -> list[Toxicity]:
        cut = [in_pieces(text, PIECE_WORDS) for text in texts]
        flat = [piece for pieces in cut for piece in pieces]
        found: list[Toxicity] = []
        for start in range(0, len(flat), AT_ONCE):
            found += self._batch(flat[start : start + AT_ONCE])
        each = iter(found)
        return [worst([next(each) for _ in pieces]) for pieces in cut]

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
        said = " ".join(str(error).split())[:120]
        raise ConfigError(
            f"detoxify: its weights could not be loaded; they come from the net on first use ({said})"
        ) from None
