"""The page of results: Markdown from the figures that were kept. Pure functions, no measuring. Not run by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.peers.systems import PARLEY, RAW, SYSTEMS

Found = Mapping[str, Any]
TITLES = {system.name: system.title for system in SYSTEMS}
PEERS = [system.name for system in SYSTEMS if system.name not in (RAW, PARLEY)]


class Cells:
    """What was measured in one place, over its repeats: a median, or why there is none."""

    def __init__(self, found: Iterable[Found], key: Callable[[Found], Any]) -> None:
        self._all: dict[Any, list[Found]] = defaultdict(list)
        for one in found:
            self._all[key(one)].append(one)

    def value(self, at: Any, of: Callable[[Found], float]) -> float | None:
        values = [of(one) for one in self._all.get(at, []) if "wall" in one]
        return median(values) if values else None

    def shown(self, at: Any, of: Callable[[Found], float], style: str) -> str:
        value = self.value(at, of)
        if value is not None:
            return format(value, style)
        return why_not(self._all.get(at, []))


def why_not(rows: Sequence[Found]) -> str:
    if any("error" in one for one in rows):
        return "failed"
    return {"saturated": "·", "not installed": "not run"}.get(rows[0]["not_run"] if rows else "", "–")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def cpu_of(one: Found) -> float:
    return 1e3 * float(one["cpu"]) / float(one["messages"])


def log_of(one: Found) -> float:
    return float(one["log_bytes"]) / float(one["messages"])


def cpu_section(found: Sequence[Found]) -> list[str]:
    cells = Cells(found, lambda one: (one["system"], one["way"]))
    ours = {way: cells.value((PARLEY, way), cpu_of) for way in ("instant", "http")}
    rows = []
    for system in SYSTEMS:
        row = [system.title]
        for way in ("instant", "http"):
            at = (system.name, way)
            theirs, mine = cells.value(at, cpu_of), ours[way]
            ratio = f"{theirs / mine:.2f}" if theirs is not None and mine else "–"
            row += [cells.shown(at, cpu_of, ".3f"), ratio]
        row.append(cells.shown((system.name, "http"), lambda one: one["request_bytes"], ",.0f"))
        rows.append(row)
    head = ["CPU ms a message", "instant model", "× Parley", "over HTTP", "× Parley", "bytes a request"]
    return table(head, rows)


def grid_section(found: Sequence[Found]) -> list[str]:
    cells = Cells(found, lambda one: (one["system"], one["latency"], one["conversations"]))
    latencies = sorted({one["latency"] for one in found})
    sizes = sorted({one["conversations"] for one in found})
    lines = []
    for latency in latencies:
        head = [f"{latency:,} ms", *(f"{many} at once" for many in sizes)]
        rows = [
            [
                system.title,
                *(cells.shown((system.name, latency, many), lambda one: one["efficiency"], ".3f") for many in sizes),
            ]
            for system in SYSTEMS
            if system.grid
        ]
        lines += table(head, rows)
    return lines


def memory_section(found: Sequence[Found]) -> list[str]:
    """Peak memory at the latency at which most cells were measured."""
    by_latency = defaultdict(int)
    for one in found:
        by_latency[one["latency"]] += "wall" in one
    latency = max(by_latency, key=lambda at: (by_latency[at], at))
    chosen = [one for one in found if one["latency"] == latency]
    cells = Cells(chosen, lambda one: (one["system"], one["conversations"]))
    sizes = sorted({one["conversations"] for one in chosen})
    rows = [
        [system.title, *(cells.shown((system.name, many), lambda one: one["peak_mb"], ",.0f") for many in sizes)]
        for system in SYSTEMS
        if system.grid
    ]
    return table([f"peak MB at {latency:,} ms", *(f"{many} at once" for many in sizes)], rows)


def kept_section(cpu: Sequence[Found], resume: Sequence[Found]) -> list[str]:
    logs = Cells([one for one in cpu if one["way"] == "instant"], lambda one: one["system"])
    goes_on = Cells(resume, lambda one: one["system"])
    rows = []
    for system in SYSTEMS:
        if system.goes_on:
            size = logs.shown(system.name, log_of, ",.0f")
            rows.append([system.title, size, goes_on.shown(system.name, lambda one: one["first_call_after"], ".3f")])
        else:
            rows.append([system.title, "nothing kept", "–"])
    return table(["", "log, bytes a message", "first call after going on, s"], rows)


def behind(cpu: Sequence[Found], grid: Sequence[Found], resume: Sequence[Found]) -> list[str]:
    """Where a peer is ahead of Parley, measure by measure; the floor is no peer, since it keeps nothing."""
    one_way = {way: [one for one in cpu if one["way"] == way] for way in ("instant", "http")}
    lines = [
        *_ahead("CPU ms a message on the instant model", one_way["instant"], cpu_of, ".3f"),
        *_ahead("CPU ms a message over HTTP", one_way["http"], cpu_of, ".3f"),
        *_ahead("log, bytes a message", [one for one in one_way["instant"] if one.get("log_bytes")], log_of, ",.0f"),
        *_ahead("seconds to the first call after going on", resume, lambda one: float(one["first_call_after"]), ".3f"),
    ]
    for latency, many in sorted({(one["latency"], one["conversations"]) for one in grid}):
        here = [one for one in grid if (one["latency"], one["conversations"]) == (latency, many)]
        where = f"{latency:,} ms and {many} at once"
        lines += _ahead(f"share of the ideal at {where}", here, lambda one: float(one["efficiency"]), ".3f", more=True)
        lines += _ahead(f"peak MB at {where}", here, lambda one: float(one["peak_mb"]), ",.0f")
    return lines


def _ahead(
    what: str, found: Sequence[Found], of: Callable[[Found], float], style: str, more: bool = False
) -> list[str]:
    cells = Cells(found, lambda one: one["system"])
    mine = cells.value(PARLEY, of)
    theirs = {peer: cells.value(peer, of) for peer in PEERS}
    return [
        f"- {what}: {TITLES[peer]} {value:{style}}, Parley {mine:{style}}"
        for peer, value in theirs.items()
        if value is not None and mine is not None and (value > mine if more else value < mine)
    ]


def any_peer(found: Sequence[Found]) -> bool:
    return any(one["system"] in PEERS and "wall" in one for one in found)


def failures(*parts: Sequence[Found]) -> list[str]:
    lines = []
    for found in parts:
        for one in found:
            if "error" in one:
                where = ", ".join(f"{one[key]}" for key in ("way", "latency", "conversations") if key in one)
                lines.append(f"- {TITLES[one['system']]}{f' ({where})' if where else ''}: `{one['error']}`")
    return list(dict.fromkeys(lines))


def versions(*parts: Sequence[Found]) -> str:
    seen: dict[str, str] = {}
    for found in parts:
        for one in found:
            seen |= one.get("versions", {})
    return ", ".join(f"{name} {number}" for name, number in sorted(seen.items()))
