"""Cards, boards and gates: bylines, ten equal models, unread bases, and a check that runs every night."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from parley.analysis.card.leaderboard import Entry, line_places, make_board
from parley.analysis.card.lines import lines_of
from parley.analysis.card.samples import CardBallots
from parley.analysis.gate.changes import Checked
from parley.analysis.gate.check import check_lines
from parley.analysis.gate.requirements import parse_requirement
from parley.analysis.stats.results import Line
from parley.analysis.stats.signflips import sign_flip_test
from parley.judging.card.battery import load_battery
from tests.cards import card
from tests.true_sentences import Cell

BASES, MODELS, NIGHTS = 60, 10, 30
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


def _values(values: np.ndarray) -> dict[str, float]:
    return {f"b{base}": float(value) for base, value in enumerate(values)}


def _judging(values: dict[str, float]) -> Line:
    mean = float(np.mean([*values.values()]))
    numbers = {"estimate": mean, "low": mean - 0.1, "high": mean + 0.1, "n": len(values), "clusters": len(values)}
    return Line(
        name="judge", group="judging", measure="auc", reference=0.5, margin=0.1, worse="lower", verdict="different",
        values=values, label="judge", about={"question": "?"}, cluster="base", **numbers
    )  # fmt: skip


def _orders_equal_models(rng: np.random.Generator) -> bool:
    """Ten equal models with 46 lines, on the same bases: is any of them placed before another?"""
    easy = rng.normal(0, 0.1, BASES)
    entries = []
    for number in range(MODELS):
        lines = [_judging(_values(np.clip(0.8 + easy + rng.normal(0, 0.15, BASES), 0, 1)))]
        lines += [
            Line(
                name=f"line-{place}", group="labels", measure="points", reference=0.0, margin=0.1, worse="either",
                verdict="undecided", values=_values(0.2 * easy + rng.normal(0, 0.2, BASES)), label=str(place),
                about={"question": "?"}, cluster="base", estimate=0.0, low=-0.1, high=0.1, n=BASES, clusters=BASES,
            )
            for place in range(45)
        ]  # fmt: skip
        entries.append(Entry(card=card(f"m{number}", *lines)))
    places = make_board(entries).places
    return any(place != (1, MODELS) for place in places if place)


def _orders_by_unread(rng: np.random.Generator) -> bool:
    """Two equal models, one of which could not be read in the quarter of the bases where it is worst."""
    one, two = (np.clip(0.7 + rng.normal(0, 0.2, BASES), 0, 1) for _ in range(2))
    read = np.argsort(one)[BASES // 4 :]
    known = {name: value for place, (name, value) in enumerate(_values(one).items()) if place in set(read)}
    return line_places([_judging(known), _judging(_values(two))]) != [(1, 2), (1, 2)]


def _broken_once(rng: np.random.Generator, looks: int, again: float) -> bool:
    """The true value is the limit: is the gate broken in one of 30 nights? Only a part of the ballots' noise is new."""
    bases = rng.normal(0, np.sqrt(1 - again), BASES)
    for _ in range(NIGHTS):
        values = 0.1 + 0.2 * (bases + rng.normal(0, np.sqrt(again), BASES))
        test = sign_flip_test(values)
        line = Line(
            name="x", estimate=test.estimate, low=test.low, high=test.high, values=_values(values), clusters=BASES,
            n=BASES, reference=0.0, cluster="base",
        )  # fmt: skip
        checked = Checked(name="m", lines={"x": line})
        if check_lines(checked, [parse_requirement("x < 0.1")], looks=looks).outcome == "broken":
            return True
    return False


CELLS = [
    Cell(
        sentence="what the author changes, in the battery's bylines, 95% interval",
        setting="six bylines for 60 bases, byline × author SD 0.08",
        trial=_bylines,
        limit=0.07,
        before="40 to 49%, as a sentence on all bylines",
    ),
    Cell(
        sentence="the leaderboard places a model before another",
        setting="ten equal models, 46 lines, 60 bases",
        trial=_orders_equal_models,
        limit=0.07,
        before="32%",
    ),
    Cell(
        sentence="the leaderboard places a model before another",
        setting="two equal models, one unread in the quarter of its bases where it is worst",
        trial=_orders_by_unread,
        limit=0.07,
        before="36%",
    ),
    *(
        Cell(
            sentence=f"broken at least once in {NIGHTS} nights with --looks {NIGHTS}",
            setting=f"the true value is the limit, {again:.0%} of the variance is new every night",
            trial=partial(_broken_once, looks=NIGHTS, again=again),
            limit=0.07,
            before="7 to 55% without it",
        )
        for again in (0.1, 0.5, 1.0)
    ),
]
