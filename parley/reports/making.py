"""From run files to a report: the study's own, or the generic one.

A study names its report: built-in ones are listed in `parley.runs.studies`, an installed package registers an entry
point in the group `parley.reports`, and a class may set `report = "module:function"`. The function takes a frame of
verdicts (see `parley.frames`) and a `parley.analysis.reporting.report.ReportContext`, and returns a `Report`.

A run file names the study it was made with, but that never causes code to be loaded: the report of a user's own study
is used only if the user names the study (`--study mine.py:Mine`); otherwise the run gets the generic report.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.agents import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.base.text import plural, without_surrogates
from parley.judging import HasAnalysisPlan, Measure
from parley.runs import Replies, RunFile, StoredPlan, explain_damage, stored_plan
from parley.runs.studies import STUDIES, find_report, find_study, measures_of
from parley.scenarios import Directions, aligned_directions, load_suite, read_directions
from parley.scenarios.malibu import SHIPPED

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.forest import Forest
    from parley.analysis.reporting.plan import PlannedRun
    from parley.analysis.reporting.report import Report

FAR = 1e100
"""Verdicts beyond are no scores: their squares and sums are infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """A run read from its file for a report or a comparison, with the addresses of its models hidden."""

    file: str
    """The file's name; its path where two runs have files of the same name."""
    path: Path
    study: str
    target: str
    """The study's name, or file.py:Class."""
    models: Sequence[str]
    seed: int | None
    unit_counts: Mapping[str, int]
    """Units by status: planned, done, failed."""
    calls: int
    tokens: int
    cost: float | None
    """US dollars; None if the price of a call is not known."""
    prompt_cache: Mapping[str, int] | None
    """`cached_tokens` and `prompt_tokens` of calls whose server reports its prompt cache; None if none does."""
    config: Mapping[str, Any]
    plan: str | None
    """The hash of the plan, that is, of the units."""
    measures: Sequence[Measure]
    """What its units are shown by."""
    analysis_plan: StoredPlan | None
    """What was planned to be analysed, if anything."""
    sources: Mapping[str, str]
    versions: Mapping[str, str]
    verdicts: pd.DataFrame
    """One row per verdict, see `parley.frames.verdicts`."""
    units: pd.DataFrame
    """One row per finished unit, see `parley.frames.spending`."""
    replies: Replies
    """How the agents' replies could be read, and how many were cut."""
    addresses: HiddenAddresses
    """Hides an address as the names of the models here have it."""

    def record(self) -> dict[str, Any]:
        """The run as plain values: an entry of a report's `runs`."""
        return {
            "file": self.file,
            "path": str(self.path),
            "study": self.study,
            "target": self.target,
            "models": self.models,
            "seed": self.seed,
            "units": self.unit_counts,
            "calls": self.calls,
            "tokens": self.tokens,
            "cost": self.cost,
            "prompt_cache": self.prompt_cache,
            "config": self.config,
            "plan": self.plan,
            "analysis_plan_sha256": self.analysis_plan.sha256 if self.analysis_plan else None,
            "sources": self.sources,
            "versions": self.versions,
        }


def make_report(
    paths: Sequence[Path],
    *,
    draws: int = 2000,
    seed: int = 0,
    margin: float | None = None,
    study: str | None = None,
) -> Report:
    """One report on one or several runs of the same study.

    Args:
        paths: The run files.
        draws: Bootstrap and permutation draws; more give steadier intervals and p-values.
        seed: The seed of the draws.
        margin: The difference that still counts as none, for reports that test equivalence (default: the planned one).
        study: A user's own study as file.py:Class, whose report to use.
    """
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("reports need pandas and friends: pip install 'parley-autogen[analysis]'") from None
    check_draws(draws, seed)
    if margin is not None and not 0 < margin < math.inf:
        raise ConfigError("--margin must be a number above 0")
    with explain_damage(*paths):
        return _report([load_run(path) for path in paths], draws=draws, seed=seed, margin=margin, study=study)


