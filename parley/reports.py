"""From run files to a report: the study's own, or the generic one.

A study brings its report by name: ours stand below, an installed package registers an entry point in the group
`parley.reports`, and a class may say `report = "module:function"`. The function takes a frame of verdicts (see
`parley.frames`) and gives an `analysis.report.Report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import ConfigError
from agents.models.catalogue import catalogue
from judging import find_study
from parley.runs import RunFile

if TYPE_CHECKING:
    import pandas as pd

    from analysis.report import Report

REPORTS = {"malibu": "analysis.malibu:report"}
GENERIC = "analysis.generic:report"


def make_report(paths: Sequence[Path], *, draws: int = 2000, seed: int = 0) -> Report:
    """One report over one run or several of the same study."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise ConfigError("reports need pandas and friends: pip install 'parley[analysis]'") from None
    check_draws(draws, seed)
    loaded = [load(path) for path in paths]
    studies = {str(run["study"]) for run, _, _ in loaded}
    if len(studies) > 1:
        raise ConfigError(f"one report is about one study; these runs are of {', '.join(sorted(studies))}")
    _tell_apart(loaded)
    _shorten(loaded)
    runs = [run for run, _, _ in loaded]
    models = list(dict.fromkeys(model for run in runs for model in run["models"]))
    function = find_report(studies.pop(), str(runs[0]["target"]))
    report: Report = function(
        pd.concat([verdicts for _, verdicts, _ in loaded], ignore_index=True) if len(loaded) > 1 else loaded[0][1],
        units=pd.concat([units for _, _, units in loaded], ignore_index=True),
        title=_title(runs, models),
        draws=draws,
        seed=seed,
        runs=tuple(runs),
        cautions=tuple(cautions(models)),
    )
    return report


def check_draws(draws: int, seed: int) -> None:
    """Refuse a number of draws that no interval can be made of."""
    if draws < 1 or seed < 0:
        raise ConfigError("--draws must be at least 1, and --seed at least 0")


def load(path: Path) -> tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]:
    """What a run says of itself, its verdicts, and what its units cost."""
    from parley import frames

    with closing(RunFile.open(path)) as file:
        info, counts = file.info(), file.counts()
        verdicts, units = frames.verdicts(file), frames.spending(file)
        calls, tokens, cost, priced = file.spent()
    if verdicts.empty:
        raise ConfigError(f"{path} has no finished unit with a verdict yet")
    run = {
        "file": path.name,
        "path": str(path),
        "study": info["study"],
        "target": info.get("target", info["study"]),
        "models": info["models"],
        "seed": info["config"].get("seed"),
        "units": counts,
        "calls": calls,
        "tokens": tokens,
        "cost": cost if priced else None,
        "config": info["config"],
        "plan": info.get("plan"),
        "sources": info.get("sources", {}),
        "versions": info.get("versions", {}),
    }
    for frame in (verdicts, units):
        if "model" not in frame:
            frame["model"] = ", ".join(info["models"])
    return run, verdicts, units


def _tell_apart(loaded: Sequence[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]) -> None:
    """Several runs in one frame: units get their file's name, and a model that stands in two runs does too."""
    if len(loaded) < 2:
        return
    models = [set(verdicts["model"].astype(str)) for _, verdicts, _ in loaded]
    files = [str(run["file"]) for run, _, _ in loaded]
    for run, _, _ in loaded:
        if files.count(str(run["file"])) > 1:
            run["file"] = run["path"]
    for at, (run, verdicts, units) in enumerate(loaded):
        others: set[str] = set().union(*(seen for other, seen in enumerate(models) if other != at))
        names = {model: f"{model} ({run['file']})" if model in others else model for model in models[at]}
        for frame in (verdicts, units):
            frame["model"] = frame["model"].astype(str).map(names)
            frame["unit"] = f"{at}:" + frame["unit"].astype(str)


def _shorten(loaded: Sequence[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]) -> None:
    """Models without their options, as long as that keeps them apart; what made the page has the whole names."""
    names = list(dict.fromkeys(name for _, verdicts, _ in loaded for name in verdicts["model"].astype(str).unique()))
    short = {name: name.partition("?")[0] for name in names if "(" not in name}
    if len(set(short.values())) < len(names):
        return
    for _, verdicts, units in loaded:
        for frame in (verdicts, units):
            frame["model"] = frame["model"].astype(str).map(short)


def find_report(study: str, target: str) -> Any:
    """What makes a study's report: its own, an installed one, or the generic one."""
    known = {entry.name: entry.value for entry in entry_points(group="parley.reports")} | REPORTS
    named = known.get(study)
    if named is None:
        try:
            named = getattr(find_study(target), "report", GENERIC)
        except ConfigError:  # the study's file has gone; its run can still be read
            named = GENERIC
    if callable(named):
        return named
    module, _, function = str(named).partition(":")
    return getattr(import_module(module), function)


def _title(runs: Sequence[dict[str, Any]], models: Sequence[str]) -> str:
    plain = list(dict.fromkeys(model.partition("?")[0] for model in models))
    names = plain if len(plain) < 4 else [*plain[:3], f"{len(plain) - 3} more"]
    suite = " ".join(dict.fromkeys(str(run["config"]["suite"]) for run in runs if run["config"].get("suite")))
    return f"{runs[0]['study']} {suite} · {', '.join(names)}".replace("  ", " ")


def cautions(models: Sequence[str]) -> list[str]:
    """What every reader of these numbers must know about the models that gave them."""
    lines = []
    for name in models:
        plain = name.partition("?")[0]
        provider, _, model = plain.partition("/")
        if provider == "sim":
            lines.append(f"{name} is SIMULATED: these numbers come from planted effects, not from a language model.")
        elif provider == "local" and model in catalogue() and catalogue()[model].caution:
            lines.append(f"{catalogue()[model].caution}.")
    return lines
