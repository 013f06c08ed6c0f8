"""Compares two versions of a case: which numbers and sentences are equal, moved, changed, gone or new.

A row, column or sentence that is gone has *moved* if all its numbers, or its words, stand at a new place.
"""

from __future__ import annotations

import difflib
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["equal", "moved", "changed", "gone", "new"]
KINDS: tuple[Kind, ...] = ("equal", "moved", "changed", "gone", "new")
TOLERANCE = 1e-9
"""Relative: sums and exponentials differ in their last digits from processor to processor."""
LONGEST = 400
"""Characters of a difference that are shown, unless all are asked for."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One number, sentence or prompt that is not what it was."""

    kind: Kind
    part: str
    address: str
    text: str


@dataclass(slots=True)
class Comparison:
    """How a case differs from what was recorded: the differences, and how many leaves are equal."""

    equal: int
    differences: list[Difference]

    def counts(self) -> dict[Kind, int]:
        kinds = Counter(difference.kind for difference in self.differences)
        return {kind: self.equal if kind == "equal" else kinds[kind] for kind in KINDS}


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Every difference between a recorded case and the same case made again."""
    comparison = Comparison(0, [])
    for part in ("plan", "verdicts", "numbers"):
        _compare_rows(comparison, part, old.get(part, {}), new.get(part, {}))
    _compare_order(comparison, list(old.get("plan", {})), list(new.get("plan", {})), "plan", "order of the plan")
    _compare_texts(comparison, old, new)
    return comparison


def same(old: Any, new: Any) -> bool:
    """Whether two leaves are equal: numbers within the tolerance, everything else exactly."""
    if isinstance(old, bool) or isinstance(new, bool) or not (_is_number(old) and _is_number(new)):
        return bool(old == new and isinstance(old, bool) == isinstance(new, bool))
    return math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=1e-12)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounded(row: Row) -> set[Any]:
    """The values by which a row is recognised elsewhere."""
    return {float(f"{value:.7g}") if isinstance(value, float) else value for value in row.values()}


def _compare_rows(comparison: Comparison, part: str, old: Mapping[str, Row], new: Mapping[str, Row]) -> None:
    fresh = {address: _rounded(row) for address, row in new.items() if address not in old}
    for address, row in old.items():
        if address in new:
            _compare_row(comparison, part, address, row, new[address])
        elif (to := next((other for other, values in fresh.items() if _rounded(row) <= values), None)) is not None:
            del fresh[to]
            comparison.differences.append(Difference("moved", part, address, f"to {to}"))
        else:
            comparison.differences.append(Difference("gone", part, address, _said(row)))
    comparison.differences += [Difference("new", part, address, _said(new[address])) for address in fresh]


def _compare_row(comparison: Comparison, part: str, address: str, old: Row, new: Row) -> None:
    added = {name: value for name, value in new.items() if name not in old}
    for name, value in old.items():
        where = f"{address} [{name}]"
        if name in new and same(value, new[name]):
            comparison.equal += 1
        elif name in new:
            comparison.differences.append(Difference("changed", part, where, f"{_leaf(value)} → {_leaf(new[name])}"))
        elif (renamed := next((key for key, other in added.items() if same(value, other)), None)) is not None:
            del added[renamed]
            comparison.differences.append(Difference("moved", part, where, f"to [{renamed}]"))
        else:
            comparison.differences.append(Difference("gone", part, where, _leaf(value)))
    comparison.differences += [Difference("new", part, f"{address} [{name}]", _leaf(v)) for name, v in added.items()]


def _compare_texts(comparison: Comparison, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    before: Mapping[str, Sequence[str]] = old.get("sentences", {})
    after: Mapping[str, Sequence[str]] = new.get("sentences", {})
    gone: list[tuple[str, str]] = []
    fresh: list[tuple[str, str]] = []
    for address in dict.fromkeys((*before, *after)):
        left, right = Counter(before.get(address, ())), Counter(after.get(address, ()))
        comparison.equal += (left & right).total()
        gone += [(address, text) for text in (left - right).elements()]
        fresh += [(address, text) for text in (right - left).elements()]
        if left == right:
            _compare_order(comparison, before[address], after[address], "sentences", f"order of {address}")
    for address, text in gone:
        near = difflib.get_close_matches(text, [other for _, other in fresh], n=1)
        to = next((pair for pair in fresh if pair[1] in near), None)
        if to is None:
            comparison.differences.append(Difference("gone", "sentences", address, text))
            continue
        fresh.remove(to)
        kind: Kind = "moved" if to[1] == text else "changed"
        what = f"to {to[0]}: {text}" if kind == "moved" else f"{text} → {to[1]}"
        comparison.differences.append(Difference(kind, "sentences", address, what))
    comparison.differences += [Difference("new", "sentences", address, text) for address, text in fresh]


def _compare_order(comparison: Comparison, old: Sequence[str], new: Sequence[str], part: str, address: str) -> None:
    """Whether what both have comes in the same order."""
    both = set(old) & set(new)
    left, right = ([name for name in side if name in both] for side in (old, new))
    if left != right:
        place, first = next((n, pair) for n, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1])
        text = f"number {place + 1} was {first[0]}, is {first[1]}"
        comparison.differences.append(Difference("changed", part, address, text))


def _leaf(value: Any) -> str:
    return "nothing" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def _said(row: Row) -> str:
    return ", ".join(f"{name} {_leaf(value)}" for name, value in row.items() if value is not None) or "nothing"


def described(comparison: Comparison, most: int | None) -> Iterator[str]:
    """The differences as lines, by kind and part."""
    groups: dict[tuple[str, str], list[Difference]] = {}
    for difference in comparison.differences:
        groups.setdefault((difference.part, difference.kind), []).append(difference)
    if any(difference.address.endswith("[prompts]") for difference in comparison.differences):
        yield "  Prompts changed. A simulated reply depends on its prompt, so verdicts and numbers follow."
    for (part, kind), group in groups.items():
        yield f"  {part}: {len(group):,} {kind}"
        for difference in group[:most]:
            text = difference.text if most is None else textwrap.shorten(difference.text, LONGEST, placeholder=" …")
            yield f"    {difference.address}: {text}"
        if most is not None and len(group) > most:
            yield f"    … and {len(group) - most:,} more: --all"
