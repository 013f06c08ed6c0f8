"""`python -m tests.mutants judging scenarios/malibu.py`: who of some seeded small faults is found by no test?

A fault is put into a private copy of the checkout, and the nearest tests that run its line are run until one fails; if
none does, the golden cases that run it. `--table` writes the counts by room, and the survivors, to tests/MUTANTS.md,
and leaves other rooms there as they are. A survivor is a test to write, unless the change makes no difference.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded: its threads would not survive a fork

from tests.mutants.bench import Bench, Reach, load_libraries
from tests.mutants.faults import Fault, choose, faults_of

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "MUTANTS.md"
FAR = ("benchmarks", "docs", "nightly", "tests", "viewer")
"""Folders whose tests go through many rooms, and are slow: they are tried for rooms of their name only."""
BESIDE = {"agents": ("vendors/", "training/test_hf.py"), "parley": ("viewer/", "chaos/", "analysis/")}
"""Tests that belong to a room of another name too; those of tests/parley, whose commands use every room, do to each."""
GOLDEN, CASES = "tests/test_golden.py", "tests/golden/cases.toml"
OUTCOMES = ("killed", "killed by golden", "survived", "not reached", "timed out")
PAGE = """# Mutants

Made by `python -m tests.mutants ROOM --count COUNT --seed SEED --table`. A mutant is a module with one small fault: a
comparison, a constant, `and` for `or`, a dropped line, swapped arguments or a dropped argument. It is killed if one of
the nearest 100 tests that run its line fails, and killed by golden if only a golden case does (`tests/test_golden.py`
without its nightly cases). Not reached: none of these runs the line. Timed out: the tests did not end, which is as good
as killed.

| room | day | seed | mutants |"""


@dataclass(frozen=True, slots=True)
class Tried:
    """A fault that was tried: its module, its outcome, and the test that found it."""

    path: str
    fault: Fault
    outcome: str
    test: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.fault.line} {self.fault.function}".rstrip()
        return f"{place}: {self.fault.kind}: `{self.fault.change}`"


def modules_of(root: Path, room: str) -> list[str]:
    """The modules of a room, as paths from the root; files and folders with commas between them are one room."""
    modules = []
    for part in room.split(","):
        place = root / part
        if not place.exists():
            sys.exit(f"mutants: {part}: no such file or folder (expected one such as judging, or judging/ballots.py)")
        found = [place] if place.is_file() else sorted(place.rglob("*.py"))
        modules += [str(path.relative_to(root)) for path in found]
    return modules


def tests_near(root: Path, room: str, modules: Sequence[str]) -> list[str]:
    """Files of tests in the folder of the room's name, those of commands, and others that import one of its modules."""
    dotted = {
        module: "parley." + module.removeprefix("parley/").removesuffix(".py").replace("/", ".") for module in modules
    }
    near = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        rooms = {folder for part in room.split(",") for folder in Path(part).parts}
        beside = tuple(place for folder in rooms for place in BESIDE.get(folder, ()))
        own = path.parent.name in {"parley", *rooms} or path.relative_to(root / "tests").as_posix().startswith(beside)
        if path.parent.name in FAR and not own:
            continue
        if own or any(name in text for name in dotted.values()):
            near.append(str(path.relative_to(root)))
    return near


def closest(root: Path, files: Sequence[str], modules: Sequence[str], count: int) -> list[str]:
    """The files of tests that are closest to each module: named after it, or the smallest that import it."""
    chosen = []
    for module in modules:
        dotted = "parley." + module.removeprefix("parley/").removesuffix(".py").replace("/", ".")
        named = f"test_{Path(module).stem}.py"
        found = [
            (Path(file).name != named, len(text), file)
            for file, text in ((file, (root / file).read_text("utf-8")) for file in files)
            if Path(file).name == named or dotted in text
        ]
        chosen += [file for *_, file in sorted(found)[:count]]
    return sorted(set(chosen))


def tests_for(fault: Fault, path: str, reach: Mapping[str, Reach], most: int) -> dict[str, float]:
    """The tests that run a fault's line, with their seconds: those that run it themselves, not by their file's import,
    come first; then those named after the module, cases of many functions before many cases of one, and quick ones."""
    lines = sum(1 << line for line in fault.lines) if fault.lines else -1
    stem, cases = Path(path).stem, Counter[tuple[bool, str]]()
    chosen = []
    for name, test in sorted(reach.items(), key=lambda item: item[1].seconds):
        itself = bool(test.lines.get(path, 0) & lines)
        if itself or test.on_import.get(path, 0) & lines:
            cases[case := (itself, name.partition("[")[0])] += 1
            chosen.append((not itself, f"test_{stem}" not in name, cases[case], test.seconds, name))
    return {name: seconds for *_, seconds, name in sorted(chosen)[:most]}


