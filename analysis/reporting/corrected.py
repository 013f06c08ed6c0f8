"""The section of a report in which people's labels correct the judge: means by arm, differences, and what more labels
would give. It is the same for every study. A study says which of its facets are arms; what people labelled is known
from the labels themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import pandas as pd

from parley.analysis.labels import in_order, non_response, rated_texts
from parley.analysis.reporting.forest import Forest, in_numbers
from parley.analysis.reporting.judged_texts import (
    ALL,
    PREFERRED,
    JudgedTexts,
    Parts,
    by_arm,
    metric_words,
    name_of,
    reach_sentences,
)
from parley.analysis.reporting.questions import corrected, table
from parley.analysis.reporting.report import SIMULATED, Section, Table
from parley.analysis.stats.prediction_powered import (
    MIN_CLUSTERS,
    LabelledTexts,
    corrected_difference,
    corrected_mean,
    labels_for,
    width_by_labels,
)
from parley.analysis.stats.results import Line
from parley.base.text import plural

TABLE = "corrected"
QUESTIONS = {
    PREFERRED: "How often would these raters prefer answer A?",
    ALL: "What mean score would these raters give?",
}
BASELINES = ("default", "clean", "round 1")
"""Arms that the others are compared with; so is one whose name begins with "no "."""
SHOWN = (
    "measure", "first", "second", "judge", "judge_low", "judge_high", "estimate", "low", "high", "alone", "alone_low",
    "alone_high", "weight", "n", "texts", "note"
)  # fmt: skip
NOTE = (
    "judge: the judge alone, whose interval does not allow for its errors. estimate: PPI++, which combines people's "
    "labels with the judge's scores and weights these by how well they predict the labels; t over labelled clusters. "
    "alone: the labels alone. n: texts with a label. p is Holm-corrected over the differences of a metric. Other "
    "raters may be stricter: estimates are about these, and differences about those who labelled both sides."
)
CORRECTED = "judge, corrected by labels"


def corrected_lines(texts: JudgedTexts, width: float | None = None) -> list[Line]:
    """The differences between arms and the mean of each, metric by metric, without arms that have no label.

    What `prediction_powered.corrected_mean` gives, with what more labels would do: `also["labels_wanted"]` is how many
    an interval of the width `wanted` takes in total, NaN where labels of all texts would leave it wider, as
    `width_with_all` says.

    Args:
        texts: The texts.
        width: The wanted width of the intervals; None: half of what each is.
    """
    lines: list[Line] = []
    for metric, parts_of in by_arm(texts):
        known, simulated = _known(texts, metric)
        arms = {parts: _texts(part, known) for parts, part in parts_of.items()}
        arms = {parts: part for parts, part in arms.items() if part["label"].notna().any()}
        pairs = [pair for pair in _pairs(list(arms)) if not _share_texts(*(arms[parts] for parts in pair))]
        about = {"raters": SIMULATED if simulated else "people"}
        own = []
        for compared in (*pairs, *((parts,) for parts in arms)):
            samples = [arms[parts] for parts in compared]
            if len(compared) > 1:
                both, _ = _known(texts, metric, _raters_of_both(texts.labels, *samples))
                samples = [_texts(parts_of[parts], both) for parts in compared]
            line = _estimated(samples, width, texts.cluster)
            names = list(map(name_of, compared))
            own.append(
                replace(
                    line,
                    measure=metric,
                    label=" − ".join(names),
                    about={"first": names[0], "second": names[1] if len(names) > 1 else "", **about},
                    units=_units([parts_of[parts].iloc[0][list(texts.arms)] for parts in compared]),
                    reference=0.0 if len(names) > 1 else math.nan,
                    cluster=texts.cluster,
                )
            )
        lines += corrected(own, family=())
    return lines


def _known(texts: JudgedTexts, metric: str, raters: Collection[str] | None = None) -> tuple[pd.DataFrame, bool]:
    """The labels of a metric by text, on the judge's scale, and whether no person gave them.

    Args:
        texts: The texts.
        metric: The metric.
        raters: Whose labels; None: everybody's.
    """
    labels = texts.labels if raters is None else texts.labels[texts.labels["rater"].isin(list(raters))]
    rated = rated_texts(labels, texts.drawn, metric)
    scored = rated["judge_value"].where(rated["judge_value"].notna(), rated["value"])
    known = rated[["text_id", "subject"]].assign(label=scored, probability=rated["probability"])
    return known.dropna(subset=["label"]), bool(rated["simulated"].any())


def _raters_of_both(labels: pd.DataFrame, first: pd.DataFrame, second: pd.DataFrame) -> set[str]:
    """Who labelled texts of both arms: one arm's raters may be stricter than the other's."""
    of_arms = (labels.loc[labels["text_id"].isin(arm["text_id"]), "rater"] for arm in (first, second))
    return set.intersection(*(set(raters) for raters in of_arms))


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


def _pairs(arms: Sequence[Parts]) -> Iterator[tuple[Parts, Parts]]:
    """The arms that differ in one part: each with the baseline, or every two where there is none."""
    for first, second in combinations(arms, 2):
        parts = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
        if len(parts) != 1:
            continue
        if _is_baseline(parts[0][0]):
            yield second, first
        elif _is_baseline(parts[0][1]) or not any(_is_baseline(part) for arm in arms for part in arm):
            yield first, second


def _is_baseline(part: str) -> bool:
    return part in BASELINES or part.startswith("no ")


def _share_texts(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Whether people rated the same text for both arms, as where two models judge it: they cannot differ then."""
    return not first.merge(second, on=["text_id", "subject"]).empty


