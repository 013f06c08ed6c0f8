"""What held before the sentences were corrected, and must hold: reports and win rates in order.

Planted effects are found with 40 bases; nothing is found where there is nothing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.analysis.say import Forest, headline
from parley.analysis.stats.results import ALIKE, DIFFERENT, SMALL, Line
from parley.judging.malibu.contrasts import PRIMARY
from parley.judging.malibu.decisions import planned_lines
from parley.judging.malibu.pairs import win_rate_lines
from parley.judging.malibu.panel_data import PanelData
from tests.true_sentences import cells
from tests.true_sentences.levels_report import ballots, comparisons


def _lines(rng: np.random.Generator, bases: int, wordings: int | None = None, female: float = 0.0) -> list[Line]:
    """The planned lines of silent ballots whose labels change nothing, but for what 'female' gets."""
    return planned_lines(PanelData(ballots(rng, bases=bases, wordings=wordings, gaps={"female": female})), 0.1)


def _primary(rng: np.random.Generator, bases: int, wordings: int | None = None) -> list[Line]:
    return [line for line in _lines(rng, bases, wordings) if line.about.family == PRIMARY]


def _any_different(rng: np.random.Generator, wordings: int) -> bool:
    return any(line.verdict in (DIFFERENT, SMALL) for line in _primary(rng, 60, wordings))


def _headlines(rng: np.random.Generator, models: int) -> bool:
    """Whether the headline of a report on several models names a difference."""
    lines = [line for _ in range(models) for line in _primary(rng, 20)]
    return headline(Forest("primary", "Do labels change the score?", "points", tuple(lines))).line is not None


def _any_said(rng: np.random.Generator) -> bool:
    """Whether any line of a report on one model's scores and preferences, or a win rate, says that a label matters."""
    data = PanelData(pd.concat([ballots(rng, bases=20), comparisons(rng, bases=20)], ignore_index=True))
    said = any(line.verdict in (DIFFERENT, SMALL) and not line.secondary for line in planned_lines(data, 0.1))
    return said or any(not line.low <= 0.5 <= line.high for line in win_rate_lines(data))


def _set_misses(rng: np.random.Generator, bases: int) -> bool:
    """Whether one of the simultaneous intervals of a family misses 0."""
    return any(not line.low <= 0 <= line.high for line in _primary(rng, bases))


def _planted(rng: np.random.Generator) -> str:
    """What is said of 'female' and 'male' if they differ by 0.1."""
    sides = [(line, *line.about.contrast.names) for line in _lines(rng, 40, female=0.1)]
    return next(line.verdict for line, *pair in sides if pair == ["female", "male"])


def _tied_misses(rng: np.random.Generator) -> bool:
    """Whether the interval of one label's win rate, drawn at random, misses one half; about a quarter are ties."""
    frame = comparisons(rng, bases=40)
    frame["value"] = frame["value"].where(frame["lead"].abs() > 0.3, 0.0)
    lines = win_rate_lines(PanelData(frame))
    line = lines[int(rng.integers(len(lines)))]
    return not line.low <= 0.5 <= line.high


def _preference_missed(rng: np.random.Generator) -> bool:
    """Whether a label that wins three of four comparisons has a win rate whose interval includes one half."""
    frame = comparisons(rng, bases=40)
    side = pd.Series(np.select([frame["identity"] == "black", frame["other"] == "black"], [1.0, -1.0], 0.0))
    frame["value"] += np.where(frame["order"] == 0, 1, -1) * side
    line = next(line for line in win_rate_lines(PanelData(frame)) if line.about.columns["identity"] == "black")
    return line.low <= 0.5


CELLS = [
    *cells(
        "two labels of the primary contrasts are different",
        "labels change nothing, {wordings} label wordings for 60 bases",
        _any_different,
        *({"wordings": wordings} for wordings in (8, 12, 20)),
        before="4.0 to 7.0%",
    ),
    *cells(
        "the headline names a difference",
        "labels change nothing, {models} models, 20 bases",
        _headlines,
        {"models": 3, "before": "13.5%"},
        {"models": 6, "before": "27%"},
    ),
    *cells(
        "a report on one model says that some label matters",
        "labels change nothing, scores and preferences, 20 bases",
        _any_said,
        before="11%",
    ),
    *cells(
        "one of the simultaneous intervals of the primary contrasts misses",
        "labels change nothing, {bases} bases",
        _set_misses,
        *({"bases": bases} for bases in (20, 40)),
        before="1.5 to 7%",
    ),
    *cells(
        "two labels are alike",
        "the difference is the margin, effects are normal, 40 bases",
        lambda rng: _planted(rng) == ALIKE,
        before="2 to 7%",
    ),
    *cells(
        "that two labels differ by 0.1 is missed",
        "a label wording for each of 40 bases, wording × label SD 0.1",
        lambda rng: _planted(rng) not in (DIFFERENT, SMALL),
        limit=0.2,
    ),
    *cells(
        "win rate, one of ten simultaneous intervals, 95%",
        "no preference, a quarter ties, 40 bases",
        _tied_misses,
        before="5 to 6%, each alone",
    ),
    *cells(
        "that a label wins more than half is missed",
        "it leads by a log-odds of 1 (an SD of 1 between bases), 40 bases",
        _preference_missed,
        limit=0.2,
    ),
]
