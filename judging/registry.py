"""Studies by name: ours, those of installed packages (entry points in the group `parley.studies`), and files.

parley run malibu
parley run my_study.py:Panel
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from agents import ConfigError
from agents.plugins import load_module as load_module
from judging.study import Study

STUDIES: dict[str, str] = {
    "malibu": "judging.malibu:Malibu",
    "malibu-derive": "judging.derive:Derive",
    "malibu-respond": "judging.respond:Respond",
    "bbq": "judging.bbq:BbqStudy",
    "squad": "judging.squad:SquadStudy",
    "rldf": "judging.rldf:Rldf",
    "topics": "judging.topics:WriteTopics",
    "framing": "judging.framing:Framing",
    "rubric": "judging.scoring:RubricScores",
    "injection": "judging.injection:Injection",
    "stardtox": "judging.stardtox:StardtoxStudy",
    "answers": "judging.answers:Answers",
    "rlaif": "judging.rlaif:Rlaif",
}


def known_studies() -> dict[str, str]:
    """The names of all studies, installed ones among them."""
    return {**{entry.name: entry.value for entry in entry_points(group="parley.studies")}, **STUDIES}


def find_study(name: str) -> type[Study]:
    """The class of a study, by its name, by `file.py:Class`, or by an entry point."""
    target = known_studies().get(name, name)
    module_name, colon, class_name = target.rpartition(":")
    if not colon:
        known = ", ".join(known_studies())
        raise ConfigError(f"unknown study '{name}' (known: {known}; or your own as file.py:Class or module:Class)")
    study: Any = getattr(load_module(module_name), class_name, None)
    members = ("name", "Config", "models", "prompts", "sources", "plan", "estimate", "run")
    missing = [member for member in members if not hasattr(study, member)]
    if study is None or missing:
        why = f"lacks {', '.join(missing)}" if study is not None else "is not there"
        raise ConfigError(f"{target} is not a study: {class_name} {why} (see judging/study.py)")
    return study  # type: ignore[no-any-return]
