"""Takes the figures, each in a process of its own, and keeps every one as JSON, so that a cut run goes on.

Nothing here is printed as a result: `benchmarks.page` reads what was kept. A system that is not installed is "not
run", one that fails or takes too long has its error, and neither is ever a number.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.systems import SYSTEMS, System
from benchmarks.server import counted
from benchmarks.workload import NAMES, ROUNDS

ROOT = Path(__file__).parents[1]
Found = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much is measured. A cell that took longer than `once_over` seconds is not repeated."""

    latencies: tuple[int, ...] = (50, 200, 1000)
    conversations: tuple[int, ...] = (64, 128, 256, 512)
    repeats: int = 3
    once_over: float = 3.0
    cpu_conversations: int = 32
    resume_conversations: int = 384
    limit: float = 75.0
    """Seconds until a cell counts as failed."""
    saturated: float = 0.15
    """Under this share of the ideal, the same system is not asked for still more conversations."""


QUICK = Sizes(
    saturated=0.1, latencies=(200,), conversations=(64, 128), repeats=1, cpu_conversations=16, resume_conversations=160
)


@dataclass
class Bench:
    """One benchmark: where its figures are kept, and how they are taken."""

    folder: Path
    sizes: Sizes
    peers: Path | None = None
    say: Callable[[str], None] = field(default=lambda line: None)

    def kept(self, name: str, take: Callable[[], Found]) -> Found:
        """The figure of that name: as it was kept, or taken now. Written whole or not at all; "not run" is not kept."""
        file = self.folder / f"{name}.json"
        if file.exists():
            found: Found = json.loads(file.read_text("utf-8"))
            return found
        self.say(name)
        started = time.perf_counter()
        found = take()
        if "not_run" in found:
            return found
        found["took"] = time.perf_counter() - started
        part = file.with_suffix(".part")
        part.write_text(json.dumps(found, indent=1), "utf-8")
        part.replace(file)
        return found

    def minutes(self) -> float:
        """That all kept figures took, however often the run was cut."""
        return sum(json.loads(file.read_text("utf-8")).get("took", 0.0) for file in self.folder.glob("*.json")) / 60

    def cell(self, system: System, *arguments: object, url: str | None = None) -> Found:
        """One measurement of one system; with what the server was asked meanwhile."""
        python = system.python(self.peers)
        if python is None:
            return {"not_run": "not installed"}
        command = [python, "-m", f"benchmarks.peers.{system.name}", *map(str, arguments)]
        before = counted(url) if url else None
        try:
            done = subprocess.run(
                command + (["--url", url] if url else []), env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT,
                capture_output=True, text=True, timeout=self.sizes.limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {self.sizes.limit:.0f} s"}
        if done.returncode:
            return {"error": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]}
        found: Found = json.loads(done.stdout.strip().splitlines()[-1])
        if url and before:
            after = counted(url)
            asked = after["requests"] - before["requests"]
            found |= {"requests": asked, "request_bytes": (after["bytes"] - before["bytes"]) / max(asked, 1)}
        return found

    def cpu(self, url: str) -> Iterator[Found]:
        """CPU a message, on a model that answers at once and over HTTP: rounds of all systems, one after the other."""
        many = ("--conversations", self.sizes.cpu_conversations, "--rounds", ROUNDS)
        for repeat in range(self.sizes.repeats):
            for system in SYSTEMS:
                for way, more, at in (("instant", (), None), ("http", ("--latency", 50), url)):
                    if self._again(f"cpu-{system.name}-{way}", repeat):
                        name = f"cpu-{system.name}-{way}-{repeat}"
                        found = self.kept(name, lambda s=system, m=more, a=at: self.cell(s, *many, *m, url=a))  # type: ignore[misc]
                        yield {"system": system.name, "way": way, **found}

    def grid(self, url: str) -> Iterator[Found]:
        """Every latency with every number of conversations, of one round each."""
        full: set[tuple[str, int]] = set()
        for repeat in range(self.sizes.repeats):
            for latency in self.sizes.latencies:
                for many in self.sizes.conversations:
                    for system in filter(lambda system: system.grid, SYSTEMS):
                        at = {"system": system.name, "latency": latency, "conversations": many}
                        stem = f"grid-{system.name}-{latency}-{many}"
                        if (system.name, latency) in full and repeat == 0:
                            yield {**at, "not_run": "saturated"}
                        elif self._again(stem, repeat):
                            asked = ("--conversations", many, "--latency", latency, "--rounds", 1)
                            found = self.kept(f"{stem}-{repeat}", lambda s=system, a=asked: self.cell(s, *a, url=url))  # type: ignore[misc]
                            if "wall" in found:
                                found["efficiency"] = len(NAMES) * latency / 1000 / found["wall"]
                            if repeat == 0 and (
                                "error" in found or found.get("efficiency", math.inf) < self.sizes.saturated
                            ):
                                full.add((system.name, latency))
                            yield {**at, **found}

    def resume(self) -> Iterator[Found]:
        """Seconds until a run that was cut halfway asks its model again."""
        many = ("--conversations", self.sizes.resume_conversations, "--at-once", 32, "--rounds", 1, "--resume")
        for system in SYSTEMS:
            if system.goes_on:
                yield {
                    "system": system.name,
                    **self.kept(f"resume-{system.name}", lambda s=system: self.cell(s, *many)),  # type: ignore[misc]
                }

    def words(self, name: str, module: str, arguments: list[str]) -> Found:
        """What one of the other benchmarks prints."""

        def take() -> Found:
            command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
            try:
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
            except subprocess.TimeoutExpired:
                return {"error": "not done after 600 s"}
            if done.returncode:
                return {"error": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]}
            return {"text": done.stdout.rstrip()}

        return self.kept(f"other-{name}", take)

    def _again(self, stem: str, repeat: int) -> bool:
        """Whether a cell is measured once more: not if it is slow, and not if there is nothing to measure."""
        if repeat == 0:
            return True
        file = self.folder / f"{stem}-0.json"
        first = json.loads(file.read_text("utf-8")) if file.exists() else {}
        return "wall" in first and first["wall"] <= self.sizes.once_over
