"""The units of a run as a table in memory, filtered and sorted by any facet or figure, with counts for every filter.

Facets come from the plan and never change; figures are added as finished units are indexed. Several values of one
filter mean "or", several filters mean "and". The counts of a filter ignore its own selection, so that they show what
the other values would give.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from parley.runs import RunFile
from parley.runs.studies import facets_of
from parley.viewer import bitmaps
from parley.viewer.facets import MAX_FILTER_VALUES, facet_columns, partners
from parley.viewer.figures import PANEL, UnitFigures, UnitUsage

Masks = dict[str, int]
"""Sets of units (see `bitmaps`) by filter value."""
FIGURE_FILTERS = ("d.choice", "d.flip", "d.changed", "d.parse")
ANSWER_FACETS = ("label", "target", "unknown")
"""The right, the stereotyped and the unknown answer of a question with options, by their numbers."""
PAUSE_SECONDS = 0.1
"""Pause between two background sorts, since each one keeps requests waiting."""


class UnitQuery(BaseModel, frozen=True):
    """Which units to show, and in which order: the parameters of a page's address."""

    filters: Mapping[str, Sequence[str]] = {}
    """Accepted values by filter: "f.phase" for a facet, "d.flip" for a figure."""
    judge: str = PANEL
    """Whose figures are shown, filtered and sorted by."""
    low: float | None = Field(None, allow_inf_nan=False)
    high: float | None = Field(None, allow_inf_nan=False)
    sort: str = "position"
    desc: bool = False
    page: int = Field(0, ge=0)
    size: int = Field(50, ge=1, le=500)
    q: str = Field("", max_length=500)
    """The text search."""
    prompts: bool = False
    """Search prompts as well as replies."""


class JudgeFigures:
    """The figures of all units according to the panel or one judge. Each unit is added once, when it is finished."""

    def __init__(self, size: int) -> None:
        self.score = array("d", [math.nan]) * size
        self.margin = array("d", [math.nan]) * size
        self.choice: list[str | None] = [None] * size
        self.changed: list[bool | None] = [None] * size
        self.parse: list[str | None] = [None] * size
        self.flip: list[str | None] = [None] * size
        self._bits: dict[str, dict[str, bytearray]] = {key: {} for key in FIGURE_FILTERS}
        self._width = (size >> 3) + 1
        self._masks: dict[str, Masks] | None = None

    def add(self, position: int, figures: UnitFigures, partner: int) -> None:
        if self.parse[position] is not None or self.choice[position] is not None:
            return
        self._masks = None
        self.score[position] = math.nan if figures.score is None else figures.score
        self.margin[position] = math.nan if figures.margin is None else figures.margin
        self.choice[position] = figures.choice
        self.changed[position] = figures.changed
        self.parse[position] = figures.parse
        self._set_bit("d.choice", figures.choice, position)
        self._set_bit("d.parse", figures.parse, position)
        if figures.changed is not None:
            self._set_bit("d.changed", "changed" if figures.changed else "unchanged", position)
        if partner >= 0 and (flip := compare_orders(figures.choice, self.choice[partner])):
            for unit in (position, partner):
                self.flip[unit] = flip
                self._set_bit("d.flip", flip, unit)

    def _set_bit(self, key: str, label: str | None, position: int) -> None:
        if label is None:
            return
        masks = self._bits[key]
        if label not in masks:
            masks[label] = bytearray(self._width)
        masks[label][position >> 3] |= 1 << (position & 7)

    def masks(self) -> dict[str, Masks]:
        if self._masks is None:
            self._masks = {
                key: {label: int.from_bytes(buffer, "little") for label, buffer in sorted(masks.items())}
                for key, masks in self._bits.items()
            }
        return self._masks


def compare_orders(choice: str | None, other_choice: str | None) -> str | None:
    """Whether the same pair, shown in the other order, got the other verdict ("flipped") or the same ("consistent").

    The same letter in both orders is flipped: the candidates have changed places, so the letters name different ones.
    """
    if choice is None or other_choice is None:
        return None
    if "tie" in (choice, other_choice):
        return "consistent" if choice == other_choice else "tie in one order"
    return "flipped" if choice == other_choice else "consistent"


