"""One run brought to its end against everything: faults, signals, a clock that jumps; checked after every life.

    ordeal = Ordeal(trial, server, folder, seed=1)
    ordeal.peace()                 # the undisturbed run, and what it asked
    ordeal.suffer(kills=5)         # the same under trouble, killed and started again until it is done
    ordeal.compare()               # the file, the server's own count, and the report's tables are the same

A *life* is one process. Whatever ends it, its run file must be sound and hold every unit it held before.
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
from tests.chaos.life import Life
from tests.chaos.studies import Trial
from tests.conftest import File

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
IN_ORDER = (0, 1, 130)
"""How a process ends by itself: done, not all done, interrupted."""
LIVES = 300
"""More than this, and the run does not get on."""


@dataclass
class Tally:
    """What was seen, for the table at the end."""

    units: int = 0
    calls: int = 0
    lives: int = 0
    signals: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    died: int = 0
    """Replies that the server gave and a killed process took with it."""
    again: int = 0
    """Replies that the server gave a second time."""


class Ordeal:
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
        """Of the run under trouble; the undisturbed one is always held by its own process."""
        self.draw = random.Random(f"{seed} {trial.name}")
        self.tally = Tally()
        self.need: Counter[str] = Counter()
        self._first_life = 0
        folder.mkdir(parents=True)
        trial.prepare(folder)
        self.undisturbed, self.file = File(folder / "peace.sqlite"), File(folder / "chaos.sqlite")

    def peace(self) -> None:
        share, self.server.share = self.server.share, 0.0
        self.server.next_life()
        life = self._start("peace")
        assert life.end() == 0, f"the undisturbed run: {life.said()}"
        self.server.share = share
        self.need = self.server.answered[-1]
        assert self.need.total() == self.undisturbed.one("SELECT count(*) FROM calls"), "the server counted otherwise"

    def suffer(self, kills: int, tell: Callable[[str], None] = lambda line: None) -> None:
        """Signals come until so many have hit; then the run is left to the faults alone."""
        self._first_life = self.server.life + 1
        while self.tally.lives < LIVES:
            to_come = kills - self.tally.signals
            left = self.need.total() - self._calls()
            if self._live(left / (to_come + 1) if to_come else None):
                return
            tell(f"{self.trial.name}: process {self.tally.lives}, {len(self._done())} of {self.undisturbed.count()}")
        raise AssertionError("it never comes to its end")

    def _live(self, stretch: float | None) -> bool:
        """One process, to its end or to a signal after about `stretch` replies; whether the run is done."""
        before, spent = self._done(), self._spent()
        self.server.next_life()
        life = self._start("chaos", clock=self.draw.randrange(1 << 30))
        if stretch is not None and self._come_to_a_moment(life, stretch):
            self.tally.signals += 1
            life.signal(self.draw.choice(SIGNALS))
        status = life.end()
        self.tally.lives += 1
        self.tally.ended[f"exit {status}" if status >= 0 else signal.Signals(-status).name] += 1
        if status >= 0:
            assert status in IN_ORDER, life.said()
            assert "Traceback" not in life.said(), life.said()
        assert before <= self._done(), "a unit that was done is no longer done"
        if self.file.path.exists():
            assert self.file.one("PRAGMA integrity_check") == "ok"
        answered, counted = self.server.answered[-1].total(), self._spent() - spent
        self.tally.died += answered - counted
        assert counted <= answered if status < 0 else counted == answered, (
            f"the run counted {counted} replies, the server {answered}: {life.said()}"
        )
        return status == 0

    def compare(self) -> None:
        """Nothing lost, nothing doubled, nothing different; and what was asked twice had died with a process."""
        self.file.check()
        assert self.file.story() == self.undisturbed.story(), "the run under trouble found out something else"
        assert self.file.one("SELECT count(*) FROM units WHERE finished_at < started_at") == 0, "the clock was believed"
        given = sum(self.server.answered[self._first_life :], Counter())
        assert given.keys() == self.need.keys(), "something else was asked"
        assert given >= self.need
        self.tally.again = given.total() - self.need.total()
        assert self.tally.again <= self.tally.died, "a reply that had come was asked for again"
        assert self._tables(self.file.path) == self._tables(self.undisturbed.path), "the tables differ"
        self.tally.units, self.tally.calls = self.file.count(), self.need.total()

    def _tables(self, path: Path) -> list[tuple[str, str]]:
        """The report's; how long its calls took is each run's own."""
        made = make_report([path], draws=20)
        return [(table.title, table.frame.to_csv()) for table in made.tables if "latency" not in table.frame]

    def _spent(self) -> int:
        if not self.file.path.exists():
            return 0
        with RunFile.open(self.file.path) as file:
            return file.spent()[0]

    def _calls(self) -> int:
        return int(self.file.one("SELECT count(*) FROM calls")) if self.file.path.exists() else 0

    def _done(self) -> set[str]:
        return self.file.done() if self.file.path.exists() else set()

    def _start(self, name: str, clock: int | None = None) -> Life:
        command = (*self.trial.command(self.server.model()), "--concurrency", self.concurrency)
        if name == "chaos" and self.executor != "asyncio":
            command = (*command, "--executor", self.executor, "--workers", 2)
        return Life((*command, "--out", f"{name}.sqlite"), self.folder, name, clock)

    def _come_to_a_moment(self, life: Life, stretch: float) -> bool:
        """Mostly while it works, sometimes while it starts; whether it was still alive."""
        if self.draw.random() < 0.15:
            time.sleep(self.draw.uniform(0.0, 0.5))
            return life.alive
        enough = self.draw.uniform(0.1, 1.1) * stretch
        while life.alive and self.server.answered[-1].total() < enough:
            time.sleep(0.002)
        return life.alive
