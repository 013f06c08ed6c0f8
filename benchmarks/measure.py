"""Measures every figure in its own process and saves it as JSON, so that an interrupted benchmark can resume.

Nothing here prints results: `benchmarks.page` does. A system that is not installed is "not run", one that fails or
takes too long has its error; neither is ever a number.
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
Figure = dict[str, Any]
"""One measurement of one system, or why there is none."""


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
    """Seconds after which a cell counts as failed."""
    saturated: float = 0.15
    """A system below this share of the ideal is not measured with more conversations."""


QUICK = Sizes(
    saturated=0.1, latencies=(200,), conversations=(64, 128), repeats=1, cpu_conversations=16, resume_conversations=160
)


@dataclass
class Bench:
    """One benchmark: where its figures are saved, and how they are measured."""

    folder: Path
    sizes: Sizes
    peers: Path | None = None
    log: Callable[[str], None] = field(default=lambda line: None)

    def saved(self, name: str, measure: Callable[[], Figure]) -> Figure:
        """The saved figure of that name, or a new one. Files are written atomically; "not run" is not saved."""
        file = self.folder / f"{name}.json"
        if file.exists():
            figure: Figure = json.loads(file.read_text("utf-8"))
            return figure
        self.log(name)
        started = time.perf_counter()
        figure = measure()
        if "not_run" in figure:
            return figure
        figure["took"] = time.perf_counter() - started
        part = file.with_suffix(".part")
        part.write_text(json.dumps(figure, indent=1), "utf-8")
        part.replace(file)
        return figure

    def minutes(self) -> float:
        """The time all saved figures took, over all interruptions."""
        return sum(json.loads(file.read_text("utf-8")).get("took", 0.0) for file in self.folder.glob("*.json")) / 60

    def cell(self, system: System, *arguments: object, url: str | None = None) -> Figure:
        """One measurement of one system, with the requests that the server counted meanwhile."""
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
            return {"error": (done.stderr.strip().splitlines() or ["it exited without an error message"])[-1][:200]}
        figure: Figure = json.loads(done.stdout.strip().splitlines()[-1])
        if url and before:
            after = counted(url)
            requests = after["requests"] - before["requests"]
            figure |= {"requests": requests, "request_bytes": (after["bytes"] - before["bytes"]) / max(requests, 1)}
        return figure

    def cpu(self, url: str) -> Iterator[Figure]:
        """CPU per message, on the instant model and over HTTP; every repeat goes through all systems in turn."""
        size = ("--conversations", self.sizes.cpu_conversations, "--rounds", ROUNDS)
        for repeat in range(self.sizes.repeats):
            for system in SYSTEMS:
                for way, more, address in (("instant", (), None), ("http", ("--latency", 50), url)):
                    if self._measures_again(f"cpu-{system.name}-{way}", repeat):
                        name = f"cpu-{system.name}-{way}-{repeat}"
                        figure = self.saved(name, lambda s=system, m=more, a=address: self.cell(s, *size, *m, url=a))  # type: ignore[misc]
                        yield {"system": system.name, "way": way, **figure}

    def grid(self, url: str) -> Iterator[Figure]:
        """Every latency with every number of conversations, one round each."""
        saturated: set[tuple[str, int]] = set()
        for repeat in range(self.sizes.repeats):
            for latency in self.sizes.latencies:
                for conversations in self.sizes.conversations:
                    for system in filter(lambda system: system.grid, SYSTEMS):
                        cell = {"system": system.name, "latency": latency, "conversations": conversations}
                        stem = f"grid-{system.name}-{latency}-{conversations}"
                        if (system.name, latency) in saturated and repeat == 0:
                            yield {**cell, "not_run": "saturated"}
                        elif self._measures_again(stem, repeat):
                            size = ("--conversations", conversations, "--latency", latency, "--rounds", 1)
                            figure = self.saved(f"{stem}-{repeat}", lambda s=system, a=size: self.cell(s, *a, url=url))  # type: ignore[misc]
                            if "wall" in figure:
                                figure["efficiency"] = len(NAMES) * latency / 1000 / figure["wall"]
                            if repeat == 0 and (
                                "error" in figure or figure.get("efficiency", math.inf) < self.sizes.saturated
                            ):
                                saturated.add((system.name, latency))
                            yield {**cell, **figure}

    def resume(self) -> Iterator[Figure]:
        """Seconds until a run that was interrupted halfway calls its model again."""
        size = ("--conversations", self.sizes.resume_conversations, "--at-once", 32, "--rounds", 1, "--resume")
        for system in SYSTEMS:
            if system.resumes:
                yield {
                    "system": system.name,
                    **self.saved(f"resume-{system.name}", lambda s=system: self.cell(s, *size)),  # type: ignore[misc]
                }

    def output(self, name: str, module: str, arguments: list[str]) -> Figure:
        """What a benchmark without peers prints."""

        def measure() -> Figure:
            command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
            try:
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
            except subprocess.TimeoutExpired:
                return {"error": "not done after 600 s"}
            if done.returncode:
                return {"error": (done.stderr.strip().splitlines() or ["it exited without an error message"])[-1][:200]}
            return {"text": done.stdout.rstrip()}

        return self.saved(f"other-{name}", measure)

    def _measures_again(self, stem: str, repeat: int) -> bool:
        """Whether a cell is repeated: not if it was slow, and not if it gave no figure."""
        if repeat == 0:
            return True
        file = self.folder / f"{stem}-0.json"
        first = json.loads(file.read_text("utf-8")) if file.exists() else {}
        return "wall" in first and first["wall"] <= self.sizes.once_over
