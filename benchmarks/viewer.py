"""How fast the viewer answers on a large run, compared with plain SQL on the run file.

    python -m benchmarks.viewer --messages 1000000

Writes a run file of pairs judged by four judges in two rounds (ten messages per unit), serves it, and sends requests
over loopback: the units before anything is indexed, then text searches. Filters, orders and pages are computed by the
page, in Chromium. Times are what a client measures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from parley.judging import Unit
from parley.runs import RunFile
from parley.runs.rows import text_id
from parley.viewer.server import serve

JUDGES = ("Examiner", "Practitioner", "Innovator", "Editor")
RACES = ("black", "white", "asian", "hispanic")
MESSAGES_PER_UNIT = 10
TARGET_MS = 150
FILTERS = "f.identity=black&f.other=white&d.flip=flipped&judge=Innovator"
QUERIES = {
    "a page": "",
    "page 900": "page=900",
    "phase 2, black against white, flipped, judge 3": FILTERS,
    "status failed": "d.status=failed",
    "one of 500 scenarios": "f.scenario=s17",
    "score from 5 to 6": "low=5&high=6",
    "ordered by score": "sort=score&desc=1",
    "ordered by tokens": "sort=tokens&desc=1",
}
SEARCHES = {
    "text: a rare word": "word19000",
    "text: a word in most units": "word1",
    "text: two words": "word5 word40",
    "text: a phrase": '"word2 word7"',
    "text: a prefix": "word19*",
    "text: a letter": "w*",
    "text: a rarer prefix": "word1990*",
}
IN_PAGE = """async ([run, queries, times]) => {
  const { unitsOf } = await import("/static/units.js");
  const table = await unitsOf(run);
  return queries.map((query) => {
    const took = Array.from({ length: times + 1 }, () => {
      const start = performance.now();
      table.page(new URLSearchParams(query));
      return performance.now() - start;
    });
    return { took, matching: table.page(new URLSearchParams(query)).matching };
  });
}"""


def write_run(path: Path, messages: int) -> None:
    """Writes rows directly into the tables, as a run would."""
    rng = random.Random(0)
    count = messages // MESSAGES_PER_UNIT
    scenarios = max(1, min(500, count // 8))
    words = [f"word{int(20_000 * rng.random() ** 3)}" for _ in range(200_000)]

    def units() -> Iterator[Unit]:
        for n in range(count):
            x, y = RACES[n // 4 % 4], RACES[(n // 4 + 1 + n // 16 % 3) % 4]
            order, assignment = n % 2, n // 2 % 2
            a, b = (y, x) if order else (x, y)
            facets = {"phase": 2, "scenario": f"s{n // 4 % scenarios}", "category": "race", "identity": x, "other": y}
            facets |= {
                "identity_a": a,
                "identity_b": b,
                "assignment": assignment,
                "order": order,
                "repeat": n // 4 // scenarios,
            }
            yield Unit(f"p2/{n // 4}/a{assignment}o{order}", facets)

    info = {"study": "benchmark", "models": ["sim/any"], "config": {}, "plan": str(messages), "versions": {}}
    RunFile.create(path, info, {}, units()).close()
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -500000")
    ids = [row[0] for row in db.execute("SELECT id FROM units ORDER BY position")]
    db.execute("BEGIN")
    for start in range(0, count, 2000):
        rows: dict[str, list[tuple[Any, ...]]] = {"texts": [], "messages": [], "calls": [], "verdicts": []}
        for unit in ids[start : start + 2000]:
            _fill(unit, rng, words, rows)
        for table, values in rows.items():
            marks = ",".join("?" * len(values[0]))
            db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)
    db.execute("UPDATE units SET status = 'done', started_at = 1.0, finished_at = 2.0")
    db.execute("UPDATE units SET status = 'failed', error = 'the server gave up' WHERE position % 1000 = 7")
    db.execute("INSERT INTO events VALUES (1.0, 'started', 'benchmark')")
    db.execute("COMMIT")
    db.close()


def _fill(unit: str, rng: random.Random, words: list[str], rows: dict[str, list[tuple[Any, ...]]]) -> None:
    nth = 0
    for seq in range(MESSAGES_PER_UNIT):
        start = rng.randrange(len(words) - 80)
        text = " ".join(words[start : start + 60]) + f" {unit} {seq}"
        key = text_id(text)
        rows["texts"].append((key, text))
        round_ = 1 + seq // 5
        if seq % 5 == 0:
            rows["messages"].append((unit, seq, round_ - 1, "user", "narrator", None, key, None, None, None, None, 0))
            continue
        judge = JUDGES[seq % 5 - 1]
        rows["messages"].append((unit, seq, round_, judge, "debater", None, key, "ok", None, None, None, 0))
        prompt, tokens = f'[["user","user",{key}]]', rng.randrange(50, 90)
        rows["calls"].append((unit, seq, 0, "sim/any", prompt, key, 900, tokens, 0.5, 0.0, 0, 1, None, 0, None, None))
        for side in ("A", "B"):
            value = float(rng.randrange(3, 10))
            about = (unit, nth, judge, "debater", round_, side)
            rows["verdicts"].append((*about, "Accuracy", value, value, None, "ok", seq))
            nth += 1
        rows["verdicts"].append(
            (unit, nth, judge, "debater", round_, "", "preferred", None, None, rng.choice("AB"), "ok", seq)
        )
        nth += 1


RAW = {
    "a page": ("SELECT id, facets, status FROM units ORDER BY position LIMIT 50",),
    "phase 2, black against white (no flips, no judge)": (
        "SELECT id, facets, status FROM units WHERE json_extract(facets, '$.identity') = 'black' "
        "AND json_extract(facets, '$.other') = 'white' ORDER BY position LIMIT 50",
        "SELECT count(*) FROM units WHERE json_extract(facets, '$.identity') = 'black' "
        "AND json_extract(facets, '$.other') = 'white'",
    ),
    "ordered by score": (
        "SELECT unit, avg(value) FROM verdicts WHERE round = 2 GROUP BY unit ORDER BY 2 DESC LIMIT 50",
    ),
    "text: a rare word": ("SELECT DISTINCT unit FROM transcript WHERE text LIKE '%word19000 %' LIMIT 50",),
}


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds of wall time, and of CPU: server and client are one process. CPU depends less on other work."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)


def serving(path: Path) -> tuple[str, Callable[[], None]]:
    """The address of a viewer in another thread, and the function that stops it."""
    ready, address = threading.Event(), []
    running: list[tuple[asyncio.AbstractEventLoop, Any]] = []

    async def serve_here() -> None:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        await serve(path, "127.0.0.1", 0, lambda url: (address.append(url), ready.set())[1])

    def run() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(serve_here())

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    return address[0], lambda: (running[0][0].call_soon_threadsafe(running[0][1].cancel), thread.join())[1]


def in_page(address: str, run: str, times: int) -> list[dict[str, Any]]:
    """How long the page takes for each query, and how many units match."""
    from playwright.sync_api import sync_playwright

    chromium = next(path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}")  # a page that asks for no units itself
        answers: list[dict[str, Any]] = page.evaluate(IN_PAGE, [run, list(QUERIES.values()), times])
        browser.close()
    return answers


def measure(path: Path, times: int) -> dict[str, Any]:
    address, end = serving(path)

    def ask(question: str, **parameters: Any) -> tuple[Any, int]:
        with urlopen(f"{address}api/{question}?{urlencode({'run': path.name, **parameters})}") as answer:
            text = answer.read()
            return json.loads(text), len(text)

    start, started = time.perf_counter(), time.process_time()
    units, size = ask("units")
    first, first_cpu = time.perf_counter() - start, time.process_time() - started
    indexed, slowest = len(units["figures"]), 0.0
    while indexed < units["done"]:
        time.sleep(0.5)
        sent = time.perf_counter()
        units, _ = ask("units", plan=units["plan"], after=units["after"])
        slowest, indexed = max(slowest, time.perf_counter() - sent), indexed + len(units["figures"])
    built = time.perf_counter() - start
    all_units, whole = timed(lambda: ask("units")), ask("units")[1]
    answers = {}
    for name, words in SEARCHES.items():
        cold, cpu = timed(partial(ask, "search", q=words))
        warm = [timed(partial(ask, "search", q=words))[0] for _ in range(times)]
        answers[name] = _row(cold, cpu, warm, len(ask("search", q=words)[0]))
    for name, found in zip(QUERIES, in_page(address, path.name, times), strict=True):
        cold, *warm = found["took"]
        answers[name] = _row(cold, cold, warm, found["matching"])
    end()
    raw = {}
    for name, statements in RAW.items():
        with RunFile.open(path) as file:
            read = partial(lambda file, statements: [file.rows(sql) for sql in statements], file, statements)
            raw[name] = statistics.median(timed(read)[0] for _ in range(max(1, times // 3)))
    index = next((Path(os.environ["PARLEY_HOME"]) / "viewer").glob("*.sqlite"))
    return {
        "first_s": first,
        "first_cpu_s": first_cpu,
        "first_mb": size / 1e6,
        "index_after_s": built,
        "slowest_meanwhile_s": slowest,
        "all_cpu_ms": all_units[1],
        "all_mb": whole / 1e6,
        "run_mb": path.stat().st_size / 1e6,
        "index_mb": index.stat().st_size / 1e6,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "answers_ms": answers,
        "raw_ms": raw,
    }


def _row(cold: float, cpu: float, warm: list[float], matching: int) -> dict[str, Any]:
    return {"first": cold, "first_cpu": cpu, "median": statistics.median(warm), "most": max(warm), "matching": matching}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=9, help="how often each request is repeated")
    parser.add_argument("--folder", help="folder for temporary files (default: the system's)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        os.environ["PARLEY_HOME"] = str(Path(folder) / "home")
        path = Path(folder) / "large.sqlite"
        start = time.perf_counter()
        maker = get_context("spawn").Process(
            target=write_run, args=(path, arguments.messages)
        )  # in another process: its memory is not the viewer's
        maker.start()
        maker.join()
        assert maker.exitcode == 0, "the run file could not be written"
        seconds = time.perf_counter() - start
        results = measure(path, arguments.times)
    print(f"{arguments.messages:,} messages, {results['run_mb']:.0f} MB, written in {seconds:.0f} s")
    print(
        f"the units before they are indexed: {results['first_s']:.1f} s, {results['first_cpu_s']:.1f} s of CPU, "
        f"{results['first_mb']:.1f} MB; afterwards: {results['all_cpu_ms']:.0f} ms of CPU, {results['all_mb']:.1f} MB"
    )
    print(f"everything indexed after {results['index_after_s']:.0f} s ({results['index_mb']:.0f} MB)")
    print(
        f"slowest answer meanwhile {results['slowest_meanwhile_s']:.1f} s; "
        f"peak memory {results['peak_memory_mb']:.0f} MB"
    )
    print(f"{'ms':<50}{'first':>9}{'its CPU':>9}{'median':>9}{'max':>9}{'matching':>10}")
    for name, row in results["answers_ms"].items():
        verdict = "" if row["first"] <= TARGET_MS else f"  over {TARGET_MS}"
        print(
            f"{name:<50}{row['first']:>9.1f}{row['first_cpu']:>9.1f}{row['median']:>9.1f}{row['most']:>9.1f}{row['matching']:>10,}{verdict}"
        )
    for name, value in results["raw_ms"].items():
        print(f"{'raw SQLite, ' + name:<68}{value:>9.1f}")


if __name__ == "__main__":
    main()
