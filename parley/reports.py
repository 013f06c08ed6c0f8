"""From run files to a report: the study's own, or the generic one.

A study names its report: built-in ones are listed in `parley.studies`, an installed package registers an entry point in
the group `parley.reports`, and a class may set `report = "module:function"`. The function takes a frame of verdicts
(see `parley.frames`) and returns a `parley.analysis.reporting.report.Report`.

A run file names the study it was made with, but that never causes code to be loaded: the report of a user's own study
is used only if the user names the study (`--study mine.py:Mine`); otherwise the run gets the generic report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.agents import ConfigError
from parley.agents.models.catalogue import catalogue
from parley.agents.redaction import HiddenAddresses
from parley.agents.text import without_surrogates
from parley.runs import RunFile, explain_damage
from parley.runs.interim import counts, looks_made
from parley.studies import find_report

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.interim import MonitoredRun
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
    """Units by status: planned, done, failed, and spared if a stopping rule skipped some."""
    calls: int
    tokens: int
    cost: float | None
    """US dollars; None if the price of a call is not known."""
    prompt_cache: Mapping[str, int] | None
    """`cached_tokens` and `prompt_tokens` of calls whose server reports its prompt cache; None if none does."""
    config: Mapping[str, Any]
    plan: str | None
    """The hash of the plan."""
    sources: Mapping[str, str]
    versions: Mapping[str, str]
    verdicts: pd.DataFrame
    """One row per verdict, see `parley.frames.verdicts`."""
    units: pd.DataFrame
    """One row per finished unit, see `parley.frames.spending`."""
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
            "sources": self.sources,
            "versions": self.versions,
        }


def make_report(paths: Sequence[Path], *, draws: int = 2000, seed: int = 0, study: str | None = None) -> Report:
    """One report on one or several runs of the same study.

    Args:
        paths: The run files.
        draws: Bootstrap and permutation draws; more give steadier intervals and p-values.
        seed: The seed of the draws.
        study: A user's own study as file.py:Class, whose report to use.
    """
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("reports need pandas and friends: pip install 'parley-autogen[analysis]'") from None
    check_draws(draws, seed)
    with explain_damage(*paths):
        return _report([load_run(path) for path in paths], draws, seed, study)


def _report(runs: Sequence[LoadedRun], draws: int, seed: int, study: str | None) -> Report:
    import pandas as pd

    from parley.analysis.reporting.interim import with_interim_looks
    from parley.analysis.reporting.verdicts import MissingColumns

    studies = {run.study for run in runs}
    if len(studies) > 1:
        raise ConfigError(f"a report covers one study, and these runs are of {', '.join(sorted(studies))}")
    runs = _with_distinct_names(runs)
    _shorten_model_names(runs)
    models = all_models(runs)
    name = studies.pop()
    function = find_report(name, study)
    try:
        report: Report = function(
            pd.concat([run.verdicts for run in runs], ignore_index=True) if len(runs) > 1 else runs[0].verdicts,
            units=pd.concat([run.units for run in runs], ignore_index=True),
            title=_title(runs, models),
            draws=draws,
            seed=seed,
            runs=tuple(run.record() for run in runs),
            cautions=tuple(cautions(models)),
        )
    except MissingColumns as error:
        files = ", ".join(str(run.path) for run in runs)
        raise ConfigError(f"{files} cannot be reported as a run of '{name}': {error}") from None
    return with_interim_looks(report, [monitored for run in runs if (monitored := _monitored(run))])


def all_models(runs: Sequence[LoadedRun]) -> list[str]:
    """The models of several runs, each once."""
    return list(dict.fromkeys(model for run in runs for model in run.models))


def _monitored(run: LoadedRun) -> MonitoredRun | None:
    """The interim looks of a run; None without a stopping rule."""
    from parley.analysis.reporting.interim import MonitoredRun
    from parley.analysis.stats.sequential import StoppingRule

    if not run.config.get("stop"):
        return None
    with RunFile.open(run.path) as file:
        looks = tuple(result for look in looks_made(file) for result in look)
    return MonitoredRun(run=run.file, rule=StoppingRule(**run.config["stop"]), results=looks)


def check_draws(draws: int, seed: int) -> None:
    """Raise `ConfigError` if no interval can be computed with this number of draws or seed."""
    if draws < 1 or seed < 0:
        raise ConfigError("--draws must be at least 1, and --seed at least 0")


def load_run(path: Path) -> LoadedRun:
    """Read a run for a report; raises `ConfigError` if it has no verdicts yet."""
    from parley import frames

    with RunFile.open(path) as file:
        info, unit_counts = without_surrogates(file.info()), counts(file)
        verdicts, units = frames.verdicts(file), frames.spending(file)
        spent = file.spent()
        prompt_cache = file.prompt_cache_use()
    if verdicts.empty:
        raise ConfigError(f"{path} has no finished unit with a verdict yet")
    if len(far := verdicts.loc[verdicts["value"].abs() > FAR, "value"]):
        raise ConfigError(f"{path} has a verdict of {far.iloc[0]:g}, and nothing can be computed from such a number")
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
        sources=info.get("sources", {}),
        versions=info.get("versions", {}),
        verdicts=verdicts,
        units=units,
        addresses=addresses,
    )


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
    lines = []
    for name in models:
        plain = name.partition("?")[0]
        provider, _, model = plain.partition("/")
        if provider == "sim":
            lines.append(f"{name} is SIMULATED: these numbers come from planted effects, not from a language model.")
        elif provider in ("local", "hf") and model in catalogue() and catalogue()[model].caution:
            lines.append(f"{catalogue()[model].caution}.")
    return lines
