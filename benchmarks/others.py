"""The benchmarks that are not held against peers: what each prints goes onto the page as it is.

To add one, add a line: a title, its module, what to ask of it in full, and what when it must be quick.
"""

from __future__ import annotations

from typing import NamedTuple


class Other(NamedTuple):
    title: str
    module: str
    full: list[str]
    quick: list[str]


OTHERS = (
    Other("Memory and run file of a long run", "memory", ["--units", "1000", "5000"], ["--units", "300", "3000"]),
    Other(
        "The report, beside a plain pandas loop",
        "report",
        ["--rows", "50000", "--draws", "1000", "--loop-draws", "1"],
        ["--rows", "10000", "--draws", "200", "--loop-draws", "1"],
    ),
    Other(
        "A long run: its first tenth beside its last",
        "long_run",
        ["--calls", "40000"],
        ["--calls", "8000"],
    ),
    Other(
        "Executors: units in this process, in two others, in Ray's",
        "executors",
        ["--rounds", "2"],
        ["--rounds", "1", "--conversations", "64"],
    ),
    Other("The viewer", "viewer", ["--messages", "20000", "--times", "5"], ["--messages", "5000", "--times", "3"]),
)
