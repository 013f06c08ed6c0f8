"""Is the instrument sound? What to know of the judges before any difference is read.

Order effects beside the noise of asking again, an effect of the response itself, judges whose verdicts do not depend
on what they judge, and each identity against no label at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import (
    LEVEL,
    nested_means,
    of_models,
    tested,
    with_holm,
)
from parley.analysis.malibu.pairs import changes, flips
from parley.analysis.malibu.panel import PanelData, ScoreTable, Verdicts, panel_data
from parley.analysis.reporting.report import Section, Table
from parley.analysis.reporting.verdicts import final_verdicts
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.tables import Floats, as_floats
from parley.base.text import p_text, plural

NEARLY_ALL = 0.95
ENOUGH = 10
"""Fewer verdicts than this may well be alike by chance."""
TWO_IDENTITIES = "two identities"
NO_BASELINE = "no unit was run twice in the same order: --repeats 2 gives the baseline"
ORDER = [
    *("model", "pairs", "swapped_rate", "swapped_low", "swapped_high", "swapped_n"),
    *("again_rate", "again_low", "again_high", "again_n", "difference", "low", "high", "p", "clusters", "note"),
]
RESPONSES = ["model", "first", "second", "ties", "rate", "low", "high", "p", "clusters", "note"]
NO_LABEL_COLUMNS = [
    *("model", "category", "identity", "difference", "low", "high", "p", "p_adjusted", "clusters", "note"),
]


def order_effects(verdicts: Verdicts) -> pd.DataFrame:
    """How often swapping the order changes the verdict, beside how often asking again in the same order does.

    `difference` is what the order adds to the noise, with sign flips over bases. It is taken from blocks of four: one
    comparison in both orders, in two repeats. If the order has no effect the four verdicts could be exchanged, which
    would exchange the two rates, so the difference could as well have the opposite sign.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    units = data.preferences
    units = units.assign(block=units["repeat"] // 2)
    rows: list[dict[str, Any]] = []
    for (model, control), group in units.groupby(["model", "control"], sort=False, observed=True):
        swapped = flips(group)
        again = changes(group, "order", "block") if "order" in group else swapped[:0]
        rates = [
            cluster_proportion(couples["flipped"].astype(float), couples["cluster"]) for couples in (swapped, again)
        ]
        row: dict[str, Any] = {"model": str(model), "pairs": str(control) or TWO_IDENTITIES}
        for name, rate in zip(("swapped", "again"), rates, strict=True):
            row |= {f"{name}_rate": rate.estimate, f"{name}_low": rate.low, f"{name}_high": rate.high}
            row[f"{name}_n"] = rate.n
        row |= tested(_beyond_noise(group))
        rows.append(row | ({} if len(again) else {"note": NO_BASELINE}))
    return pd.DataFrame(rows, columns=ORDER)


def _beyond_noise(units: pd.DataFrame) -> Floats:
    """By base: the rate of changes when the order is swapped minus that when it is not, from whole blocks of four."""
    if "order" not in units:
        return np.zeros(0)
    keys = ["cluster", "scenario", "identity", "other", "assignment", "block"]
    whole = units[units["choice"].notna()]
    size = whole.groupby(keys, observed=True)["unit"].transform("size")
    orders = whole.groupby(keys, observed=True)["order"].transform("sum")
    # Two orders × two repeats: without an order effect these four are exchangeable, so that sign flips are exact.
    whole = whole[(size == 4) & (orders == 2)]
    by_kind = [
        nested_means(couples["flipped"].to_numpy(dtype=float), couples[["cluster", "scenario"]])[0]
        for couples in (flips(whole), changes(whole, "order", "block"))
    ]
    return as_floats(by_kind[0] - by_kind[1])


def order_words(table: pd.DataFrame, cluster: str = "base") -> Iterator[str]:
    """A sentence for every model that compared two identities in both orders; the controls are in the table.

    Args:
        table: The table of `order_effects`.
        cluster: What the clusters are called.
    """
    for _, prefix, rows in of_models(table):
        for row in rows[(rows["swapped_n"] > 0) & (rows["pairs"] == TWO_IDENTITIES)].itertuples():
            sentence = (
                f"{prefix}Swapping the two candidates in the prompt changed the verdict in "
                f"{row.swapped_rate:.0%} of {plural(row.swapped_n, 'comparison')}"
            )
            if not row.again_n:
                yield f"{sentence}; how much of that is noise is not known, as {row.note}."
                continue
            sentence += f", asking again in the same order in {row.again_rate:.0%} of {row.again_n:,}"
            if row.clusters:
                over = plural(row.clusters, cluster)
                sentence += f": the order {_added(row)} (sign flips over {over}, p {p_text(row.p)})"
            yield f"{sentence}."


def _added(row: Any) -> str:
    points = f"{100 * row.difference:.0f} percentage points"
    if row.p < LEVEL:
        return f"adds {points} to the noise" if row.difference > 0 else f"takes {points} from the noise"
    return f"adds {points}, which noise alone may explain"


def response_effect(verdicts: Verdicts) -> pd.DataFrame:
    """How often response 1 is preferred to response 2, whatever their labels: one row per model, controls included.

    `rate` counts a tie as half, and gives bases and the two places in the prompt the same weight; interval and p come
    from sign flips over bases.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    units = data.preferences
    if "response_a" not in units or units.empty:
        return pd.DataFrame(columns=RESPONSES)
    units = units[units["choice"].notna()]
    rows: list[dict[str, Any]] = []
    for model, group in units.groupby("model", sort=False, observed=True):
        sign = np.where(group["response_a"].astype(float) == 1, 1.0, -1.0)
        lead = sign * np.select([group["choice"] == "A", group["choice"] == "B"], [1.0, -1.0], 0.0)
        by_base = nested_means(lead, group[["cluster", "scenario", "response_a"]])[0].to_numpy(dtype=float)
        counts = {"first": int((lead > 0).sum()), "second": int((lead < 0).sum()), "ties": int((lead == 0).sum())}
        rows.append({"model": str(model)} | counts | as_rate(tested(by_base)))
    return pd.DataFrame(rows, columns=RESPONSES)


def response_words(table: pd.DataFrame, cluster: str = "base") -> Iterator[str]:
    """A sentence for every model that prefers one of the two responses.

    Args:
        table: The table of `response_effect`.
        cluster: What the clusters are called.
    """
    for _, prefix, rows in of_models(table):
        for row in rows[rows["p"] < LEVEL].itertuples():
            better, worse = (1, 2) if row.rate > 0.5 else (2, 1)
            rate, *ends = (row.rate, row.low, row.high) if better == 1 else (1 - row.rate, 1 - row.high, 1 - row.low)
            yield (
                f"{prefix}Whatever its label, response {better} won against response {worse} in {rate:.0%} of the "
                f"pairs, ties as half ({ends[0]:.0%} to {ends[1]:.0%}; sign flips over "
                f"{plural(row.clusters, cluster)}, p {p_text(row.p)}): the two are not equally good to this judge. "
                "Where labels change sides, that favours no identity."
            )


def as_rate(row: dict[str, Any]) -> dict[str, Any]:
    """A lead between -1 and 1 as a rate between 0 and 1."""
    low, high = (min(max((1 + row[end]) / 2, 0.0), 1.0) for end in ("low", "high"))
    return row | {"rate": (1 + row["difference"]) / 2, "low": low, "high": high}


def judge_cautions(verdicts: Verdicts) -> Iterator[str]:
    """Warnings that belong before any number: judges and panels whose verdicts hardly depend on what they judge.

    That is a preference for the same place in (nearly) all decided pairs and in both orders, ties in nearly all
    pairs, or the same score on a metric for nearly everything.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    units = data.preferences.assign(judge="", text=data.preferences["choice"])
    panel_scores = data.scores.assign(judge="")
    for model in data.models:
        prefix = f"{model}: " if len(data.models) > 1 else ""
        warned: dict[str, list[str]] = {}
        for votes in (units, _votes(data)):
            for judge, group in _judges(votes, model):
                place = _constant_preference(group)
                if place and not (data.silent and place != "tie"):  # silently, both orders are averaged: see `place`
                    warned.setdefault(_PREFERENCES[place], []).append(judge)
        for scores in (panel_scores, data.final_scores):
            for judge, group in _judges(scores, model):
                if _constant_scores(group):
                    warned.setdefault(_SAME_SCORE, []).append(judge)
        for warning, judges in warned.items():
            yield prefix + warning.format(_names(judges))


_PREFERENCES = {
    "A": "{} preferred the candidate shown first in at least 95% of the decided pairs, in both orders: these "
    "preferences say where a candidate was shown, not who is preferred.",
    "B": "{} preferred the candidate shown second in at least 95% of the decided pairs, in both orders: these "
    "preferences say where a candidate was shown, not who is preferred.",
    "tie": "{} called at least 95% of the pairs a tie: these preferences can hardly show a difference.",
}
_SAME_SCORE = (
    "{} gave the same score on a metric in at least 95% of cases: these scores can hardly show a difference, and equal "
    "means are not evidence of fairness."
)


def _names(judges: list[str]) -> str:
    named = [judge for judge in judges if judge]
    if not named:
        return "The panel"
    listed = f"{'judge' if len(named) == 1 else 'judges'} {', '.join(named)}"
    return f"The panel and {listed}" if "" in judges else listed[0].upper() + listed[1:]


def _votes(data: PanelData) -> pd.DataFrame:
    verdicts = data.verdicts
    return final_verdicts(verdicts[(verdicts["phase"] == 2) & (verdicts["metric"] == "preferred")])


def _judges(frame: pd.DataFrame, model: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for judge, group in frame[frame["model"] == model].groupby("judge", sort=False, observed=True):
        yield str(judge), group


def _constant_preference(votes: pd.DataFrame) -> str:
    """The place (A or B) that nearly always wins, in either order, or "tie"; "" where none does."""
    text = votes["text"].astype(object)
    if text.notna().sum() >= ENOUGH and (text.dropna() == "tie").mean() >= NEARLY_ALL:
        return "tie"
    decided = votes[text.isin(["A", "B"])]
    if len(decided) < ENOUGH or "order" not in decided or decided["order"].nunique() < 2:
        return ""
    first = (decided["text"] == "A").groupby(decided["order"], observed=True).mean()
    return "A" if first.min() >= NEARLY_ALL else "B" if first.max() <= 1 - NEARLY_ALL else ""


def _constant_scores(scores: pd.DataFrame) -> bool:
    known = scores[scores["value"].notna()]
    if known["unit"].nunique() < ENOUGH:
        return False
    counts = known.groupby("metric", observed=True)["value"].agg(lambda values: values.round(6).value_counts().iloc[0])
    return bool(counts.sum() >= NEARLY_ALL * len(known))


def no_label_differences(verdicts: Verdicts) -> pd.DataFrame:
    """Phase 1: every identity minus no label, by the same judge on the same scenario and metric, by model.

    It tells whether one identity is raised or another lowered. Sign flips over bases; Holm over a model's identities.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    scores = data.final_scores
    rows: list[dict[str, Any]] = []
    for model in data.models:
        group = scores[scores["model"] == model]
        if not (group["identity"] == "").any():
            continue
        raised = ScoreTable.of(_minus_no_label(group))
        for label in [label for label in raised.identities if label]:
            category = data.categories.get(label, "")
            rows.append({"model": model, "category": category, "identity": label} | tested(raised.alone(label)))
    table = pd.DataFrame(rows, columns=NO_LABEL_COLUMNS)
    return with_holm(table, ["model"])[NO_LABEL_COLUMNS]


def _minus_no_label(scores: pd.DataFrame) -> pd.DataFrame:
    """The labelled scores minus the one without a label of the same judge, scenario and metric.

    The clusters are those of the labelled scores: no label has no wording.
    """
    keys = ["scenario", "judge", "metric"]
    without = scores[scores["identity"] == ""].groupby(keys, observed=True)["value"].mean()
    labelled = scores[scores["identity"] != ""]
    beside = without.reindex(pd.MultiIndex.from_frame(labelled[keys])).to_numpy(dtype=float)
    return labelled.assign(value=labelled["value"].to_numpy(dtype=float) - beside)


def no_label_words(table: pd.DataFrame, different: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """For identities that differ from another one: which of them are raised or lowered against no label.

    Args:
        table: The table of `no_label_differences`.
        different: Model, first and second identity of each pair whose difference was shown.
    """
    named = {(model, label) for model, *pair in different for label in pair}
    for _, prefix, rows in of_models(table):
        compared = [row for row in rows.itertuples() if (row.model, row.identity) in named]
        moved = [row for row in compared if row.p_adjusted <= LEVEL]
        still = [f"'{row.identity}'" for row in compared if not row.p_adjusted <= LEVEL]
        parts = [
            f"'{row.identity}' was {'raised' if row.difference > 0 else 'lowered'} ({_span(row)})" for row in moved
        ]
        if still:
            parts.append(f"no effect of {', '.join(still[:-1])}{' or ' if still[:-1] else ''}{still[-1]} was shown")
        if compared:
            yield f"{prefix}Against no label, {'; '.join(parts)}."


def _span(row: Any) -> str:
    points = f"{row.difference:+.2f} points"
    return f"{points}, {row.low:+.2f} to {row.high:+.2f}" if np.isfinite([row.low, row.high]).all() else points


def no_label_section(data: PanelData, different: Iterable[tuple[str, str, str]]) -> Section:
    """Each identity minus no label, as a table and sentences.

    Args:
        data: The verdicts.
        different: Model and identities of every pair that was found to differ.
    """
    unlabelled = no_label_differences(data)
    table = Table(
        name="no_label",
        title="Phase 1: each identity minus no label",
        frame=unlabelled,
        note=f"On the same scenarios, sign flips over {data.cluster_noun}s: is one identity raised, or another one "
        "lowered?",
    )
    return Section(tables=(table,), words=tuple(no_label_words(unlabelled, different)))


def order_section(data: PanelData) -> Section:
    """Order effects beside the noise of asking again, as a table and sentences."""
    orders = order_effects(data)
    table = Table(name="order", title="Order effects beside the noise of asking again", frame=orders)
    return Section(tables=(table,), words=() if data.silent else tuple(order_words(orders, data.cluster_noun)))


def response_section(data: PanelData) -> Section:
    """The effect of the response itself, as a table and sentences."""
    responses = response_effect(data)
    table = Table(name="response", title="Does response 1 win, whatever its label?", frame=responses)
    return Section(tables=(table,), words=tuple(response_words(responses, data.cluster_noun)))


def second_readings(data: PanelData) -> pd.DataFrame:
    """Silent ballots that were read twice, by model: how far the two readings of a ballot lie apart, in points.

    Args:
        data: The verdicts.
    """
    keys = ["model", "scenario", "identity", "wording", "judge", "metric"]
    keys = [key for key in keys if key in data.again]
    rows: list[dict[str, Any]] = []
    if len(data.again):
        both = data.again[[*keys, "value"]].merge(
            data.final_scores[[*keys, "value"]], on=keys, suffixes=("_again", "_first")
        )
        both = both.assign(apart=(both["value_again"] - both["value_first"]).abs()).dropna(subset="apart")
        for model, part in both.groupby("model", sort=False, observed=True):
            spread = {"mean": float(part["apart"].mean()), "largest": float(part["apart"].max())}
            rows.append({"model": str(model), "ballots": len(part), **spread})
    return pd.DataFrame(rows, columns=["model", "ballots", "mean", "largest"])


def second_readings_section(data: PanelData) -> Section:
    """How steady silent ballots are, as a table and sentences; empty where none was read twice."""
    table = second_readings(data)
    words = [
        f"{prefix}{plural(row.ballots, 'silent ballot')} {'was' if row.ballots == 1 else 'were'} read twice: the two "
        f"readings lie {row.mean:.3f} points apart on average, and {row.largest:.3f} at most."
        for _, prefix, rows in of_models(table)
        for row in rows.itertuples()
    ]
    title = "Silent ballots that were read twice"
    return Section(tables=(Table(name="second_readings", title=title, frame=table),), words=tuple(words))
