"""Measures every figure in its own process.

Nothing here prints results: `benchmarks.page` does. A system that is not installed is "not run", one that fails or
takes too long has its error; neither is ever a number.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
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
    """One benchmark: how much is measured, with which peers, and where progress is logged."""

    sizes: Sizes
    peers: Path | None = None
    log: Callable[[str], None] = field(default=lambda line: None)

    def cell(self, system: System, *arguments: object, url: str | None = None) -> Figure:
        """One measurement of one system, with the requests that the server counted meanwhile."""
        python = system.python(self.peers)
        if python is None:
            return {"not_run": "not installed"}
        before = counted(url) if url else None
        command = [python, "-m", f"benchmarks.peers.{system.name}", *map(str, arguments)]
        done = self._run(command + (["--url", url] if url else []), self.sizes.limit)
        if "error" in done:
            return done
        figure: Figure = json.loads(done["text"].splitlines()[-1])
        if url and before:
            after = counted(url)
            requests = after["requests"] - before["requests"]
            figure |= {"requests": requests, "request_bytes": (after["bytes"] - before["bytes"]) / max(requests, 1)}
        return figure

    def output(self, module: str, arguments: list[str]) -> Figure:
        """What a benchmark without peers prints."""
        return self._run([sys.executable, "-m", f"benchmarks.{module}", *arguments], 600.0)

    def _run(self, command: list[str], seconds: float) -> Figure:
        """What a command prints, or why it printed nothing."""
        self.log(" ".join(command[2:]))
        try:
            done = subprocess.run(
                command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True, text=True,
                timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {seconds:.0f} s"}
        if done.returncode:
            return {"error": (done.stderr.strip().splitlines() or ["it exited without an error message"])[-1][:200]}
        return {"text": done.stdout.rstrip()}

    def cpu(self, url: str) -> Iterator[Figure]:
        """CPU per message, on the instant model and over HTTP; every repeat goes through all systems in turn."""
        size = ("--conversations", self.sizes.cpu_conversations, "--rounds", ROUNDS)
        once: set[tuple[str, str]] = set()
        for _ in range(self.sizes.repeats):
            for system in SYSTEMS:
                for way, more, address in (("instant", (), None), ("http", ("--latency", 50), url)):
                    if (system.name, way) not in once:
                        figure = self.cell(system, *size, *more, url=address)
                        if not self._is_repeated(figure):
                            once.add((system.name, way))
                        yield {"system": system.name, "way": way, **figure}

    def grid(self, url: str) -> Iterator[Figure]:
        """Every latency with every number of conversations, one round each."""
        saturated: set[tuple[str, int]] = set()
        once: set[tuple[str, int, int]] = set()
        for repeat in range(self.sizes.repeats):
            for latency in self.sizes.latencies:
                for conversations in self.sizes.conversations:
                    for system in filter(lambda system: system.grid, SYSTEMS):
                        cell = {"system": system.name, "latency": latency, "conversations": conversations}
                        key = (system.name, latency, conversations)
                        if (system.name, latency) in saturated and repeat == 0:
                            once.add(key)
                            yield {**cell, "not_run": "saturated"}
                        elif key not in once:
                            size = ("--conversations", conversations, "--latency", latency, "--rounds", 1)
                            figure = self.cell(system, *size, url=url)
                            if "wall" in figure:
                                figure["efficiency"] = len(NAMES) * latency / 1000 / figure["wall"]
                            if "error" in figure or figure.get("efficiency", math.inf) < self.sizes.saturated:
                                saturated.add((system.name, latency))
                            if not self._is_repeated(figure):
                                once.add(key)
                            yield {**cell, **figure}

    def resume(self) -> Iterator[Figure]:
        """Seconds until a run that was interrupted halfway calls its model again."""
        size = ("--conversations", self.sizes.resume_conversations, "--at-once", 32, "--rounds", 1, "--resume")
        for system in SYSTEMS:
            if system.resumes:
                yield {"system": system.name, **self.cell(system, *size)}

    def _is_repeated(self, figure: Figure) -> bool:
        """Whether a cell is measured again: not if it was slow, and not if it gave no figure."""
        return "wall" in figure and figure["wall"] <= self.sizes.once_over
