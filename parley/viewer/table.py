"""The units of a run as a table in memory: every facet and figure a filter and a sort key, counted as one filters.

Facets come from the plan and never change; figures are added as units are finished and looked at. Within a filter
several values mean "or", across filters "and"; each filter's counts leave its own choice out, so that one sees what
else there is.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from parley.runs import RunFile
from parley.viewer import bitmaps
from parley.viewer.figures import PANEL, Spent, UnitFigures
from parley.viewer.library import facets_of

Masks = dict[str, int]
DERIVED = ("d.choice", "d.flip", "d.changed", "d.parse")
MANY = 5000
"""A facet with more values than this is a name of the unit, not a filter."""


class TableColumn(NamedTuple):
    labels: list[str]
    codes: array[int]
    masks: list[int]


class Query(NamedTuple):
    """What is asked of the table. `wanted` maps a filter ("f.phase", "d.flip") to the values that may be."""

    wanted: Mapping[str, Sequence[str]] = {}
    judge: str = PANEL
    low: float | None = None
    high: float | None = None
    sort: str = "position"
    descending: bool = False
    page: int = 0
    size: int = 50


class Lens:
    """All units through one pair of eyes. A unit is put once, when it is finished; its bits are set then and there."""

    def __init__(self, size: int) -> None:
        self.score = array("d", [math.nan]) * size
        self.margin = array("d", [math.nan]) * size
        self.choice: list[str | None] = [None] * size
        self.changed: list[bool | None] = [None] * size
        self.parse: list[str | None] = [None] * size
        self.flip: list[str | None] = [None] * size
        self.groups: dict[str, dict[str, bytearray]] = {key: {} for key in DERIVED}
        self._width = (size >> 3) + 1

    def put(self, position: int, seen: UnitFigures, partner: int) -> None:
        if self.parse[position] is not None or self.choice[position] is not None:
            return
        self.score[position] = math.nan if seen.score is None else seen.score
        self.margin[position] = math.nan if seen.margin is None else seen.margin
        self.choice[position], self.changed[position], self.parse[position] = seen.choice, seen.changed, seen.parse
        self._mark("d.choice", seen.choice, position)
        self._mark("d.parse", seen.parse, position)
        if seen.changed is not None:
            self._mark("d.changed", "changed" if seen.changed else "kept", position)
        if partner >= 0 and (flip := flipped(seen.choice, self.choice[partner])):
            for one in (position, partner):
                self.flip[one] = flip
                self._mark("d.flip", flip, one)

    def _mark(self, key: str, label: str | None, position: int) -> None:
        if label is None:
            return
        group = self.groups[key]
        if label not in group:
            group[label] = bytearray(self._width)
        group[label][position >> 3] |= 1 << (position & 7)

    def masks(self) -> dict[str, Masks]:
        return {
            key: {label: int.from_bytes(buffer, "little") for label, buffer in sorted(group.items())}
            for key, group in self.groups.items()
        }


def flipped(mine: str | None, theirs: str | None) -> str | None:
    """Flipped: shown in the other order, the same pair got the other verdict, so that the place decided.

    The same letter in both orders is the other candidate.
    """
    if mine is None or theirs is None:
        return None
    if "tie" in (mine, theirs):
        return "kept" if mine == theirs else "with a tie"
    return "flipped" if mine == theirs else "kept"


class UnitTable:
    def __init__(self, file: RunFile) -> None:
        file.check_plan()
        rows = file.rows("SELECT id, facets FROM units ORDER BY position")[1]
        self.ids = [row[0] for row in rows]
        self.size = len(self.ids)
        self.everything = (1 << self.size) - 1
        self.facets = _columns([row[1] for row in rows])
        self.partner = _partners(self.facets, self.size)
        self.lenses: dict[str, Lens] = {PANEL: Lens(self.size)}
        self.spent: list[Spent | None] = [None] * self.size
        self.looked = 0
        self.status: Masks = {}
        self.errors: dict[int, str] = {}
        self.tags: Masks = {}
        self._orders: dict[tuple[str, str, bool], list[int]] = {}
        self.refresh(file)

    def refresh(self, file: RunFile) -> None:
        """Read again what changes while a run goes on."""
        _, rows = file.rows("SELECT status, position FROM units WHERE status IN ('planned', 'done', 'failed')")
        by_status: dict[str, list[int]] = {}
        for status, position in rows:
            by_status.setdefault(status, []).append(position)
        self.status = {key: bitmaps.from_positions(found, self.size) for key, found in sorted(by_status.items())}
        self.errors = dict(file.rows("SELECT position, error FROM units WHERE status = 'failed'")[1])

    def add(self, figures: Iterable[tuple[int, dict[str, UnitFigures], Spent]]) -> None:
        for position, seen, spent in figures:
            if self.spent[position] is None:
                self.looked += 1
            self.spent[position] = spent
            for judge, one in seen.items():
                lens = self.lenses.get(judge)
                if lens is None:
                    lens = self.lenses[judge] = Lens(self.size)
                lens.put(position, one, self.partner[position])
        self._orders = {}

    def warm(self) -> None:
        """Make the orders most asked for before someone waits for them."""
        for key in ("score", "margin", "tokens", "latency"):
            for descending in (False, True):
                self._order(Query(sort=key, descending=descending))

    def lens(self, judge: str) -> Lens:
        return self.lenses.get(judge) or self.lenses[PANEL]

    def derived(self, judge: str) -> dict[str, Masks]:
        """The filters that come from what happened, seen through a judge's eyes."""
        return {"d.status": self.status, **self.lens(judge).masks(), "d.tag": self.tags}

    def _groups(self, judge: str) -> dict[str, Masks]:
        columns = self.facets.items()
        groups = {f"f.{name}": dict(zip(column.labels, column.masks, strict=True)) for name, column in columns}
        return groups | self.derived(judge)

    def page(self, query: Query, extra: int | None = None) -> dict[str, Any]:
        """One page of units, how many match, and the counts of every filter. `extra` is the text search's set."""
        base, chosen, groups = self._chosen(query, extra)
        found = self._found(query, base, chosen)
        shown = found[query.page * query.size : (query.page + 1) * query.size]
        return {
            "total": self.size,
            "matching": len(found),
            "rows": [self.row(position, query.judge) for position in shown],
            "filters": [
                {"key": key, "values": values}
                for key, masks in groups.items()
                if (values := _counts(masks, base, chosen, key, query.wanted.get(key, ())))
            ],
            "judges": [judge for judge in self.lenses if judge != PANEL],
        }

    def positions(self, query: Query, extra: int | None = None) -> list[int]:
        """All positions that match, in order."""
        base, chosen, _ = self._chosen(query, extra)
        return self._found(query, base, chosen)

    def _chosen(self, query: Query, extra: int | None) -> tuple[int, Masks, dict[str, Masks]]:
        """What is left before the filters, what each filter leaves, and all there is to choose from."""
        groups = self._groups(query.judge)
        base = self.everything if extra is None else extra
        if query.low is not None or query.high is not None:
            base &= self._scored(query)
        return (
            base,
            {key: _union(groups.get(key, {}), values) for key, values in query.wanted.items() if values},
            groups,
        )

    def _found(self, query: Query, base: int, chosen: Masks) -> list[int]:
        for one in chosen.values():
            base &= one
        return bitmaps.members(base, self.size, self._order(query))

    def row(self, position: int, judge: str = PANEL) -> dict[str, Any]:
        lens, spent = self.lens(judge), self.spent[position]
        flag = 1 << position
        return {
            "id": self.ids[position],
            "position": position,
            "facets": {
                name: column.labels[code]
                for name, column in self.facets.items()
                if (code := column.codes[position]) >= 0
            },
            "status": next((key for key, mask in self.status.items() if mask & flag), "planned"),
            "error": self.errors.get(position),
            "score": _known(lens.score[position]),
            "margin": _known(lens.margin[position]),
            "choice": lens.choice[position],
            "flip": lens.flip[position],
            "changed": lens.changed[position],
            "parse": lens.parse[position],
            "tags": [tag for tag, mask in self.tags.items() if mask & flag],
            **(spent._asdict() if spent else {}),
        }

    def _scored(self, query: Query) -> int:
        low = -math.inf if query.low is None else query.low
        high = math.inf if query.high is None else query.high
        values = self.lens(query.judge).score  # NaN is in no range: a unit without a score never matches
        return bitmaps.from_positions((at for at, value in enumerate(values) if low <= value <= high), self.size)

    def _values(self, query: Query) -> Sequence[Any] | None:
        key, lens = query.sort, self.lens(query.judge)
        if key in ("score", "margin"):
            values: Sequence[Any] = lens.score if key == "score" else lens.margin
            return [None if math.isnan(value) else value for value in values]
        if key in ("choice", "parse"):
            return lens.choice if key == "choice" else lens.parse
        if key == "flip":
            return lens.flip
        if key == "id":
            return self.ids
        if key in Spent._fields:
            at = Spent._fields.index(key)
            return [None if spent is None else spent[at] for spent in self.spent]
        if key.startswith("f.") and key[2:] in self.facets:
            column = self.facets[key[2:]]
            return [column.labels[code] if code >= 0 else None for code in column.codes]
        return None

    def _order(self, query: Query) -> Sequence[int] | None:
        """All positions in the order asked for, made once; what has no value stands last in both directions."""
        if query.sort == "position":
            return range(self.size - 1, -1, -1) if query.descending else None
        key = (query.sort, query.judge, query.descending)
        if key not in self._orders:
            values = self._values(query)
            if values is None:
                return None
            known = [at for at in range(self.size) if values[at] is not None]
            known.sort(key=values.__getitem__, reverse=query.descending)
            self._orders[key] = known + [at for at in range(self.size) if values[at] is None]
        return self._orders[key]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _columns(rows: Sequence[str]) -> dict[str, TableColumn]:
    """Facets by name, from one JSON text a unit; read one by one, so that a large run is never whole in memory."""
    labels: dict[str, dict[str, int]] = {}
    codes: dict[str, array[int]] = {}
    for position, text in enumerate(rows):
        for name, value in facets_of(text).items():
            if name not in codes:
                labels[name], codes[name] = {}, array("i", [-1]) * len(rows)
            known = labels[name]
            codes[name][position] = known.setdefault(value, len(known))
    return {
        name: TableColumn(
            list(known),
            codes[name],
            bitmaps.from_codes(codes[name], len(known)) if len(known) <= MANY else [0] * len(known),
        )
        for name, known in labels.items()
    }


