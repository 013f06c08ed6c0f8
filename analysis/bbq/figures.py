"""BBQ's figures: accuracy against bias, and forest plots of bias, accuracy, changes and what loops gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import bounded, caption, colours, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.forest import Forest, estimates
from parley.analysis.reporting.optimism import gap_forests
from parley.analysis.reporting.systems import BASELINE

TITLES = {"ambig": "ambiguous", "disambig": "disambiguated"}


def accuracy_against_bias(leaderboard: pd.DataFrame, title: str, note: str) -> Drawing:
    """Accuracy against bias, with intervals of both. A system whose bias is undefined has no point, only a label.

    Args:
        leaderboard: The table of `parley.analysis.bbq.leaderboard.leaderboard`.
        title: Above the figure.
        note: The small print below it.
    """
    contexts = [context for context in TITLES if context in set(leaderboard["context"])]
    figure, axes = sheet(2.2 + 3.8 * len(contexts), 3.9, len(contexts), sharey=True)
    tints = colours(list(leaderboard["system"]))
    for axis, context in zip(axes[0], contexts, strict=True):
        for row in leaderboard[leaderboard["context"] == context].itertuples():
            tint = tints[row.system]
            if np.isnan(row.bias):
                axis.plot([], [], "o", color=tint, label=f"{plain_text(row.system)} (bias undefined)")
                continue
            if np.isfinite(row.low):
                axis.plot([row.low, row.high], [100 * row.accuracy] * 2, color=tint, linewidth=1.4)
            if np.isfinite(row.accuracy_low):
                ends = [100 * row.accuracy_low, 100 * row.accuracy_high]
                axis.plot([row.bias] * 2, ends, color=tint, linewidth=1.4)
            axis.plot(row.bias, 100 * row.accuracy, "o", color=tint, markersize=6, label=plain_text(row.system))
        axis.axvline(0, color="#888888", linewidth=0.8)
        axis.set_xlabel("bias (−100 to 100; 0: no bias)")
        axis.set_title(TITLES[context], fontsize=10)
        tidy(axis, "both")
        bounded(axis, "x", -100, 100)
    axes[0, 0].set_ylabel("accuracy (%)")
    bounded(axes[0, 0], "y")
    legend_beside(figure, axes[0])
    caption(figure, title, note)
    return figure


MACRO = "macro mean"
OVER = "95% intervals over question templates."
Facets = dict[str, tuple[str, ...]]


def forests(
    table: pd.DataFrame,
    tests: pd.DataFrame,
    gaps: Sequence[tuple[str, pd.DataFrame]],
    facets: Mapping[str, Facets],
) -> Iterator[Forest]:
    """The plots. Bias comes first; where every method is a loop, what the loops gain does.

    Args:
        table: Systems × categories × contexts.
        tests: Every system compared with `default`.
        gaps: What a loop's scorer measures, with its unit, and the gains and gaps by system.
        facets: The facets of each system's units.
    """
    gained = [forest for what, frame in gaps for forest in _gains(what, frame, facets)]
    looped = {str(system) for _, frame in gaps for system in frame["system"]}
    if looped and looped == set(table["system"]):
        yield from gained
        gained = []
    yield from _levels(table, facets)
    yield from _changes(tests, facets)
    yield from gained


def _levels(table: pd.DataFrame, facets: Mapping[str, Facets]) -> Iterator[Forest]:
    several = table["system"].nunique() > 1
    shown = table[table["category"] == MACRO] if several else table[table["category"] != "micro mean"]
    first = shown["category"] != MACRO
    shown = shown.loc[first.sort_values(kind="stable").index] if not several else shown
    shown = shown.sort_values("context", kind="stable")

    def label(row: Any) -> str:
        return str(row.system) if several else "mean of categories" if row.category == MACRO else str(row.category)

    def units(row: Any) -> Facets:
        return {"condition": (row.context,), **facets[row.system], **({} if several else _category(row.category))}

    for name, question, axis, ends in (
        ("bias", "Do the answers follow stereotypes?", "bias score (−100 to 100; 0: no bias)", ("low", "high")),
        ("accuracy", "How often are the answers right?", "accuracy", ("accuracy_low", "accuracy_high")),
    ):
        yield Forest(
            name=name,
            question=question,
            axis=axis,
            estimates=estimates(
                shown, label, value=name, ends=ends, group=lambda row: f"{TITLES[row.context]} context", units=units
            ),
            reference=0.0 if name == "bias" else None,
            scale="points" if name == "bias" else "share",
            table="categories",
            note=f"{'Macro means over categories. ' if several else ''}{OVER}",
        )


def _category(name: str) -> Facets:
    """The facets of a category's units; those that name people by proper names are a category of their own."""
    if name == MACRO:
        return {}
    category = name.removesuffix(" (names)")
    return {"category": (category,), **({"names": ("true",)} if category != name else {})}


def _changes(tests: pd.DataFrame, facets: Mapping[str, Facets]) -> Iterator[Forest]:
    if tests.empty:
        return
    for measure, axis in (("bias", "change of the bias score"), ("accuracy", "change of accuracy (share)")):
        yield Forest(
            name=f"{measure}-against-{BASELINE}",
            question=f"Does a method change the {measure}, compared with {BASELINE}?",
            axis=axis,
            estimates=estimates(
                tests[tests["measure"] == measure],
                lambda row: f"{row.system} − {row.baseline}",
                p="p_adjusted",
                group=lambda row: f"{TITLES[row.context]} context",
                units=lambda row: {"condition": (row.context,), **_merged(facets, row.system, row.baseline)},
            ),
            scale="points" if measure == "bias" else "share",
            table="against_default",
            note=f"On the rows that both answered readably. {OVER} p-values Holm-corrected over the table.",
        )


def _merged(facets: Mapping[str, Facets], *systems: str) -> Facets:
    names = dict.fromkeys(name for system in systems for name in facets[system])
    return {name: tuple(dict.fromkeys(value for system in systems for value in facets[system][name])) for name in names}


def _gains(what: str, gaps: pd.DataFrame, facets: Mapping[str, Facets]) -> Iterator[Forest]:
    name = "gain-" + what.partition(" (")[0].replace(" ", "-")
    yield from gap_forests(gaps, what, name=name, units=lambda row: facets[row.system])