def try_room(
    bench: Bench, room: str, *, count: int, seed: int, most: int, near: int = 0, golden: bool = True
) -> Iterator[Tried]:
    """Tries a sample of a room's faults."""
    sources = {module: (bench.tree / module).read_text("utf-8") for module in modules_of(bench.tree, room)}
    found = [(module, fault) for module, source in sources.items() for fault in faults_of(source)]
    chosen = choose(found, count, seed)
    modules = sorted({module for module, _ in chosen})
    files = tests_near(bench.tree, room, modules)
    reach = bench.reach(closest(bench.tree, files, modules, near) if near else files, modules)
    by_case: dict[str, Reach] | None = None if golden else {}
    for path, fault in chosen:
        faulty = fault.put_into(sources[path])
        tests = tests_for(fault, path, reach, most)
        failed, outcome = bench.try_fault(path, faulty, tests), "killed"
        if failed == "":
            by_case = bench.reach([GOLDEN], [*modules, CASES]) if by_case is None else by_case
            cases, outcome = tests_for(fault, path, by_case, most), "killed by golden"
            if not fault.lines:  # what is offered has been imported before, but shows what every module declares
                cases |= {name: case.seconds for name, case in by_case.items() if name.endswith("[offered]")}
            for case, seconds in cases.items():  # one at a time: all of them together may reach the limit of seconds
                if (failed := bench.try_fault(path, faulty, {case: seconds})) != "":
                    break
            tests |= cases
        if failed is None:
            yield Tried(path, fault, "timed out")
        elif failed:
            yield Tried(path, fault, outcome, failed)
        else:
            yield Tried(path, fault, "survived" if tests else "not reached")


def table(rooms: Mapping[str, Sequence[Tried]], seed: int, before: str = "") -> str:
    """The Markdown page: counts by room, and each room's survivors."""
    dated = (re.match(r"\| (\S+) \| \d+ \w+ \d{4} \|", line) for line in before.splitlines())
    rows = {row[1]: row.string for row in dated if row}
    parts = {part.partition("\n")[0]: part.rstrip() for part in before.split("\n## ")[1:]}
    survivors = {room: parts[room] for room in rows if room in parts}
    for room, tried in rooms.items():
        counts = Counter(one.outcome for one in tried)
        numbers = [seed, len(tried), *(counts[outcome] for outcome in OUTCOMES)]
        rows[room] = f"| {room} | {datetime.now(UTC):%-d %B %Y} | {' | '.join(map(str, numbers))} |"
        listed = [f"- {one.outcome}: {one}" for one in tried if one.outcome in ("survived", "not reached")]
        survivors[room] = "\n".join([room, "", *(listed or ["None survived."])])
    head = [f"{PAGE} {' | '.join(OUTCOMES)} |", "|---|---|" + "---:|" * (2 + len(OUTCOMES))]
    return "\n".join([*head, *rows.values(), *(f"\n## {part}" for part in survivors.values()), ""])


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="+", metavar="MODULE", help="a file or folder, such as judging or parley/runs")
    parser.add_argument("--count", type=int, default=40, help="mutants per MODULE (default: 40)")
    parser.add_argument("--seed", type=int, default=1, help="decides which (default: 1)")
    parser.add_argument("--most", type=int, default=100, help="the most tests that are run for a mutant (default: 100)")
    parser.add_argument("--near", type=int, default=0, help="use only so many files of tests a module, the closest")
    parser.add_argument("--no-golden", action="store_true", help="do not try golden cases where these find nothing")
    parser.add_argument("--least", type=int, help="end with status 1 if fewer are killed (default: if any survives)")
    parser.add_argument(
        "--table", type=Path, nargs="?", const=TABLE, help="also write the table (default: tests/MUTANTS.md)"
    )
    asked = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that nothing is left behind
    load_libraries()
    bench = Bench(ROOT)
    rooms: dict[str, list[Tried]] = {}
    for room in asked.rooms:
        tried = rooms.setdefault(room.rstrip("/"), [])
        began = time.monotonic()
        sample = {"count": asked.count, "seed": asked.seed, "most": asked.most, "near": asked.near}
        for one in try_room(bench, room, **sample, golden=not asked.no_golden):
            tried.append(one)
            by = f" (by {one.test})" if one.test else ""
            print(f"{time.monotonic() - began:5.0f} s  {one.outcome:<16} {one}{by}", flush=True)
        counts = Counter(one.outcome for one in tried)
        print(f"{room}: {', '.join(f'{counts[outcome]} {outcome}' for outcome in OUTCOMES)}", flush=True)
        if asked.table:
            before = asked.table.read_text("utf-8") if asked.table.exists() else ""
            asked.table.write_text(table(rooms, asked.seed, before), "utf-8")
    every = Counter(one.outcome for tried in rooms.values() for one in tried)
    if asked.least is not None:
        return int(sum(every.values()) - every["survived"] - every["not reached"] < asked.least)
    return int(every["survived"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
