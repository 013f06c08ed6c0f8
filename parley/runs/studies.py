"""The known studies, and the functions that analyse each: its report, the comparison of two runs.

parley run malibu
parley run my_study.py:Panel

This table is the only place where studies and analyses meet. A study of an installed package is found by an entry point
in the group `parley.studies`; any other by `file.py:Class`. Such a class may name its own report: `report =
"module:function"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from parley.agents import ConfigError
from parley.base.plugins import Registry, load_object
from parley.judging import Facet, Measure, Study
from parley.judging.labelled import COMMON_LABELLED, Labelled
from parley.judging.study import COMMON_FACETS

T = TypeVar("T")
GENERIC_REPORT = "parley.analysis.reporting.generic:report"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyEntry:
    """A shipped study and the functions that analyse its verdicts, each as `module:name`.

    Args:
        study: The study's class.
        report: Makes the report.
        comparable: Turns verdicts into values that `parley compare` can average, if the values code a choice.
    """

    study: str
    report: str = GENERIC_REPORT
    comparable: str | None = None


# A table and not our own entry points: those are only as fresh as the last `pip install` of a checkout.
STUDIES: dict[str, StudyEntry] = {
    "malibu": StudyEntry(
        study="parley.judging.malibu:Malibu",
        report="parley.analysis.malibu:report",
        comparable="parley.analysis.malibu.ballots:comparable",
    ),
    "malibu-derive": StudyEntry(study="parley.judging.malibu.derive:Derive"),
    "malibu-respond": StudyEntry(study="parley.judging.malibu.respond:Respond"),
    "bbq": StudyEntry(
        study="parley.judging.bbq:BbqStudy",
        report="parley.analysis.bbq.report:report",
        comparable="parley.analysis.bbq.leaderboard:comparable",
    ),
    "squad": StudyEntry(
        study="parley.judging.squad:SquadStudy",
        report="parley.analysis.squad.report:report",
        comparable="parley.analysis.squad.report:comparable",
    ),
    "rldf": StudyEntry(study="parley.judging.rldf:Rldf", report="parley.analysis.rldf.report:debates"),
    "referee": StudyEntry(study="parley.judging.rldf.check:RefereeCheck", report="parley.analysis.rldf.check:report"),
    "topics": StudyEntry(study="parley.judging.rldf.topics:WriteTopics"),
    "framing": StudyEntry(study="parley.judging.rldf.framing:Framing", report="parley.analysis.rldf.framing:report"),
    "attention": StudyEntry(
        study="parley.runs.attention:AttentionStudy", report="parley.analysis.rldf.attention:report"
    ),
    "rubric": StudyEntry(study="parley.judging.scoring:RubricScores", report="parley.analysis.rldf.rubrics:report"),
    "stardtox": StudyEntry(
        study="parley.judging.stardtox:StardtoxStudy", report="parley.analysis.stardtox.report:report"
    ),
    "answers": StudyEntry(study="parley.judging.rldf.answers:AnswersStudy"),
    "rlaif": StudyEntry(study="parley.judging.rldf.rlaif:Rlaif"),
}
_MEASURES = TypeAdapter(tuple[Measure, ...])
_FACETS = TypeAdapter(tuple[Facet, ...])
_LABELLED = TypeAdapter(tuple[Labelled, ...])


@cache
def known_studies() -> Mapping[str, str]:
    """All studies with a name, as name → `module:Class`. That of an installed package cannot replace a shipped one."""
    installed = {entry.name: entry.value for entry in entry_points(group="parley.studies")}
    return {**installed, **{name: entry.study for name, entry in STUDIES.items()}}


def find_study(name: str) -> type[Study]:
    """The class of a study.

    Args:
        name: Its name, `file.py:Class` or `module:Class`.
    """
    members = ("name", "Config", "models", "prompts", "sources", "plan", "run")
    study: type[Study] = Registry("study", known_studies(), members, contract="judging/study.py").find(name)
    return study


def study_of_config(config: BaseModel) -> str:
    """The name of the study that a config is for; ConfigError if no shipped or installed one has it."""
    module = type(config).__module__
    known = known_studies()
    # The likely ones first: every further one imports another study.
    for name in sorted(known, key=lambda name: not module.startswith(known[name].split(":")[0])):
        if find_study(name).Config is type(config):
            return name
    raise ConfigError(f"no study has the config {type(config).__name__}: name the study, and give its settings")


def find_report(study: str, target: str | None = None) -> Callable[..., Any]:
    """The report of a study: from the table above, or the class itself.

    Args:
        study: The name in the run file. Only installed code is used for it, since a run file may come from anyone.
        target: The study as the user gave it, as file.py:Class; its class may name its report.
    """
    named = find_study(target) if target else None
    if named is not None and named.name != study:
        raise ConfigError(f"{target} is the study '{named.name}', but this is a run of '{study}'")
    if named is not None and hasattr(named, "report"):
        return _function(named.report)
    if study in STUDIES:
        return _function(STUDIES[study].report)
    known = find_study(study) if study in known_studies() else None
    return _function(getattr(known, "report", GENERIC_REPORT))


def find_comparable(study: str) -> Callable[..., Any] | None:
    """The function that turns a study's verdicts into values that can be averaged, if it needs one."""
    entry = STUDIES.get(study)
    return _function(entry.comparable) if entry and entry.comparable else None


def find_check_verdict() -> Callable[..., Any]:
    """The function that says whether a referee passed its check, in words."""
    return _function("parley.analysis.rldf.check:check_verdict")


def measures_of(info: Mapping[str, Any]) -> tuple[Measure, ...]:
    """What the units of a run are shown by; () if unknown.

    Args:
        info: The run's description, as `RunFile.info` gives it.
    """
    return _declared(info, "measures", _MEASURES, ())


def facets_of(info: Mapping[str, Any]) -> tuple[Facet, ...]:
    """How people read the facets of a run.

    Args:
        info: The run's description, as `RunFile.info` gives it.
    """
    return _declared(info, "facets", _FACETS, COMMON_FACETS)


def labelled_of(info: Mapping[str, Any]) -> tuple[Labelled, ...]:
    """What people score of the units of a run.

    Args:
        info: The run's description, as `RunFile.info` gives it.
    """
    return _declared(info, "labelled", _LABELLED, COMMON_LABELLED)


def _declared(
    info: Mapping[str, Any], name: str, items: TypeAdapter[tuple[T, ...]], otherwise: tuple[T, ...]
) -> tuple[T, ...]:
    """What a study declares: as stored in the run, or as the shipped study of this name says.

    No code of a user's own study is loaded for it.
    """
    if (stored := info.get(name)) is not None:
        try:
            return items.validate_python(stored)
        except ValidationError:
            return otherwise
    study = find_study(str(info["study"])) if info.get("study") in STUDIES else None
    return tuple(getattr(study, name, otherwise))


def _function(target: Any) -> Callable[..., Any]:
    function = target if callable(target) else load_object(str(target))
    if function is None:
        raise ConfigError(f"there is no function {target}")
    return function  # type: ignore[no-any-return]
