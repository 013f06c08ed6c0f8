"""A scorer that scores no text twice: equal texts of a batch are scored once, and scores are cached in a file.

The key is the scorer's name and version and the text. A text that could not be scored is not cached, so that it is
tried again later.
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
    """Another scorer with a cache.

    Args:
        scorer: The scorer.
        cache: The cache on disk; None to merge equal texts of a batch only.
    """

    def __init__(self, scorer: Scorer, cache: ScoreCache | None = None) -> None:
        self.scorer, self.name, self.version = scorer, scorer.name, scorer.version
        self._cache = cache

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        scores = {text: cached for text in dict.fromkeys(texts) if (cached := self._get(text)) is not None}
        fresh = [text for text in dict.fromkeys(texts) if text not in scores]
        if fresh:
            scores.update(zip(fresh, await self.scorer.score(fresh), strict=True))
            self._put({text: scores[text] for text in fresh})
        return [scores[text] for text in texts]

    def _key(self, text: str) -> bytes:
        key = "\x1f".join((self.name, self.version, text)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(key, digest_size=20).digest()

    def _get(self, text: str) -> Toxicity | None:
        return self._cache.read(self._key(text), _parse) if self._cache else None

    def _put(self, scored: dict[str, Toxicity]) -> None:
        if self._cache is None:
            return
        for text, (score, raw, labels, _) in scored.items():
            if score is not None:
                self._cache.put_text(self._key(text), self.name, json.dumps([score, raw, labels]))
        self._cache.commit()

    async def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        await self.scorer.close()
