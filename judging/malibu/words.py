"""Sentences of MALIBU's report about scores and preferences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from parley.analysis.decide import single_clusters
from parley.analysis.effects import of_model
from parley.analysis.say import interval
from parley.analysis.stats.results import (
    ALIKE,
    ALPHA,
    DIFFERENT,
    ON_AVERAGE,
    SMALL,
    Line,
    clusters_to_reject,
    needed_words,
)
from parley.base.text import as_written, p_text, plural, signed
from parley.judging.malibu.contrasts import PAIRS, PRIMARY, SCORE, WINS, contrast_of
from parley.judging.malibu.decisions import Blockers
from parley.judging.malibu.pairs import first_place
from parley.judging.malibu.panel_data import PanelData

NOT_FAIR = "this does not show that the judges are fair"


def scores_words(planned: Sequence[Line], blocked: Blockers, margin: float) -> str:
    """A model's results on scores, in words; "" if there are none.

    Args:
        planned: The model's lines.
        blocked: Reasons that leave questions without an answer.
        margin: Points within which identities count as alike.
    """
    tested = [line for line in planned if line.measure == SCORE and not math.isnan(line.p)]
    if blocked.scores or not tested:
        return blocked.scores
    quality = ", which were not shown to measure quality," if blocked.quality else ""
    fewest, unit = min(line.tests or 1 for line in tested), tested[0].cluster
    if all((line.clusters or 0) < clusters_to_reject(ALPHA, line.tests or 1) for line in tested):
        return (
            f"With {plural(max(line.clusters or 0 for line in tested), unit)} no difference between labels could be "
            f"shown, whatever its size: {needed_words(fewest, unit)}."
        )
    if len(tested) == 1:
        return _only_words(tested[0], quality, margin)
    different = [line for line in tested if line.verdict in (DIFFERENT, SMALL)]
    within = [line for line in tested if line.verdict in (ALIKE, ON_AVERAGE)]
    alike, alike_text = len(within), _alike_words(within, margin)
    if different:
        largest = max(different, key=lambda line: (line.about.family == PAIRS, abs(line.estimate)))
        small = [line for line in different if line.verdict == SMALL]
        below = f"below our margin of {margin:g} points{single_clusters(small, 'are')}"
        below = f" ({f'{len(small)} of them ' * (len(small) < len(different))}{below})" if small else ""
        largest_of = (
            "" if len(different) == 1 else f"the largest {'pair' if largest.about.family == PAIRS else PRIMARY}: "
        )
        return (
            f"Labels move the scores{quality} in {counted(different, tested)}{below}; "
            f"{f'{alike_text}; ' if alike else ''}{largest_of}{in_points(largest)} "
            f"({in_test(largest)})."
        )
    if alike:
        left = plural(len(tested) - alike, "is undecided", "are undecided")
        rest = f"; {left}, which does not show that the judges are fair" if len(tested) > alike else ""
        return f"No difference between labels was shown in {counted(None, tested)}; {alike_text}{rest}."
    return f"None of {counted(None, tested)} was shown to differ, and none to be alike; {NOT_FAIR}."


def _only_words(line: Line, quality: str, margin: float) -> str:
    """What the only contrast of a model shows."""
    differ = f"{in_points(line)} ({in_test(line)})."
    says = {
        DIFFERENT: f"Labels move the scores{quality} in the only contrast: {differ}",
        SMALL: f"Below our margin of {margin:g} points{single_clusters([line], 'are')}: {differ}",
        **dict.fromkeys((ALIKE, ON_AVERAGE), f"No difference was shown; {_alike_words([line], margin, only=True)}."),
    }
    return says.get(line.verdict, f"The two labels were not shown to differ, nor to be alike; {NOT_FAIR}.")


def _alike_words(lines: Sequence[Line], margin: float, *, only: bool = False) -> str:
    """Words for lines without a difference: alike, or with only a small mean."""
    parts = []
    for verdict in (ALIKE, ON_AVERAGE):
        if some := [line for line in lines if line.verdict == verdict]:
            count = plural(len(some), "mean difference is", "mean differences are")
            small = "the mean difference is" if only else count
            where = "alike: " if verdict == ALIKE else f"on these {some[0].cluster}s, "
            parts.append(f"{where}{small} shown to lie within ±{margin:g} points{single_clusters(some)}")
    return "; ".join(parts)


def counted(some: Sequence[Line] | None, lines: Sequence[Line]) -> str:
    """Counts of lines by family: "2 of 3 primary contrasts and 8 of 12 pairs of labels".

    Args:
        some: The lines to count; None: all.
        lines: All lines.
    """
    named = {PRIMARY: (PRIMARY, f"{PRIMARY}s"), PAIRS: ("pair of labels", "pairs of labels")}
    parts = []
    for family in dict.fromkeys(line.about.family for line in lines):
        members = [line for line in lines if line.about.family == family]
        of_them = "" if some is None else f"{sum(line in some for line in members) or 'none'} of "
        parts.append(f"{of_them}{plural(len(members), *named[family])}".replace("1 of 1 ", "the only "))
    return " and ".join(parts)


def in_points(line: Line) -> str:
    """A difference in score in words: "the same answers score 0.47 points higher for 'female' than for 'male'"."""
    first, second = quoted_sides(line)
    size = f"{abs(line.estimate):.2f}"
    if not float(size):
        return f"the same answers score as high for {first} as for {second}"
    way = "higher" if line.estimate > 0 else "lower"
    return f"the same answers score {size} points {way} for {first} than for {second}"


def quoted_sides(line: Line) -> tuple[str, str]:
    """Both sides of a contrast in words, in the plot's order: readers misread sentences in the other order."""
    contrast = contrast_of(line)
    return quoted(contrast.first), quoted(contrast.second)


