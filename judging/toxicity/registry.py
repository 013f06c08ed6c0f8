"""Scorers by name: shipped, an LLM judge, or files.

    find_scorer("embedded", models)
    find_scorer("judge:openai/gpt-6-luna", models)
    find_scorer("my_scorer.py:Mine", models)

No text is scored twice in a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from parley.agents import ConfigError, Models
from parley.base.plugins import Registry
from parley.judging.toxicity.judge import JudgeScorer, ModelScorer, SilentScorer
from parley.judging.toxicity.languages import InItsLanguages
from parley.judging.toxicity.scorer import Scorer, Toxicity


class ScoredOnce:
    """A scorer that caches scores, so that no text is scored twice.

    Args:
        scorer: The scorer.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer, self.name, self.version = scorer, scorer.name, scorer.version
        self._scored: dict[str, Toxicity] = {}

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._scored]
        scores = dict(zip(fresh, await self.scorer.score(fresh), strict=True)) if fresh else {}
        self._scored |= {text: toxicity for text, toxicity in scores.items() if toxicity.score is not None}
        return [self._scored.get(text) or scores[text] for text in texts]

    async def close(self) -> None:
        await self.scorer.close()


class AlwaysToxic:
    """Stands in for a scorer in a rehearsal: a scorer may be a server, and texts should be revised."""

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


def find_scorer(name: str, models: Models) -> Scorer:
    """Find a scorer by name; `ConfigError` says what to set or install if it cannot work.

    Args:
        name: A scorer's name, `judge:provider/model`, `silent:provider/model`, or `file.py:Class`.
        models: Clients by model name, for a language model.
    """
    kind = next((kind for kind in MODEL_SCORERS if name.startswith(kind.prefix)), None)
    scorer: Scorer = kind(name.removeprefix(kind.prefix), models) if kind else _make(name)
    if models.rehearsal and not kind:
        return AlwaysToxic(scorer)
    once = scorer if models.rehearsal else ScoredOnce(scorer)
    languages = getattr(scorer, "languages", None)
    return InItsLanguages(once, languages) if languages else once


def _make(name: str) -> Scorer:
    scorer: Scorer = SCORERS.find(name)()
    if missing := [member for member in ("name", "version") if not isinstance(getattr(scorer, member, None), str)]:
        raise ConfigError(f"{name} is not a scorer: it lacks {', '.join(missing)} (see {SCORERS.contract})")
    return scorer
