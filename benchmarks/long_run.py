"""A long run must not slow down: 100,000 calls on a server that answers immediately, first tenth against last.

    python -m benchmarks.long_run                  # over HTTP, on loopback
    python -m benchmarks.long_run --no-server      # a model in the same process: only Parley's own work
    python -m benchmarks.long_run --calls 8000     # to try it out

Run from the repository's root. Shown: calls per second and CPU per call (which other work on the machine
disturbs less), memory after the first tenth and at the end, bytes per message in the run file, and what compressing
its texts would save and cost.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
import zlib
from contextlib import closing, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.server import server
from benchmarks.workload import MESSAGES, verdict
from parley.runs import Progress
from parley.runs.job import Job
from parley.runs.options import Options

TARGET = 0.9
"""The least ratio of the last tenth's throughput to the first's."""
SAMPLE = 20_000


def resident_mb() -> float:
    """Current resident memory; NaN on systems without /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def run_once(calls: int, concurrency: int, url: str | None) -> dict[str, Any]:
    """One run, measured by tenths."""
    units = calls // MESSAGES
    marks: list[tuple[int, float, float, float]] = []

    def watch(progress: Progress) -> None:
        if progress.done >= len(marks) * units / 10:
            marks.append((progress.calls, time.perf_counter(), time.process_time(), resident_mb()))

    model = f"server/bench?base_url={url}&max_connections={concurrency}" if url else "instant/bench"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        options = Options(out=str(path), concurrency=concurrency, cache=False, executor="asyncio")
        job = Job.make("benchmarks.panel:Panel", {"conversations": units, "model": model}, options)
        marks.append((0, time.perf_counter(), time.process_time(), resident_mb()))
        result = asyncio.run(job.execute(on_progress=watch))
        assert result.complete, result
        size = path.stat().st_size
        texts = compression(path)
    tenths = [
        {"calls_a_second": (c - a) / (t - s), "cpu_ms_a_call": 1e3 * (v - u) / (c - a), "resident_mb": mb}
        for (a, s, u, _), (c, t, v, mb) in pairwise(marks)
    ]
    first, last = tenths[0], tenths[-1]
    return {
        "calls": result.progress.calls,
        "tenths": tenths,
        "last_over_first": last["calls_a_second"] / first["calls_a_second"],
        "last_over_first_by_cpu": first["cpu_ms_a_call"] / last["cpu_ms_a_call"],
        "growth_mb": last["resident_mb"] - first["resident_mb"],
        "bytes_a_message": size / (units * MESSAGES),
        "compression": texts,
        "target": TARGET,
    }


def compression(path: Path) -> dict[str, float]:
    """What zlib would do to the texts of a run, compressed one by one, since each is a row of its own."""
    with closing(sqlite3.connect(path)) as db:
        texts = [text.encode() for (text,) in db.execute("SELECT text FROM texts LIMIT ?", (SAMPLE,))]
        shares = dict(db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")) if _has_dbstat(db) else {}
    plain = sum(map(len, texts))
    start = time.process_time()
    compressed = [zlib.compress(text, 1) for text in texts]
    compressing = time.process_time() - start
    start = time.process_time()
    for text in compressed:
        zlib.decompress(text)
    reading = time.process_time() - start
    return {
        "texts": len(texts),
        "mean_bytes": plain / len(texts),
        "compressed_share": sum(map(len, compressed)) / plain,
        "compress_us_a_text": 1e6 * compressing / len(texts),
        "decompress_us_a_text": 1e6 * reading / len(texts),
        "texts_share_of_file": shares.get("texts", float("nan")) / sum(shares.values()) if shares else float("nan"),
    }


def _has_dbstat(db: sqlite3.Connection) -> bool:
    try:
        db.execute("SELECT 1 FROM dbstat LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        return False
    return True


def measure(calls: int = 100_000, concurrency: int = 64, *, over_http: bool = True) -> dict[str, Any]:
    with server() if over_http else nullcontext() as url:
        return run_once(calls, concurrency, f"{url}/0/v1" if url else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--no-server", action="store_true", help="use a model in this process instead")
    arguments = parser.parse_args()
    results = measure(arguments.calls, arguments.concurrency, over_http=not arguments.no_server)
    print(f"{'tenth':>6} {'calls/s':>9} {'CPU ms per call':>16} {'MB now':>8}")
    for n, row in enumerate(results["tenths"], 1):
        print(f"{n:6} {row['calls_a_second']:9.0f} {row['cpu_ms_a_call']:16.3f} {row['resident_mb']:8.1f}")
    print(verdict("last tenth over the first, wall time", results["last_over_first"], TARGET, at_least=True))
    print(verdict("last tenth over the first, CPU time", results["last_over_first_by_cpu"], TARGET, at_least=True))
    print(f"memory from the first tenth to the end: {results['growth_mb']:+.1f} MB")
    print(f"run file: {results['bytes_a_message']:.0f} bytes per message")
    texts = results["compression"]
    print(
        f"zlib on its texts ({texts['mean_bytes']:.0f} bytes each, {texts['texts_share_of_file']:.0%} of the file): to "
        f"{texts['compressed_share']:.0%}, {texts['compress_us_a_text']:.0f} µs to write, "
        f"{texts['decompress_us_a_text']:.0f} µs to read"
    )


if __name__ == "__main__":
    main()
