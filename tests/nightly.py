"""`python -m tests.nightly`: the tests that are marked `nightly`, with a table of their outcomes in tests/NIGHTLY.md.

Further words are passed to pytest: `python -m tests.nightly tests/fuzz` runs those of one folder and writes no table.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("NIGHTLY.md")
ROOT = Path(__file__).parents[1]


class Outcomes:
    """Counts what pytest reports, by file of tests."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.seconds: Counter[str] = Counter()
        self.generated: list[tuple[str, int, int]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self.seconds[file] += report.duration
        if report.when == "call":
            self.generated += [row for name, row in report.user_properties if name == "generated inputs"]
        if report.when == "call" or report.outcome != "passed":
            self.counts.setdefault(file, Counter())[report.outcome] += 1

    def table(self) -> str:
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
        lines = ["| tests | passed | failed | skipped | seconds |", "|---|---:|---:|---:|---:|"]
        for file, counts in sorted(self.counts.items()):
            numbers = [f"{counts[outcome]:,}" for outcome in ("passed", "failed", "skipped")]
            lines.append(f"| {file} | {' | '.join(numbers)} | {self.seconds[file]:,.0f} |")
        total = sum(self.counts.values(), Counter())
        numbers = [f"{total[outcome]:,}" for outcome in ("passed", "failed", "skipped")]
        lines.append(f"| **all** | {' | '.join(numbers)} | {sum(self.seconds.values()):,.0f} |")
        made = f"Made by `python -m tests.nightly` on {datetime.now(UTC):%-d %B %Y}, commit {commit or 'unknown'}."
        return "\n".join(["# Nightly tests", "", made, "", *lines, *self.campaign(), ""])

    def campaign(self) -> list[str]:
        """The inputs that tests/fuzz generated: a failure would stand in the table above."""
        if not self.generated:
            return []
        rows = [*self.generated, ("**all**", *(sum(row[column] for row in self.generated) for column in (1, 2)))]
        head = ["", "## Generated inputs", "", "| parser | accepted | rejected |", "|---|---:|---:|"]
        return head + [f"| {name} | {accepted:,} | {rejected:,} |" for name, accepted, rejected in rows]


def main(words: list[str]) -> int:
    outcomes = Outcomes()
    status = pytest.main(["-m", "nightly", "-n", "auto", "--dist", "loadfile", *words], plugins=[outcomes])
    if not words and outcomes.counts:
        TABLE.write_text(outcomes.table(), "utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
