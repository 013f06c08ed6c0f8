"""Cards and boards: bylines, ten equal models, unread bases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.card.leaderboard import Entry, line_places, make_board
from parley.analysis.card.lines import lines_of
from parley.analysis.card.samples import CardBallots
from parley.analysis.stats.results import Line
from parley.judging.card.battery import load_battery
from tests.cards import card
from tests.true_sentences import cells

BASES, MODELS = 60, 10
AUTHOR = [line.model_dump() for line in load_battery().line if line.id == "author-own"]


def _bylines(rng: np.random.Generator) -> bool:
    """Six bylines, each with an effect of its own: does the interval miss the mean of these six?"""
    effects = rng.normal(0, 0.08, 6)
    rows = []
    for base in range(BASES):
        quality = rng.normal(6, 0.8)
        for author in ("own", "other", "person"):
            value = quality + effects[base % 6] * (author == "own") + rng.normal(0, 0.1)
            rows.append({"base": f"b{base}", "author": author, "value": value, "part": "author", "metric": "Overall"})
    (line,) = lines_of(CardBallots(pd.DataFrame(rows)).samples(AUTHOR), AUTHOR)
    return not line.low <= effects.mean() <= line.high


def _line(values: np.ndarray, **fields: Any) -> Line:
    """A line of these values, one a base; those that are NaN could not be read."""
    known = {f"b{base}": float(value) for base, value in enumerate(values) if not np.isnan(value)}
    size = {"values": known, "n": len(known), "clusters": len(known), "cluster": "base"}
    return Line(**{"reference": 0.0, "margin": 0.1, "label": "x", "about": {"question": "?"}, **size, **fields})


def _judging(values: np.ndarray) -> Line:
    mean = float(np.nanmean(values))
    about = {"name": "judge", "group": "judging", "measure": "auc", "worse": "lower", "verdict": "different"}
    return _line(values, **about, reference=0.5, estimate=mean, low=mean - 0.1, high=mean + 0.1)


def _orders_equal_models(rng: np.random.Generator) -> bool:
    """Ten equal models with 46 lines, on the same bases: is any of them placed before another?"""
    easy = rng.normal(0, 0.1, BASES)
    entries = []
    for number in range(MODELS):
        lines = [_judging(np.clip(0.8 + easy + rng.normal(0, 0.15, BASES), 0, 1))]
        about = {"group": "labels", "measure": "points", "worse": "either", "verdict": "undecided"}
        about |= {"estimate": 0.0, "low": -0.1, "high": 0.1}
        lines += [_line(0.2 * easy + rng.normal(0, 0.2, BASES), name=f"line-{place}", **about) for place in range(45)]
        entries.append(Entry(card=card(f"m{number}", *lines)))
    places = make_board(entries).places
    return any(place != (1, MODELS) for place in places if place)


def _orders_by_unread(rng: np.random.Generator) -> bool:
    """Two equal models, one of which could not be read in the quarter of the bases where it is worst."""
    one, two = (np.clip(0.7 + rng.normal(0, 0.2, BASES), 0, 1) for _ in range(2))
    one[np.argsort(one)[: BASES // 4]] = np.nan
    return line_places([_judging(one), _judging(two)]) != [(1, 2), (1, 2)]


ORDERED = "the leaderboard places a model before another"
CELLS = [
    *cells(
        "what the author changes, in the battery's bylines, 95% interval",
        "six bylines for 60 bases, byline × author SD 0.08",
        _bylines,
        before="40 to 49%, as a sentence on all bylines",
    ),
    *cells(ORDERED, "ten equal models, 46 lines, 60 bases", _orders_equal_models, before="32%"),
    *cells(
        ORDERED,
        "two equal models, one unread in the quarter of its bases where it is worst",
        _orders_by_unread,
        before="36%",
    ),
]
