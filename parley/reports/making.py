"""Makes a report from run files, by the study's report or the generic one, and compares two runs on the same units.

A study's class names its report: `report = "module:function"`. The function takes a frame of verdicts (see
`parley.runs.frames`) and a `parley.analysis.page.report.ReportContext`, and returns a `Report`.

A run file names the study it was made with, but that never causes code to be loaded: the report of a user's own study
is used only if the user names the study (`--study mine.py:Mine`); otherwise the run gets the generic report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import pandas as pd

from parley.agents import ConfigError
from parley.analysis.compare import NothingShared
from parley.analysis.compare import compare as compare_verdicts
from parley.analysis.page.papers import as_its_paper
from parley.analysis.page.plan import PlannedRun, with_analysis_plan
from parley.analysis.page.report import Report, ReportContext
from parley.analysis.say import Forest
from parley.analysis.verdicts import MissingColumns
from parley.base.home import say
from parley.base.text import plural
from parley.judging import Study
from parley.reports.cautions import judging_cautions
from parley.reports.loading import (
    LoadedRun,
    all_models,
    load_run,
    shorten_model_names,
    with_distinct_names,
)
from parley.reports.papers import claims_of_run
from parley.reports.unfinished import cautions_on, without_early_verdicts
from parley.runs import explain_damage
from parley.runs.example import is_example
from parley.runs.studies import design_settings, find_comparable, find_report, study_class


def report(
    run: str | PathLike[str],
    *runs: str | PathLike[str],
    draws: int = 2000,
    seed: int = 0,
    margin: float | None = None,
    labels: Sequence[str | Path] = (),
    as_is: bool = False,
) -> Report:
    """The report of a run, or of several of one study, as data: sentences, tables, and plots of lines.

    Args:
        run: The run file, or what `parley.run` returned.
        runs: Further runs of the same study.
        draws: Bootstrap and permutation draws.
        seed: The seed of the draws.
        margin: The margin of equivalence (default: the planned one).
        labels: CSV files with people's scores of the run's texts.
        as_is: Whether to treat an unfinished run as complete.
    """
    paths, files = [Path(run), *map(Path, runs)], [Path(file) for file in labels]
    return make_report(paths, draws=draws, seed=seed, margin=margin, labels=files, as_is=as_is)


def compare(run: str | PathLike[str], *other: str | PathLike[str], models: str | None = None) -> Report:
    """The comparison of two runs, or of two models of one, on the same units: second minus first, the baseline.

    Args:
        run: The run file, or what `parley.run` returned.
        other: The second run; none to compare two models of the first.
        models: The two models to compare, if there are more: "A,B".
    """
    return compare_runs([Path(run), *map(Path, other)], models)


def different(paths: Sequence[Path]) -> list[Path]:
    """The files without duplicates: a run given twice adds no evidence."""
    once = {path.resolve(): path for path in reversed(paths)}
    kept = [path for path in paths if once[path.resolve()] is path]
    if len(kept) < len(paths):
        say(f"{plural(len(paths) - len(kept), 'file is', 'files are')} given twice: each run counts once")
    return kept


def make_report(
    paths: Sequence[Path],
    *,
    draws: int = 2000,
    seed: int = 0,
    margin: float | None = None,
    study: str | None = None,
    labels: Sequence[Path] = (),
    as_is: bool = False,
    paper: bool = False,
) -> Report:
    """One report on one or several runs of the same study.

    Args:
        paths: The run files.
        draws: Bootstrap and permutation draws; more give steadier intervals and p-values.
        seed: The seed of the draws.
        margin: The difference that still counts as none, for reports that test equivalence (default: the planned one).
        study: A user's own study as file.py:Class, whose report to use.
        labels: CSV files with people's scores of one run's texts.
        as_is: Whether to treat an unfinished run as complete.
        paper: Whether to have only what the study's papers have: claims, tables and figures.
    """
    if draws < 1 or seed < 0:
        raise ConfigError("--draws must be at least 1, and --seed at least 0")
    if labels and len(paths) > 1:
        raise ConfigError("--labels are of one run: report on it alone")
    if margin is not None and not 0 < margin < math.inf:
        raise ConfigError("--margin must be a number above 0")
    # Texts as Python objects, as where pyarrow is not installed: with its arrays a report takes a quarter longer.
    with explain_damage(*paths), pd.option_context("mode.string_storage", "python"):
        runs = [load_run(path) for path in different(paths)]
        claims = claims_of_run(runs) if paper else []
        made = _report(runs, draws=draws, seed=seed, margin=margin, study=study, as_is=as_is, paper=paper)
    if paper:
        made = without_early_verdicts(as_its_paper(made, claims), runs, as_is=as_is)
    if not labels:
        return made
    from parley.reports.agreement import with_labels  # it loads the studies, and AutoGen with them

    return with_labels(made, paths[0], labels)


def _report(
    runs: Sequence[LoadedRun],
    *,
    draws: int,
    seed: int,
    margin: float | None,
    study: str | None,
    as_is: bool,
    paper: bool,
) -> Report:
    studies = {run.study for run in runs}
    if len(studies) > 1:
        raise ConfigError(f"a report covers one study; these runs are of {', '.join(sorted(studies))}")
    stored = [list(run.verdicts["model"].astype(str).unique()) for run in runs]
    runs = with_distinct_names(runs)
    shorten_model_names(runs)
    shown = [run.verdicts["model"].astype(str).unique() for run in runs]
    facets = dict(pair for names in zip(shown, stored, strict=True) for pair in zip(*names, strict=True))
    models = all_models(runs)
    name = studies.pop()
    function = find_report(name, study)
    context = ReportContext(
        title=_title(runs, models),
        units=pd.concat([run.units for run in runs], ignore_index=True),
        draws=draws,
        seed=seed,
        margin=margin,
        plans=[run.analysis_plan.plan for run in runs if run.analysis_plan and run.analysis_plan.intact],
        cautions=cautions_on(runs, as_is=as_is),
        model_cautions=judging_cautions(models),
        paper=paper,
        runs=tuple(
            run.record() | {"design_settings": design_settings(study_class(run.study, study), run.config)}
            for run in runs
        ),
    )
    verdicts = pd.concat([run.verdicts for run in runs], ignore_index=True) if len(runs) > 1 else runs[0].verdicts
    try:
        report: Report = function(verdicts, context)
    except MissingColumns as error:
        files = ", ".join(str(run.path) for run in runs)
        raise ConfigError(f"{files} cannot be reported as a run of '{name}': {error}") from None
    if margin is not None and "margin" not in report.settings:
        raise ConfigError(f"--margin is only for reports that test equivalence; the report of '{name}' does not")
    report = replace(
        report,
        forests=tuple(_as_stored(forest, facets) for forest in report.forests),
        papers=_papers(runs, study),
    )
    report = without_early_verdicts(report, runs, as_is=as_is)
    return with_analysis_plan(report, _planned_runs(runs, name), report.settings.get("margin"))


def _papers(runs: Sequence[LoadedRun], study: str | None = None) -> tuple[str, ...]:
    """The citations of the runs."""
    cited = (paper for run in runs for paper in study_class(run.study, study).cited(run.config))
    return tuple(dict.fromkeys(cited))


def _as_stored(forest: Forest, models: Mapping[str, str]) -> Forest:
    """The plot with the models of its units as the run file has them, options included."""
    lines = [
        replace(line, units={**line.units, "model": tuple(models.get(name, name) for name in line.units["model"])})
        if "model" in line.units
        else line
        for line in forest.lines
    ]
    return replace(forest, lines=tuple(lines))


def _planned_runs(runs: Sequence[LoadedRun], study: str) -> list[PlannedRun]:
    """The runs with their analysis plans; none if neither the study nor a run has any."""
    offered = study_class(study).analysis_plan is not Study.analysis_plan
    if not offered and not any(run.analysis_plan for run in runs):
        return []
    stored = [(run.file, run.analysis_plan) for run in runs]
    return [
        PlannedRun(run=name, plan=plan.plan, intact=plan.intact) if plan else PlannedRun(run=name, plan=None)
        for name, plan in stored
    ]


def _title(runs: Sequence[LoadedRun], models: Sequence[str]) -> str:
    plain = list(dict.fromkeys(model.partition("?")[0] for model in models))
    names = plain if len(plain) < 4 else [*plain[:3], f"{len(plain) - 3} more"]
    suite = " ".join(dict.fromkeys(str(run.config["suite"]) for run in runs if run.config.get("suite")))
    mark = "Example that ships with Parley: " if any(is_example(run.path) for run in runs) else ""
    about = " ".join(filter(None, (runs[0].study, suite)))
    return mark + " · ".join(filter(None, (about, ", ".join(names))))


def compare_runs(paths: Sequence[Path], models: str | None = None) -> Report:
    """The comparison of two runs, or of two models of one: second minus first, the baseline.

    Args:
        paths: The run files.
        models: The two models to compare, if there are more: "A,B".
    """
    with explain_damage(*paths):
        runs = [load_run(path) for path in paths]
        sides = _two_sides(runs, models)
        (one, *_), (other, *_) = sides
        by_file = one.file != other.file
        names = [run.file if by_file else model if one is other else f"{model} ({run.path})" for run, model, _ in sides]
        report = _compare_sides(runs, sides[0][2], sides[1][2], (names[0], names[1]))
        if by_file:  # sentences name the files; which models these are is said once
            names = [f"{run.file} ({model})" for run, model, _ in sides]
        report = replace(report, title=f"{names[1]} compared with {names[0]}", papers=_papers(runs))
        return without_early_verdicts(report, runs)


def _two_sides(runs: list[LoadedRun], chosen: str | None) -> list[tuple[LoadedRun, str, pd.DataFrame]]:
    """The two sides, as run, model and verdicts: every model of every run is one, and there must be two."""
    sides = [
        (run, model, run.verdicts[run.verdicts["model"] == model])
        for run in runs
        for model in map(str, run.verdicts["model"].unique())
    ]
    if chosen:
        models = [runs[0].addresses.hide(name.strip()) for name in chosen.split(",")]
        sides = [side for name in models for side in sides if name in (side[1], side[1].partition("?")[0])]
    if len(sides) != 2:
        listed = ", ".join(dict.fromkeys(model for _, model, _ in sides)) or "none"
        raise ConfigError(
            f"compare needs two models or runs, got {len(sides)} ({listed}): name a second run file, or choose with "
            "--models A,B"
        )
    return sides


def _compare_sides(
    runs: Sequence[LoadedRun], first: pd.DataFrame, second: pd.DataFrame, names: tuple[str, str]
) -> Report:
    """Second minus first, the baseline, on the units that both have, by the measures of their study.

    Args:
        runs: The runs that the two are from; of the same study.
        first: Verdicts of the baseline.
        second: Verdicts of the other.
        names: Names of the two.
    """
    if len({run.study for run in runs}) > 1:
        raise ConfigError("only runs of the same study can be compared")
    try:
        if comparable := find_comparable(runs[0].study):
            first, second = comparable(first), comparable(second)
        return compare_verdicts(
            first,
            second,
            names,
            ReportContext(runs=[run.record() for run in runs], cautions=cautions_on(runs)),
            measures={name for measure in runs[0].measures for name in (measure.metric, measure.label)},
        )
    except (NothingShared, MissingColumns) as error:
        raise ConfigError(str(error)) from None
