"""Scorers by name: shipped, an LLM judge, or files.

    find_scorer("embedded", models)
    find_scorer("judge:openai/gpt-6-luna", models)
    find_scorer("my_scorer.py:Mine", models)

No text is scored twice: equal texts of a batch are scored once, and scores are cached in a file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence

from parley.agents import ConfigError, Models
from parley.agents.models.cache import TextCache
from parley.base.home import home
from parley.base.plugins import Registry
from parley.judging.toxicity.judge import JudgeScorer, ModelScorer, SilentScorer
from parley.judging.toxicity.languages import InItsLanguages
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
        cache: The cache on disk; None to only merge equal texts of a batch.
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


class AlwaysToxic:
    """A scorer in a rehearsal: it may not be asked, since it may be a server, and texts are to be revised."""

    def __init__(self, scorer: Scorer) -> None:
        self.name, self.version = scorer.name, scorer.version

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        return [Toxicity(1.0)] * len(texts)

    async def close(self) -> None:
        """Nothing was opened."""


MODEL_SCORERS: tuple[type[ModelScorer], ...] = (JudgeScorer, SilentScorer)
SCORERS = Registry(
    "scorer",
    {
        "embedded": "parley.judging.toxicity.embedded:Embedded",
        "ngrams": "parley.judging.toxicity.ngrams:Ngrams",
        "openai-moderation": "parley.judging.toxicity.remote:OpenAIModeration",
        "detoxify": "parley.judging.toxicity.detoxify:DetoxifyScorer",
    },
    members=("score", "close"),
    contract="judging/toxicity/scorer.py",
    others=tuple(f"{kind.prefix}provider/model" for kind in MODEL_SCORERS),
)


def find_scorer(name: str, models: Models, *, cache: bool = True) -> Scorer:
    """A scorer. Raises `ConfigError`, with what to set or install, if it cannot work.

    Args:
        name: A scorer's name, `judge:provider/model`, `silent:provider/model`, or `file.py:Class`.
        models: Clients by model name, for a language model.
        cache: Whether scores are cached on disk; without, only equal texts of a batch are merged.
    """
    kind = next((kind for kind in MODEL_SCORERS if name.startswith(kind.prefix)), None)
    scorer: Scorer = kind(name.removeprefix(kind.prefix), models) if kind else _make(name)
    if models.rehearsal and not kind:
        return AlwaysToxic(scorer)
    cached = CachedScorer(scorer, ScoreCache(home() / "scores.sqlite") if cache and not models.rehearsal else None)
    languages = getattr(scorer, "languages", None)
    return InItsLanguages(cached, languages) if languages else cached


def _make(name: str) -> Scorer:
    scorer: Scorer = SCORERS.find(name)()
    if missing := [member for member in ("name", "version") if not isinstance(getattr(scorer, member, None), str)]:
        raise ConfigError(f"{name} is not a scorer: it lacks {', '.join(missing)} (see {SCORERS.contract})")
    return scorer
