"""Compares two versions of a case: which numbers and sentences are equal, moved, changed, gone or new.

A row's address may vanish when a table is renamed or merged. Its numbers are then looked for in every other row: a row
that has them all has *moved*, as has a column that the same row has under another name.
"""

from __future__ import annotations

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
SIMILAR = 0.5
"""Two sentences that share so many of their words are one that was changed."""
LONGEST = 400
"""Characters of a difference that are shown, unless all are asked for."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One number, sentence or prompt that is not what it was.

    Args:
        kind: What became of it.
        part: "plan", "verdicts", "numbers" or "sentences".
        address: Where it stands, or stood.
        text: What it was and what it is.
    """

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
    """Every difference between a recorded case and the same case made again.

    Args:
        old: The recorded one, as `making.make` returns it.
        new: The one of today.
    """
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


def _telling(row: Row) -> dict[str, Any]:
    """The values by which a row is recognised elsewhere: its numbers that are not whole; if it has none, its others."""
    values = {name: value for name, value in row.items() if isinstance(value, float) and value != round(value)}
    return values or {name: value for name, value in row.items() if value not in (None, "", 0, 1, True, False)}


def _compare_rows(comparison: Comparison, part: str, old: Mapping[str, Row], new: Mapping[str, Row]) -> None:
    gone = [address for address in old if address not in new]
    fresh = {address: None for address in new if address not in old}
    for address in old:
        if address in new:
            _compare_row(comparison, part, address, old[address], new[address])
    index = _index(new) if gone else {}
    for address in gone:
        target = _find_row(old[address], index, new, prefer=fresh)
        if target is None:  # a row of zeros says little, but the same row at an address with the same end is that row
            alike = (other for other in fresh if dict(new[other]) == dict(old[address]))
            target = next((other for other in alike if _end(other) == _end(address)), None)
        if target is None:
            comparison.differences.append(Difference("gone", part, address, _said(old[address])))
            continue
        fresh.pop(target, None)
        lost = {k: v for k, v in _telling(old[address]).items() if not any(same(v, w) for w in new[target].values())}
        without = f", without {_said(lost)}" if lost else ""
        comparison.differences.append(Difference("moved", part, address, f"to {target}{without}"))
    comparison.differences += [Difference("new", part, address, _said(new[address])) for address in fresh]


def _end(address: str) -> str:
    return address.rpartition(" · ")[2]


def _index(rows: Mapping[str, Row]) -> dict[Any, list[str]]:
    """Addresses by value, numbers rounded, so that moved rows are found without comparing all with all."""
    index: dict[Any, list[str]] = {}
    for address, row in rows.items():
        for value in set(map(_rounded, _telling(row).values())):
            index.setdefault(value, []).append(address)
    return index


def _rounded(value: Any) -> Any:
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _find_row(
    row: Row, index: Mapping[Any, Sequence[str]], new: Mapping[str, Row], prefer: Mapping[str, None]
) -> str | None:
    """The address at which a row's telling values stand now: all of them, or an estimate's most part (two or more)."""
    values = list(_telling(row).values())
    found = Counter(address for value in set(map(_rounded, values)) for address in index.get(value, ()))
    if not found:
        return None
    # Among rows with as many of the values, one at a new address, and the one with the least beside them.
    best = max(found, key=lambda address: (found[address], address in prefer, -len(new[address])))
    enough = len(set(map(_rounded, values))) if len(values) < 3 else max(2, len(values) // 2)
    return best if found[best] >= enough else None


def _compare_row(comparison: Comparison, part: str, address: str, old: Row, new: Row) -> None:
    added = {name: value for name, value in new.items() if name not in old}
    for name, value in old.items():
        where = f"{address} [{name}]"
        if name in new:
            if same(value, new[name]):
                comparison.equal += 1
            else:
                comparison.differences.append(
                    Difference("changed", part, where, f"{_leaf(value)} → {_leaf(new[name])}")
                )
        elif (renamed := next((key for key, other in added.items() if same(value, other)), None)) is not None:
            del added[renamed]
            comparison.differences.append(Difference("moved", part, where, f"to [{renamed}]"))
        else:
            comparison.differences.append(Difference("gone", part, where, _leaf(value)))
    comparison.differences += [
        Difference("new", part, f"{address} [{name}]", _leaf(value)) for name, value in added.items()
    ]


def _compare_texts(comparison: Comparison, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Sentences, each in a list of its own kind: first those in the same list, then those that stand elsewhere."""
    before: Mapping[str, Sequence[str]] = old.get("sentences", {})
    after: Mapping[str, Sequence[str]] = new.get("sentences", {})
    gone: list[tuple[str, str]] = []
    fresh: list[tuple[str, str]] = []
    for address in dict.fromkeys((*before, *after)):
        left, right = Counter(before.get(address, ())), Counter(after.get(address, ()))
        comparison.equal += (left & right).total()
        gone += [(address, text) for text in (left - right).elements()]
        fresh += [(address, text) for text in (right - left).elements()]
        kept = [[text for text in side.get(address, ()) if text in left and text in right] for side in (before, after)]
        if left == right or sorted(kept[0]) == sorted(kept[1]):
            _compare_order(comparison, *kept, "sentences", f"order of {address}")
    for address, text in gone:
        if (moved := next((pair for pair in fresh if pair[1] == text), None)) is not None:
            fresh.remove(moved)
            comparison.differences.append(Difference("moved", "sentences", address, f"to {moved[0]}: {text}"))
            continue
        near = max(fresh, key=lambda pair: (_likeness(text, pair[1]), pair[0] == address), default=None)
        if near is not None and _likeness(text, near[1]) >= SIMILAR:
            fresh.remove(near)
            comparison.differences.append(Difference("changed", "sentences", address, f"{text} → {near[1]}"))
        else:
            comparison.differences.append(Difference("gone", "sentences", address, text))
    comparison.differences += [Difference("new", "sentences", address, text) for address, text in fresh]


def _likeness(text: str, other: str) -> float:
    """The share of words that two sentences share."""
    words, others = set(text.split()), set(other.split())
    return len(words & others) / max(len(words | others), 1)


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
    """The differences as lines, by kind and part.

    Args:
        comparison: What was found.
        most: How many lines of each kind and part to show; None: all.
    """
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
