"""One run under faults, signals and a clock that jumps, resumed until it is done; checked after every process.

    chaos_run = ChaosRun(trial, server, folder, seed=1)
    chaos_run.run_undisturbed()                 # for comparison
    chaos_run.run_disturbed([KILL, TERM])       # the same run under faults, killed and resumed until it is done
    chaos_run.compare()                         # what was lost, doubled or differs: nothing

However a process ends, the run file must be sound and contain every unit that was done before.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parley.reports import make_report
from parley.runs import RunFile
from tests.chaos.faults import FaultServer
from tests.chaos.ray_cluster import RayCluster
from tests.chaos.studies import Trial
from tests.conftest import File
from tests.process import ParleyProcess, started

KILL, KILL_WORKER, TERM, INT, DISK = "SIGKILL of the run", "SIGKILL of a worker", "SIGTERM", "SIGINT", "disk full"
SIGNALS = {KILL: signal.SIGKILL, TERM: signal.SIGTERM, INT: signal.SIGINT, DISK: signal.SIGINT}
"""A disk cannot become full halfway: a process is interrupted, and the next one finds little room."""
EXECUTORS = ("asyncio", "ray")
CLEAN_EXITS = (0, 1, 75, 130)
"""Done, not all done, stopped by a scheduler's signal, interrupted."""
MAX_PROCESSES = 300
"""With more than this, the run makes no progress."""
DISK_BYTES = 100_000
"""How much a file may still grow when the disk is nearly full."""


@dataclass
class Tally:
    """What happened to a run, and what came of it."""

    units: int = 0
    calls: int = 0
    processes: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    """Signals and faults, by kind."""
    ended: Counter[int] = field(default_factory=Counter)
    """Exit statuses."""
    unstored: int = 0
    """Replies that the server sent and that were lost with a process, before the reply cache had them."""
    repeated: int = 0
    """Replies that the server sent a second time."""
    lost: int = 0
    """Units that were finished and are missing."""
    doubled: int = 0
    """Units or calls that are stored twice, and replies that were stored and paid for again."""
    differing: int = 0
    """Units and tables of the report that differ from those of the undisturbed run."""


