"""Judges side by side: which of them differ, line by line, on the same units; and the page that shows it.

Models have places in one line, whether they can judge: with places in all of some 46 lines, ten equal models would be
ordered somewhere in a third of all boards. Two models differ if a paired t-test over the clusters says so,
Holm-corrected over all pairs; overlapping intervals decide nothing. A model's *place* is the range that these tests
leave: from one behind those shown to be better, to one before those shown to be worse. A cluster that only one of two
could be read in may have any value, so both ends must say the same. Models that were not shown to judge have no place,
and cards of other units, or of a simulated model, stand apart.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from parley.analysis.card.record import Card
from parley.analysis.reporting.report import json_values
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALPHA, NOT_MEASURED, Line
from parley.analysis.stats.signflips import clusters_to_reject
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

LEAST = clusters_to_reject(ALPHA)
"""Clusters below which nothing is tested, as in reports."""
RANGES = {"points": (-8.0, 8.0), "share": (0.0, 1.0), "auc": (0.0, 1.0)}
"""The ends of what a line's value may be where it was not read."""
SIMULATED = "a simulated model"
SHOWN = ("estimate", "low", "high", "verdict", "n", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A card and where its files are.

    Args:
        card: The card.
        card_link: The card's page, or its JSON, relative to this page; "" where the card was read from the run.
        run_link: The run's file; "" where it is not there.
    """

    card: Card
    card_link: str = ""
    run_link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The judges, and what sets some of them apart.

    Args:
        entries: All of them.
        apart: By entry, why it is not ranked with the others; "" where it is.
        judging: By entry, whether it was shown to judge better than chance.
        lines: The lines of the cards that are ranked, in the battery's order; those of all cards if none is.
        places: By entry, the first and the last place that tests of the line `ordered` leave; None where it has none.
        ordered: The name of the line that orders models: whether they can judge.
    """

    entries: tuple[Entry, ...]
    apart: tuple[str, ...]
    judging: tuple[bool, ...]
    lines: tuple[Line, ...]
    places: tuple[tuple[int, int] | None, ...]
    ordered: str

    @property
    def headline(self) -> str:
        """How many of the ranked models can judge: what everything else rests on."""
        ranked = [judges for judges, reason in zip(self.judging, self.apart, strict=True) if not reason]
        if not ranked:
            return "No card here can be ranked."
        shown, verb = sum(ranked) or "None", "was" if sum(ranked) < 2 else "were"
        return f"{shown} of {plural(len(ranked), 'model')} {verb} shown to judge better than chance."


def make_board(entries: Sequence[Entry]) -> Board:
    """The board of some cards. The units that most models have in common are those that are ranked.

    Args:
        entries: The cards.
    """
    kinds = Counter(str(entry.card.units) for entry in entries if not entry.card.model.simulated)
    most = kinds.most_common(1)[0][0] if kinds else ""
    main = next((entry.card for entry in entries if str(entry.card.units) == most), None)
    apart = tuple(_apart(entry.card, main) for entry in entries)
    judging = tuple(entry.card.judges for entry in entries)
    ranked = [entry.card for entry, reason in zip(entries, apart, strict=True) if not reason]
    lines = {line.name: line for card in ranked or [entry.card for entry in entries] for line in card.lines}
    placed = [place for place, reason in enumerate(apart) if not reason and judging[place]]
    ordered = next((line.name for card in ranked if (line := card.judging)), "")
    own = {place: entries[place].card.by_name.get(ordered) for place in placed}
    read = {place: each for place, each in own.items() if each and each.values and each.verdict != NOT_MEASURED}
    found = dict(zip(read, line_places(list(read.values())), strict=True))
    return Board(
        entries=tuple(entries),
        apart=apart,
        judging=judging,
        lines=tuple(lines.values()),
        places=tuple(found.get(place) for place in range(len(entries))),
        ordered=ordered,
    )


def _apart(card: Card, main: Card | None) -> str:
    units, others = card.units, main.units if main else card.units
    different = ", ".join(name for name in {**units, **others} if units.get(name) != others.get(name))
    reasons = [SIMULATED] * card.model.simulated + [f"another {name}" for name in different.split(", ") if name]
    return ", ".join(reasons).replace("another data", "other data")


def line_places(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """The places that tests leave to each of the cards whose line this is.

    Args:
        lines: The same line of several cards.
    """
    count = len(lines)
    if not count:
        return []
    clusters = sorted(set().union(*(line.values for line in lines)))
    table = np.array([[line.values.get(name, np.nan) for name in clusters] for line in lines])
    ends = [np.where(np.isfinite(table), table, end) - lines[0].reference for end in RANGES[lines[0].measure]]
    first, second = np.triu_indices(count, 1)
    unread = ~np.isfinite(table)
    low, high = ends
    both = unread[first] & unread[second]
    sign, p = _shown_sign(
        *(np.where(both, np.nan, gap) for gap in (low[first] - high[second], high[first] - low[second]))
    )
    worse = sign * (-1 if lines[0].worse == "lower" else 1)
    if lines[0].worse == "either":
        # |a| > |b| exactly where a - b and a + b have the same sign, so both must be shown.
        sums = (low[first] + low[second], high[first] + high[second])
        total, p_total = _shown_sign(*(np.where(both, np.nan, each) for each in sums))
        worse, p = sign * total, np.maximum(p, p_total)
    shown = np.array(holm(p)) <= ALPHA
    better_than, worse_than = np.zeros(count, dtype=int), np.zeros(count, dtype=int)
    for here, sign in ((first, worse), (second, -worse)):
        np.add.at(worse_than, here[shown & (sign > 0)], 1)
        np.add.at(better_than, here[shown & (sign < 0)], 1)
    return [(1 + int(worse_than[place]), count - int(better_than[place])) for place in range(count)]


def _shown_sign(lowest: Floats, highest: Floats) -> tuple[Floats, Floats]:
    """The sign of each row's mean and its p-value, where both ends of what was not read agree; else 0 and 1."""
    (low, p_low), (high, p_high) = paired_t(lowest), paired_t(highest)
    agree = np.sign(low) == np.sign(high)
    return np.where(agree, np.sign(low), 0.0), np.where(agree, np.maximum(p_low, p_high), 1.0)


def paired_t(differences: Floats) -> tuple[Floats, Floats]:
    """Mean and two-sided p-value of each row, missing values left out; p is 1 where nothing can be tested.

    Args:
        differences: One row per pair of models, one column per cluster.
    """
    known = np.isfinite(differences)
    counts = known.sum(axis=1)
    filled = np.where(known, differences, 0.0)
    mean = filled.sum(axis=1) / np.maximum(counts, 1)
    squares = (np.where(known, differences - mean[:, None], 0.0) ** 2).sum(axis=1)
    error = np.sqrt(squares / np.maximum(counts - 1, 1) / np.maximum(counts, 1))
    testable = (counts >= LEAST) & (error > 1e-12)
    t = np.divide(np.abs(mean), error, out=np.zeros(len(mean)), where=testable)
    return mean, np.where(testable, 2 * stdtr(np.maximum(counts - 1, 1), -t), 1.0)


def board_values(board: Board) -> dict[str, Any]:
    """The board as plain values: what `--json` prints and the page contains."""
    clusters: dict[str, list[str]] = {}
    for line in board.lines:
        found = (entry.card.by_name.get(line.name) for entry in board.entries)
        clusters[line.name] = sorted({name for own in found if own for name in own.values})
    widest = max([2, *(len(names) for names in clusters.values())])
    return {
        "headline": board.headline,
        "lines": [
            {
                "id": line.name,
                "title": line.label,
                "unit": line.measure,
                "null": line.reference,
                **line.about,
                **{name: getattr(line, name) for name in ("group", "margin", "worse", "cluster")},
            }
            for line in board.lines
        ],
        "models": [
            {
                **entry.card.model.model_dump(),
                "battery": entry.card.battery.model_dump(),
                "data": entry.card.data.model_dump(),
                "run": entry.card.run.model_dump(),
                "card_link": entry.card_link,
                "run_link": entry.run_link,
                "apart": board.apart[place],
                "judges": board.judging[place],
                "judging": getattr(entry.card.judging, "name", None),
                "lines": {
                    line.name: {
                        **json_values({name: getattr(line, name) for name in SHOWN}),
                        "because": line.note or None,
                        "place": board.places[place] if line.name == board.ordered else None,
                        "values": [_rounded(line.values.get(name)) for name in clusters.get(line.name, ())],
                    }
                    for line in entry.card.lines
                },
            }
            for place, entry in enumerate(board.entries)
        ],
        "level": ALPHA,
        "least": LEAST,
        "quantiles": [None, None, *(round(float(stdtrit(n - 1, 1 - ALPHA / 2)), 6) for n in range(2, widest + 1))],
    }


def _rounded(value: float | None) -> float | None:
    """A value as the page has it: 200 cards of 60 lines have 700,000 of them."""
    return None if value is None else round(value, 4)


def board_page(board: Board) -> str:
    """The page: one file that loads nothing. Texts of cards are data, and no script but ours may run."""
    ours, shared = files("parley.analysis.card"), files("parley.analysis.reporting")
    script = ours.joinpath("static", "leaderboard.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = json.dumps(board_values(board), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Template(ours.joinpath("leaderboard.html").read_text("utf-8")).substitute(
        digest=digest,
        style=shared.joinpath("static", "page.css").read_text("utf-8"),
        rules=ours.joinpath("static", "leaderboard.css").read_text("utf-8"),
        headline=escape(board.headline),
        data=data.replace("<", "\\u003c"),
        script=script,
    )