class UnitTable:
    """All units of a run, by their position in the plan.

    Args:
        file: the run.
    """

    def __init__(self, file: RunFile) -> None:
        file.check_plan()
        rows = file.rows("SELECT id, facets FROM units ORDER BY position")[1]
        self.ids = [row[0] for row in rows]
        self.size = len(self.ids)
        self.all_units = (1 << self.size) - 1
        self.kinds = {facet.name: facet.kind for facet in facets_of(file.info())}
        self.facets = facet_columns([row[1] for row in rows])
        self.partner = partners(self.facets, self.size)
        self.by_judge: dict[str, JudgeFigures] = {PANEL: JudgeFigures(self.size)}
        self.usage: list[UnitUsage | None] = [None] * self.size
        self.indexed = 0
        self.status: Masks = {}
        self.answers: Masks = {}
        self.errors: dict[int, str] = {}
        self.tags: Masks = {}
        self._orders: dict[tuple[str, str, bool], list[int]] = {}
        self.refresh(file)

    def refresh(self, file: RunFile) -> None:
        """Read the statuses and errors again: they change while the run continues."""
        _, rows = file.rows("SELECT status, position FROM units WHERE status IN ('planned', 'done', 'failed')")
        by_status: dict[str, list[int]] = {}
        for status, position in rows:
            by_status.setdefault(status, []).append(position)
        self.status = {
            status: bitmaps.from_positions(positions, self.size) for status, positions in sorted(by_status.items())
        }
        self.errors = dict(file.rows("SELECT position, error FROM units WHERE status = 'failed'")[1])
        self._orders = {}
        if all(name in self.facets for name in ANSWER_FACETS):
            self.answers = self._answer_masks(file)

    def _answer_masks(self, file: RunFile) -> Masks:
        """Finished units by what was answered; a stereotyped answer can be right, if the context says so."""
        _, answers = file.rows(
            "SELECT u.position, v.value FROM units u LEFT JOIN verdicts v ON v.unit = u.id AND v.metric = 'answer' "
            "WHERE u.status = 'done'"
        )
        right, stereotyped, unknown = (self._numbers(name) for name in ANSWER_FACETS)
        found: dict[str, list[int]] = {key: [] for key in ("right", "wrong", "stereotyped", "unknown", "unparsed")}
        for position, value in answers:
            if value is None:
                found["unparsed"].append(position)
                continue
            found["right" if value == right[position] else "wrong"].append(position)
            if value == stereotyped[position]:
                found["stereotyped"].append(position)
            if value == unknown[position]:
                found["unknown"].append(position)
        return {key: bitmaps.from_positions(positions, self.size) for key, positions in found.items()}

    def _numbers(self, facet: str) -> list[float | None]:
        """A facet's values as numbers, for each unit; None where it has none."""
        labels, codes, _ = self.facets[facet]
        numbers = [float(label) if label.lstrip("-").isdecimal() else None for label in labels]
        return [None if code < 0 else numbers[code] for code in codes]

    def add(self, units: Iterable[tuple[int, dict[str, UnitFigures], UnitUsage]]) -> None:
        """Add finished units: position, figures by judge, usage."""
        for position, figures_by_judge, usage in units:
            if self.usage[position] is None:
                self.indexed += 1
            self.usage[position] = usage
            for judge, figures in figures_by_judge.items():
                if judge not in self.by_judge:
                    self.by_judge[judge] = JudgeFigures(self.size)
                self.by_judge[judge].add(position, figures, self.partner[position])
        self._orders = {}

    def sort_common_keys(self) -> None:
        """Sort by the keys most used, before a request has to wait for it."""
        for key in ("score", "margin", "tokens", "latency"):
            for descending in (False, True):
                self._order(UnitQuery(sort=key, desc=descending))
                time.sleep(PAUSE_SECONDS)

    def named(self, *kinds: str) -> list[str]:
        """The facets of some kinds that units have, in the order of titles."""
        return [name for name, kind in self.kinds.items() if kind in kinds and name in self.facets]

    def figures(self, judge: str) -> JudgeFigures:
        return self.by_judge.get(judge) or self.by_judge[PANEL]

    def judges(self) -> list[str]:
        return [judge for judge in self.by_judge if judge != PANEL]

    def positions_by_id(self) -> dict[str, int]:
        return {unit: position for position, unit in enumerate(self.ids)}

    def find(self, text: str, limit: int) -> list[dict[str, Any]]:
        """The first units that have all words of the text in their ids or facets, in any case."""
        found = self.all_units
        for word in text.casefold().split():
            in_id = [position for position, unit in enumerate(self.ids) if word in unit.casefold()]
            named = bitmaps.from_positions(in_id, self.size)
            for column in self.facets.values():
                for label, mask in zip(column.labels, column.masks, strict=True):
                    named |= mask if word in label.casefold() else 0
            found &= named
        positions = bitmaps.members(found, self.size, None, 0, limit)
        return [{key: self.row(position)[key] for key in ("id", "facets")} for position in positions]

    def _all_masks(self, judge: str) -> dict[str, Masks]:
        """Every filter with its values: facets, status, the judge's figures, tags."""
        columns = self.facets.items()
        facets = {f"f.{name}": dict(zip(column.labels, column.masks, strict=True)) for name, column in columns}
        if identities := self.named("identity"):  # the first one's filter finds a pair by either of its sides
            facets[f"f.{identities[0]}"] = _united([facets[f"f.{name}"] for name in identities])
        figures = {"d.status": self.status, "d.answer": self.answers, **self.figures(judge).masks()}
        return facets | figures | {"d.tag": self.tags}

    def page(self, query: UnitQuery, text_matches: int | None = None) -> dict[str, Any]:
        """One page of units, the number of matches, and the counts of every filter.

        Args:
            query: filters, order and page.
            text_matches: the set of units that the text search found; None without a search.
        """
        base, selected, masks_by_filter = self._apply_filters(query, text_matches)
        matches, start = _intersection(base, selected), query.page * query.size
        visible = bitmaps.members(matches, self.size, self._order(query), start, start + query.size)
        return {
            "total": self.size,
            "matching": matches.bit_count(),
            "rows": [self.row(position, query.judge) for position in visible],
            "filters": [
                {"key": key, "values": values}
                for key, masks in masks_by_filter.items()
                if (values := _counts(key, masks, base, selected, query.filters.get(key, ())))
            ],
            "judges": self.judges(),
        }

    def positions(self, query: UnitQuery, text_matches: int | None = None) -> list[int]:
        """All positions that match, in order."""
        base, selected, _ = self._apply_filters(query, text_matches)
        return bitmaps.members(_intersection(base, selected), self.size, self._order(query))

    def _apply_filters(self, query: UnitQuery, text_matches: int | None) -> tuple[int, Masks, dict[str, Masks]]:
        """The units before filtering, the units that each used filter selects, and all filters with their values."""
        masks_by_filter = self._all_masks(query.judge)
        base = self.all_units if text_matches is None else text_matches
        if query.low is not None or query.high is not None:
            base &= self._in_score_range(query)
        selected = {
            key: _union(masks_by_filter.get(key, {}), values) for key, values in query.filters.items() if values
        }
        return base, selected, masks_by_filter

    def row(self, position: int, judge: str = PANEL) -> dict[str, Any]:
        figures, usage = self.figures(judge), self.usage[position]
        bit = 1 << position
        return {
            "id": self.ids[position],
            "position": position,
            "facets": {
                name: column.labels[code]
                for name, column in self.facets.items()
                if (code := column.codes[position]) >= 0
            },
            "status": next((status for status, mask in self.status.items() if mask & bit), "planned"),
            "error": self.errors.get(position),
            "score": _none_if_nan(figures.score[position]),
            "margin": _none_if_nan(figures.margin[position]),
            "choice": figures.choice[position],
            "flip": figures.flip[position],
            "changed": figures.changed[position],
            "parse": figures.parse[position],
            "answers": [answer for answer, mask in self.answers.items() if mask & bit],
            "tags": [tag for tag, mask in self.tags.items() if mask & bit],
            **(usage._asdict() if usage else {}),
        }

    def _in_score_range(self, query: UnitQuery) -> int:
        low = -math.inf if query.low is None else query.low
        high = math.inf if query.high is None else query.high
        scores = enumerate(self.figures(query.judge).score)  # a missing score is NaN, which is in no range
        return bitmaps.from_positions([position for position, score in scores if low <= score <= high], self.size)

    def _sort_values(self, query: UnitQuery) -> Sequence[Any] | None:
        key, figures = query.sort, self.figures(query.judge)
        if key in ("score", "margin", "choice", "parse", "flip"):
            values: Sequence[Any] = getattr(figures, key)
            return values
        if key == "id":
            return self.ids
        if key in UnitUsage._fields:
            return [None if usage is None else getattr(usage, key) for usage in self.usage]
        if key.startswith("f.") and key[2:] in self.facets:
            column = self.facets[key[2:]]
            return [column.labels[code] if code >= 0 else None for code in column.codes]
        return None

    def _order(self, query: UnitQuery) -> Sequence[int] | None:
        """All positions in the requested order, sorted once; None for the plan's.

        Units without a value come last in both directions, and after them those that are only planned.
        """
        planned = self.status.get("planned", 0)
        values = self._sort_values(query)
        if values is None and not (planned or query.desc):
            return None
        key = (query.sort, query.judge, query.desc)
        if key not in self._orders:
            if values is None:
                ordered = list(range(self.size))[:: -1 if query.desc else 1]
            else:
                # A missing figure is None, or NaN, which is not equal to itself.
                ordered = [position for position, value in enumerate(values) if value is not None and value == value]
                ordered.sort(key=values.__getitem__, reverse=query.desc)
                ordered += sorted(set(range(self.size)).difference(ordered)) if len(ordered) < self.size else ()
            if planned:
                ordered.sort(key=bitmaps.bits(planned, self.size).__getitem__)
            self._orders[key] = ordered
        return self._orders[key]


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _united(columns: Iterable[Masks]) -> Masks:
    """The union of the sets of each value, over several facets."""
    united: Masks = {}
    for masks in columns:
        for value, mask in masks.items():
            united[value] = united.get(value, 0) | mask
    return united


def _intersection(base: int, selected: Masks) -> int:
    for mask in selected.values():
        base &= mask
    return base


def _union(masks: Masks, values: Sequence[str]) -> int:
    union = 0
    for value in values:
        union |= masks.get(value, 0)
    return union


def _counts(key: str, masks: Masks, base: int, selected: Masks, chosen: Sequence[str]) -> list[list[Any]]:
    """Values with their counts under all other filters; none for a filter with one value, which filters nothing."""
    if not chosen and (len(masks) < 2 or len(masks) > MAX_FILTER_VALUES) and key not in ("d.tag", "d.status"):
        return []
    others = base
    for name, mask in selected.items():
        if name != key:
            others &= mask
    return [[value, (mask & others).bit_count()] for value, mask in masks.items()]
