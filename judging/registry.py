"""Studies by name: ours, those of installed packages (entry points in the group `parley.studies`), and files.

parley run malibu
parley run my_study.py:Panel
"""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from agents import ConfigError
from judging.study import Study

STUDIES: dict[str, str] = {
    "malibu": "judging.malibu:Malibu",
    "malibu-derive": "judging.derive:Derive",
    "malibu-respond": "judging.respond:Respond",
    "bbq": "judging.bbq:BbqStudy",
    "rldf": "judging.rldf:Rldf",
    "topics": "judging.topics:WriteTopics",
    "framing": "judging.framing:Framing",
    "rubric": "judging.scoring:RubricScores",
    "answers": "judging.answers:Answers",
    "rlaif": "judging.rlaif:Rlaif",
}


def known_studies() -> dict[str, str]:
    return {**{entry.name: entry.value for entry in entry_points(group="parley.studies")}, **STUDIES}


def find_study(name: str) -> type[Study]:
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


def load_module(name: str) -> Any:
    """A module by its name, or a file of the user's."""
    if not name.endswith(".py"):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            raise ConfigError(f"there is no module '{error.name}'") from None
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    name = f"parley_study_{path.stem}"  # never the name of a package of ours
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError) as error:
        raise ConfigError(f"{path} cannot be loaded: {error}") from None
    return module
