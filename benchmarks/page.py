"""The page of results: Markdown from the saved figures. Pure functions that measure nothing; not a command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.peers.systems import PARLEY, RAW, SYSTEMS
from benchmarks.workload import verdict

Figure = Mapping[str, Any]
TITLES = {system.name: system.title for system in SYSTEMS}
LEAST_SPEED = 0.9
"""The target: the share of raw aiohttp's speed."""
PEERS = [system.name for system in SYSTEMS if system.name not in (RAW, PARLEY)]


class Cells:
    """Figures by cell, over their repeats: a median, or why there is none."""

    def __init__(self, figures: Iterable[Figure], key: Callable[[Figure], Any]) -> None:
        self._all: dict[Any, list[Figure]] = defaultdict(list)
        for figure in figures:
            self._all[key(figure)].append(figure)

    def value(self, cell: Any, of: Callable[[Figure], float]) -> float | None:
        values = [of(figure) for figure in self._all.get(cell, []) if "wall" in figure]
        return median(values) if values else None

    def text(self, cell: Any, of: Callable[[Figure], float], style: str) -> str:
        value = self.value(cell, of)
        if value is not None:
            return format(value, style)
        return why_not(self._all.get(cell, []))


def why_not(rows: Sequence[Figure]) -> str:
    if any("error" in figure for figure in rows):
        return "failed"
    return {"saturated": "·", "not installed": "not run"}.get(rows[0]["not_run"] if rows else "", "–")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def cpu_of(figure: Figure) -> float:
    return 1e3 * float(figure["cpu"]) / float(figure["messages"])


def log_of(figure: Figure) -> float:
    return float(figure["log_bytes"]) / float(figure["messages"])


def packed_of(figure: Figure) -> float:
    return float(figure["gzip_bytes"]) / float(figure["messages"])


def efficiency_of(figure: Figure) -> float:
    return float(figure["efficiency"])


def resume_of(figure: Figure) -> float:
    return float(figure["first_call_after"])


def cpu_section(figures: Sequence[Figure]) -> list[str]:
    cells = Cells(figures, lambda figure: (figure["system"], figure["way"]))
    ours = {way: cells.value((PARLEY, way), cpu_of) for way in ("instant", "http")}
    rows = []
    for system in SYSTEMS:
        row = [system.title]
        for way in ("instant", "http"):
            cell = (system.name, way)
            theirs, own = cells.value(cell, cpu_of), ours[way]
            ratio = f"{theirs / own:.2f}" if theirs is not None and own else "–"
            row += [cells.text(cell, cpu_of, ".3f"), ratio]
        row.append(cells.text((system.name, "http"), lambda figure: figure["request_bytes"], ",.0f"))
        rows.append(row)
    head = ["CPU ms per message", "instant model", "× Parley", "over HTTP", "× Parley", "bytes per request"]
    return table(head, rows)


def grid_section(figures: Sequence[Figure]) -> list[str]:
    cells = Cells(figures, lambda figure: (figure["system"], figure["latency"], figure["conversations"]))
    latencies = sorted({figure["latency"] for figure in figures})
    sizes = sorted({figure["conversations"] for figure in figures})
    lines = []
    for latency in latencies:
        head = [f"{latency:,} ms", *(f"{many} concurrent" for many in sizes)]
        rows = [
            [
                system.title,
                *(cells.text((system.name, latency, many), efficiency_of, ".3f") for many in sizes),
            ]
            for system in SYSTEMS
            if system.grid
        ]
        lines += table(head, rows)
    return lines


def raw_section(cpu: Sequence[Figure], grid: Sequence[Figure]) -> list[str]:
    """Parley compared with raw aiohttp. Repeats alternate, so that ratios are taken of medians."""
    by_way = Cells(cpu, lambda figure: (figure["system"], figure["way"]))
    instant, http = (by_way.value((PARLEY, way), cpu_of) for way in ("instant", "http"))
    raw_http = by_way.value((RAW, "http"), cpu_of)
    lines = []
    if http is not None and raw_http:
        lines.append(f"CPU over HTTP, in multiples of raw aiohttp's: {http / raw_http:.3f}")
    if instant is not None:
        lines.append(f"CPU ms per message on the instant model: {instant:.3f}")
    cells = Cells(grid, lambda figure: (figure["system"], figure["latency"], figure["conversations"]))
    for latency, many in sorted({(figure["latency"], figure["conversations"]) for figure in grid}):
        own, raw = (cells.value((system, latency, many), efficiency_of) for system in (PARLEY, RAW))
        if own is not None and raw:
            what = f"share of raw aiohttp's speed at {latency:,} ms and {many} concurrent"
            lines.append(verdict(what, own / raw, LEAST_SPEED, at_least=True))
    return [f"- {line}" for line in lines] + [""]


