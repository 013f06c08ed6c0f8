"""Sentences of MALIBU's report about scores and preferences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
        below = f"by less than our margin of {margin:g} points{single_clusters(small)}"
        below = f" ({f'in {len(small)} of them ' * (len(small) < len(different))}{below})" if small else ""
        largest_of = (
            "" if len(different) == 1 else f"the largest {'pair' if largest.about.family == PAIRS else PRIMARY}: "
        )
        return (
            f"Labels move the scores{quality} in {counted(different, tested)}{below}; "
            f"{f'{alike_text}; ' if alike else ''}{largest_of}{in_points(largest)} "
            f"({tested_words(largest, largest.cluster)})."
        )
    if alike:
        left = plural(len(tested) - alike, "is undecided", "are undecided")
        rest = f"; {left}, which does not show that the judges are fair" if len(tested) > alike else ""
        return f"No difference between labels was shown in {counted(None, tested)}; {alike_text}{rest}."
    return f"None of {counted(None, tested)} was shown to differ, and none to be alike; {NOT_FAIR}."


def _only_words(line: Line, quality: str, margin: float) -> str:
    """What the only contrast of a model shows."""
    differ = f"{in_points(line)} ({tested_words(line, line.cluster)})."
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


def tested_words(line: Any, unit: str) -> str:
    """Interval, with the signs of the plot, number of clusters and p-value of a difference.

    Args:
        line: The line, or a row with its numbers.
        unit: The noun for a cluster.
    """
    kind, span = "simultaneous " * (line.tests > 1), interval(line.low, line.high, _signed, excluded=line.shown)
    ends = f"{kind}95% interval {span} over" if math.isfinite(line.low + line.high) else "over"
    corrected = " after Holm's correction" if line.tests > 1 else ""
    return f"{ends} {plural(line.clusters, unit)}, p {p_text(line.p_adjusted)}{corrected}"


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
            text = ", and ".join(filter(None, (_preferred(tested), _first_place(first)))) + "."
            text = " ".join(filter(None, (text, win_rates_words(wins, data.decided_by))))
        if text:
            yield f"{data.by_itself(model)}{text}"


def _preferred(lines: Sequence[Line]) -> str:
    shown = [line for line in lines if line.verdict in (DIFFERENT, SMALL)]
    if not shown:
        return "In pairs no label was shown to be preferred to another" + (
            f" ({counted(None, lines)})" if len(lines) > 1 else ""
        )
    line = max(shown, key=lambda line: abs(line.estimate))
    first, second = quoted_sides(line)
    return (
        f"In pairs a preference is shown in {counted(shown, lines)}, the clearest between {first} and {second} (wins "
        f"minus losses of {first} {_signed(line.estimate)} per comparison, {tested_words(line, line.cluster)})"
    )


def win_rates_words(rates: Sequence[Line], by: str) -> str:
    """The labels that a model prefers most and least, if their intervals exclude 50%; "" if none does.

    Args:
        rates: The model's lines of win rates.
        by: What decides who wins, if it is not the judges' votes.
    """
    shown = sorted(
        (line for line in rates if line.bounded and not line.low <= 0.5 <= line.high), key=lambda line: line.estimate
    )
    return " ".join(
        [f"Preferred most{by}: {_rate(line)}." for line in shown[-1:] if line.estimate > 0.5]
        + [f"Preferred least{by}: {_rate(line)}." for line in shown[:1] if line.estimate < 0.5]
    )


def _rate(line: Line) -> str:
    """A win rate with its interval: "Christian 69% (60 to 77)"."""
    return f"{line.label} {line.estimate:.0%} ({interval(line.low, line.high, lambda end: f'{100 * end:.0f}', 0.5)})"


def _first_place(places: Sequence[Line]) -> str:
    if not (line := first_place(places)) or not line.n:
        return ""
    span = f" ({line.low:.0%} to {line.high:.0%})" if line.bounded else ""
    return f"the candidate in first place won {line.estimate:.0%}{span}"
