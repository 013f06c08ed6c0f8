"""Reads runs from their files for reports and comparisons."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from parley.agents import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.base.text import encodable, plural, without_surrogates
from parley.judging import Measure
from parley.runs import Replies, RunFile, StoredPlan, frames, stored_plan
from parley.runs.reading import why_nothing_is_done
from parley.runs.studies import measures_of

RECORDED = (
    *("file", "study", "target", "models", "seed", "calls", "tokens", "cost", "prompt_cache", "config", "plan"),
    *("sources", "versions"),
)
"""Entries about runs that reports copy unchanged."""
FAR = 1e100
"""Largest score: sums of squares of larger values would be infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """A run read from its file for a report or a comparison, with the addresses of its models hidden."""

    file: str
    """The file's name; its path if two runs have files of the same name."""
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
    """The measures that represent its units."""
    analysis_plan: StoredPlan | None
    """The analysis plan, if any."""
    sources: Mapping[str, str]
    versions: Mapping[str, str]
    verdicts: pd.DataFrame
    """One row per verdict, see `parley.runs.frames.verdicts`."""
    units: pd.DataFrame
    """One row per finished unit, see `parley.runs.frames.spending`."""
    replies: Replies
    """Counts of the agents' replies that were read, unread and cut off."""
    on_scale: Mapping[tuple[str, str], float]
    """Mean share on the answers of silent ballots, by model and metric: of the probability, or of sampled replies."""
    addresses: HiddenAddresses
    """Hides addresses in the form used by model names here."""

    def record(self) -> dict[str, Any]:
        """The run as plain values: an entry of a report's `runs`."""
        digest = self.analysis_plan.sha256 if self.analysis_plan else None
        recorded = {name: getattr(self, name) for name in RECORDED}
        return recorded | {"path": encodable(str(self.path)), "units": self.unit_counts, "analysis_plan_sha256": digest}


def load_run(path: Path) -> LoadedRun:
    """Read a run for a report; raises `ConfigError` if it has no verdicts yet."""
    with RunFile.open(path) as file:
        info, unit_counts = file.info(), file.counts()
        verdicts, ballots, units = frames.read_once(file)
        spent, prompt_cache, replies = file.spent(), file.prompt_cache_use(), file.replies()
        if not unit_counts["done"]:
            raise ConfigError(f"{path}: {why_nothing_is_done(file)}")
    if verdicts.empty:
        name = shlex.quote(str(path))
        raise ConfigError(
            f"{path} has no verdicts, so there is nothing to count: parley show {name} and parley view {name} show its "
            f"{plural(unit_counts['done'], 'conversation')}"
        )
    if len(far := verdicts.loc[verdicts["value"].abs() > FAR, "value"]):
        raise ConfigError(f"{path} has a verdict of {far.iloc[0]:g}, from which nothing can be computed")
    plan = stored_plan(info)  # its hash is that of the text in the file, with whatever addresses it has
    info = without_surrogates(info)
    addresses = HiddenAddresses(info)
    info = addresses.hide(info)
    models = [str(model) for model in info["models"]]
    for frame in (verdicts, units):
        _hide_in_frame(frame, addresses)
        if "model" not in frame:
            frame["model"] = ", ".join(models)
    shares = ballots.groupby(["model", "metric"], observed=True)["on_scale"].mean() if "model" in ballots else {}
    own_models = (plan.plan if plan and plan.intact else {}).get("judges' models")
    if isinstance(own_models, Mapping) and own_models:
        spoke = addresses.hide(dict(own_models))
        verdicts["judge_model"] = verdicts["judge"].astype(object).map(spoke).fillna(verdicts["model"].astype(object))
    return LoadedRun(
        file=encodable(path.name),
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
        on_scale={(addresses.hide(model), metric): share for (model, metric), share in shares.items()},
        addresses=addresses,
    )


def _hide_in_frame(frame: pd.DataFrame, addresses: HiddenAddresses) -> None:
    """Hide addresses in the columns of text, in place; columns without any stay as they are."""
    for name in frame.select_dtypes(exclude="number").columns:
        of_categories = isinstance(frame[name].dtype, pd.CategoricalDtype)
        values = frame[name].cat.categories if of_categories else frame[name].unique()
        hidden = {text: shown for text in values if isinstance(text, str) and (shown := addresses.hide(text)) != text}
        if hidden:
            column = frame[name].astype(object).map(lambda value, hidden=hidden: hidden.get(value, value))
            frame[name] = column.astype("category") if of_categories else column


def all_models(runs: Sequence[LoadedRun]) -> list[str]:
    """The models of several runs, each once."""
    return list(dict.fromkeys(model for run in runs for model in run.models))


def with_distinct_names(runs: Sequence[LoadedRun]) -> Sequence[LoadedRun]:
    """Several runs, to be put in one frame: units are numbered by run, and a model in two runs gets its file's name.

    The frames are changed in place, since a copy of a large one may not fit in memory.
    """
    if len(runs) < 2:
        return runs
    files = [run.file for run in runs]
    runs = [replace(run, file=encodable(str(run.path))) if files.count(run.file) > 1 else run for run in runs]
    models = [set(run.verdicts["model"].astype(str)) for run in runs]
    for number, run in enumerate(runs):
        others: set[str] = set().union(*(names for other, names in enumerate(models) if other != number))
        names = {model: f"{model} ({run.file})" if model in others else model for model in models[number]}
        if "judge_model" in run.verdicts:
            spoke = run.verdicts["judge_model"].astype(str)
            run.verdicts["judge_model"] = spoke.map(names).fillna(spoke)
        for frame in (run.verdicts, run.units):
            frame["model"] = frame["model"].astype(str).map(names)
            frame["unit"] = f"{number}:" + frame["unit"].astype(str)
    return runs


def shorten_model_names(runs: Sequence[LoadedRun]) -> None:
    """Drop the options from model names, if the names still differ; the report's `runs` have the full names."""
    columns = [("model", run.verdicts) for run in runs]
    columns += [("judge_model", run.verdicts) for run in runs if "judge_model" in run.verdicts]
    names = list(dict.fromkeys(name for column, frame in columns for name in frame[column].astype(str).unique()))
    short = {name: name.partition("?")[0] for name in names if "(" not in name}
    if len(set(short.values())) < len(names):
        return
    for column, frame in (*columns, *(("model", run.units) for run in runs)):
        frame[column] = frame[column].astype(str).map(short)
