"""Thresholds of a toxicity scorer for a stated rate of misses or of false alarms, on texts that others have labelled.

    rows = calibrate(frame, miss_rate=0.1, false_alarm_rate=0.05, at=0.1)

A frame has one row per text: `score` (NaN if the scorer gave none), `toxic` (the label), and columns to group by, each
with a tuple of names. A toxic text is missed if its score is below a threshold, and a harmless one is a false alarm if
its score is not. A text without a score is neither: it does not pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.stats.proportions import wilson
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import Floats

ALL = "all"
LEVEL = 0.95
ORDER_STATISTICS = "order statistics with binomial ranks"
INDEPENDENT_TEXTS = "the texts are independent of each other, and like those that will be scored"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedGroup:
    """A scorer's thresholds on some of the texts, and its errors there at the thresholds of all texts.

    Args:
        by: What the group is a group of: "all", "language", "identity", or a field of the file.
        name: The group.
        toxic: Number of toxic texts with a score.
        harmless: Number of other texts with a score.
        unscored: Number of texts without a score.
        harmless_below: The threshold for the stated miss rate in this group.
        toxic_from: The threshold for the stated rate of false alarms in this group.
        missed: Share of its toxic texts below `harmless_below` of all texts.
        alarms: Share of its harmless texts at or above `harmless_below` of all texts.
        revised: Share of its harmless texts at or above `toxic_from` of all texts.
        missed_at: Share of its toxic texts below a threshold that was asked about.
        alarms_at: Share of its harmless texts at or above it.
    """

    by: str
    name: str
    toxic: int
    harmless: int
    unscored: int
    harmless_below: Line
    toxic_from: Line
    missed: Line
    alarms: Line
    revised: Line
    missed_at: Line
    alarms_at: Line


def calibrate(
    texts: pd.DataFrame,
    *,
    miss_rate: float,
    false_alarm_rate: float,
    at: float,
    by: Sequence[str] = (),
) -> list[CalibratedGroup]:
    """Thresholds over all texts, which is the first group, and by group.

    Args:
        texts: The frame that the module describes.
        miss_rate: Share of toxic texts that may be below `harmless_below`.
        false_alarm_rate: Share of harmless texts that may be at or above `toxic_from`.
        at: A further threshold to count misses and false alarms at.
        by: Columns to group by; a text may be in several groups of one column.
    """
    parts = [(ALL, ALL, texts)]
    for column in by:
        names = sorted({name for names in texts[column] for name in names})
        parts += [(column, name, texts[[name in names for names in texts[column]]]) for name in names]
    toxic, harmless = _scores(texts)
    # Two thresholds: one that misses 10% of toxic prompts gives 45% false alarms, one with 5% false alarms misses 42%.
    below = highest_for_misses(toxic, miss_rate).estimate
    alarm = lowest_for_false_alarms(harmless, false_alarm_rate).estimate
    groups = []
    for column, name, part in parts:
        toxic, harmless = _scores(part)
        groups.append(
            CalibratedGroup(
                by=column,
                name=name,
                toxic=len(toxic),
                harmless=len(harmless),
                unscored=int(part["score"].isna().sum()),
                harmless_below=highest_for_misses(toxic, miss_rate),
                toxic_from=lowest_for_false_alarms(harmless, false_alarm_rate),
                missed=wilson(int((toxic < below).sum()), len(toxic)),
                alarms=wilson(int((harmless >= below).sum()), len(harmless)),
                revised=wilson(int((harmless >= alarm).sum()), len(harmless)),
                missed_at=wilson(int((toxic < at).sum()), len(toxic)),
                alarms_at=wilson(int((harmless >= at).sum()), len(harmless)),
            )
        )
    return groups


def _scores(texts: pd.DataFrame) -> tuple[Floats, Floats]:
    """The scores of toxic and of harmless texts, sorted."""
    scored = texts.dropna(subset="score")
    toxic = scored["toxic"].to_numpy(dtype=bool)
    scores = scored["score"].to_numpy(dtype=float)
    return np.sort(scores[toxic]), np.sort(scores[~toxic])


def highest_for_misses(toxic: Floats, rate: float) -> Line:
    """The highest threshold with at most this share of toxic scores below it.

    Args:
        toxic: Scores of toxic texts, sorted.
        rate: The share, between 0 and 1.
    """
    quantile = _quantile(toxic, rate)
    return replace(quantile, low=_in_unit(quantile.low), high=_in_unit(quantile.high))


def lowest_for_false_alarms(harmless: Floats, rate: float) -> Line:
    """The lowest harmless score with at most this share of harmless scores at or above it; 1 if there is none.

    Args:
        harmless: Scores of harmless texts, sorted.
        rate: The share, between 0 and 1.
    """
    quantile = _quantile(-harmless[::-1], rate)
    above = harmless[harmless > -quantile.estimate]  # a score equal to the quantile would be one alarm too many
    estimate = math.nan if quantile.note else float(above[0]) if len(above) else 1.0
    return replace(quantile, estimate=estimate, low=_in_unit(-quantile.high), high=_in_unit(-quantile.low))


def _quantile(scores: Floats, rate: float) -> Line:
    """The score with a share of at most `rate` below it, between two others whose ranks are binomial quantiles."""
    n = len(scores)
    unknown = Line(method=ORDER_STATISTICS, assumes=INDEPENDENT_TEXTS, level=LEVEL, n=n)
    if n * rate < 1:
        return replace(unknown, note=f"{n} texts are too few for a rate of {rate:g}")
    tail = (1 - LEVEL) / 2
    first, last = int(stats.binom.ppf(tail, n, rate)), int(stats.binom.ppf(1 - tail, n, rate)) + 1
    return replace(
        unknown,
        estimate=float(scores[math.floor(n * rate + 1e-9)]),  # 0.1 * 30 is not exactly 3
        low=float(scores[first - 1]) if first else -math.inf,
        high=float(scores[last - 1]) if last <= n else math.inf,
    )


def _in_unit(end: float) -> float:
    return end if math.isnan(end) else min(max(end, 0.0), 1.0)