def _estimated(arms: Sequence[pd.DataFrame], wanted: float | None, cluster: str) -> Line:
    """The mean of an arm, or the difference of two, with what more labels would do."""
    if not all(arm["label"].notna().any() for arm in arms):
        nothing = dict.fromkeys(
            ("judge", "judge_low", "judge_high", "alone", "alone_low", "alone_high", "weight"), math.nan
        )
        counted = {"texts": float(sum(map(len, arms)))}
        return Line(also=nothing | counted | {"moved": math.nan}, clusters=0, note="nobody labelled texts of both")
    samples = [_sample(arm) for arm in arms]
    line = corrected_difference(*samples) if len(samples) > 1 else corrected_mean(*samples)
    also, texts = dict(line.also), int(line.also["texts"])
    if line.bounded:
        width = width_by_labels(*samples)
        also["wanted"] = _width(line) / 2 if wanted is None else wanted
        also["labels_wanted"] = labels_for(also["wanted"], width, texts) or math.nan
        also["width_with_all"] = width(texts)
        note = "wider than the labels alone" if _width(line) > _width(_alone(line)) else ""
    else:
        note = f"labels in {plural(line.clusters or 0, cluster)}: no interval below {MIN_CLUSTERS}"
    return replace(line, also={**also, "moved": line.estimate - also["judge"]}, note=note)


def _units(arms: Sequence[pd.Series]) -> dict[str, tuple[str, ...]]:
    """The facets of the units behind a line; none where an arm's units lack one that the other's have."""
    stored = [{name: arm[name] for name in arm.index if name != "round" and arm[name] != f"no {name}"} for arm in arms]
    if any(set(units) != set(stored[0]) for units in stored):
        return {}
    return {name: tuple(dict.fromkeys(units[name] for units in stored)) for name in sorted(stored[0])}


def _alone(line: Line) -> Line:
    return _by(line, "alone")


def _by(line: Line, name: str) -> Line:
    """The line's estimate by the judge or by the labels alone."""
    low, high = line.also[f"{name}_low"], line.also[f"{name}_high"]
    return replace(
        line, estimate=line.also[name], low=low, high=high, p=math.nan, p_adjusted=math.nan, verdict="", also={}
    )


def _width(line: Line) -> float:
    return line.high - line.low


def corrected_section(lines: Sequence[Line], texts: JudgedTexts) -> Section:
    """The table, a forest plot a metric, and the sentences on the first line that has an interval.

    Args:
        lines: The lines, the most important first.
        texts: What they were made from.
    """
    if not lines:
        return Section()
    mark = raters_mark(lines[0])
    main = next((line for line in lines if line.bounded), None)
    title = f"{mark}The judge's estimates, corrected by labels"
    metrics = dict.fromkeys(line.measure for line in lines)
    return Section(
        tables=[Table(TABLE, title, table(lines), shown=SHOWN, note=NOTE)],
        forests=[_forest([line for line in lines if line.measure == metric], mark) for metric in metrics],
        words=[mark + sentence for sentence in (_sentences(main, texts) if main else _too_few(texts))],
    )


def _sentences(line: Line, texts: JudgedTexts) -> Iterator[str]:
    yield from line_sentences(line)
    yield _rater_sentence(line, texts)


