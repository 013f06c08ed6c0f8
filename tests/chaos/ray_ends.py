"""How a run with Ray ends: by a scheduler's signals, at its wall time, and after a worker was killed.

    python -m tests.chaos.ray_ends --tries 20

Every try must end with status 75 within the time it was given, and what it wrote must be readable.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import psutil

from parley.cli.signals import STOPPED_IN_TIME
from tests.conftest import File

Way = Literal["SIGTERM", "SIGUSR1", "wall time", "SIGTERM after a worker was killed"]
WAYS: tuple[Way, ...] = get_args(Way)
GRACE, WALL_SECONDS = 8, 30
LATEST_END = 4.0
"""Seconds that a process may take to start, before its wall time begins, and to be gone after its time is over."""
ROOT = Path(__file__).parents[2]


class Ending(NamedTuple):
    """How one try ended."""

    way: Way
    when: float
    """Seconds from the start to the signal."""
    status: int
    seconds: float
    """From the signal, or from the start for the wall time, to the end."""
    done: int
    """Units in the run file."""

    @property
    def right(self) -> bool:
        limit = WALL_SECONDS if self.way == "wall time" else GRACE
        return self.status == STOPPED_IN_TIME and self.seconds <= limit + LATEST_END


def try_once(way: Way, when: float) -> Ending:
    """Start a run whose units take longer than the alarm of Ray's own handler, and end it."""
    with tempfile.TemporaryDirectory(prefix="ry") as folder:
        model = "sim/judge?latency=6&max_connections=4"
        command = ["-m", "parley", "run", "malibu", "--suite", "tiny", "--model", model, "--executor", "ray"]
        command += ["--workers", "2", "--no-cache", "--out", "a.sqlite", "--grace", str(GRACE)]
        command += ["--wall-time", f"00:00:{WALL_SECONDS}"] if way == "wall time" else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PARLEY_HOME": f"{folder}/home"}
        began = time.monotonic()
        with subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            if way != "wall time":
                time.sleep(when)
                if "killed" in way:
                    workers = psutil.Process(process.pid).children(recursive=True)
                    for worker in [child for child in workers if "RayWorker" in " ".join(child.cmdline())][:1]:
                        worker.kill()
                    time.sleep(1)
                began = time.monotonic()
                process.send_signal(signal.SIGUSR1 if way == "SIGUSR1" else signal.SIGTERM)
            process.communicate()
        seconds = time.monotonic() - began
        path = Path(folder) / "a.sqlite"
        done = int(File(str(path)).one("SELECT count(*) FROM units WHERE status = 'done'")) if path.exists() else 0
        return Ending(way, when, process.returncode, seconds, done)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.ray_ends", description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=20, help="in all, in turn by each way")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the times: from Ray's start to the second round of units"
    )
    parsed = parser.parse_args()
    rng = random.Random(parsed.seed)
    endings = []
    for number in range(parsed.tries):
        endings.append(ending := try_once(WAYS[number % len(WAYS)], rng.uniform(3.0, 22.0)))
        print(f"{number + 1}. {ending}", file=sys.stderr, flush=True)
    print("| a run with Ray ends by | tries | status 75 in time | longest, s | units done |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way in WAYS:
        if mine := [ending for ending in endings if ending.way == way]:
            longest, done = max(ending.seconds for ending in mine), sum(ending.done for ending in mine)
            print(f"| {way} | {len(mine)} | {sum(ending.right for ending in mine)} | {longest:.1f} | {done} |")
    return 0 if all(ending.right for ending in endings) else 1


if __name__ == "__main__":
    sys.exit(main())
