"""The fault table: kinds of fault, how often each was tried, and what was lost, doubled or differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from tests.chaos.chaos_run import DISK, INT, KILL, KILL_WORKER, TERM, ChaosTally

ABOUT = """\
# Fault table

Every study with every executor, under faults and a clock that jumps, killed and resumed until it is done, and compared
with an undisturbed run. *Lost*: finished units that are missing. *Doubled*: units or calls that are stored twice, and
replies that were stored and paid for again; in batches every reply that was paid for again. *Differing*: units, and
tables of the report, that differ from the undisturbed run's. A process that is killed may have received replies that
are not in the cache yet: as many repeated requests as that are not counted as doubled, except in batches. A run has
several kinds of fault, and counts for each.
"""


class FaultTable:
    """The runs so far.

    Args:
        command: What makes the table.
        executors: Its columns.
    """

    def __init__(self, command: str, executors: Sequence[str]) -> None:
        self._command, self._executors = command, executors
        self._runs: dict[tuple[str, str], ChaosTally] = {}
        self.seconds = 0.0

    def add(self, study: str, executor: str, tally: ChaosTally) -> None:
        self._runs[study, executor] = tally

    @property
    def kills(self) -> int:
        return sum(tally.kills for tally in self._runs.values())

    def tries(self, executor: str, kind: str) -> int:
        """How often an executor's runs were disturbed in this way."""
        return sum(tally.tries[kind] for (_, name), tally in self._runs.items() if name == executor)

    @property
    def clean(self) -> bool:
        return not any(tally.lost or tally.doubled or tally.differing for tally in self._runs.values())

    def line(self, study: str, executor: str) -> str:
        tally = self._runs[study, executor]
        outcome = f"{tally.lost} lost, {tally.doubled} doubled, {tally.differing} differing"
        return f"{study:<20}{executor:<10}{tally.units:>6} units, {tally.kills} kills: {outcome}"

    def markdown(self) -> str:
        runs = list(self._runs.values())
        units, calls = sum(tally.units for tally in runs), sum(tally.calls for tally in runs)
        processes = sum(tally.processes for tally in runs)
        tries = sum((tally.tries for tally in runs), Counter())
        signals = [kind for kind in (KILL, KILL_WORKER, TERM, INT, DISK) if tries[kind]]
        kinds = [*signals, *sorted(kind for kind in tries if kind not in signals)]
        by_kind = [(kind, tries[kind], *_outcome(tally for tally in runs if tally.tries[kind])) for kind in kinds]
        by_kind.append(("all", tries.total(), *_outcome(runs)))
        by_executor = [
            (
                executor,
                self.tries(executor, KILL),
                self.tries(executor, TERM),
                *_outcome(tally for (_, name), tally in self._runs.items() if name == executor),
            )
            for executor in self._executors
        ]
        studies = list(dict.fromkeys(study for study, _ in self._runs))
        by_study = [(study, *self._cells(study)) for study in studies]
        unstored, repeated = sum(tally.unstored for tally in runs), sum(tally.repeated for tally in runs)
        return "\n".join(
            (
                ABOUT,
                f"`{self._command}`, {datetime.now(UTC):%d %B %Y}: {units:,} units, {calls:,} calls, "
                f"{self.kills} kills, {processes} processes, {self.seconds / 60:.0f} minutes. "
                f"Replies that were lost with a process: "
                f"{unstored:,}; requested again: {repeated:,}.\n",
                *_table(("executor", "SIGKILL", "SIGTERM", "runs", "lost", "doubled", "differing"), by_executor),
                "",
                *_table(("kind of fault", "tries", "runs", "lost", "doubled", "differing"), by_kind),
                "\nUnits and kills of each run, and what was lost, doubled or differs:\n",
                *_table(("study", *self._executors, "lost", "doubled", "differing"), by_study),
                "",
            )
        )

    def _cells(self, study: str) -> tuple[object, ...]:
        runs = {executor: self._runs.get((study, executor)) for executor in self._executors}
        cells = (f"{tally.units:,} / {tally.kills}" if tally else "not run" for tally in runs.values())
        return (*cells, *_outcome(tally for tally in runs.values() if tally)[1:])


def _outcome(tallies: Iterable[ChaosTally]) -> tuple[int, int, int, int]:
    tallies = list(tallies)
    return (
        len(tallies),
        sum(tally.lost for tally in tallies),
        sum(tally.doubled for tally in tallies),
        sum(tally.differing for tally in tallies),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return [f"| {' | '.join(_cell(value) for value in line)} |" for line in lines]


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