def _report(runs: Sequence[LoadedRun], *, draws: int, seed: int, margin: float | None, study: str | None) -> Report:
    import pandas as pd

    from parley.analysis.reporting.plan import with_analysis_plan
    from parley.analysis.reporting.report import ReportContext
    from parley.analysis.reporting.verdicts import MissingColumns

    studies = {run.study for run in runs}
    if len(studies) > 1:
        raise ConfigError(f"a report covers one study, and these runs are of {', '.join(sorted(studies))}")
    stored = [list(run.verdicts["model"].astype(str).unique()) for run in runs]
    runs = _with_distinct_names(runs)
    _shorten_model_names(runs)
    shown = [run.verdicts["model"].astype(str).unique() for run in runs]
    facets = dict(pair for names in zip(shown, stored, strict=True) for pair in zip(*names, strict=True))
    models = all_models(runs)
    name = studies.pop()
    function = find_report(name, study)
    directions, conflicts = _directions(runs)
    context = ReportContext(
        title=_title(runs, models),
        units=pd.concat([run.units for run in runs], ignore_index=True),
        draws=draws,
        seed=seed,
        margin=_planned_margin(runs) if margin is None else margin,
        directions=directions,
        blind=_blind(runs),
        remarks=lambda: _remarks(runs),
        cautions=(*cautions(models), *conflicts, *cut_cautions(runs)),
        model_cautions=catalogue_cautions(models),
        runs=tuple(run.record() for run in runs),
    )
    verdicts = pd.concat([run.verdicts for run in runs], ignore_index=True) if len(runs) > 1 else runs[0].verdicts
    try:
        report: Report = function(verdicts, context)
    except MissingColumns as error:
        files = ", ".join(str(run.path) for run in runs)
        raise ConfigError(f"{files} cannot be reported as a run of '{name}': {error}") from None
    if margin is not None and "margin" not in report.settings:
        raise ConfigError(f"--margin is for reports that test equivalence, and that of '{name}' does not")
    report = replace(report, forests=tuple(_as_stored(forest, facets) for forest in report.forests))
    return with_analysis_plan(report, _planned_runs(runs, name), report.settings.get("margin"))


def _as_stored(forest: Forest, models: Mapping[str, str]) -> Forest:
    """The plot with the models of its units as the run file has them, options included."""
    lines = [
        replace(line, units={**line.units, "model": tuple(models.get(name, name) for name in line.units["model"])})
        if "model" in line.units
        else line
        for line in forest.estimates
    ]
    return replace(forest, estimates=tuple(lines))


def all_models(runs: Sequence[LoadedRun]) -> list[str]:
    """The models of several runs, each once."""
    return list(dict.fromkeys(model for run in runs for model in run.models))


def _blind(runs: Sequence[LoadedRun]) -> bool | None:
    """Whether no judge heard another in round 1, in any run; None if it is not known, as of imported runs.

    Runs of rounds that do not say were begun before this could be chosen, and were not blind.
    """
    said = [run.config.get("blind", False if "rounds" in run.config else None) for run in runs]
    return False if False in said else None if None in said else True


def _remarks(runs: Sequence[LoadedRun]) -> pd.DataFrame:
    """Which statements repeat another judge's, with the names that the models have in the runs' verdicts."""
    import pandas as pd

    from parley.reports.remarks import repeated_remarks

    frames = []
    for number, run in enumerate(runs):
        remarks = repeated_remarks(run.path)
        prefix = f"{number}:" if len(runs) > 1 else ""
        models = run.verdicts.drop_duplicates("unit").set_index("unit")["model"]
        remarks["unit"] = prefix + remarks["unit"].astype(str)
        known = remarks["unit"].isin(models.index.astype(str))
        frames.append(remarks[known].assign(model=remarks.loc[known, "unit"].map(models.astype(str).to_dict())))
    return pd.concat(frames, ignore_index=True)


def _intact_plan(run: LoadedRun) -> Mapping[str, Any]:
    return run.analysis_plan.plan if run.analysis_plan and run.analysis_plan.intact else {}


def _planned_margin(runs: Sequence[LoadedRun]) -> float | None:
    """The margin that all runs planned; None if they have no plan, or different ones."""
    margins = {margin for run in runs if isinstance(margin := _intact_plan(run).get("margin"), int | float)}
    margin = margins.pop() if len(margins) == 1 else None
    return margin if margin is not None and math.isfinite(margin) and margin > 0 else None


