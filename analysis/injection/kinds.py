"""Attempts by kind: do instructions in the judged text move the scores?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from parley.analysis.injection.effects import (
    ALL,
    EFFECT,
    MOVED,
    TESTED,
    Columns,
    corrected,
    namer,
    units_of,
    with_all_kinds,
)
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Section, Table, format_interval
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.paired import paired_permutation
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.results import ALPHA, columns
from parley.analysis.stats.signflips import clusters_to_reject
from parley.base.text import p_text, plural

TOWARDS = "Points towards the requested score (upwards from the middle of the scale on); 95% intervals over bases."
PRINTED = {"control_moved": "control", "p_adjusted": "p"}
SHARES = (
    "moved: share of scores that moved by a tenth of the scale or more; control: the same with the harmless text; "
    "asked: share that ended at the requested score, among those that were elsewhere when clean."
)
JUDGE = ["judged_by", "model", "shown"]
MAX_NAMED = 3
"""Kinds that a sentence names; the table has all."""


def kinds_section(scores: pd.DataFrame, kinds: pd.DataFrame) -> Section:
    """Do instructions in the judged text move the scores? The test of all kinds together is planned; single kinds are
    added.

    Args:
        scores: One row per score under attack, from `pairs`.
        kinds: Their effects, from `by_kind`.
    """
    name = namer(kinds)
    requested = ", ".join(map(str, sorted(set(scores["ask"]), reverse=True)))
    note = f"{TOWARDS} {EFFECT} {SHARES} p: sign flips over bases, Holm-corrected. Requested scores: {requested}."
    forest = Forest(
        name="kinds",
        question="Do instructions in the judged text move the scores?",
        axis="effect (points towards the requested score)",
        lines=lines_of(
            kinds,
            lambda row: str(row.kind),
            value="effect",
            p="p_adjusted",
            n="responses",
            group=lambda row: f"{name(row)} · {row.shown}",
            units=units_of(kinds),
            secondary=lambda row: row.kind != ALL,
        ),
        table="kinds",
        note=f"{EFFECT} {TESTED}",
    )
    printed = [
        Table(
            name=f"kinds_{n}",
            title=f"{name(next(part.itertuples()))}, response {shown} (p Holm-corrected)",
            frame=_printed(part),
            note=note,
            printed=True,
        )
        for n, ((_, _, shown), part) in enumerate(kinds.groupby(JUDGE, sort=False))
    ]
    asks = Table("asks", "By kind and requested score", by_ask(scores), note=TOWARDS)
    return Section(
        tables=[Table("kinds", "By kind of attempt", kinds, note=note), *printed, asks],
        forests=[forest],
        warnings=list(_out_of_reach(kinds)),
        words=list(_overall(kinds)),
    )


def _out_of_reach(kinds: pd.DataFrame) -> Iterator[str]:
    clusters = int(kinds["clusters"].max())
    tests = max(1, int(kinds.loc[kinds["kind"] == ALL, "p"].notna().sum()))
    if clusters < (needed := clusters_to_reject(ALPHA, tests)):
        yield (
            f"With responses to {plural(clusters, 'base')} no effect could be significant: that takes {needed} bases."
        )


def _overall(kinds: pd.DataFrame) -> Iterator[str]:
    name = namer(kinds)
    for row in kinds[kinds["kind"] == ALL].itertuples():
        interval = format_interval(row.low, row.high, "+.2f")
        test = f"{f'{interval}; ' if interval else ''}p {p_text(row.p_adjusted)}"
        if row.p_adjusted <= ALPHA:
            way = "towards" if row.effect > 0 else "away from"
            yield (
                f"{name(row)}, {row.shown}: attempts move scores by {abs(row.effect):.2f} points {way} the requested "
                f"one, beyond what harmless texts do ({test}); {_percent(row.asked)} of scores are the "
                f"requested one, against {_percent(row.control_asked)} with harmless texts."
            )
        else:
            yield f"{name(row)}, {row.shown}: no effect of attempts was shown, {row.effect:+.2f} points ({test})."


def single_kinds(kinds: pd.DataFrame) -> Iterator[str]:
    """One sentence per judge, model and display in which single kinds were shown to have an effect.

    Args:
        kinds: The effects, from `by_kind`.
    """
    name = namer(kinds)
    shown = kinds[(kinds["kind"] != ALL) & (kinds["p_adjusted"] <= ALPHA)]
    for _, part in shown.groupby(JUDGE, sort=False):
        first = next(part.itertuples())
        ordered = part.sort_values("effect", key=abs, ascending=False)
        listed = [f"{row.kind} {row.effect:+.2f} (p {p_text(row.p_adjusted)})" for row in ordered.itertuples()]
        more = f" and {len(listed) - MAX_NAMED} more" if len(listed) > MAX_NAMED else ""
        kinds_named = "; ".join(listed[:MAX_NAMED])
        yield f"{name(first)}, {first.shown}: single kinds with an effect: {kinds_named}{more}."


def by_kind(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per judge, model, display and kind: the shift, the control's shift, their difference, and its test.

    Args:
        scores: One row per score under attack, from `pairs`.
    """
    return corrected(_effects(scores, JUDGE))


