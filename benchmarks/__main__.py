"""All benchmarks, and the page with their results.

    python -m benchmarks peers install    # once: one environment per peer, by pip
    python -m benchmarks                  # all figures, then benchmarks/RESULTS.md
    python -m benchmarks --quick          # a few of them, to try it out

Run from the repository's root. Every figure is measured in its own process and saved (`--work`); the same command
resumes an interrupted benchmark, and `--fresh` starts over. Peers that are not installed are "not run". They are in
.benchmarks/peers, unless `peers install DIR` and `--peers DIR` name another folder.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from datetime import date
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks import page
from benchmarks.measure import QUICK, Bench, Sizes
from benchmarks.others import OTHERS
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
    "Log and resume": "Two rounds on the instant model. *Packed*: the log compressed by gzip, as `parley pack` does; "
    "Inspect's is compressed as it is written. *Resume*: {resume} conversations, 32 of them concurrent, on a "
    "model that fails halfway and comes back; seconds from the request to resume until the first new call, in a "
    "process that has everything loaded.",
}


def about(command: str) -> dict[str, Any]:
    """The command, the date and the machine."""
    machine = f"{_cores()} {platform.machine()} cores, {platform.system()}, Python {platform.python_version()}"
    return {"command": command, "date": date.today().isoformat(), "machine": machine, "load": _load()}


def _busy() -> bool:
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def write_page(bench: Bench, start: dict[str, Any], url: str, quick: bool) -> str:
    """Measures what is still missing, and returns the page as Markdown."""
    cpu, grid, resume = list(bench.cpu(url)), list(bench.grid(url)), list(bench.resume())
    others = [
        (other, bench.output(other.module, other.module, other.quick if quick else other.full)) for other in OTHERS
    ]
    sizes = bench.sizes
    facts = start | {
        "minutes": bench.minutes(),
        "versions": page.versions(cpu, grid, resume),
        "repeats": "each is measured once"
        if sizes.repeats == 1
        else f"medians of {sizes.repeats} are shown (cells that took over {sizes.once_over:g} s are measured once)",
        "load": f"{start['load']}, {bench.saved('ended', lambda: {'load': _load()})['load']}",
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
    lines += ["## Memory", "", notes["Memory"], "", *page.memory_section(grid)]
    lines += ["## Log and resume", "", notes["Log and resume"], "", *page.log_section(cpu, resume)]
    lines += ["## Where Parley is not ahead", ""]
    none = "In none of these measurements." if page.any_peer(cpu) else "No peer was run."
    lines += page.behind(cpu, grid, resume) or [none]
    lines += [""]
    if failed := page.failures(cpu, grid, resume):
        lines += ["## What failed", "", *failed, ""]
    for other, result in others:
        options = " ".join(other.quick if quick else other.full)
        lines += [f"## {other.title}", "", f"`python -m benchmarks.{other.module} {options}".rstrip() + "`", ""]
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
    parser.add_argument("--work", type=Path, default=Path(".benchmarks"), help="folder for the figures")
    parser.add_argument("--fresh", action="store_true", help="discard the figures of an interrupted benchmark")
    arguments = parser.parse_args()
    folder = arguments.work / ("quick" if arguments.quick else "full")
    if arguments.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    command = "python -m benchmarks" + " --quick" * arguments.quick
    sizes = QUICK if arguments.quick else Sizes()
    bench = Bench(folder, sizes, arguments.peers, lambda line: print(line, file=sys.stderr, flush=True))
    start = bench.saved("about", lambda: about(command))
    with server() as url:
        text = write_page(bench, start, url, arguments.quick)
    arguments.page.write_text(text, "utf-8")
    last = folder.with_name(f"{folder.name}-last")
    shutil.rmtree(last, ignore_errors=True)
    folder.rename(last)
    print(f"written: {arguments.page}")


if __name__ == "__main__":
    main()
