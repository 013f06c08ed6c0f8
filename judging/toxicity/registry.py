"""Scorers by name: ours, an LLM judge, those of installed packages (entry points in the group `parley.scorers`), files.

find_scorer("embedded", models)
find_scorer("judge:openai/gpt-4o-mini", models)
find_scorer("my_scorer.py:Mine", models)
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from agents import ConfigError, Models
from agents.models.catalogue import home
from judging.registry import load_module
from judging.toxicity.judge import Judge
from judging.toxicity.kept import Kept, ScoreCache
from judging.toxicity.scorer import Scorer

DEFAULT_SCORER = "embedded"
SCORERS: dict[str, str] = {
    "embedded": "judging.toxicity.embedded:Embedded",
    "openai-moderation": "judging.toxicity.openai_moderation:OpenAIModeration",
    "detoxify": "judging.toxicity.detoxify:DetoxifyScorer",
    "perspective": "judging.toxicity.perspective:Perspective",
}
JUDGE = "judge:"


def known_scorers() -> dict[str, str]:
    """The names of all scorers, installed ones among them."""
    return {**{entry.name: entry.value for entry in entry_points(group="parley.scorers")}, **SCORERS}


def find_scorer(name: str, models: Models, *, cache: bool = True) -> Scorer:
    """The scorer of a name. Fails at once, with what to set or install, if it cannot work.

    No text is scored twice by one version of it; with `cache=False` only within a batch.
    """
    scorer = Judge(name.removeprefix(JUDGE), models) if name.startswith(JUDGE) else _plain(name)
    return Kept(scorer, ScoreCache(home() / "scores.sqlite") if cache else None)


def _plain(name: str) -> Scorer:
    target = known_scorers().get(name, name)
    module_name, colon, class_name = target.rpartition(":")
    if not colon:
        known = ", ".join(known_scorers())
        raise ConfigError(
            f"unknown scorer '{name}' (known: {known}, judge:provider/model; or your own as file.py:Class)"
        )
    kind: Any = getattr(load_module(module_name), class_name, None)
    if kind is None:
        raise ConfigError(f"{target} is not a scorer: {class_name} is not there (see judging/toxicity/scorer.py)")
    if missing := [member for member in ("score", "close") if not hasattr(kind, member)]:
        raise ConfigError(f"{target} is not a scorer: it lacks {', '.join(missing)} (see judging/toxicity/scorer.py)")
    scorer = kind()
    if missing := [member for member in ("name", "version") if not isinstance(getattr(scorer, member, None), str)]:
        raise ConfigError(f"{target} is not a scorer: it lacks {', '.join(missing)} (see judging/toxicity/scorer.py)")
    return scorer  # type: ignore[no-any-return]