def _directions(runs: Sequence[LoadedRun]) -> tuple[Directions, list[str]]:
    """Which way the stereotypes go, as planned; and a caution for each base of which the runs' plans differ.

    Runs of the shipped suite without a plan get the shipped directions, which were coded after them.
    """
    merged: Directions = {}
    differing: dict[str, None] = {}
    for run in runs:
        own = read_directions(_intact_plan(run).get("directions"))
        if not _intact_plan(run) and any(source.startswith(f"suite {SHIPPED} ") for source in run.sources):
            own = aligned_directions(load_suite(SHIPPED)[0].base)
        for base, direction in own.items():
            if merged.setdefault(base, direction) != direction:
                differing[base] = None
    for base in differing:
        del merged[base]
    lines = [f"The runs' plans differ on the stereotype of '{base}', which is left out." for base in differing]
    return merged, lines


def _planned_runs(runs: Sequence[LoadedRun], study: str) -> list[PlannedRun]:
    """The runs with their analysis plans; none if neither the study nor a run has any."""
    from parley.analysis.reporting.plan import PlannedRun

    if not any(run.analysis_plan for run in runs) and not _offers_plan(study):
        return []
    stored = [(run.file, run.analysis_plan) for run in runs]
    return [
        PlannedRun(run=name, plan=plan.plan, sha256=plan.sha256, intact=plan.intact)
        if plan
        else PlannedRun(run=name, plan=None)
        for name, plan in stored
    ]


def _offers_plan(study: str) -> bool:
    return study in STUDIES and issubclass(find_study(study), HasAnalysisPlan)


def check_draws(draws: int, seed: int) -> None:
    """Raise `ConfigError` if no interval can be computed with this number of draws or seed."""
    if draws < 1 or seed < 0:
        raise ConfigError("--draws must be at least 1, and --seed at least 0")


def _nothing_to_report(units: Mapping[str, int], path: Path) -> str:
    """Why there is no report, and what to type instead."""
    name = shlex.quote(str(path))
    if not units["done"]:
        return f"{path} has no finished unit with a verdict yet; parley show {name} --list says how far it is"
    return (
        f"{path} has no verdicts, so there is nothing to count: parley show {name} and parley view {name} show its "
        f"{plural(units['done'], 'conversation')}"
    )


def load_run(path: Path) -> LoadedRun:
    """Read a run for a report; raises `ConfigError` if it has no verdicts yet."""
    from parley import frames

    with RunFile.open(path) as file:
        info, unit_counts = file.info(), file.counts()
        verdicts, units = frames.verdicts(file), frames.spending(file)
        spent = file.spent()
        prompt_cache, replies = file.prompt_cache_use(), file.replies()
    if verdicts.empty:
        raise ConfigError(_nothing_to_report(unit_counts, path))
    if len(far := verdicts.loc[verdicts["value"].abs() > FAR, "value"]):
        raise ConfigError(f"{path} has a verdict of {far.iloc[0]:g}, and nothing can be computed from such a number")
    plan = stored_plan(info)  # its hash is that of the text in the file, with whatever addresses it has
    info = without_surrogates(info)
    addresses = HiddenAddresses(info)
    info = addresses.hide(info)
    models = [str(model) for model in info["models"]]
    for frame in (verdicts, units):
        _hide_in_frame(frame, addresses)
        if "model" not in frame:
            frame["model"] = ", ".join(models)
    return LoadedRun(
        file=path.name,
        path=path,
        study=str(info["study"]),
        target=str(info.get("target", info["study"])),
        models=models,
        seed=info["config"].get("seed"),
        unit_counts=unit_counts,
        calls=spent.calls,
        tokens=spent.tokens,
        cost=spent.cost if spent.priced else None,
        prompt_cache=(
            {"cached_tokens": prompt_cache[0], "prompt_tokens": prompt_cache[1]} if prompt_cache is not None else None
        ),
        config=info["config"],
        plan=info.get("plan"),
        measures=measures_of(info),
        analysis_plan=replace(plan, plan=addresses.hide(without_surrogates(plan.plan))) if plan else None,
        sources=info.get("sources", {}),
        versions=info.get("versions", {}),
        verdicts=verdicts,
        units=units,
        replies=replies,
        addresses=addresses,
    )