class ChaosRun:
    def __init__(
        self,
        trial: Trial,
        server: FaultServer,
        folder: Path,
        seed: int,
        concurrency: int = 64,
        executor: str = "asyncio",
        cluster: RayCluster | None = None,
    ) -> None:
        self.trial, self.server, self.folder, self.concurrency = trial, server, folder, concurrency
        self.executor, self.cluster = executor, cluster
        """Of the disturbed run; the undisturbed one always uses the default."""
        self.random = random.Random(f"{seed} {trial.name} {executor}")
        self.tally = Tally()
        self.expected: Counter[str] = Counter()
        self._first_process = self._first_reply = 0
        folder.mkdir(parents=True)
        trial.prepare(folder)
        self.undisturbed, self.file = File(folder / "undisturbed.sqlite"), File(folder / "chaos.sqlite")

    def run_undisturbed(self) -> None:
        share, self.server.share = self.server.share, 0.0
        self.server.next_process()
        process = self._start("undisturbed")
        assert process.end() == 0, f"the undisturbed run: {process.output()}"
        self.server.share = share
        self.expected = self.server.answered[-1]
        assert self.expected.total() == self.undisturbed.one("SELECT count(*) FROM calls"), "the server's count differs"

    def run_disturbed(self, kinds: Sequence[str]) -> None:
        """Disturb the run in these ways, one after the other, as long as it lasts; then only faults are left."""
        self._first_process, self._first_reply = len(self.server.answered), self.server.total()
        faults, left = Counter(self.server.sent_faults), list(kinds)
        while not self._run_process(left):
            assert self.tally.processes < MAX_PROCESSES, "the run does not end"
        self.tally.tries += self.server.sent_faults - faults

    def _run_process(self, kinds: list[str]) -> bool:
        """Run one process to its end, with the first of these disturbances; whether the run is done."""
        before, spent, stored, tries = self._done(), self._spent(), self._stored(), self.tally.tries.total()
        self.server.next_process()
        quota = None
        if kinds[:1] == [DISK] and self.file.path.exists():
            quota = self.file.path.stat().st_size + DISK_BYTES
            self.tally.tries[kinds.pop(0)] += 1
        process = self._start("chaos", clock=self.random.randrange(1 << 30), quota=quota)
        while kinds and quota is None and self._wait(process, len(kinds)):
            kind = kinds[0] if kinds[0] == DISK else kinds.pop(0)
            if kind != KILL_WORKER:
                process.signal(SIGNALS[kind])
                self.tally.tries[INT if kind == DISK else kind] += 1
                break
            if self.cluster and (workers := self.cluster.workers()):
                self.random.choice(workers).kill()
                self.tally.tries[kind] += 1
        status = process.end()
        self.tally.processes += 1
        self.tally.ended[status] += 1
        if status < 0:
            self._wait_for_workers()
        else:
            assert status in CLEAN_EXITS, process.output()
            assert "Traceback" not in process.output(), process.output()
        self.tally.lost += len(before - self._done())
        if self.file.path.exists():
            assert self.file.one("PRAGMA integrity_check") == "ok"
        answered, counted = self.server.answered[-1].total(), self._spent() - spent
        self.tally.unstored += max(0, answered - (self._stored() - stored))
        undisturbed = status >= 0 and tries == self.tally.tries.total()
        sent = answered + self.server.billed_faults[-1]
        assert counted == sent or not undisturbed, f"{counted} replies counted, {sent} sent"
        return status == 0

    def _wait_for_workers(self) -> None:
        """Workers end a moment after a killed run, and their last requests are not the next process's."""
        if self.cluster:
            self.cluster.wait_until_idle()
        answered = -1
        while answered != self.server.total():
            answered = self.server.total()
            time.sleep(0.4)

    def compare(self) -> Tally:
        """Count what was lost, what is there twice, and what differs from the undisturbed run."""
        tally = self.tally
        tally.units, tally.calls = self.file.count(), self.expected.total()
        tally.lost += len(self.undisturbed.done() - self.file.done())
        answered = sum(self.server.answered[self._first_process :], Counter())
        tally.repeated = (answered - self.expected).total()
        tally.doubled += max(0, tally.repeated - tally.unstored)  # a reply lost with a killed process is paid for again
        keys = {"units": "id", "messages": "unit, seq", "calls": "unit, seq, nth", "verdicts": "unit, nth"}
        for table, key in keys.items():
            tally.doubled += len(self.file.rows(f"SELECT 1 FROM {table} GROUP BY {key} HAVING count(*) > 1"))
        ours, theirs = story(self.file), story(self.undisturbed)
        units = {row[0] for part in ours for row in set(ours[part]) ^ set(theirs[part])}
        tables = {title for title, _ in tables_of(self.file.path) ^ tables_of(self.undisturbed.path)}
        tally.differing += len(units) + len(tables)
        if not (tally.lost or tally.doubled or tally.differing):
            self.file.check()
            backwards = self.file.one("SELECT count(*) FROM units WHERE finished_at < started_at")
            assert backwards == 0, "a unit ended before it began"
            assert (self.expected - answered).total() == 0, "a reply came from nowhere"
        return tally

    def _spent(self) -> int:
        if not self.file.path.exists():
            return 0
        with RunFile.open(self.file.path) as file:
            return file.spent().calls

    def _stored(self) -> int:
        """How many replies the reply cache has."""
        cache = File(self.folder / "chaos.home" / "replies.sqlite")
        # A process may have been killed between making the file and making its table.
        if not cache.path.exists() or not cache.rows("SELECT 1 FROM sqlite_master WHERE name = 'replies'"):
            return 0
        return int(cache.one("SELECT count(*) FROM replies"))

    def _done(self) -> set[str]:
        return self.file.done() if self.file.path.exists() else set()

    def _start(self, name: str, **limits: int | None) -> ParleyProcess:
        executor = self.executor if name == "chaos" else "asyncio"
        command: list[Any] = [*self.trial.command(self.server.model()), "--executor", executor]
        command += ["--concurrency", self.concurrency]
        command += ["--workers", 2] if executor == "ray" else []
        command += ["--ray-address", self.cluster.address] if executor == "ray" and self.cluster else []
        return started((*command, "--out", f"{name}.sqlite"), self.folder, name, **limits)

    def _wait(self, process: ParleyProcess, kinds: int) -> bool:
        """Wait until a share of the replies, or sometimes only for the start; whether the process is still alive."""
        if self.random.random() < 0.15:
            time.sleep(self.random.uniform(0.0, 0.5))
            return process.alive
        left = max(0, self.expected.total() - (self.server.total() - self._first_reply))
        enough = self.server.total() + self.random.uniform(0.1, 1.1) * left / (kinds + 1)
        while process.alive and self.server.total() < enough:
            time.sleep(0.005)
        return process.alive


def story(file: File) -> dict[str, list[tuple[Any, ...]]]:
    """A run's story, without the calls whose response was no reply: the next has the same prompt."""
    parts, calls = file.story(), []
    for call, after in zip(parts["calls"], [*parts["calls"][1:], None], strict=True):
        unit, seq, _, model, prompt, text, *_ = call
        if text or after is None or (unit, seq, model, prompt) != (after[0], after[1], after[3], after[4]):
            calls.append((*call[:2], *call[3:]))
    return {**parts, "calls": calls}


def tables_of(path: Path) -> set[tuple[str, str]]:
    """The report's tables, without latencies, names of files, and dollars: a cached reply is free."""
    left_out = ["run", "dollars_an_item"]
    frames = {table.title: table.frame for table in make_report([path], draws=20).tables}
    return {
        (title, frame.drop(columns=left_out, errors="ignore").to_csv())
        for title, frame in frames.items()
        if "latency" not in frame
    }
