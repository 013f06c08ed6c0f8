"""The benchmarks without peers: what each prints is put on the page as it is.

To add one, add a line: a title, its module, and its arguments in full and with `--quick`.
"""

from __future__ import annotations

from typing import NamedTuple


class Other(NamedTuple):
    """A benchmark, with its arguments in full and with `--quick`."""

    title: str
    module: str
    full: list[str]
    quick: list[str]


OTHERS = (
    Other(
        "The report, with ten identities and with forty",
        "report",
        ["--rows", "300000", "--draws", "1000"],
        ["--rows", "20000", "--draws", "200"],
    ),
    Other(
        "A long run: its first tenth and its last",
        "long_run",
        ["--calls", "40000"],
        ["--calls", "8000"],
    ),
    Other(
        "Streaming: AutoGen's team and a debate, every token an event",
        "streaming",
        ["--conversations", "16", "--repeats", "3"],
        ["--conversations", "8", "--repeats", "1"],
    ),
    Other(
        "Executors: this process, two worker processes, Ray",
        "executors",
        ["--rounds", "2"],
        ["--rounds", "1", "--conversations", "64"],
    ),
    Other(
        "RLDF: debates against a server that answers after 100 ms",
        "rldf",
        ["--topics", "320"],
        ["--topics", "64"],
    ),
    Other(
        "Silent ballots on the embedded model, by the type of its weights",
        "ballots",
        ["--situations", "1"],
        ["--situations", "1", "--types", "f32"],
    ),
    Other("The viewer", "viewer", ["--messages", "20000", "--times", "5"], ["--messages", "5000", "--times", "3"]),
)
