"""What MALIBU's report says about scores and preferences, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from parley.analysis.stats.clustered import skew_corrected_p
from parley.analysis.stats.results import (
    ALIKE,
    ALPHA,
    DIFFERENT,
    ON_AVERAGE,
    SMALL,
    Line,
)
from parley.analysis.stats.signflips import clusters_to_reject, sign_flip_p
from parley.base.text import p_text, plural
from parley.judging.malibu.contrasts import PAIRS, PRIMARY, SCORE, WINS, contrast_of
from parley.judging.malibu.decisions import Blockers
from parley.judging.malibu.pairs import first_place
from parley.judging.malibu.panel_data import PanelData

ENOUGH_BASES = 60
"""With this many bases, nearly all samples include a rare kind of base that reverses a difference."""


def scores_words(planned: Sequence[Line], blocked: Blockers, margin: float) -> str:
    """What a model's scores show, in words; "" where nothing was asked.

    Args:
        planned: The model's lines.
        blocked: What leaves questions without an answer.
        margin: Points within which identities count as alike.
    """
    tested = [line for line in planned if line.measure == SCORE and not math.isnan(line.p)]
    if blocked.scores or not tested:
        return blocked.scores
    different = [line for line in tested if line.verdict in (DIFFERENT, SMALL)]
    within = [line for line in tested if line.verdict in (ALIKE, ON_AVERAGE)]
    alike, alike_text, rare = len(within), _alike_words(within, margin), _rare_words(within)
    quality = ", which were not shown to measure quality" if blocked.quality else ""
    if different:
        largest = max(different, key=lambda line: abs(line.estimate))
        verb = "differs" if len(different) == 1 else "differ"
        more = f" and {alike_text}" if alike else ""
        return (
            f"Labels move the scores{quality}: {counted(different, tested)} {verb}{more}. The largest difference: "
            f"{in_points(largest)} ({tested_words(largest, largest.cluster)}{_asymmetry(largest)}).{rare}"
        )
    families = _by_family(tested)
    comparisons = counted(None, tested)
    if all((line.clusters or 0) < clusters_to_reject(ALPHA, line.tests or 1) for line in tested):
        fewest, name = min((len(lines), name) for name, lines in families.items())
        unit = tested[0].cluster
        return (
            f"With {plural(max(line.clusters or 0 for line in tested), unit)} no difference between labels could be "
            f"shown, whatever its size: the correction for {plural(fewest, name)} needs at least "
            f"{clusters_to_reject(ALPHA, fewest)} {unit}s."
        )
    if alike:
        left = len(tested) - alike
        rest = f"; {left} {'is' if left == 1 else 'are'} undecided, which does not show that the judges are fair"
        return f"No difference between labels was shown in {comparisons}; {alike_text}{rest if left else ''}.{rare}"
    which, nor = (f"None of {comparisons} was", "and none") if len(tested) > 1 else ("The two labels were not", "nor")
    return f"{which} shown to differ, {nor} to be alike; this does not show that the judges are fair."


def _alike_words(lines: Sequence[Line], margin: float) -> str:
    average = " on average" if any(line.verdict == ON_AVERAGE for line in lines) else ""
    return f"{len(lines)} {'is' if len(lines) == 1 else 'are'} alike{average} within ±{margin:g} points"


def _rare_words(lines: Sequence[Line]) -> str:
    """Which rare effects lines without a difference may have missed."""
    few = min((line.clusters or 1 for line in lines), default=0)
    if not few:
        return ""
    return (
        f" {plural(few, lines[0].cluster)} may include none of a kind that is rarer than {rarest(few):.0%}, so an "
        "effect on that kind alone may have been missed."
    )


def _by_family(lines: Iterable[Line]) -> dict[str, list[Line]]:
    families: dict[str, list[Line]] = {}
    for line in lines:
        families.setdefault(line.about.family, []).append(line)
    return families


def counted(some: Sequence[Line] | None, lines: Sequence[Line]) -> str:
    """How many of some lines each family has: "2 of 3 primary contrasts and 8 of 12 pairs of labels".

    Args:
        some: Which lines are counted; None: all of them.
        lines: All lines.
    """
    named = {PRIMARY: (PRIMARY, f"{PRIMARY}s"), PAIRS: ("pair of labels", "pairs of labels")}

    def of_family(family: str, members: Sequence[Line]) -> str:
        if some is None:
            return plural(len(members), *named[family])
        counted = sum(line in some for line in members)
        return (
            f"the only {named[family][0]}"
            if counted == len(members) == 1
            else f"{counted} of {plural(len(members), *named[family])}"
        )

    return " and ".join(of_family(family, members) for family, members in _by_family(lines).items())


def in_points(line: Line) -> str:
    """A difference in score in words: "the same answers score 0.47 points higher for 'female' than for 'male'"."""
    first, second = quoted_sides(line)
    size = f"{abs(line.estimate):.2f}"
    if not float(size):
        return f"the same answers score as high for {first} as for {second}"
    way = "higher" if line.estimate > 0 else "lower"
    return f"the same answers score {size} points {way} for {first} than for {second}"


def quoted_sides(line: Line) -> tuple[str, str]:
    """Both sides of a contrast in words, in the order of the plot: a sentence that turned it round was misread."""
    contrast = contrast_of(line)
    return quoted(contrast.first), quoted(contrast.second)


def quoted(identities: Sequence[str]) -> str:
    """One identity, or several whose mean is compared."""
    names = [f"'{name}'" for name in identities]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} together"


def _asymmetry(line: Line) -> str:
    """Whether few clusters make the difference; the table has its skewness."""
    if math.isnan(line.also["skewness"]):
        return ""
    return f"; the {line.cluster} that moved most makes up {line.also['largest_base']:.0%} of it"


def tested_words(line: Any, unit: str) -> str:
    """Interval, number of clusters and p-value of a difference whose sign a sentence has named.

    Args:
        line: The line, or a row with its numbers.
        unit: What a cluster is called.
    """
    low, high = sorted(abs(end) for end in (line.low, line.high))
    several = "simultaneous " if line.tests > 1 else ""
    # Without spread there is no interval.
    ends = f"{several}95% interval {low:.2f} to {high:.2f} " if low < high else "the same on all of them, "
    span = ends if math.isfinite(high) else ""
    return f"{span}over {plural(line.clusters, unit)}, p {p_text(line.p_adjusted)} after Holm's correction"


def preferences_words(
    data: PanelData,
    planned: Sequence[Line],
    rates: Sequence[Line],
    places: Sequence[Line],
    blocked: Mapping[str, Blockers],
) -> Iterator[str]:
    """What preferences in pairs say, with win rates and the first place.

    Args:
        data: The verdicts.
        planned: The planned lines.
        rates: What `win_rate_lines` returned.
        places: What `position_lines` returned.
        blocked: What leaves questions without an answer, by model.
    """
    for model in data.models:
        tested, wins, first = (
            [line for line in lines if line.about.model == model] for lines in (planned, rates, places)
        )
        tested = [line for line in tested if line.measure == WINS and not math.isnan(line.p)]
        text = blocked[model].preferences
        if tested and not text:
            text = ", and ".join(filter(None, (_preferred(tested), _first_place(first)))) + "."
            text = " ".join(filter(None, (text, win_rates_words(wins))))
        if text:
            yield f"{data.prefix(model)}{text}"


def _preferred(lines: Sequence[Line]) -> str:
    shown = [line for line in lines if line.verdict in (DIFFERENT, SMALL)]
    if not shown:
        return "In pairs no label was shown to be preferred to another" + (
            f" ({counted(None, lines)})" if len(lines) > 1 else ""
        )
    line = max(shown, key=lambda line: abs(line.estimate))
    first, second = quoted_sides(line)
    clearest, count = (
        (f"for {first} over {second}", "wins minus losses")
        if line.estimate > 0
        else (f"against {first}, compared with {second}", "losses minus wins")
    )
    return (
        f"In pairs, {counted(shown, lines)} {'shows' if len(shown) == 1 else 'show'} a preference, the clearest "
        f"{clearest} ({count} per comparison {abs(line.estimate):.2f}, {tested_words(line, line.cluster)})"
    )


def win_rates_words(rates: Sequence[Line]) -> str:
    """The highest and lowest win rate of a model among those whose intervals exclude one half; "" if none does.

    Args:
        rates: The model's lines of win rates.
    """
    shown = [line for line in rates if line.bounded and not line.low <= 0.5 <= line.high]
    if not shown:
        return ""
    shown.sort(key=lambda line: line.estimate)
    ends = dict.fromkeys(
        f"'{line.label}' {line.estimate:.0%} ({line.low:.0%} to {line.high:.0%})" for line in (shown[-1], shown[0])
    )
    which = "Highest and lowest" if len(ends) > 1 else "The"
    return f"{which} win rate in pairs that excludes 50%: {', '.join(ends)}; intervals hold for all labels together."


def _first_place(places: Sequence[Line]) -> str:
    line = first_place(places)
    if line is None or not line.n:
        return ""
    span = f" ({line.low:.0%} to {line.high:.0%})" if line.bounded else ""
    return f"the candidate shown first won {line.estimate:.0%}{span}"


def reversible(lines: Sequence[Line]) -> str:
    """Says that a rare kind of base could reverse a claimed difference; "" without one, or with many bases.

    Args:
        lines: The planned lines of a model.
    """
    claimed = [line for line in lines if line.verdict in (DIFFERENT, SMALL)]
    bases = max((line.clusters or 0 for line in claimed), default=ENOUGH_BASES)
    if bases >= ENOUGH_BASES:
        return ""
    return (
        f" A rare kind of {claimed[0].cluster} that was not drawn could reverse a difference: if a tenth of all did, "
        f"{rare_kind_rate(bases):.0%} of samples of {bases} would still show one."
    )


@lru_cache(maxsize=64)
def rare_kind_rate(bases: int) -> float:
    """How often this many bases say "different" although a tenth of all bases cancel what the others add.

    The others gain a point; the rare kind loses 9 points, which makes the mean 0. Where few or none of the rare kind
    are drawn, the rest looks like a difference. Exact: the number drawn is binomial.

    Args:
        bases: Bases in the sample.
    """
    samples = (np.array([1.0] * (bases - drawn) + [-9.0] * drawn) for drawn in range(bases + 1))
    called = [max(sign_flip_p(sample), skew_corrected_p(sample)) <= ALPHA for sample in samples]
    return math.fsum(math.comb(bases, drawn) * 0.1**drawn * 0.9 ** (bases - drawn) for drawn in np.flatnonzero(called))


def rarest(clusters: int) -> float:
    """The share of all clusters from which an effect is seen in 95% of samples of this size; rarer ones may be missed.

    Args:
        clusters: Clusters in the sample.
    """
    return 1 - math.pow(ALPHA, 1 / clusters)
