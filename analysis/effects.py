"""What a report estimates: a contrast or a level of a measure, over clusters, corrected in its family.

    SEARCH = Question(name="search", ask="Does search change the score?", measures={"f1": "F1"}, unit="points",
                      arms="search", item=("question_id", "repeat"), cluster="paragraph", each="answerable")
    answer(SEARCH, frame)            # its lines, with verdicts

A frame has one row per item and arm. A question without arms asks for levels, one with arms for contrasts of two arms
on the same items. Values are averaged within clusters first: clusters are what is independent. Contrasts are tested by
`mean_test`; p-values are corrected (Holm) over the planned lines of a family and over its other lines. A level has an
interval, and no test unless it has a null value.

A report with another statistic makes its own lines and gives them to `corrected`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any, Literal

import pandas as pd

from parley.analysis.decide import concluded
from parley.analysis.stats.clustered import bootstrap_mean, cluster_mean
from parley.analysis.stats.mean_test import alike_p, mean_test
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import DECIMALS, widest
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.resampling import DRAWS
from parley.analysis.stats.results import ALPHA, About, Contrast, Estimate, Line, simultaneous
from parley.analysis.unread import WORST_P, Limit, bounds

Scale = Literal["points", "share"]
ALL = "all"
SIDES = ("", "_second")
"""What the names of columns of the first and of the second arm end in."""
Level = Callable[[pd.Series, pd.Series], Estimate]
"""Estimates a level from values and their clusters."""
Comparison = Callable[[pd.DataFrame, str, str], Estimate]
"""Compares two arms from the rows that both have, the measure (the second arm's ends in "_second") and the cluster."""
Pairs = Callable[[Sequence[Any]], Iterable[tuple[Any, Any]]]


def every_two(arms: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Every two arms, the later one minus the earlier."""
    return ((second, first) for first, second in combinations(arms, 2))


def successive(arms: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Every arm minus the one before it."""
    return ((second, first) for first, second in pairwise(arms))


def against(baseline: Any) -> Pairs:
    """Every other arm minus this one."""
    return lambda arms: ((arm, baseline) for arm in arms if arm != baseline and baseline in arms)


def t_mean(values: pd.Series, clusters: pd.Series) -> Estimate:
    """The mean of cluster means, with Student's t interval."""
    return cluster_mean(values, clusters)


def share(values: pd.Series, clusters: pd.Series) -> Estimate:
    """The share of ones among zeros and ones, with Wilson's interval for clusters."""
    return cluster_proportion(values, clusters)


def mean_difference(rows: pd.DataFrame, measure: str, cluster: str) -> Estimate:
    """The mean over clusters of first minus second."""
    first, second = (rows[name].astype(float) for name in (measure, f"{measure}_second"))
    differences = first - second
    test = mean_test(gaps(differences, rows[cluster]), farthest=widest(first, second))
    return replace(test, n=int(differences.notna().sum()))


def gaps(differences: pd.Series, clusters: pd.Series) -> pd.Series:
    """The mean difference of every cluster, by its name.

    Args:
        differences: First minus second on the same item; missing ones are left out.
        clusters: The cluster of each.
    """
    # Floating-point noise of 1e-16 on every cluster would be a significant difference, and breaks ties.
    return differences.round(DECIMALS).groupby(clusters, observed=True).mean().dropna().round(DECIMALS)


def bootstrapped(draws: int = DRAWS, seed: int = 0, *, by_row: bool = False) -> Level:
    """The mean with a bootstrap over clusters.

    Args:
        draws: Draws of the bootstrap.
        seed: Seed of the draws.
        by_row: Whether rows count equally, not clusters.
    """
    weight: Any = "row" if by_row else "cluster"
    return partial(bootstrap_mean, weight=weight, draws=draws, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimand:
    """What a question estimates, with what its plot and its sentences say.

    Args:
        words: What it is, for the axis and for sentences.
        ask: The plot's question; "": the question's.
        note: The plot's note; "": the table's.
        plot: The plot's name; "": the question's and the measure's.
        reference: The value that means "no difference"; None: there is none; NaN: the question's.
        scale: How plots show numbers; None: the question's.
        says: Puts an estimate in words, for readers who know no statistics; None: the headline has numbers.
    """

    words: str
    ask: str = ""
    note: str = ""
    plot: str = ""
    reference: float | None = math.nan
    scale: Scale | None = None
    says: Callable[[Line], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a report.

    Args:
        name: File name of the table, and the beginning of the plots' names.
        ask: The question in words.
        measures: The columns that are estimated, each in words or as an `Estimand`; the first one is planned.
        cluster: The column of clusters.
        by: Columns whose values are asked about separately.
        each: A column whose values are asked about one by one, after all of them together, which is planned.
        arms: The column whose values are compared; "": levels are asked for.
        pairs: Which two arms are compared, as first minus second.
        item: The columns by which rows of two arms are matched.
        family: The columns by which families differ; p-values are corrected within a family.
        level: How a level is estimated.
        contrast: How two arms are compared.
        null: What a level is tested against; None: it is described. A contrast is tested against 0.
        margin: The distance from 0, or from `null`, that still counts as none, in the measures' unit: lines can then be
            "different but below the margin" or "below the margin on average". NaN: it is not asked.
        limits: The lowest and the highest possible value of the measures, for the bounds of a contrast where values are
            missing; or the columns with those of each row, which are equal where all of it was read; None: no bounds.
        scale: How plots show numbers.
        facets: For columns that are not facets of units with their stored values: the facets that they stand for, each
            with the column of its stored values; (): none.
        also: Further numbers of a contrast: the measure that each is for, and how it is made from the values of both
            arms: {"p_mcnemar": ("correct", mcnemar_p)}.
        further: Fields of a line that its columns do not give, from what it is about, its measure and its rows: its
            label, its group, its units, further numbers (`also`).
        note: What a reader must know about the numbers.
        unit: The measures' unit: "points of 10".
        paper: As `Table.paper`.
        shown: As `Table.shown`; (): numbers, and texts that differ between rows.
        plotted: The lines that plots show, in order; None: all.
        stated: Whether the report has a sentence for every significant line.
    """

    name: str
    ask: str
    measures: Mapping[str, str | Estimand]
    cluster: str
    by: tuple[str, ...] = ("model",)
    each: str = ""
    arms: str = ""
    pairs: Pairs = every_two
    item: tuple[str, ...] = ()
    family: tuple[str, ...] = ("model",)
    level: Level = t_mean
    contrast: Comparison = mean_difference
    null: float | None = None
    margin: float = math.nan
    limits: tuple[Limit, Limit] | None = None
    scale: Scale = "points"
    facets: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    also: Mapping[str, tuple[str, Callable[[pd.Series, pd.Series], float]]] = field(default_factory=dict)
    further: Callable[[About, str, pd.DataFrame], Mapping[str, Any]] | None = None
    note: str = ""
    unit: str = ""
    paper: str = ""
    shown: tuple[str, ...] = ()
    plotted: Callable[[Sequence[Line]], Iterable[Line]] | None = None
    stated: bool = True

    def estimand(self, measure: str) -> Estimand:
        """A measure with its words, question, note and reference."""
        given = self.measures[measure]
        whole = given if isinstance(given, Estimand) else Estimand(words=given)
        first = measure == next(iter(self.measures))
        ask = whole.ask or (self.ask if first else f"{self.ask} ({whole.words})")
        reference = self.reference if whole.reference is not None and math.isnan(whole.reference) else whole.reference
        return replace(whole, ask=ask, reference=reference)

    @property
    def reference(self) -> float | None:
        """The value that means "no difference"; None where levels are only described."""
        return 0.0 if self.arms else self.null


def estimates(question: Question, frame: pd.DataFrame) -> list[Line]:
    """The lines that answer a question, not yet corrected: for a report that pools them with others in one family.

    Args:
        question: The question.
        frame: One row per item and arm.
    """
    lines: list[Line] = []
    several = [name for name in question.by if frame[name].nunique() > 1]
    shared = several if question.arms or question.each else several[:-1]  # a level's own name is the last one
    for keys, part in frame.groupby(list(question.by), sort=False):
        about = dict(zip(question.by, map(str, keys), strict=True))
        group = heading({name: about[name] for name in shared})
        level = heading({name: about[name] for name in several[len(shared) :]})
        for compared, rows in _compared(question, part):
            for each, part_rows in _each(question, rows):
                one = {question.each: each} if question.each else {}
                label = ", ".join([*([compared.label] if compared else []), *one.values()])
                subject = About.of(compared, **about, **(compared.sides if compared else {}), **one)
                for number, measure in enumerate(question.measures):
                    result, also, values = _estimated(question, part_rows, measure)
                    further = question.further(subject, measure, part_rows) if question.further else {}
                    line = {
                        "label": label or " · ".join(level) or ALL,
                        "group": group,
                        "units": _units(question, part_rows, several, narrowed=each != ALL),
                        "secondary": each != ALL or number > 0,
                        **further,
                        "also": {**also, **further.get("also", {})},
                    }
                    lines.append(
                        Line.of(
                            result,
                            values=values,
                            about=subject,
                            measure=measure,
                            reference=math.nan if question.reference is None else question.reference,
                            cluster=question.cluster,
                            margin=question.margin,
                            **line,
                        )
                    )
    return lines


def adjusted_differences(lines: Sequence[Line], family: Sequence[str]) -> list[Line]:
    """Like `corrected_differences`, without verdicts, for lines that are only described."""
    return [_with_simultaneous(line) for line in adjusted(lines, family)]


def _with_simultaneous(line: Line) -> Line:
    if line.secondary or not line.values or line.tests is None or line.tests == 1:
        return line
    differences = [value - line.reference for value in line.values.values()]
    interval = simultaneous(line, mean_test(differences, 1 - ALPHA / line.tests))
    return replace(line, simultaneous=interval and (interval[0] + line.reference, interval[1] + line.reference))


def of_model(lines: Iterable[Line], model: str) -> list[Line]:
    """The lines about a model."""
    return [line for line in lines if line.about.model == model]


def heading(about: Mapping[str, str]) -> tuple[str, ...]:
    """The heading of lines with a common subject: ("m1", "context: ambiguous")."""
    return tuple(value if name == "model" else f"{name}: {value}" for name, value in about.items())


def _compared(question: Question, part: pd.DataFrame) -> Iterator[tuple[Contrast | None, pd.DataFrame]]:
    """Every two arms, with the items that both have; without arms, all rows."""
    if not question.arms:
        yield None, part
        return
    arms = dict(list(part.groupby(question.arms, sort=False)))
    ends = [limit for limit in question.limits or () if isinstance(limit, str)]
    kept = [*question.item, *question.measures, *ends, *(column for _, column in _facets(question, question.arms))]
    for first, second in question.pairs(list(arms)):
        others = arms[second][list(dict.fromkeys(kept))]
        both = arms[first].merge(others, on=list(question.item), suffixes=("", "_second"))
        yield Contrast(question.arms, (str(first),), (str(second),)), both


def _each(question: Question, rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    if len(rows):
        yield ALL, rows
    if len(rows) and question.each:
        yield from ((str(value), part) for value, part in rows.groupby(question.each, sort=False))


def _estimated(
    question: Question, rows: pd.DataFrame, measure: str
) -> tuple[Estimate, dict[str, float], dict[str, float]]:
    """The estimate of a measure, further numbers, and the values of its clusters."""
    values, clusters = rows[measure], rows[question.cluster]
    if not question.arms and question.null is None:
        level = question.level(values, clusters)
        return level, {}, by_cluster(values, clusters, level.estimate)
    second = rows[f"{measure}_second"] if question.arms else pd.Series(question.null, rows.index, dtype=float)
    differences = values.astype(float) - second.astype(float)
    result = question.contrast(rows.assign(**{f"{measure}_second": second}), measure, question.cluster)
    if question.null:
        ends = {name: getattr(result, name) + question.null for name in ("estimate", "low", "high")}
        result = replace(result, **ends)
    also = {name: make(values, second) for name, (of_measure, make) in question.also.items() if of_measure == measure}
    if question.arms and question.limits:
        first_read, second_read = (_read(rows, side, f"{measure}{side}", question.limits) for side in SIDES)
        also |= bounds(first_read, second_read, question.limits, partial(_filled, question, rows, measure))
    if not math.isnan(question.margin):
        also["p_alike"] = alike_p(gaps(differences, clusters), question.margin, widest(values, second))
    return result, also, by_cluster(differences if question.arms else values, clusters, result.estimate)


def _read(rows: pd.DataFrame, side: str, measure: str, limits: tuple[Limit, Limit]) -> pd.Series:
    """The values of one arm; missing where not all of it was read."""
    low, high = (f"{limit}{side}" for limit in limits)
    return rows[measure].where(rows[low] == rows[high]) if low in rows else rows[measure]


def _filled(question: Question, rows: pd.DataFrame, measure: str, *limits: Limit) -> Estimate:
    """The contrast, with missing values of the first and of the second arm at these limits."""
    filled = {
        f"{measure}{side}": rows[f"{limit}{side}"] if isinstance(limit, str) else rows[f"{measure}{side}"].fillna(limit)
        for side, limit in zip(SIDES, limits, strict=True)
    }
    return question.contrast(rows.assign(**filled), measure, question.cluster)


def by_cluster(values: pd.Series, clusters: pd.Series, estimate: float) -> dict[str, float]:
    """Values of the clusters whose mean is the estimate, for `Line.values`.

    They are the clusters' means, or, where rows count equally, the estimate plus what each cluster adds to it
    (linearised). There are none where the estimate is another statistic.

    Args:
        values: One value per row.
        clusters: The cluster of each row.
        estimate: What was estimated from them.
    """
    parts = values.astype(float).groupby(clusters, sort=False, observed=True).agg(["mean", "count"])
    parts = parts[parts["count"] > 0]
    means = parts["mean"]
    if len(means) and not math.isclose(means.mean(), estimate, rel_tol=1e-9, abs_tol=1e-12):
        means = estimate + len(means) * parts["count"] / parts["count"].sum() * (means - estimate)
        if not math.isclose(means.mean(), estimate, rel_tol=1e-9, abs_tol=1e-12):
            return {}
    return {str(name): value for name, value in means.items()}


def _units(question: Question, rows: pd.DataFrame, several: Sequence[str], *, narrowed: bool) -> dict[str, Any]:
    """The facets of the units behind a line, with their stored values."""
    names = (*several, *([question.arms] if question.arms else []), *([question.each] if narrowed else []))
    units: dict[str, tuple[str, ...]] = {}
    for name in names:
        for facet, column in _facets(question, name):
            places = (column, f"{column}_second") if name == question.arms else (column,)
            values = (str(value) for place in places for value in rows[place].unique())
            units[facet] = tuple(dict.fromkeys([*units.get(facet, ()), *values]))
    return units


def _facets(question: Question, name: str) -> tuple[tuple[str, str], ...]:
    return question.facets.get(name, ((name, name),))


def adjusted(
    lines: Sequence[Line], family: Sequence[str], further: Sequence[str] = ("p_alike",), beside: int = 1
) -> list[Line]:
    """The lines with p-values corrected by Holm: over the planned lines of a family, and over its other lines.

    Args:
        lines: The lines of a question.
        family: What lines of one family have in common, as columns that say what they are about.
        further: The p-values in `Line.also` that are corrected in the same families, each for its own question.
        beside: Number of families that share the error rate of 5%.
    """

    def together(p_values: Sequence[float]) -> list[float]:
        return [min(1.0, beside * p) if p == p else p for p in holm(p_values)]

    families: dict[tuple[Any, ...], list[int]] = {}
    for place, line in enumerate(lines):
        families.setdefault((line.secondary, *(line.about.columns.get(name) for name in family)), []).append(place)
    corrected_lines = list(lines)
    for places in families.values():
        tests = beside * sum(not math.isnan(lines[place].p) for place in places)
        # A line of which all was read has one p-value, also at the worst.
        others = {name: together([lines[place].also.get(name, math.nan) for place in places]) for name in further}
        others[WORST_P] = together([lines[place].also.get(WORST_P, lines[place].p) for place in places])
        for nth, (place, p) in enumerate(zip(places, together([lines[place].p for place in places]), strict=True)):
            line = lines[place]
            also = {f"{name}_adjusted": others[name][nth] for name in others if name in line.also}
            corrected_lines[place] = replace(
                line, p_adjusted=p, tests=None if math.isnan(p) else tests, also={**line.also, **also}
            )
    return corrected_lines


def answer(question: Question, frame: pd.DataFrame) -> list[Line]:
    """The lines that answer a question, corrected in their families.

    Args:
        question: The question.
        frame: One row per item and arm.
    """
    correct = corrected if question.contrast is not mean_difference else corrected_differences
    return correct(estimates(question, frame), question.family)


def corrected_differences(lines: Sequence[Line], family: Sequence[str]) -> list[Line]:
    """Lines of mean differences, corrected; planned ones get intervals that hold for all of their family.

    Args:
        lines: The lines.
        family: What lines of one family have in common, as columns that say what they are about.
    """
    return [concluded(line) for line in adjusted_differences(lines, family)]


def corrected(
    lines: Sequence[Line], family: Sequence[str] = ("model",), further: Sequence[str] = ("p_alike",)
) -> list[Line]:
    """The lines with p-values corrected by Holm, and with their verdicts; the arguments are those of `adjusted`."""
    return [concluded(line) for line in adjusted(lines, family, further)]
