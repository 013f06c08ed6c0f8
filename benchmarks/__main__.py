"""All benchmarks, and the page that shows them.

    python -m benchmarks peers install    # once: an environment for each peer, by plain pip
    python -m benchmarks                  # all figures, then benchmarks/RESULTS.md
    python -m benchmarks --quick          # a few of them, to see it work

Run from the repository's root. Every figure is taken in a process of its own and kept (`--work`); the same command
goes on where it was cut, and `--fresh` begins anew. Peers that are not installed are "not run". They live in
.benchmarks/peers, unless `peers install DIR` and `--peers DIR` name another place.
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

Every row holds the same conversation against the same server on loopback: four personas in turn, each seeing all that
was said before, replies of about 600 characters ([workload.py](workload.py)). Each peer is set up as its documentation
advises; its script under [peers](peers) says how, and where that stands. Every figure is taken in a process of its own,
systems alternate, and {repeats}. Compare figures of one page only. Load average when it began and ended: {load}{busy}.
"""
NOTES = {
    "CPU": "Two rounds of four messages, {cpu} conversations at once. *Instant model*: the reply is made within the "
    "process, so that only the framework is measured; *over HTTP*: with the client it comes with, 50 ms latency.",
    "Wall time": "The share of the ideal: the sum of a conversation's latencies, over the time that all conversations "
    'took; one round of four messages. "·": not asked, since the system was under {saturated:g} with fewer.',
    "Memory": "Of the whole process, with what it imports.",
    "Log and resume": "Two rounds on the instant model. *Going on*: {resume} conversations, 32 at once, on a model "
    "that is gone halfway and comes back; seconds from asking until the first new call, in a process that has "
    "everything loaded.",
}


def about(command: str) -> dict[str, Any]:
    """The machine as this program sees it."""
    machine = f"{_cores()} {platform.machine()} cores, {platform.system()}, Python {platform.python_version()}"
    return {"command": command, "date": date.today().isoformat(), "machine": machine, "load": _load()}


def _busy() -> bool:
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def write_page(bench: Bench, start: dict[str, Any], url: str, quick: bool) -> str:
    """Takes what is still missing and puts everything together."""
    cpu, grid, resume = list(bench.cpu(url)), list(bench.grid(url)), list(bench.resume())
    others = [
        (other, bench.words(other.module, other.module, other.quick if quick else other.full)) for other in OTHERS
    ]
    sizes = bench.sizes
    facts = start | {
        "minutes": bench.minutes(),
        "versions": page.versions(cpu, grid, resume),
        "repeats": "each is measured once"
        if sizes.repeats == 1
        else f"medians of {sizes.repeats} are shown (what took over {sizes.once_over:g} s is measured once)",
        "load": f"{start['load']}, {bench.kept('ended', lambda: {'load': _load()})['load']}",
        "busy": "; that is more than there are cores, so that CPU and ratios say more than wall time" * _busy(),
    }
    notes = {
        name: fill(
            text.format(cpu=sizes.cpu_conversations, saturated=sizes.saturated, resume=sizes.resume_conversations), 120
        )
        for name, text in NOTES.items()
    }
    lines = ["# Benchmarks: results", ""]
    lines += [fill(part, 120) + "\n" for part in INTRODUCTION.format(**facts).split("\n\n")]
    lines += ["## CPU a message", "", notes["CPU"], "", *page.cpu_section(cpu)]
    lines += ["## Wall time, beside the ideal", "", notes["Wall time"], "", *page.grid_section(grid)]
    lines += ["## Memory", "", notes["Memory"], "", *page.memory_section(grid)]
    lines += ["## Log and resume", "", notes["Log and resume"], "", *page.kept_section(cpu, resume)]
    lines += ["## Where Parley is not ahead", ""]
    lines += page.behind(cpu, grid, resume) or ["Nowhere, as measured." if page.any_peer(cpu) else "No peer was run."]
    lines += [""]
    if failed := page.failures(cpu, grid, resume):
        lines += ["## What failed", "", *failed, ""]
    for other, found in others:
        arguments = " ".join(other.quick if quick else other.full)
        lines += [f"## {other.title}", "", f"`python -m benchmarks.{other.module} {arguments}".rstrip() + "`", ""]
        lines += ["```text", found["text"], "```", ""] if "text" in found else [f"Failed: `{found['error']}`", ""]
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:3] == ["peers", "install"] and len(sys.argv) <= 4:
        install(Path(sys.argv[3]) if sys.argv[3:] else PEERS)
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few figures, in under three minutes")
    parser.add_argument("--peers", type=Path, default=PEERS, metavar="DIR", help="where the peers are")
    parser.add_argument("--page", type=Path, default=Path("benchmarks/RESULTS.md"), help="default: %(default)s")
    parser.add_argument("--work", type=Path, default=Path(".benchmarks"), help="where figures are kept")
    parser.add_argument("--fresh", action="store_true", help="forget the figures of a run that was cut")
    wanted = parser.parse_args()
    folder = wanted.work / ("quick" if wanted.quick else "full")
    if wanted.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    command = "python -m benchmarks" + " --quick" * wanted.quick
    sizes = QUICK if wanted.quick else Sizes()
    bench = Bench(folder, sizes, wanted.peers, lambda line: print(line, file=sys.stderr, flush=True))
    start = bench.kept("about", lambda: about(command))
    with server() as url:
        text = write_page(bench, start, url, wanted.quick)
    wanted.page.write_text(text, "utf-8")
    last = folder.with_name(f"{folder.name}-last")
    shutil.rmtree(last, ignore_errors=True)
    folder.rename(last)
    print(f"written: {wanted.page}")


if __name__ == "__main__":
    main()
