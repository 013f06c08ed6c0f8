"""The texts that labels are drawn from, and how far labels reach into them: which of the judge's figures they correct.

    reach_sentences(texts, texts.drawn.loc[texts.drawn["position"].notna(), "text_id"])

It is said before anybody labels, and in a report as long as labels correct nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from parley.analysis.stats.prediction_powered import MIN_CLUSTERS, share_for_interval

PREFERRED = "preferred"
ALL = "all"
"""The mean over a rubric's metrics, as reports call it."""
Parts = tuple[str, ...]
"""What makes an arm, one name for each facet: ("loop", "m1")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTexts:
    """The labels of one or several runs, what they were drawn from, and what the judges said about it.

    Args:
        labels: The labels (see `parley.runs.frames.labels`).
        drawn: What they were drawn from.
        judged: One row per text, subject, metric and unit that labels were drawn from: `metric`, `text_id`, `subject`,
            `judged`, `cluster`, and a column with the name of each facet in `arms`.
        arms: The facets that texts are compared by, those that differ between texts.
        cluster: What a cluster is called: "base", "topic".
    """

    labels: pd.DataFrame
    drawn: pd.DataFrame
    judged: pd.DataFrame
    arms: tuple[str, ...] = ()
    cluster: str = "cluster"


def by_arm(texts: JudgedTexts) -> Iterator[tuple[str, dict[Parts, pd.DataFrame]]]:
    """Each metric with the judged texts of every arm."""
    differing = [name for name in texts.arms if texts.judged[name].nunique() > 1]
    for metric, rows in texts.judged.groupby("metric", sort=False) if len(texts.judged) else ():
        yield str(metric), dict(list(rows.groupby(differing, sort=False))) if differing else {(): rows}


def name_of(parts: Parts) -> str:
    return " · ".join(filter(None, parts)) or "all texts"


class Reach(NamedTuple):
    """How far some texts reach into an arm.

    Args:
        metric: The metric.
        arm: The arm's name.
        clusters: Its clusters.
        reached: Those with one of the texts.
        items: How many items of an even draw are in enough clusters for an interval; None if all are not.
    """

    metric: str
    arm: str
    clusters: int
    reached: int
    items: int | None


def reach(texts: JudgedTexts, text_ids: Collection[str]) -> list[Reach]:
    """How far these texts reach into each arm, metric by metric.

    Args:
        texts: The texts; their labels do not matter.
        text_ids: The texts that are, or would be, labelled.
    """
    found, population = [], texts.drawn["text_id"].nunique()
    for metric, arms in by_arm(texts):
        for parts, rows in arms.items():
            own = rows.drop_duplicates("text_id")
            clusters = own["cluster"].nunique()
            reached = own.loc[own["text_id"].isin(list(text_ids)), "cluster"].nunique()
            share = share_for_interval(len(own), clusters)
            items = math.ceil(share * population) if share <= 1 else None
            found.append(Reach(metric, name_of(parts), clusters, reached, items))
    return found


def reach_sentences(texts: JudgedTexts, text_ids: Collection[str]) -> Iterator[str]:
    """What labels of these texts correct, what they do not correct yet, and how many it takes.

    Args:
        texts: The texts.
        text_ids: The texts that are labelled, or would be.
    """
    arms = reach(texts, text_ids)
    enough = [arm for arm in arms if arm.reached >= MIN_CLUSTERS]
    short = [arm for arm in arms if arm.reached < MIN_CLUSTERS and arm.items]
    never = [arm for arm in arms if not arm.items]
    if enough:
        differences = ", and differences between them" if len({arm.arm for arm in enough}) > 1 else ""
        yield f"These labels correct the judge's {in_words(enough)}{differences}."
    if short:
        needed = [arm.items or 0 for arm in short]
        enough_items = f"an even draw of about {_range(needed)} items would do"
        if max(needed) <= len(text_ids):  # as where raters skipped texts
            enough_items = f"label texts of more {texts.cluster}s"
        yield (
            f"{'They do not correct' if enough else 'These labels do not yet correct the judge:'} {in_words(short)}. "
            f"{'Each' if len(short) > 1 else 'This'} takes labels in {MIN_CLUSTERS} {texts.cluster}s, and has them in "
            f"{_range(arm.reached for arm in short)}: {enough_items}."
        )
    if never:
        yield (
            f"No number of labels corrects {in_words(never)}: that takes {MIN_CLUSTERS} {texts.cluster}s, and the run "
            f"has {_range(arm.clusters for arm in never)}."
        )


def _range(numbers: Iterable[int]) -> str:
    known = sorted(numbers)
    return f"{known[0]:,}" if known[0] == known[-1] else f"{known[0]:,} to {known[-1]:,}"


def in_words(arms: Sequence[Reach]) -> str:
    """Metrics and arms in words, a metric at a time, the first three of each."""
    by_metric: dict[str, list[str]] = {}
    for arm in arms:
        by_metric.setdefault(arm.metric, []).append(arm.arm)
    by_arms: dict[tuple[str, ...], list[str]] = {}
    for metric, names in by_metric.items():
        by_arms.setdefault(tuple(names), []).append(
            metric_words(metric) if metric in (ALL, PREFERRED) else f"mean {metric}"
        )
    return "; ".join(
        f"{_some(metrics)}{'' if names == ('all texts',) else f' ({_some(names)})'}"
        for names, metrics in by_arms.items()
    )


def _some(names: Sequence[str], most: int = 3) -> str:
    shown, more = list(names[:most]), len(names) - most
    return ", ".join([*shown, f"{more} more"] if more > 0 else shown)


def metric_words(metric: str) -> str:
    return {PREFERRED: "how often answer A is preferred", ALL: "mean score"}.get(metric, metric)
