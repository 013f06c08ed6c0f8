"""From run files to a report: the study's own, or the generic one.

A study brings its report by name: ours stand below, an installed package registers an entry point in the group
`parley.reports`, and a class may say `report = "module:function"`. The function takes a frame of verdicts (see
`parley.frames`) and gives an `parley.analysis.reporting.report.Report`.

A run file names the study it was made with. That is never reason enough to load someone's code: a study of a file is
loaded where the user names it (`--study mine.py:Mine`), and gets the generic report otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.agents import ConfigError
from parley.agents.models.catalogue import catalogue
from parley.runs import RunFile, examined
from parley.runs.interim import counts as counted
from parley.runs.interim import looks_made
from parley.studies import find_report

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.interim import MonitoredRun
    from parley.analysis.reporting.report import Report


def make_report(paths: Sequence[Path], *, draws: int = 2000, seed: int = 0, study: str | None = None) -> Report:
    """One report over one run or several of the same study; `study` is a user's own, as file.py:Class."""
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("reports need pandas and friends: pip install 'parley-autogen[analysis]'") from None
    check_draws(draws, seed)
    with examined(*paths):
        return _report([load(path) for path in paths], draws, seed, study)


def _report(
    loaded: list[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]], draws: int, seed: int, study: str | None
) -> Report:
    import pandas as pd

    from parley.analysis.reporting.interim import with_interim_looks

    studies = {str(run["study"]) for run, _, _ in loaded}
    if len(studies) > 1:
        raise ConfigError(f"one report is about one study; these runs are of {', '.join(sorted(studies))}")
    _tell_apart(loaded)
    _shorten(loaded)
    runs = [run for run, _, _ in loaded]
    models = list(dict.fromkeys(model for run in runs for model in run["models"]))
    function = find_report(studies.pop(), study)
    report: Report = function(
        pd.concat([verdicts for _, verdicts, _ in loaded], ignore_index=True) if len(loaded) > 1 else loaded[0][1],
        units=pd.concat([units for _, _, units in loaded], ignore_index=True),
        title=_title(runs, models),
        draws=draws,
        seed=seed,
        runs=tuple(runs),
        cautions=tuple(cautions(models)),
    )
    return with_interim_looks(report, [one for run in runs if (one := _watched(run))])


def _watched(run: dict[str, Any]) -> MonitoredRun | None:
    """The looks of a run with a stopping rule."""
    from parley.analysis.reporting.interim import MonitoredRun
    from parley.analysis.stats.sequential import StoppingRule

    if not run["config"].get("stop"):
        return None
    with closing(RunFile.open(Path(run["path"]))) as file:
        return MonitoredRun(
            run=run["file"],
            rule=StoppingRule(**run["config"]["stop"]),
            results=tuple(one for seen in looks_made(file) for one in seen),
        )


def check_draws(draws: int, seed: int) -> None:
    """Refuse a number of draws that no interval can be made of."""
    if draws < 1 or seed < 0:
        raise ConfigError("--draws must be at least 1, and --seed at least 0")


def load(path: Path) -> tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]:
    """What a run says of itself, its verdicts, and what its units cost."""
    from parley import frames

    with closing(RunFile.open(path)) as file:
        info, counts = file.info(), counted(file)
        verdicts, units = frames.verdicts(file), frames.spending(file)
        calls, tokens, cost, priced = file.spent()
        reused = file.reused()
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
        "prompt_cache": {"cached_tokens": reused[0], "prompt_tokens": reused[1]} if reused else None,
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
        elif provider in ("local", "hf") and model in catalogue() and catalogue()[model].caution:
            lines.append(f"{catalogue()[model].caution}.")
    return lines
