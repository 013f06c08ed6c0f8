"""Agreement of people who scored a run's texts with each other and with the judges: `parley report RUN --labels FILE`.

Among people: Krippendorff's α, for which scores are numbers, and Fleiss' κ, for which they are categories. With the
judges, on the same texts: α of the people's mean and the judges', and the weighted κ of each person, for which the
judges' mean is rounded to the steps of people's scores. Intervals are over bases, topics, questions or paragraphs.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from parley.agents import ConfigError
from parley.analysis.page.report import Report, Table
from parley.analysis.say import format_interval
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha, weighted_kappa
from parley.analysis.stats.results import About, Estimate, Line, columns
from parley.analysis.verdicts import cluster_of
from parley.base.text import plural
from parley.reports.labels import CHOICE, CHOICES, LabelItem, Scales, label_items, scales_of
from parley.runs import RunFile, explain_damage

ALPHA, FLEISS, WEIGHTED = "Krippendorff's α", "Fleiss' κ", "weighted κ"
TOPICS = ("topic", "prompt", "item")
"""Facets that are clusters if units have no base, scenario or paragraph."""
SHOWN = ("metric", "between", "measure", "estimate", "low", "high", "texts", "difference", "note")
COLUMNS = ["item", "rater", "metric", "value"]


def with_labels(report: Report, run: Path, labels: Sequence[Path]) -> Report:
    """The report with a table of agreement, and a sentence on the first metric.

    Args:
        report: The run's report.
        run: The run file.
        labels: CSV files of `parley export RUN --format csv` that people filled in.
    """
    with explain_damage(run), RunFile.open(run) as file:
        items = label_items(file)
        scales = scales_of(file, items)
    scores = pd.DataFrame([row for path in labels for row in _read(path, items, scales)], columns=COLUMNS)
    if scores.empty:
        raise ConfigError(f"{labels[0]} has no scores: fill in the columns after 'rater'")
    if scores.duplicated(["item", "rater", "metric"]).any():
        raise ConfigError("--labels: somebody scored a text twice: give each rater a name in the column 'rater'")
    lines = [line for metric, part in scores.groupby("metric", sort=False) for line in _agreement(metric, part, items)]
    frame = pd.DataFrame(
        [{**line.about.columns, **line.also, **columns(line, "estimate", "n", "clusters", "note")} for line in lines]
    )
    note = (
        "difference: the judges' mean minus the people's. n: scores; clusters: bases, topics, questions or paragraphs."
    )
    table = Table("labels", "Agreement of people with each other and with the judges", frame, SHOWN, note)
    metric = scores["metric"].iloc[0]
    agreements = [
        f"{line.about.columns['between']} {line.estimate:.2f} ({format_interval(line.low, line.high) or 'no interval'})"
        for line in lines
        if (line.about.metric, line.about.columns["measure"]) == (metric, ALPHA)
    ]
    people, texts = plural(scores["rater"].nunique(), "person", "people"), scores["item"].nunique()
    words = f"{people} scored {texts:,} of {plural(len(items), 'text')}. {ALPHA} of {metric}: {', '.join(agreements)}."
    return replace(report, words=(*report.words, words), tables=(*report.tables, table), beside=(*report.beside, words))


def _read(path: Path, items: Mapping[str, LabelItem], scales: Scales) -> Iterator[tuple[str, str, str, float]]:
    """The scores of a file, as `COLUMNS`; a ConfigError names the line of a fault."""
    try:
        table = csv.DictReader(path.read_text("utf-8-sig").splitlines(keepends=True))
        rows = [(table.line_num, row) for row in table]
    except (OSError, UnicodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for number, row in rows:
        if (key := row.get("item") or "") not in items:
            raise ConfigError(f"{path}, line {number}: this run has no text '{key}' (column 'item')")
        rater = row.get("rater") or row.get("annotator") or path.stem  # Label Studio calls it annotator
        for metric in items[key].judged:
            if given := (row.get(metric) or "").strip():
                yield key, rater, metric, _number(f"{path}, line {number}: {metric}", given, metric, scales[metric])


def _number(place: str, given: str, metric: str, scale: tuple[float, float] | None) -> float:
    low, high = scale or (-math.inf, math.inf)
    try:
        value = CHOICES.get(given, math.nan) if metric == CHOICE else float(given)
    except ValueError:
        value = math.nan
    if not (low <= value <= high and math.isfinite(value)):
        wanted = ", ".join(CHOICES) if metric == CHOICE else f"{low:g} to {high:g}" if scale else "a number"
        raise ConfigError(f"{place} must be {wanted}, not '{given}'")
    return value


def _agreement(metric: str, scores: pd.DataFrame, items: Mapping[str, LabelItem]) -> Iterator[Line]:
    """The lines of one metric: among people, and of their mean and of each person with the judges' mean."""
    people = scores.pivot(index="item", columns="rater", values="value")
    judges = pd.Series({key: np.mean(items[key].judged[metric] or math.nan) for key in people.index})
    facets = pd.DataFrame([items[key].facets for key in people.index])
    clusters = cluster_of(facets)
    if clusters.name == "unit":
        clusters = facets[next((name for name in TOPICS if name in facets), "unit")]

    def line(coefficient: Estimate, between: str, measure: str, mean: pd.Series) -> Line:
        both = judges.notna() & mean.notna()
        also = {"texts": int(mean.notna().sum()), "difference": float((judges - mean)[both].mean())}
        about = About.of(metric=metric, between=between, measure=measure)
        return Line.of(coefficient, about=about, also=also)

    mean = people.mean(axis=1)
    if people.shape[1] > 1:
        shared = mean.where(people.count(axis=1) > 1)
        yield line(krippendorff_alpha(people, clusters=clusters), "people", ALPHA, shared)
        yield line(fleiss_kappa(people, clusters=clusters), "people", FLEISS, shared)
    if judges.isna().all():
        return
    both = pd.concat([mean, judges], axis=1)
    yield line(krippendorff_alpha(both, clusters=clusters), "people and judges", ALPHA, mean.where(judges.notna()))
    steps = np.diff(np.unique(scores["value"]))
    step = float(steps.min()) if len(steps) else 1.0
    for rater, given in people.items():
        first, second = ((column / step).round() for column in (given, judges))
        categories = range(int(np.nanmin([first, second])), int(np.nanmax([first, second])) + 1)
        kappa = weighted_kappa(first, second, weights="quadratic", categories=categories, clusters=clusters)
        yield line(kappa, f"{rater} and judges", WEIGHTED, given.where(judges.notna()))