def memory_section(figures: Sequence[Figure]) -> list[str]:
    """Peak memory at the latency at which most cells were measured."""
    by_latency = defaultdict(int)
    for figure in figures:
        by_latency[figure["latency"]] += "wall" in figure
    latency = max(by_latency, key=lambda ms: (by_latency[ms], ms))
    at_latency = [figure for figure in figures if figure["latency"] == latency]
    cells = Cells(at_latency, lambda figure: (figure["system"], figure["conversations"]))
    sizes = sorted({figure["conversations"] for figure in at_latency})
    rows = [
        [system.title, *(cells.text((system.name, many), lambda figure: figure["peak_mb"], ",.0f") for many in sizes)]
        for system in SYSTEMS
        if system.grid
    ]
    return table([f"peak MB at {latency:,} ms", *(f"{many} concurrent" for many in sizes)], rows)


def log_section(cpu: Sequence[Figure], resume: Sequence[Figure]) -> list[str]:
    logs = Cells([figure for figure in cpu if figure["way"] == "instant"], lambda figure: figure["system"])
    resumes = Cells(resume, lambda figure: figure["system"])
    rows = []
    for system in SYSTEMS:
        if system.resumes:
            sizes = (logs.text(system.name, size, ",.0f") for size in (log_of, packed_of))
            rows.append([system.title, *sizes, resumes.text(system.name, resume_of, ".3f")])
        else:
            rows.append([system.title, "nothing stored", "–", "–"])
    return table(["", "log, bytes per message", "the same packed", "first call after resuming, s"], rows)


def behind(cpu: Sequence[Figure], grid: Sequence[Figure], resume: Sequence[Figure]) -> list[str]:
    """Where a peer is ahead of Parley, measure by measure; raw aiohttp is not a peer, since it stores nothing."""
    by_way = {way: [figure for figure in cpu if figure["way"] == way] for way in ("instant", "http")}
    with_log = [figure for figure in by_way["instant"] if figure.get("log_bytes")]
    lines = [
        *_ahead("CPU ms per message on the instant model", by_way["instant"], cpu_of, ".3f"),
        *_ahead("CPU ms per message over HTTP", by_way["http"], cpu_of, ".3f"),
        *_ahead("log, bytes per message, as it is written", with_log, log_of, ",.0f"),
        *_ahead("log, bytes per message, packed", with_log, packed_of, ",.0f"),
        *_ahead("seconds to the first call after resuming", resume, resume_of, ".3f"),
    ]
    for latency, many in sorted({(figure["latency"], figure["conversations"]) for figure in grid}):
        cells = [figure for figure in grid if (figure["latency"], figure["conversations"]) == (latency, many)]
        where = f"{latency:,} ms and {many} concurrent"
        lines += _ahead(f"share of the ideal at {where}", cells, efficiency_of, ".3f", more=True)
        lines += _ahead(f"peak MB at {where}", cells, lambda figure: float(figure["peak_mb"]), ",.0f")
    return lines


def _ahead(
    what: str, figures: Sequence[Figure], of: Callable[[Figure], float], style: str, more: bool = False
) -> list[str]:
    cells = Cells(figures, lambda figure: figure["system"])
    own = cells.value(PARLEY, of)
    theirs = {peer: cells.value(peer, of) for peer in PEERS}
    return [
        f"- {what}: {TITLES[peer]} {value:{style}}, Parley {own:{style}}"
        for peer, value in theirs.items()
        if value is not None and own is not None and (value > own if more else value < own)
    ]


def any_peer(figures: Sequence[Figure]) -> bool:
    return any(figure["system"] in PEERS and "wall" in figure for figure in figures)


def failures(*parts: Sequence[Figure]) -> list[str]:
    lines = []
    for figures in parts:
        for figure in figures:
            if "error" in figure:
                where = ", ".join(f"{figure[key]}" for key in ("way", "latency", "conversations") if key in figure)
                lines.append(f"- {TITLES[figure['system']]}{f' ({where})' if where else ''}: `{figure['error']}`")
    return list(dict.fromkeys(lines))


def versions(*parts: Sequence[Figure]) -> str:
    numbers: dict[str, str] = {}
    for figures in parts:
        for figure in figures:
            numbers |= figure.get("versions", {})
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items()))
