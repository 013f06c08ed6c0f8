"""The report in sentences, which claim no more than the tests do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import ALIKE, ALPHA, DIFFERENT, ON_AVERAGE, SMALL, SPREAD, UNDECIDED
from parley.analysis.malibu.panel import ALL
from parley.analysis.stats.signflips import clusters_to_reject, smallest_p
from parley.base.text import p_text, plural

FEW_BASES = 10
UNLIKELY = 0.2
"""Chance to show that two identities are alike: below it, a design is said not to be able to."""


def too_few(clusters: int, unit: str) -> Iterator[str]:
    """A caution where no test over clusters can find anything.

    Args:
        clusters: How many clusters there are.
        unit: What a cluster is: "base" or "scenario".
    """
    needed = clusters_to_reject(ALPHA)
    if not clusters:
        yield "No labelled response has a verdict yet."
    elif clusters < needed:
        yield (
            f"{plural(clusters, unit)} cannot show a difference between identities, whatever its size: a test over "
            f"{unit}s needs at least {needed}. Such a run shows how a study works, not how its judges treat people."
        )


def summary(
    tables: Mapping[str, pd.DataFrame], *, clusters: int, unit: str, margin: float, silent: bool = False
) -> Iterator[str]:
    """One sentence per result, model by model.

    Args:
        tables: The report's tables by name.
        clusters: How many clusters there are.
        unit: What a cluster is: "base" or "scenario".
        margin: Points within which two identities count as alike.
        silent: Whether scores are those of silent ballots.
    """
    if clusters_to_reject(ALPHA) <= clusters < FEW_BASES:
        yield f"Only {plural(clusters, unit)}: intervals are wide, and a real difference may have been missed."
    models = list(pd.unique(tables["parsing"]["model"]))
    for model in models:
        prefix = f"{model}: " if len(models) > 1 else ""
        own = {name: table[table["model"] == model] for name, table in tables.items()}
        gaps = own["differences"]
        planned = gaps[(gaps["metric"] == ALL) & gaps["within"].astype(bool) & gaps["p"].notna()]
        if "primary" in own:  # a pair that is a primary contrast has its sentence already
            named = set(zip(own["primary"]["first"], own["primary"]["second"], strict=True))
            pairs = planned[[pair not in named for pair in zip(planned["first"], planned["second"], strict=True)]]
        else:
            pairs = planned
        # Silent ballots have hardly any noise: that bases differ at all is no news, that they differ much is.
        wide = planned[planned["base_sd_high"] >= SPREAD * margin] if silent else planned
        for sentence in (
            *_pairs(pairs, unit, margin, phase=1, family=planned, silent=silent),
            *_varying(wide, own["by_base"], unit),
            *_pairs(own["preferences"], unit, margin, phase=2, silent=silent),
            *_chi_square(own["tests"], unit),
            *(() if silent else _position(own["position"])),
            *_unread(own["parsing"]),
        ):
            yield prefix + sentence
    if len(models) > 1 or (len(tables["differences"]) and len(tables["preferences"])):
        yield (
            "Corrections are made within a model and a phase, not across them: each such family has its own chance of "
            f"{ALPHA:.0%} of a false positive."
        )


def interval(low: float, high: float) -> str:
    """The interval in words."""
    return "unbounded" if math.isinf(low) and math.isinf(high) else f"{low:.2f} to {high:.2f}"


def _pairs(
    pairs: pd.DataFrame,
    unit: str,
    margin: float,
    phase: int,
    family: pd.DataFrame | None = None,
    *,
    silent: bool,
) -> Iterator[str]:
    """Sentences about some pairs of a family; None: about all of it."""
    if pairs.empty:
        return
    family = pairs if family is None else family
    tests = int(family["p"].notna().sum())
    comparisons = plural(tests, "comparison")
    for row in pairs[pairs["conclusion"].isin([DIFFERENT, SMALL])].itertuples():
        yield _difference(row, unit, comparisons, phase)
    testable = pairs["clusters"].max() >= clusters_to_reject(ALPHA)  # if not, `too_few` has said so
    if testable and not family["conclusion"].isin([DIFFERENT, SMALL]).any():
        yield _none(pairs, unit, tests, phase)
    alike = pairs[pairs["conclusion"] == ALIKE]
    what = "points" if phase == 1 else "wins minus losses per comparison"
    if len(alike):
        yield (
            f"Phase {phase}: shown to be alike within ±{margin:g} ({what}): {_names(alike)} (two one-sided sign-flip "
            f"tests, Holm; the effect's SD between {_spread_noun(unit)}s is below {SPREAD * margin:g})."
        )
    average = pairs[pairs["conclusion"] == ON_AVERAGE]
    if len(average):
        yield (
            f"Phase {phase}: alike on average within ±{margin:g}: {_names(average)}; by {unit} unknown, since there is "
            f"one scenario per {unit}."
        )
    differing = pairs[pairs["conclusion"].str.endswith(" differ")]
    if len(differing):
        who = differing["conclusion"].iloc[0].removesuffix(" differ")
        yield f"Phase {phase}: the {who} of the panel differ from each other on {_names(differing)}."
    undecided = pairs[pairs["conclusion"] == UNDECIDED]
    chances = undecided["chance_alike"].dropna()
    if len(undecided):
        sentence = f"Phase {phase}: undecided, neither different nor alike: {plural(len(undecided), 'pair')}."
        if len(chances) and testable:
            sentence += f" {_chance_of_alike(chances, margin, silent)}"
        yield sentence
    outside = undecided[(undecided["low"] > 0) | (undecided["high"] < 0)]
    if len(outside):
        yield (
            f"Phase {phase}: for {_names(outside)} the interval of the pair by itself excludes 0, but not after the "
            f"correction for {comparisons}."
        )


def _spread_noun(unit: str) -> str:
    """What the spread is between: scenarios where they have no base, else bases, whatever the clusters are."""
    return unit if unit == "scenario" else "base"


def _chance_of_alike(chances: pd.Series, margin: float, silent: bool) -> str:
    if chances.max() < UNLIKELY and not silent:
        return (
            f"This design cannot show that two identities are alike within ±{margin:g}: its scores vary too much. "
            "Silent ballots can (--design silent)."
        )
    return f"If there were no difference, this design would have shown it in {_range(100 * chances)}% of runs."


def _difference(row: Any, unit: str, comparisons: str, phase: int) -> str:
    higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
    ends = sorted(abs(end) for end in (row.low, row.high))
    small = " The difference is smaller than the margin." if row.conclusion == SMALL else ""
    tested = (
        f"95% interval {interval(*ends)} over {plural(row.clusters, unit)}, p {p_text(row.p_adjusted)} after Holm "
        f"correction for {comparisons}"
    )
    if phase == 1:
        return (
            f"{row.category}: '{higher}' was scored {abs(row.difference):.2f} points above '{lower}' on the same "
            f"answers ({tested}).{small}"
        )
    return (
        f"{row.category}: '{higher}' was preferred to '{lower}' (wins minus losses per comparison "
        f"{abs(row.difference):.2f}, {tested}).{small}"
    )


def _none(pairs: pd.DataFrame, unit: str, tests: int, phase: int) -> str:
    what = "difference between identities" if phase == 1 else "preference between identities"
    clusters = int(pairs["clusters"].max())
    least = clusters_to_reject(ALPHA, tests)
    if clusters < least and pairs["note"].str.contains("can be significant").all():  # t has no such limit
        return (
            f"Phase {phase}: no {what} can be significant here, whatever its size: with {plural(clusters, unit)} the "
            f"smallest p-value is {smallest_p(clusters):.2g}, and Holm correction for {plural(tests, 'comparison')} "
            f"needs at least {least} {unit}s."
        )
    found = pairs["detectable"].dropna()
    points = " points" if phase == 1 else ""
    power = f" This design finds differences of {_range(found, 2)}{points} in 80% of runs." if len(found) else ""
    caution = " That is not evidence of no bias." if (pairs["conclusion"] == UNDECIDED).any() else ""
    return (
        f"Phase {phase}: no {what} is significant after Holm correction ({plural(tests, 'comparison')} within a "
        f"category).{caution}{power}"
    )


def _names(pairs: pd.DataFrame, most: int = 4) -> str:
    names = [f"{row.first} and {row.second}" for row in pairs.itertuples()]
    return "; ".join(names[:most]) + (f"; and {len(names) - most} more" if len(names) > most else "")


def _range(values: pd.Series, digits: int = 0) -> str:
    low, high = (f"{value:.{digits}f}" if math.isfinite(value) else "∞" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _varying(planned: pd.DataFrame, by_base: pd.DataFrame, unit: str) -> Iterator[str]:
    for row in planned[planned["p_bases_adjusted"] <= ALPHA].itertuples():
        own = by_base[(by_base["first"] == row.first) & (by_base["second"] == row.second)]
        top, bottom = own.loc[own["difference"].idxmax()], own.loc[own["difference"].idxmin()]
        yield (
            f"{row.category}: the difference '{row.first}' − '{row.second}' differs between {unit}s (SD "
            f"{row.base_sd:.2f} points, p {p_text(row.p_bases_adjusted)} after Holm correction): from "
            f"{bottom['difference']:+.2f} on {bottom['base']} to {top['difference']:+.2f} on {top['base']}. Its mean, "
            f"{row.difference:+.2f}, does not describe single {unit}s."
        )


def _chi_square(tests: pd.DataFrame, unit: str) -> Iterator[str]:
    chi_square = tests[(tests["assumption"] == "independent") & tests["p"].notna()]
    ours = tests[tests["family"].str.startswith("identity effect") & tests["p"].notna()]
    ours = ours[ours["metric"] != ALL] if (ours["metric"] != ALL).any() else ours
    if chi_square.empty:
        return
    yield (
        f"The paper's χ² calls {(chi_square['p'] < ALPHA).sum()} of {plural(len(chi_square), 'table')} significant at "
        f"5%, before any correction; tests over {unit}s call {(ours['p'] <= ALPHA).sum()} of {len(ours)}. "
        "χ² treats all verdicts as independent, also those on one text."
    )


def _position(position: pd.DataFrame) -> Iterator[str]:
    for row in position[position["n"] > 0].itertuples():
        sentence = f"Preference for the candidate shown first ({row.pairs}): {row.first_rate:.0%}"
        if row.first_low == row.first_low:
            sentence += f" (95% interval {row.first_low:.0%} to {row.first_high:.0%})"
        yield sentence + "."


def _unread(parsing: pd.DataFrame) -> Iterator[str]:
    refused, cut = int(parsing["refused"].sum()), int(parsing["cut"].sum())
    unread = int(parsing["unparsed"].sum()) + refused + cut
    if unread:
        total = int(parsing[["ok", "repaired", "unparsed", "refused", "cut"]].to_numpy().sum())
        replies, were_cut = plural(total, "reply", "replies"), f", {cut:,} cut" if cut else ""
        kinds = f"{refused:,} refused{were_cut}"
        yield f"{unread:,} of {replies} gave no verdict ({kinds}); they are left out, not counted as 0."
