"""Scorers by name: shipped, an LLM judge, of installed packages (entry points in the group `parley.scorers`), or files.

find_scorer("embedded", models)
find_scorer("judge:openai/gpt-6-luna", models)
find_scorer("my_scorer.py:Mine", models)
"""

from __future__ import annotations

from parley.agents import ConfigError, Models
from parley.base.home import home
from parley.base.plugins import Registry
from parley.judging.toxicity.cached import CachedScorer, ScoreCache
from parley.judging.toxicity.judge import JudgeScorer
from parley.judging.toxicity.languages import InItsLanguages
from parley.judging.toxicity.scorer import Scorer

DEFAULT_SCORER = "embedded"
SCORERS: dict[str, str] = {
    "embedded": "parley.judging.toxicity.embedded:Embedded",
    "ngrams": "parley.judging.toxicity.ngrams:Ngrams",
    "openai-moderation": "parley.judging.toxicity.openai_moderation:OpenAIModeration",
    "detoxify": "parley.judging.toxicity.detoxify:DetoxifyScorer",
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
    """The names of all scorers, including those of installed packages."""
    return _REGISTRY.known()


def find_scorer(name: str, models: Models, *, cache: bool = True) -> Scorer:
    """A scorer. Raises `ConfigError`, with what to set or install, if it cannot work.

    Args:
        name: A scorer's name, `judge:provider/model`, or `file.py:Class`.
        models: Clients by model name, for an LLM judge.
        cache: Whether scores are cached on disk; without, only equal texts of a batch are merged.
    """
    scorer = JudgeScorer(name.removeprefix(JUDGE), models) if name.startswith(JUDGE) else _make(name)
    cached = CachedScorer(scorer, ScoreCache(home() / "scores.sqlite") if cache else None)
    languages = getattr(scorer, "languages", None)
    return InItsLanguages(cached, languages) if languages else cached


def _make(name: str) -> Scorer:
    scorer: Scorer = _REGISTRY.find(name)()
    if missing := [member for member in ("name", "version") if not isinstance(getattr(scorer, member, None), str)]:
        raise ConfigError(f"{name} is not a scorer: it lacks {', '.join(missing)} (see {_REGISTRY.contract})")
    return scorer
