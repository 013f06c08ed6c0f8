"""A scorer that scores no text twice: equal texts of a batch are one, and what was scored is kept in a file.

The address is the scorer's name and version and the text. What could not be scored is not kept: it may be scored later.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence

from parley.agents.models.cache import TextCache
from parley.judging.toxicity.scorer import Scorer, Toxicity


class ScoreCache(TextCache):
    label = "score cache"


def _parse(kept: str) -> Toxicity:
    """A score as it was kept; a `ValueError` if it is not one."""
    score, raw, labels = json.loads(kept)
    toxicity = Toxicity(score, raw, tuple((str(label), value) for label, value in labels))
    numbers = [toxicity.score, *([] if raw is None else [raw]), *(value for _, value in toxicity.labels)]
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers) or not 0 <= score <= 1:
        raise ValueError("not a score")
    return toxicity


class CachedScorer:
    def __init__(self, scorer: Scorer, cache: ScoreCache | None = None) -> None:
        self.scorer, self.name, self.version = scorer, scorer.name, scorer.version
        self._cache = cache

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        found = {text: kept for text in dict.fromkeys(texts) if (kept := self._get(text)) is not None}
        fresh = [text for text in dict.fromkeys(texts) if text not in found]
        if fresh:
            scored = await self.scorer.score(fresh)
            found.update(zip(fresh, scored, strict=True))
            self._put({text: found[text] for text in fresh})
        return [found[text] for text in texts]

    def _address(self, text: str) -> bytes:
        whole = "\x1f".join((self.name, self.version, text)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(whole, digest_size=20).digest()

    def _get(self, text: str) -> Toxicity | None:
        return self._cache.read(self._address(text), _parse) if self._cache else None

    def _put(self, scored: dict[str, Toxicity]) -> None:
        if self._cache is None:
            return
        for text, one in scored.items():
            if one.score is not None:
                self._cache.put_text(self._address(text), self.name, json.dumps([one.score, one.raw, one.labels]))
        self._cache.commit()

    async def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        await self.scorer.close()
