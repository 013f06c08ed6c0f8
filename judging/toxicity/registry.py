"""Scorers by name: ours, an LLM judge, those of installed packages (entry points in the group `parley.scorers`), files.

find_scorer("embedded", models)
find_scorer("judge:openai/gpt-4o-mini", models)
find_scorer("my_scorer.py:Mine", models)
"""

from __future__ import annotations

from parley.agents import ConfigError, Models
from parley.agents.home import home
from parley.agents.plugins import Registry
from parley.judging.toxicity.cached import CachedScorer, ScoreCache
from parley.judging.toxicity.judge import JudgeScorer
from parley.judging.toxicity.scorer import Scorer

DEFAULT_SCORER = "embedded"
SCORERS: dict[str, str] = {
    "embedded": "parley.judging.toxicity.embedded:Embedded",
    "openai-moderation": "parley.judging.toxicity.openai_moderation:OpenAIModeration",
    "detoxify": "parley.judging.toxicity.detoxify:DetoxifyScorer",
    "perspective": "parley.judging.toxicity.perspective:Perspective",
}
JUDGE = "judge:"
_REGISTRY = Registry(
    "scorer",
    group="parley.scorers",
    shipped=SCORERS,
    members=("score", "close"),
    contract="judging/toxicity/scorer.py",
    others=(f"{JUDGE}provider/model",),
)


def known_scorers() -> dict[str, str]:
    """The names of all scorers, those of installed packages included."""
    return _REGISTRY.known()


def find_scorer(name: str, models: Models, *, cache: bool = True) -> Scorer:
    """The scorer of a name. Fails at once, with what to set or install, if it cannot work.

    No text is scored twice by one version of it; with `cache=False` only within a batch.
    """
    scorer = JudgeScorer(name.removeprefix(JUDGE), models) if name.startswith(JUDGE) else _plain(name)
    return CachedScorer(scorer, ScoreCache(home() / "scores.sqlite") if cache else None)


def _plain(name: str) -> Scorer:
    scorer: Scorer = _REGISTRY.find(name)()
    if missing := [member for member in ("name", "version") if not isinstance(getattr(scorer, member, None), str)]:
        raise ConfigError(f"{name} is not a scorer: it lacks {', '.join(missing)} (see {_REGISTRY.contract})")
    return scorer