def _partners(facets: Mapping[str, TableColumn], size: int) -> array[int]:
    """For a unit that shows a pair in one order, the unit that shows the same pair in the other; -1 where none is."""
    partner = array("i", [-1]) * size
    if "order" not in facets:
        return partner
    swapped = {name for name in facets if name == "order" or name.endswith(("_a", "_b"))}
    kept = [column.codes for name, column in facets.items() if name not in swapped]
    waiting: dict[tuple[int, ...], int] = {}
    for position, key in enumerate(zip(*kept, strict=True) if kept else ()):
        if facets["order"].codes[position] < 0:
            continue
        other = waiting.pop(key, None)
        if other is None:
            waiting[key] = position
        else:
            partner[position], partner[other] = other, position
    return partner


def _union(masks: Masks, values: Sequence[str]) -> int:
    found = 0
    for value in values:
        found |= masks.get(value, 0)
    return found


def _counts(masks: Masks, base: int, chosen: Mapping[str, int], key: str, selected: Sequence[str]) -> list[list[Any]]:
    """Value and count, given all other filters; a filter with a single value filters nothing and is left out."""
    if not selected and (len(masks) < 2 or len(masks) > MANY) and key not in ("d.tag", "d.status"):
        return []
    others = base
    for name, mask in chosen.items():
        if name != key:
            others &= mask
    return [[value, (mask & others).bit_count()] for value, mask in masks.items()]
