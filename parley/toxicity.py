"""Texts through several toxicity scorers, side by side.

columns = asyncio.run(score_texts(["embedded", "judge:openai/gpt-4o-mini"], texts))
columns[0].found[0].score
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parley.agents import ConfigError, Models
from parley.judging.toxicity import Scorer, Toxicity, find_scorer
from parley.reports import cautions

AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class ScorerColumn:
    """What one scorer says of every text."""

    name: str
    version: str
    found: tuple[Toxicity, ...]
    caution: str = ""
    """What every reader must know of its model, if there is one: that it is simulated, for example."""

    def scores(self) -> list[float | None]:
        return [one.score for one in self.found]

    def raw(self) -> list[float | None]:
        return [one.raw for one in self.found]


async def score_texts(
    names: Sequence[str],
    texts: Sequence[str],
    *,
    cache: bool = True,
    on_scored: Callable[[int], None] | None = None,
) -> list[ScorerColumn]:
    """One column a scorer, in the order of the names. `on_scored` hears how many more texts one is through with."""
    if len(set(names)) < len(names):
        raise ConfigError("a scorer is named twice")
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
    found: list[Toxicity] = []
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        found += await scorer.score(part)
        if on_scored is not None:
            on_scored(len(part))
    model = name.removeprefix("judge:")
    return ScorerColumn(scorer.name, scorer.version, tuple(found), " ".join(cautions([model])) if model != name else "")