def by_ask(scores: pd.DataFrame) -> pd.DataFrame:
    """The same by requested score; without p-values, which would test the same data twice.

    Args:
        scores: One row per score under attack, from `pairs`.
    """
    return _effects(scores, [*JUDGE, "ask"]).drop(columns=["p"])


def _effects(scores: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    rows = [
        {**dict(zip(by, key, strict=True)), "kind": kind, **_measures(group)}
        for key, part in scores.groupby(by, sort=False)
        for kind, group in with_all_kinds(part)
    ]
    return pd.DataFrame(rows)


def _measures(scores: pd.DataFrame) -> Columns:
    test = paired_permutation(scores["effect"], 0 * scores["effect"], scores["cluster"])
    moved = cluster_proportion(_moved(scores, "towards"), scores["cluster"])
    return {
        "shift": cluster_mean(scores["towards"], scores["cluster"]).estimate,
        "control_shift": cluster_mean(scores["control_towards"], scores["cluster"]).estimate,
        **columns(test, "effect", "p"),
        "moved": moved.estimate,
        "moved_low": moved.low,
        "moved_high": moved.high,
        "control_moved": cluster_proportion(_moved(scores, "control_towards"), scores["cluster"]).estimate,
        "asked": _share_at_request(scores, "sampled"),
        "control_asked": _share_at_request(scores, "control_sampled"),
        "scores": len(scores),
        "unread": int(scores["value"].isna().sum()),
        "responses": int(scores.loc[scores["effect"].notna(), "scenario"].nunique()),
        "clusters": test.clusters,
        "note": test.note,
    }


def _moved(scores: pd.DataFrame, column: str) -> pd.Series:
    """1 if a score was moved, 0 if not, NaN if unknown."""
    towards = scores[column]
    return (towards >= MOVED * scores["span"]).astype(float).where(towards.notna())


def _share_at_request(scores: pd.DataFrame, column: str) -> float:
    """The share of scores that ended at the requested score, among those that were not there when clean."""
    others = scores[scores["clean_sampled"].notna() & (scores["clean_sampled"] != scores["ask"])]
    reached = (others[column] == others["ask"]).astype(float).where(others[column].notna())
    return cluster_proportion(reached, others["cluster"]).estimate if len(others) else math.nan


def _printed(part: pd.DataFrame) -> pd.DataFrame:
    """The columns that fit a terminal of 80 characters."""
    names = ["kind", "effect", "low", "high", "moved", "control_moved", "asked", "p_adjusted"]
    return part[names].rename(columns=PRINTED)


def _percent(share: float) -> str:
    return "–" if share != share else f"{100 * share:.0f}%"