def _too_few(texts: JudgedTexts) -> Iterator[str]:
    """What is needed, where labels do not correct anything yet: an estimate without an interval says nothing."""
    labelled = set(texts.labels.loc[texts.labels["probability"].notna() & texts.labels["value"].notna(), "text_id"])
    first, *_ = reach_sentences(texts, labelled)
    yield f"{len(labelled):,} of {plural(texts.drawn['text_id'].nunique(), 'text')} have labels. {first}"


def raters_mark(line: Line) -> str:
    """What stands before every sentence on labels that no person gave."""
    return f"{SIMULATED} raters. " if line.about["raters"] == SIMULATED else ""


def _forest(lines: Sequence[Line], mark: str = "") -> Forest:
    """The differences of a metric, or its means where there are none: each by both, by the labels and by the judge."""
    metric = lines[0].measure
    differences = [line for line in lines if line.about["second"]]
    shown = [
        replace(by, label=label, group=line.label, secondary=by is not line)
        for line in differences or lines
        for label, by in ((CORRECTED, line), ("labels alone", _alone(line)), ("judge alone", _by(line, "judge")))
    ]
    return Forest(
        name=f"{TABLE}-{metric.lower().replace(' ', '-')}",
        question=f"{mark}{QUESTIONS.get(metric, f'What score for {metric} would these raters give?')}",
        axis=f"{'difference in ' if differences else ''}{metric_words(metric)}",
        lines=tuple(shown),
        reference=0.0 if differences else None,
        scale="share" if metric == PREFERRED else "points",
        table=TABLE,
        note=NOTE,
    )


def line_sentences(line: Line) -> Iterator[str]:
    """How the labels changed an estimate, and what more of them would do."""
    what, forest = metric_words(line.measure), _forest([line])
    both, alone, judge = (in_numbers(each, forest) for each in forest.lines)
    yield (
        f"{what[0].upper()}{what[1:]}, {line.label}: {both} by the judge corrected with labels of {line.n:,} of "
        f"{plural(int(line.also['texts']), 'text')} ({plural(line.clusters or 0, line.cluster)}), {judge} by the judge "
        f"alone, {alone} by the labels alone."
    )
    yield f"{_effect(line)} {labels_sentence(line)}"


def _effect(line: Line) -> str:
    """How much the labels moved the judge's estimate, and how much the judge narrows theirs."""
    moved, width, alone, number = line.also["moved"], _width(line), _width(_alone(line)), _number(line)
    start = f"The labels move the judge's estimate {'up' if moved > 0 else 'down'} by {number(abs(moved))}"
    if width > alone:
        return (
            f"{start}; the judge's scores do not help: with them the interval is {number(width)} wide, with the labels "
            f"alone {number(alone)}."
        )
    narrower = 1 - width / alone
    compared = f"{narrower:.0%} narrower than" if narrower >= 0.005 else "as wide as"
    return f"{start}; with the judge's scores the interval is {number(width)} wide, {compared} with the labels alone."


def labels_sentence(line: Line) -> str:
    """How many more labels would give an interval of the wanted width.

    Args:
        line: A line with an interval.
    """
    now, number, wanted, needed = _width(line), _number(line), line.also["wanted"], line.also["labels_wanted"]
    if wanted >= now:
        return f"The interval is already {number(now)} wide."
    if math.isnan(needed):
        return (
            f"Labels of all {line.also['texts']:,.0f} texts would leave it about {number(line.also['width_with_all'])} "
            f"wide: to narrow it further, more {line.cluster}s are needed."
        )
    goal = f"half as wide ({number(wanted)})" if math.isclose(wanted, now / 2) else f"{number(wanted)} wide"
    return f"About {plural(int(needed) - line.n, 'more label')} would make it {goal}."


def _number(line: Line) -> Callable[[float], str]:
    """A width, written in this line's unit."""
    if line.measure == PREFERRED:
        return lambda value: f"{100 * value:.1f} percentage points"
    return lambda value: f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def _rater_sentence(line: Line, texts: JudgedTexts) -> str:
    """How many raters there were, how they differ on one text, what they skipped, and what is left out."""
    labels = texts.labels
    used = labels[labels["probability"].notna() & (labels["simulated"] == (line.about["raters"] == SIMULATED))]
    own = used[used["question"] == line.measure]
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
    if gaps := int((~in_order(own, texts.drawn)).sum()):
        words += (
            f"; {plural(gaps, 'label')} after an item that its rater left out may have been chosen and are left out"
        )
    return f"{words}."
