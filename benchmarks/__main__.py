"""All benchmarks, and the page with their results.

    python -m benchmarks peers install    # once: one environment per peer, by pip
    python -m benchmarks                  # all figures, then benchmarks/RESULTS.md
    python -m benchmarks --quick          # a few of them, to try it out

Run from the repository's root. Every figure is measured in its own process. Peers that are not installed are "not
run". They are in .benchmarks/peers, unless `peers install DIR` and `--peers DIR` name another folder.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from datetime import date
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from benchmarks import page
from benchmarks.measure import QUICK, Bench, Sizes
from benchmarks.peers.systems import install
from benchmarks.server import server

PEERS = Path(".benchmarks/peers")
INTRODUCTION = """\
Made by `{command}` on {date}, in {minutes:.0f} minutes. {machine}.
{versions}.

Every system runs the same conversation against the same server on loopback: four personas in turn, each seeing all
previous messages, replies of about 600 characters ([workload.py](workload.py)). Each peer is set up as its
documentation recommends; its script under [peers](peers) says how, and cites the page. Every figure is measured in its
own process, systems alternate, and {repeats}. Compare only figures of the same page. Load average at start and end:
{load}{busy}.
"""
NOTES = {
    "CPU": "Two rounds of four messages, {cpu} concurrent conversations. *Instant model*: replies come from within the "
    "process, so that only the framework is measured; *over HTTP*: with the client it ships with, 50 ms latency.",
    "Wall time": "The share of the ideal: the sum of one conversation's latencies over the time that all conversations "
    'took; one round of four messages. "·": not measured, since the system was below {saturated:g} with fewer.',
    "Memory": "Of the whole process, including what it imports.",
    "Log and resume": "Two rounds on the instant model. *Packed*: the log compressed by gzip; "
    "Inspect's is compressed as it is written. *Resume*: {resume} conversations, 32 of them concurrent, on a "
    "model that fails halfway and comes back; seconds from the request to resume until the first new call, in a "
    "process that has everything loaded.",
}


class Other(NamedTuple):
    """A benchmark without peers; what it prints is put on the page as it is."""

    title: str
    module: str
    full: str
    """Its arguments."""
    quick: str
    """Its arguments with `--quick`."""


OTHERS = (
    Other(
        "The report, with ten identities and with forty",
        "report",
        "--rows 300000 --draws 1000",
        "--rows 20000 --draws 200",
    ),
    Other(
        "A call over HTTP, alternated with raw aiohttp in one process",
        "calls",
        "--only statements ballots speed",
        "--only statements --repeats 1",
    ),
    Other("A long run: its first tenth and its last", "long_run", "--calls 40000", "--calls 8000"),
    Other(
        "Streaming: AutoGen's team and a debate, every token an event",
        "streaming",
        "--conversations 16 --repeats 3",
        "--conversations 8 --repeats 1",
    ),
    Other("Executors: this process and Ray", "executors", "--rounds 2", "--rounds 1 --conversations 64"),
    Other("RLDF: debates against a server that answers after 100 ms", "rldf", "--topics 320", "--topics 64"),
    Other(
        "Silent ballots on the embedded model, by the type of its weights",
        "ballots",
        "--situations 1",
        "--situations 1 --types f32",
    ),
    Other("The viewer", "viewer", "--messages 20000 --times 5", "--messages 5000 --times 3"),
)


def about(command: str) -> dict[str, Any]:
    """The command, the date and the machine."""
    machine = f"{_cores()} {platform.machine()} cores, {platform.system()}, Python {platform.python_version()}"
    began = {"at": time.time(), "date": date.today().isoformat(), "load": _load()}
    return {"command": command, "machine": machine, **began}


def _busy() -> bool:
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def write_page(bench: Bench, start: dict[str, Any], url: str, quick: bool) -> str:
    """Measures everything, and returns the page as Markdown."""
    cpu, grid, resume = list(bench.cpu(url)), list(bench.grid(url)), list(bench.resume())
    others = [(other, bench.output(other.module, (other.quick if quick else other.full).split())) for other in OTHERS]
    sizes = bench.sizes
    facts = start | {
        "minutes": (time.time() - start["at"]) / 60,
        "versions": page.versions(cpu, grid, resume),
        "repeats": "each is measured once"
        if sizes.repeats == 1
        else f"medians of {sizes.repeats} are shown (cells that took over {sizes.once_over:g} s are measured once)",
        "load": f"{start['load']}, {_load()}",
        "busy": "; more than there are cores, so CPU and ratios are more reliable than wall time" * _busy(),
    }
    notes = {
        name: fill(
            text.format(cpu=sizes.cpu_conversations, saturated=sizes.saturated, resume=sizes.resume_conversations), 120
        )
        for name, text in NOTES.items()
    }
    lines = ["# Benchmarks: results", ""]
    lines += [fill(part, 120) + "\n" for part in INTRODUCTION.format(**facts).split("\n\n")]
    lines += ["## CPU per message", "", notes["CPU"], "", *page.cpu_section(cpu)]
    lines += ["## Wall time compared with the ideal", "", notes["Wall time"], "", *page.grid_section(grid)]
    lines += ["## Compared with raw aiohttp", "", *page.raw_section(cpu, grid)]
    lines += ["## Memory", "", notes["Memory"], "", *page.memory_section(grid)]
    lines += ["## Log and resume", "", notes["Log and resume"], "", *page.log_section(cpu, resume)]
    lines += ["## Where Parley is not ahead", ""]
    none = "In none of these measurements." if page.any_peer(cpu) else "No peer was run."
    lines += page.behind(cpu, grid, resume) or [none]
    lines += [""]
    if failed := page.failures(cpu, grid, resume):
        lines += ["## What failed", "", *failed, ""]
    for other, result in others:
        options = other.quick if quick else other.full
        lines += [f"## {other.title}", "", f"`python -m benchmarks.{other.module} {options}`", ""]
        lines += ["```text", result["text"], "```", ""] if "text" in result else [f"Failed: `{result['error']}`", ""]
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:3] == ["peers", "install"] and len(sys.argv) <= 4:
        install(Path(sys.argv[3]) if sys.argv[3:] else PEERS)
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few figures, in under three minutes")
    parser.add_argument("--peers", type=Path, default=PEERS, metavar="DIR", help="folder of the peers' environments")
    parser.add_argument("--page", type=Path, default=Path("benchmarks/RESULTS.md"), help="default: %(default)s")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else Sizes()
    bench = Bench(sizes, arguments.peers, lambda line: print(line, file=sys.stderr, flush=True))
    start = about("python -m benchmarks" + " --quick" * arguments.quick)
    with server() as url:
        text = write_page(bench, start, url, arguments.quick)
    arguments.page.write_text(text, "utf-8")
    print(f"written: {arguments.page}")


if __name__ == "__main__":
    main()
