"""Studies by name; all other properties of a study are on its class.

    parley run malibu
    parley run my_study.py:Panel

A study of an installed package is found by an entry point in the group `parley.studies`; any other by `file.py:Class`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from parley.agents import ConfigError
from parley.base.plugins import Registry, load_object
from parley.judging import Facet, Labelled, Measure, Study
from parley.judging.study import APART

T = TypeVar("T")
# A table and not our own entry points: those are only as fresh as the last `pip install` of a checkout.
SHIPPED: dict[str, str] = {
    "malibu": "parley.judging.malibu.study:Malibu",
    "malibu-derive": "parley.judging.writing.derive:Derive",
    "malibu-respond": "parley.judging.writing.respond:Respond",
    "bbq": "parley.judging.bbq.study:BbqStudy",
    "squad": "parley.judging.squad.study:SquadStudy",
    "rldf": "parley.judging.rldf.study:Rldf",
    "referee": "parley.judging.rldf.check:RefereeCheck",
    "topics": "parley.judging.writing.topics:WriteTopics",
    "framing": "parley.judging.framing.study:Framing",
    "attention": "parley.judging.attention.study:AttentionStudy",
    "rubric": "parley.judging.rubric.study:RubricScores",
    "stardtox": "parley.judging.stardtox.study:StardtoxStudy",
    "answers": "parley.judging.rldf.answers:AnswersStudy",
    "rlaif": "parley.judging.rldf.rlaif:Rlaif",
}
_MEASURES = TypeAdapter(tuple[Measure, ...])
_FACETS = TypeAdapter(tuple[Facet, ...])
_LABELLED = TypeAdapter(tuple[Labelled, ...])


@cache
def known_studies() -> Mapping[str, str]:
    """All studies with a name, as name → `module:Class`. Installed packages cannot replace shipped studies."""
    installed = {entry.name: entry.value for entry in entry_points(group="parley.studies")}
    return {**installed, **SHIPPED}


def find_study(name: str) -> type[Study]:
    """The class of a study.

    Args:
        name: Its name, `file.py:Class` or `module:Class`.
    """
    registry = Registry("study", known_studies(), ("name", "Config"), contract="judging/study.py", base=Study)
    study: type[Study] = registry.find(name)
    return study


def study_of_config(config: BaseModel) -> str:
    """The name of the study of a config; ConfigError if no shipped or installed study has it."""
    module = type(config).__module__
    targets = known_studies()
    # The likely ones first, since each one imports a study.
    for name in sorted(targets, key=lambda name: not module.startswith(targets[name].split(":")[0])):
        if find_study(name).Config is type(config):
            return name
    raise ConfigError(f"no study has the config {type(config).__name__}: name the study, and give its settings")


def study_class(study: str, target: str | None = None) -> type[Study]:
    """The class of a run's study; the base class, with all defaults, if none is installed under its name.

    Args:
        study: The name in the run file. Only installed code is used for it, since a run file may come from anyone.
        target: The study as the user gave it, as file.py:Class.
    """
    return find_study(target or study) if target or study in known_studies() else Study


def design_settings(study: type[Study], config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run's design that were set, in the order of the study's config.

    Those with their default are left out, and those that are marked as `Apart`.

    Args:
        study: The study's class.
        config: The settings in the run file.
    """
    schema: type[BaseModel] | None = getattr(study, "Config", None)
    if schema is None:  # a study that is not installed
        return {}
    defaults = schema.model_construct().model_dump(mode="json", warnings=False)
    stated = (name for name, info in schema.model_fields.items() if APART not in info.metadata)
    return {name: config[name] for name in stated if name in config and config[name] != defaults.get(name)}


def find_report(study: str, target: str | None = None) -> Callable[..., Any]:
    """The report of a study's class; see `study_class`."""
    chosen = study_class(study, target)
    if target and chosen.name != study:
        raise ConfigError(f"{target} is the study '{chosen.name}', but this is a run of '{study}'")
    report = chosen.report
    if isinstance(report, str) and report.partition(":")[0].endswith(".py"):
        report = os.path.join(os.path.dirname(inspect.getfile(chosen)), report)
    return load_function(report)


def find_comparable(study: str) -> Callable[..., Any] | None:
    """The function that turns a study's verdicts into values that can be averaged, if it needs one."""
    name = study_class(study).comparable
    return load_function(name) if name else None


def find_claims(study: str) -> Callable[..., Any] | None:
    """The function that gives a study's values for papers' claims, if it has one."""
    name = study_class(study).claims
    return load_function(name) if name else None


def measures_of(info: Mapping[str, Any]) -> tuple[Measure, ...]:
    """Measures that represent a run's units; () if unknown.

    Args:
        info: The run's description, from `RunFile.info`.
    """
    return _stored(_MEASURES, info, "measures", lambda study: study.measures)


def facets_of(info: Mapping[str, Any]) -> tuple[Facet, ...]:
    """How a run's facets are displayed.

    Args:
        info: The run's description, from `RunFile.info`.
    """
    return _stored(_FACETS, info, "facets", lambda study: study.facets)


def labelled_of(info: Mapping[str, Any]) -> tuple[Labelled, ...]:
    """What people score in a run's units.

    Args:
        info: The run's description, from `RunFile.info`.
    """
    return _stored(_LABELLED, info, "labelled", lambda study: study.labelled)


def _stored(
    items: TypeAdapter[tuple[T, ...]],
    info: Mapping[str, Any],
    name: str,
    declared: Callable[[type[Study]], tuple[T, ...]],
) -> tuple[T, ...]:
    """The study's declaration from the run file, or else from the study of its name."""
    if name not in info:
        return declared(study_class(str(info.get("study"))))
    try:
        return items.validate_python(info[name])
    except ValidationError:
        return declared(study_class(""))


def load_function(target: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function that `module:function` names."""
    function = target if callable(target) else load_object(target)
    if function is None:
        raise ConfigError(f"there is no function {target}")
    return function
