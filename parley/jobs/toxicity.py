"""Toxicity of texts that are in no run: scores from several scorers side by side, and STARDTOX's critique loop.

columns = asyncio.run(score_texts(["embedded", "judge:openai/gpt-6-luna"], texts))
columns[0].results[0].score
result = parley.detox("What a stupid idea, you idiot.", model="openai/gpt-6-luna")
result = await parley.detox_async(text, models=models)      # inside an event loop, and for many texts
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parley.agents import Models
from parley.base.errors import ConfigError
from parley.base.tasks import blocking
from parley.judging.stardtox import detox as detox_async
from parley.judging.toxicity import Scorer, Toxicity, find_scorer
from parley.reports import cautions

__all__ = ["BATCH_SIZE", "ScorerColumn", "detox", "detox_async", "score_texts"]
BATCH_SIZE = 64
"""Texts per request to a scorer, and so per step of the progress bar."""


@dataclass(frozen=True, slots=True)
class ScorerColumn:
    """The results of one scorer, one per text.

    Args:
        name: The scorer's name.
        version: Its version, for the record.
        results: One result per text, in their order.
        caution: What a reader must know about the scorer's model, for example that it is simulated.
    """

    name: str
    version: str
    results: tuple[Toxicity, ...]
    caution: str = ""

    def scores(self) -> list[float | None]:
        """The scores, None where a text could not be scored."""
        return [result.score for result in self.results]

    def raw(self) -> list[float | None]:
        """The scores before the scorer's own correction, None where there is none."""
        return [result.raw for result in self.results]


async def score_texts(
    names: Sequence[str],
    texts: Sequence[str],
    *,
    cache: bool = True,
    on_scored: Callable[[int], None] | None = None,
) -> list[ScorerColumn]:
    """Score texts with every scorer; one column per scorer, in the order of the names.

    Args:
        names: Scorers: shipped or installed ones by name, `judge:provider/model`,
            `silent:provider/model`, or `file.py:Class`.
        texts: The texts.
        cache: Reuse scores of earlier calls, and store new ones.
        on_scored: Called with the number of texts that a scorer has just finished.
    """
    if len(set(names)) < len(names):
        raise ConfigError("the same scorer is named twice")
    models = Models()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(models.close)
        scorers: list[Scorer] = []
        for name in names:
            scorers.append(find_scorer(name, models, cache=cache))
            stack.push_async_callback(scorers[-1].close)
        return [await _column(scorer, name, texts, on_scored) for name, scorer in zip(names, scorers, strict=True)]


async def _column(
    scorer: Scorer, name: str, texts: Sequence[str], on_scored: Callable[[int], None] | None
) -> ScorerColumn:
    results: list[Toxicity] = []
    for start in range(0, len(texts), BATCH_SIZE):
        batch = texts[start : start + BATCH_SIZE]
        results += await scorer.score(batch)
        if on_scored is not None:
            on_scored(len(batch))
    model = name.removeprefix("judge:").removeprefix("silent:")
    caution = " ".join(cautions([model])) if model != name else ""
    return ScorerColumn(scorer.name, scorer.version, tuple(results), caution)


detox = blocking(detox_async)