def quoted(identities: Sequence[str]) -> str:
    """One identity, or several whose mean is compared."""
    names = [f"'{as_written(name)}'" for name in identities]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} together"


def in_test(line: Line, *, share: bool = False) -> str:
    """Interval, with the signs of the plot, number of clusters and p-value of a difference.

    Args:
        line: The line.
        share: Whether a difference of shares is said as the first's win rate: 52.5% for 0.05.
    """
    span = interval(line.low, line.high, _signed, excluded=line.shown)
    if share:
        span = interval((1 + line.low) / 2, (1 + line.high) / 2, "{:.1%}".format, 0.5, excluded=line.shown)
    tests = line.tests or 1
    ends = f"{'simultaneous ' * (tests > 1)}95% interval {span} over" if math.isfinite(line.low + line.high) else "over"
    corrected = " after Holm's correction" if tests > 1 else ""
    return f"{ends} {plural(line.clusters or 0, line.cluster)}, p {p_text(line.p_adjusted)}{corrected}"


def _signed(end: float) -> str:
    return signed(end).replace("-", "−")


def preferences_words(
    data: PanelData,
    planned: Sequence[Line],
    rates: Sequence[Line],
    places: Sequence[Line],
    blocked: Mapping[str, Blockers],
) -> Iterator[str]:
    """A model's results on preferences, with win rates and the effect of the first place.

    Args:
        data: The verdicts.
        planned: The planned lines.
        rates: The result of `win_rate_lines`.
        places: The result of `position_lines`.
        blocked: What leaves questions without an answer, by model.
    """
    for model in data.models:
        tested, wins, first = (of_model(lines, model) for lines in (planned, rates, places))
        tested = [line for line in tested if line.measure == WINS and not math.isnan(line.p)]
        text = blocked[model].preferences
        if tested and not text:
            text = f"{_preferred(tested, data.win_rate)}. {win_rates_words(wins, first, data.win_rate)}"
        if text:
            yield f"{data.by_itself(model)}{text}"


def _preferred(lines: Sequence[Line], rate: str) -> str:
    shown = [line for line in lines if line.verdict in (DIFFERENT, SMALL)]
    if not shown:
        all_lines = f" ({counted(None, lines)})" if len(lines) > 1 else ""
        return f"In pairs no label was shown to be preferred to another{all_lines}"
    line = max(shown, key=lambda line: abs(line.estimate))
    first, second = quoted_sides(line)
    small = sum(line.verdict == SMALL for line in shown)
    margin = f"our margin, a win rate of {(1 + line.margin) / 2:.1%}"
    below = f" ({f'in {small:,} of them ' * (small < len(shown))}below {margin})" if small else ""
    return (
        f"In pairs a preference is shown in {counted(shown, lines)}{below}, the clearest between {first} and {second} "
        f"({rate} of {first} {(1 + line.estimate) / 2:.1%}, {in_test(line, share=True)})"
    )


def win_rates_words(rates: Sequence[Line], places: Sequence[Line], rate: str) -> str:
    """The labels that a model prefers most and least, if their intervals exclude 50%, and what the first place gets.

    Args:
        rates: The model's lines of win rates.
        places: The model's lines on the first place.
        rate: What a win rate is called.
    """
    shown = [line for line in rates if line.bounded and not line.low <= 0.5 <= line.high]
    shown.sort(key=lambda line: line.estimate)
    most = [f"Preferred most ({rate}): {line.label} {_rate(line)}." for line in shown[-1:] if line.estimate > 0.5]
    least = [f"Preferred least: {line.label} {_rate(line)}." for line in shown[:1] if line.estimate < 0.5]
    line = first_place(places)
    place = [f"The first answer shown, whatever its label: {_rate(line)}."] if line and line.n else []
    return " ".join((*most, *least, *place))


def _rate(line: Line) -> str:
    """A win rate with its interval: "51.3% (50.6 to 52.0)"."""
    ends = interval(line.low, line.high, lambda end: f"{100 * end:.1f}", 0.5) if line.bounded else "no interval"
    return f"{line.estimate:.1%} ({ends})"