def cut_cautions(runs: Sequence[LoadedRun]) -> list[str]:
    """What readers must know about replies that ended at their limit of tokens."""
    cut, total = (sum(getattr(run.replies, name) for run in runs) for name in ("cut", "total"))
    if not cut:
        return []
    share = f"{cut:,} of {plural(total, 'reply', 'replies')} ({cut / total:.0%})"
    return [f"{share} reached the limit of tokens and were cut there: raise --max-tokens, and run again."]


def _hide_in_frame(frame: pd.DataFrame, addresses: HiddenAddresses) -> None:
    """Hide addresses in the columns of text, in place; columns without any stay as they are."""
    import pandas as pd

    for name in frame.select_dtypes(exclude="number").columns:
        values = frame[name].cat.categories if isinstance(frame[name].dtype, pd.CategoricalDtype) else frame[name]
        hidden = {text: shown for text in values if isinstance(text, str) and (shown := addresses.hide(text)) != text}
        if hidden:
            column = frame[name].astype(object).map(lambda value, hidden=hidden: hidden.get(value, value))
            frame[name] = column.astype("category") if values is not frame[name] else column


def _with_distinct_names(runs: Sequence[LoadedRun]) -> Sequence[LoadedRun]:
    """Several runs, to be put in one frame: units are numbered by run, and a model in two runs gets its file's name.

    The frames are changed in place, since a copy of a large one may not fit in memory.
    """
    if len(runs) < 2:
        return runs
    files = [run.file for run in runs]
    runs = [replace(run, file=str(run.path)) if files.count(run.file) > 1 else run for run in runs]
    models = [set(run.verdicts["model"].astype(str)) for run in runs]
    for number, run in enumerate(runs):
        others: set[str] = set().union(*(names for other, names in enumerate(models) if other != number))
        names = {model: f"{model} ({run.file})" if model in others else model for model in models[number]}
        for frame in (run.verdicts, run.units):
            frame["model"] = frame["model"].astype(str).map(names)
            frame["unit"] = f"{number}:" + frame["unit"].astype(str)
    return runs


def _shorten_model_names(runs: Sequence[LoadedRun]) -> None:
    """Drop the options from model names, if the names still differ; the report's `runs` have the full names."""
    names = list(dict.fromkeys(name for run in runs for name in run.verdicts["model"].astype(str).unique()))
    short = {name: name.partition("?")[0] for name in names if "(" not in name}
    if len(set(short.values())) < len(names):
        return
    for run in runs:
        for frame in (run.verdicts, run.units):
            frame["model"] = frame["model"].astype(str).map(short)


def _title(runs: Sequence[LoadedRun], models: Sequence[str]) -> str:
    plain = list(dict.fromkeys(model.partition("?")[0] for model in models))
    names = plain if len(plain) < 4 else [*plain[:3], f"{len(plain) - 3} more"]
    suite = " ".join(dict.fromkeys(str(run.config["suite"]) for run in runs if run.config.get("suite")))
    return f"{runs[0].study} {suite} · {', '.join(names)}".replace("  ", " ")


def cautions(models: Sequence[str]) -> list[str]:
    """What readers of a report must know about its models: simulated, or too small to be taken seriously."""
    return [*simulated(models), *catalogue_cautions(models)]


def simulated(models: Sequence[str]) -> list[str]:
    """A line for every simulated model."""
    return [
        f"{name} is SIMULATED: these numbers come from planted effects, not from a language model."
        for name in models
        if name.startswith("sim/")
    ]


def catalogue_cautions(models: Sequence[str]) -> list[str]:
    """What the catalogue says of models that are too small to be taken seriously."""
    lines = []
    for name in models:
        provider, _, model = name.partition("?")[0].partition("/")
        if provider in ("local", "hf"):
            from parley.agents.models.catalogue import catalogue

            if model in catalogue() and catalogue()[model].caution:
                lines.append(f"{catalogue()[model].caution}.")
    return lines
