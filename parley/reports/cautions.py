"""Cautions for readers of a report, comparison or dataset about its models and their replies."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from parley.agents import LEAST_ON_SCALE
from parley.agents.providers import SAMPLED, provider_of
from parley.analysis.known_order import CHANCE, auc_words
from parley.analysis.stats.results import Estimate
from parley.base.text import plural
from parley.runs import Replies

PRACTICE = "Practice run"
"""The beginning of the caution that a run only shows how Parley works."""


def cautions(models: Sequence[str]) -> list[str]:
    """Cautions about models: simulated, or not shown to judge."""
    return [*simulated(models), *judging_cautions(models).values()]


def simulated(models: Sequence[str]) -> list[str]:
    """A line for every simulated model."""
    return [
        f"{name} is SIMULATED: these numbers come from planted effects, not from a language model."
        for name in models
        if provider_of(name).simulated
    ]


def judging_cautions(models: Sequence[str]) -> dict[str, str]:
    """By model, earlier measurements that do not show that it can judge.

    A report that measures the same omits them: a judge has one AUC.

    Args:
        models: Their names, as provider/model.
    """
    cautions = {}
    for name in models:
        measured = _measured_judges().get(name.partition("?")[0].partition("/")[2])
        if provider_of(name).embedded and measured and measured["low"] <= CHANCE:
            auc = Estimate(estimate=measured["auc"], low=measured["low"], high=measured["high"])
            cautions[name] = (
                f"{PRACTICE}: {name} was not shown to tell good answers from flawed ones (in a run of "
                f"{measured['date']:%d %B %Y}, {auc_words(auc)})."
            )
    return cautions


@cache
def _measured_judges() -> dict[str, dict[str, Any]]:
    """The entries of `judges.toml` on embedded models."""
    return tomllib.loads(files("parley.reports").joinpath("judges.toml").read_text("utf-8"))


def unfinished_cautions(units: Mapping[str, int], run: str = "", *, as_is: bool = False) -> list[str]:
    """A line if a run is not finished, or units of it failed.

    Args:
        units: Numbers of units by status.
        run: The run's name, where there are several.
        as_is: Whether no more units are to come.
    """
    failed, total = units["failed"], sum(units.values())
    if units["planned"]:
        done = f"{units['done']:,} of {plural(total, 'unit')} {'is' if total == 1 else 'are'} done"
        ended = f"ended early: {done}." if as_is else f"is not finished: {done}. All of its numbers may still change."
        return [f"{run or 'This run'} {ended}"]
    if not failed:
        return []
    return [
        f"{f'{run}: ' if run else ''}{plural(failed, 'unit')} failed and {'is' if failed == 1 else 'are'} missing from "
        "all numbers."
    ]


def scale_cautions(runs: Iterable[Mapping[tuple[str, str], float]]) -> list[str]:
    """A line for every model and metric whose silent ballots are rarely answered in the requested form.

    Args:
        runs: The mean shares on the ballots' answers, by each run's models and metrics.
    """
    sampled = f" With {SAMPLED} (or &{SAMPLED[1:]}) after its name, its replies are sampled instead."
    return [
        f"{model} answers silent ballots ({metric}) as asked with a probability of {share:.0%}: those below "
        f"{LEAST_ON_SCALE:.0%} are unread.{'' if SAMPLED[1:] in model else sampled}"
        for shares in runs
        for (model, metric), share in shares.items()
        if share < LEAST_ON_SCALE
    ]


def cut_cautions(replies: Iterable[Replies]) -> list[str]:
    """Cautions about replies that were cut off at their token limit."""
    cut = total = cut_drafts = drafts = 0
    for read in replies:
        cut, total = cut + read.cut, total + read.total - read.drafts
        cut_drafts, drafts = cut_drafts + read.cut_drafts, drafts + read.drafts
    lines = []
    if cut:
        share = f"{cut:,} of {plural(total, 'reply', 'replies')} ({cut / total:.0%})"
        lines.append(f"{share} reached the token limit and were cut off: raise --max-tokens and run again.")
    if cut_drafts:
        lines.append(f"{cut_drafts:,} of {plural(drafts, 'draft')} ({cut_drafts / drafts:.0%}) end at the token limit.")
    return lines
