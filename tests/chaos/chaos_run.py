"""One run under faults, signals and a clock that jumps, resumed until it is done; checked after every process.

    chaos_run = ChaosRun(trial, server, folder, seed=1)
    chaos_run.run_undisturbed()         # for comparison
    chaos_run.run_disturbed(kills=5)    # the same run under faults, killed and resumed until it is done
    chaos_run.compare()                 # the file, the server's own count and the report's tables are the same

However a process ends, the run file must be sound and contain every unit that was done before.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from parley.reports import make_report
from parley.runs import RunFile
from tests.chaos.faults import FaultServer
from tests.chaos.process import ChaosProcess
from tests.chaos.studies import Trial
from tests.conftest import File

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CLEAN_EXITS = (0, 1, 75, 130)
"""Done, not all done, interrupted."""
MAX_PROCESSES = 300
"""With more than this, the run makes no progress."""


@dataclass
class ChaosTally:
    """Counts for the table at the end."""

    units: int = 0
    calls: int = 0
    processes: int = 0
    signals: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    """Replies that the server sent and a killed process did not store."""
    repeated: int = 0
    """Replies that the server sent a second time."""


class ChaosRun:
    def __init__(
        self,
        trial: Trial,
        server: FaultServer,
        folder: Path,
        seed: int,
        concurrency: int = 32,
        executor: str = "asyncio",
    ) -> None:
        self.trial, self.server, self.folder, self.concurrency = trial, server, folder, concurrency
        self.executor = executor
        """Of the disturbed run; the undisturbed one always uses the default."""
        self.random = random.Random(f"{seed} {trial.name}")
        self.tally = ChaosTally()
        self.expected: Counter[str] = Counter()
        self._first_process = 0
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

    def run_disturbed(self, kills: int, report: Callable[[str], None] = lambda line: None) -> None:
        """Send signals until this many have hit a process; then only faults are left."""
        self._first_process = self.server.process + 1
        while self.tally.processes < MAX_PROCESSES:
            kills_left = kills - self.tally.signals
            left = self.expected.total() - self._calls()
            if self._run_process(left / (kills_left + 1) if kills_left else None):
                return
            report(
                f"{self.trial.name}: process {self.tally.processes}, {len(self._done())} of {self.undisturbed.count()}"
            )
        raise AssertionError("the run does not end")

    def _run_process(self, replies: float | None) -> bool:
        """Run one process to its end, or to a signal after about this many replies; whether the run is done."""
        before, spent = self._done(), self._spent()
        self.server.next_process()
        process = self._start("chaos", clock=self.random.randrange(1 << 30))
        if replies is not None and self._wait(process, replies):
            self.tally.signals += 1
            process.signal(self.random.choice(SIGNALS))
        status = process.end()
        if status < 0:
            self._wait_for_workers()
        self.tally.processes += 1
        self.tally.ended[f"exit {status}" if status >= 0 else signal.Signals(-status).name] += 1
        if status >= 0:
            assert status in CLEAN_EXITS, process.output()
            assert "Traceback" not in process.output(), process.output()
        assert before <= self._done(), "a unit that was done is no longer done"
        if self.file.path.exists():
            assert self.file.one("PRAGMA integrity_check") == "ok"
        answered, counted = self.server.answered[-1].total(), self._spent() - spent
        self.tally.lost += answered - counted
        assert counted <= answered if status < 0 else counted == answered, (
            f"the run counted {counted} replies, the server {answered}: {process.output()}"
        )
        return status == 0

    def _wait_for_workers(self) -> None:
        """Worker processes end a moment after a killed run, and their last requests are not the next process's."""
        answered = -1
        while answered != self.server.answered[-1].total():
            answered = self.server.answered[-1].total()
            time.sleep(0.4)

    def compare(self) -> None:
        """No unit is lost, duplicated or different, and only replies lost with a process were requested again."""
        self.file.check()
        assert self.file.story() == self.undisturbed.story(), "the disturbed run differs"
        assert self.file.one("SELECT count(*) FROM units WHERE finished_at < started_at") == 0, (
            "a unit ended before it began"
        )
        answered = sum(self.server.answered[self._first_process :], Counter())
        assert answered.keys() == self.expected.keys(), "other requests were made"
        assert answered >= self.expected
        self.tally.repeated = answered.total() - self.expected.total()
        assert self.tally.repeated <= self.tally.lost, "a reply that was received was requested again"
        assert self._tables(self.file.path) == self._tables(self.undisturbed.path), "the tables differ"
        self.tally.units, self.tally.calls = self.file.count(), self.expected.total()

    def _tables(self, path: Path) -> list[tuple[str, str]]:
        """The report's tables, without those of latencies and without the names of the files."""
        report = make_report([path], draws=20)
        frames = {table.title: table.frame.drop(columns="run", errors="ignore") for table in report.tables}
        return [(title, frame.to_csv()) for title, frame in frames.items() if "latency" not in frame]

    def _spent(self) -> int:
        if not self.file.path.exists():
            return 0
        with RunFile.open(self.file.path) as file:
            return file.spent().calls

    def _calls(self) -> int:
        return int(self.file.one("SELECT count(*) FROM calls")) if self.file.path.exists() else 0

    def _done(self) -> set[str]:
        return self.file.done() if self.file.path.exists() else set()

    def _start(self, name: str, clock: int | None = None) -> ChaosProcess:
        command = (*self.trial.command(self.server.model()), "--concurrency", self.concurrency)
        if name == "chaos" and self.executor != "asyncio":
            command = (*command, "--executor", self.executor, "--workers", 2)
        return ChaosProcess((*command, "--out", f"{name}.sqlite"), self.folder, name, clock)

    def _wait(self, process: ChaosProcess, replies: float) -> bool:
        """Wait until about this many replies, or sometimes only for the start; whether the process is still alive."""
        if self.random.random() < 0.15:
            time.sleep(self.random.uniform(0.0, 0.5))
            return process.alive
        enough = self.random.uniform(0.1, 1.1) * replies
        while process.alive and self.server.answered[-1].total() < enough:
            time.sleep(0.002)
        return process.alive
