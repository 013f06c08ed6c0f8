"""The section of a report in which people's labels correct the judge: means by arm, differences, and what more labels
would give. It is the same for every study. A study says which of its facets are arms; what people labelled is known
from the labels themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import pandas as pd
from scipy.special import stdtr

from parley.analysis.labels import non_response, rated_texts
from parley.analysis.reporting.forest import Forest, in_numbers
from parley.analysis.reporting.report import SIMULATED, Section, Table
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.prediction_powered import (
    MIN_CLUSTERS,
    Corrected,
    LabelledTexts,
    corrected_difference,
    corrected_mean,
)
from parley.analysis.stats.results import Line
from parley.base.text import plural

TABLE = "corrected"
PREFERRED = "preferred"
ALL = "all"
"""The mean over a rubric's metrics, as reports call it."""
QUESTIONS = {PREFERRED: "How often would people prefer answer A?", ALL: "What mean score would people give?"}
BASELINES = ("default", "clean", "round 1")
"""Arms that the others are compared with; so is one whose name begins with "no "."""
SHOWN = (
    "metric", "first", "second", "judge", "judge_low", "judge_high", "corrected", "low", "high", "alone", "alone_low",
    "alone_high", "weight", "labels", "texts", "note"
)  # fmt: skip
NOTE = (
    "Judge: the judge alone, whose interval does not allow for its errors. Corrected: PPI++, which combines people's "
    "labels with the judge's scores and weights these by how well they predict the labels; t over labelled clusters. "
    "Alone: the labels alone. Holm over the differences of a metric."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Texts that are compared with others: those of a method, a group, a model.

    Args:
        parts: What makes the arm, one name for each facet, the model last where there are several.
        units: The facets of its units, as the viewer filters them.
    """

    parts: tuple[str, ...]
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return " · ".join(part for part in self.parts if part) or "all texts"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedLine:
    """A mean, or a difference of two arms, with everything that is said about it.

    Args:
        metric: What judges and people scored.
        first: The arm.
        second: The arm that is subtracted; None: this is a mean.
        result: The three estimates.
        cluster: What a cluster is: "base", "topic".
        simulated: Whether the raters are simulated.
        p_adjusted: p of a difference, corrected over those of the metric.
    """

    metric: str
    first: Arm
    second: Arm | None
    result: Corrected
    cluster: str
    simulated: bool
    p_adjusted: float = math.nan

    @property
    def name(self) -> str:
        return f"{self.first.name} − {self.second.name}" if self.second else self.first.name

    @property
    def note(self) -> str:
        """Why there is no interval, or that the judge makes it wider."""
        if self.result.labelled_clusters < MIN_CLUSTERS:
            return f"labels in {plural(self.result.labelled_clusters, self.cluster)}: no interval below {MIN_CLUSTERS}"
        return "wider than the labels alone" if _width(self.result.both) > _width(self.result.alone) else ""

    def row(self) -> dict[str, Any]:
        """The line as a row of the table."""
        result = self.result
        intervals = {"judge": result.judge, "corrected": result.both, "alone": result.alone}
        row: dict[str, Any] = {
            "metric": self.metric,
            "first": self.first.name,
            "second": self.second.name if self.second else "",
        }
        for name, interval in intervals.items():
            prefix = "" if name == "corrected" else f"{name}_"
            row |= {name: interval.estimate, f"{prefix}low": interval.low, f"{prefix}high": interval.high}
        return row | {
            "moved": result.both.estimate - result.judge.estimate,
            "p_adjusted": self.p_adjusted,
            "weight": result.weight,
            "labels": result.labels,
            "texts": result.texts,
            "clusters": result.labelled_clusters,
            "raters": SIMULATED if self.simulated else "people",
            "note": self.note,
        }


def corrected_lines(judged: pd.DataFrame, labels: pd.DataFrame, drawn: pd.DataFrame) -> list[CorrectedLine]:
    """The means of all arms and their differences, metric by metric, without arms that have no label.

    Args:
        judged: One row per text, subject, metric and unit that labels were drawn from: `metric`, `text_id`,
            `subject`, `judged`, `cluster`, `arm` (an `Arm`); `attrs["cluster"]` says what a cluster is.
        labels: The labels (see `parley.runs.frames.labels`).
        drawn: What they were drawn from.
    """
    cluster = str(judged.attrs.get("cluster", "cluster"))
    lines: list[CorrectedLine] = []
    for metric, rows in judged.groupby("metric", sort=False):
        rated = rated_texts(labels, drawn, str(metric))
        scored = rated["judge_value"].where(rated["judge_value"].notna(), rated["value"])
        keys = ["text_id", "subject"]
        known = rated[keys].assign(label=scored, probability=rated["probability"]).dropna(subset=["label"])
        if known.empty:
            continue
        arms = {arm: _texts(part, known) for arm, part in rows.groupby("arm", sort=False)}
        arms = {arm: texts for arm, texts in arms.items() if texts["label"].notna().any()}
        samples = {arm: _sample(texts) for arm, texts in arms.items()}
        about: dict[str, Any] = {"metric": str(metric), "cluster": cluster, "simulated": bool(rated["simulated"].any())}
        pairs = [pair for pair in _pairs(list(arms)) if not _share_texts(*(arms[arm] for arm in pair))]
        differences = [corrected_difference(samples[first], samples[second]) for first, second in pairs]
        adjusted = holm([_p(result) for result in differences])
        lines += [
            CorrectedLine(first=first, second=second, result=result, p_adjusted=p, **about)
            for (first, second), result, p in zip(pairs, differences, adjusted, strict=True)
        ]
        lines += [
            CorrectedLine(first=arm, second=None, result=corrected_mean(sample), **about)
            for arm, sample in samples.items()
        ]
    return lines


def _texts(rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """One row per text: units that show it under different labels or to several judges are averaged."""
    texts = rows.groupby(["text_id", "subject"], sort=False, as_index=False).agg(
        judged=("judged", "mean"), cluster=("cluster", "first")
    )
    return texts.merge(known, on=["text_id", "subject"], how="left")


def _sample(texts: pd.DataFrame) -> LabelledTexts:
    return LabelledTexts(
        judged=texts["judged"], labels=texts["label"], clusters=texts["cluster"], probabilities=texts["probability"]
    )


def _pairs(arms: Sequence[Arm]) -> Iterator[tuple[Arm, Arm]]:
    """The arms that differ in one part: each with the baseline, or every two where there is none."""
    for first, second in combinations(arms, 2):
        parts = [pair for pair in zip(first.parts, second.parts, strict=True) if pair[0] != pair[1]]
        if len(parts) != 1:
            continue
        if _is_baseline(parts[0][0]):
            yield second, first
        elif _is_baseline(parts[0][1]) or not any(_is_baseline(part) for arm in arms for part in arm.parts):
            yield first, second


def _is_baseline(part: str) -> bool:
    return part in BASELINES or part.startswith("no ")


def _share_texts(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Whether people rated the same text for both arms, as where two models judge it: they cannot differ then."""
    return not first.merge(second, on=["text_id", "subject"]).empty


def _p(result: Corrected) -> float:
    if math.isnan(result.both.low) or not result.variance > 0:
        return math.nan
    statistic = result.both.estimate / math.sqrt(result.variance)
    return float(2 * stdtr(result.labelled_clusters - 1, -abs(statistic)))


def corrected_section(lines: Sequence[CorrectedLine], labels: pd.DataFrame) -> Section:
    """The table, a forest plot a metric, and the sentences on the first line that has an interval.

    Args:
        lines: The lines, the most important first.
        labels: The labels.
    """
    if not lines:
        return Section()
    mark = f"{SIMULATED} raters. " if lines[0].simulated else ""
    main = next((line for line in lines if not math.isnan(line.result.both.low)), lines[0])
    frame = pd.DataFrame([line.row() for line in lines])
    title = f"{mark}The judge's estimates, corrected by labels"
    return Section(
        tables=[Table(TABLE, title, frame, shown=SHOWN, note=NOTE)],
        forests=[_forest(metric, lines, mark) for metric in dict.fromkeys(line.metric for line in lines)],
        words=[
            *(mark + sentence for sentence in line_sentences(main)),
            *_rater_sentence(main, labels, mark),
        ],
    )


def _forest(metric: str, lines: Sequence[CorrectedLine], mark: str) -> Forest:
    """The metric's differences, or its means where there are none: each by both, by the labels and by the judge."""
    own = [line for line in lines if line.metric == metric]
    differences = [line for line in own if line.second]
    shown = [
        replace(
            interval,
            label=label,
            p_adjusted=line.p_adjusted if label == CORRECTED else math.nan,
            group=line.name,
            units=_units(line),
            secondary=label != CORRECTED,
        )
        for line in differences or own
        for label, interval in (
            (CORRECTED, line.result.both),
            ("labels alone", line.result.alone),
            ("judge alone", line.result.judge),
        )
    ]
    share = metric == PREFERRED
    return Forest(
        name=f"{TABLE}-{metric.lower().replace(' ', '-')}",
        question=f"{mark}{QUESTIONS.get(metric, f'What score for {metric} would people give?')}",
        axis=f"{'difference in ' if differences else ''}{_words(metric)}",
        lines=tuple(shown),
        reference=0.0 if differences else None,
        scale="share" if share else "points",
        table=TABLE,
        note=NOTE,
    )


CORRECTED = "judge, corrected by labels"


def _units(line: CorrectedLine) -> dict[str, tuple[str, ...]]:
    """The facets of the units behind a line; for a difference, those of both arms."""
    arms = [line.first, *([line.second] if line.second else [])]
    names = {name for arm in arms for name in arm.units}
    if not all(names <= set(arm.units) for arm in arms):
        return {}
    return {name: tuple(dict.fromkeys(value for arm in arms for value in arm.units[name])) for name in sorted(names)}


def _words(metric: str) -> str:
    return {PREFERRED: "how often answer A is preferred", ALL: "mean score"}.get(metric, metric)


def line_sentences(line: CorrectedLine) -> Iterator[str]:
    """How the labels changed an estimate, and what more of them would do."""
    result, what = line.result, _words(line.metric)
    forest = _forest(line.metric, [line], "")
    both, alone, judge = (in_numbers(each, forest).replace("(no interval)", "").strip() for each in forest.lines)
    yield (
        f"{what[0].upper()}{what[1:]}, {line.name}: {both} by the judge corrected with labels of {result.labels:,} of "
        f"{plural(result.texts, 'text')} ({plural(result.labelled_clusters, line.cluster)}), {judge} by the judge "
        f"alone, {alone} by the labels alone."
    )
    if result.labelled_clusters < MIN_CLUSTERS:
        yield f"There is no corrected interval: it takes labels in {MIN_CLUSTERS} {line.cluster}s."
        return
    yield f"{_effect(line)} {labels_sentence(line)}"


def _effect(line: CorrectedLine) -> str:
    """How much the labels moved the judge's estimate, and how much the judge narrows theirs."""
    result = line.result
    moved = result.both.estimate - result.judge.estimate
    width, alone = _width(result.both), _width(result.alone)
    number = _number(line)
    direction = "up" if moved > 0 else "down"
    start = f"The labels move the judge's estimate {direction} by {number(abs(moved))}"
    if width > alone:
        return (
            f"{start}; the judge's scores do not help: with them the interval is {number(width)} wide, with the labels "
            f"alone {number(alone)}."
        )
    narrower = 1 - width / alone
    compared = f"{narrower:.0%} narrower than" if narrower >= 0.005 else "as wide as"
    return f"{start}; with the judge's scores the interval is {number(width)} wide, {compared} with the labels alone."


def labels_sentence(line: CorrectedLine, width: float | None = None) -> str:
    """How many more labels would give an interval of this width.

    Args:
        line: A line with an interval.
        width: The width; None: half of what it is now.
    """
    result, number = line.result, _number(line)
    now = _width(result.both)
    wanted = now / 2 if width is None else width
    if wanted >= now:
        return f"The interval is already {number(now)} wide."
    needed = result.labels_for(wanted)
    if needed is None:
        least = result.width(result.texts)
        return (
            f"Labels of all {result.texts:,} texts would leave it about {number(least)} wide: to narrow it further, "
            f"more {line.cluster}s are needed."
        )
    goal = f"half as wide ({number(wanted)})" if width is None else f"{number(wanted)} wide"
    return f"About {plural(needed - result.labels, 'more label')} would make it {goal}."


def _number(line: CorrectedLine) -> Callable[[float], str]:
    """A width, written in this line's unit."""
    if line.metric == PREFERRED:
        return lambda value: f"{100 * value:.1f} percentage points"
    return lambda value: f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def _rater_sentence(line: CorrectedLine, labels: pd.DataFrame, mark: str) -> Iterator[str]:
    """How many raters there were, how they differ on one text, and what they skipped."""
    used = labels[labels["probability"].notna() & (labels["simulated"] == line.simulated)]
    own = used[used["question"] == line.metric]
    by_text = own.dropna(subset=["value"]).groupby(["text_id", "subject"])["value"]
    several = by_text.nunique().index[by_text.size() > 1]
    words = f"{plural(own['rater'].nunique(), 'rater')} gave the labels"
    if len(several):
        spread = math.sqrt(float(by_text.var().loc[several].mean()))
        words += (
            f"; labels of {plural(len(several), 'text')} with several raters are averaged, and raters of the same text "
            f"differ by a standard deviation of {spread:.2f} on their scale"
        )
    skips = non_response(own)
    skipped, asked = int(skips["skipped"].sum()), int(skips["skipped"].sum() + skips["answered"].sum())
    if skipped:
        words += f"; they skipped {skipped} of {plural(asked, 'item')}, which the estimate does not cover"
    if labels["probability"].isna().any():
        words += "; labels from a sorted queue are left out"
    yield f"{mark}{words}."


def _width(interval: Line) -> float:
    return interval.high - interval.low
