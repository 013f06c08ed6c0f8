"""A model on a GPU (`hf/…`): seconds to the first silent ballot, ballots/s in the passes and from start to end.

    python -m benchmarks.gpu --model hf/qwen2.5-coder-1.5b --limit 135    # 9,450 ballots: the suite by one judge
    python -m benchmarks.gpu --judges temperaments --limit 72             # 20,160 ballots by four judges

Each run is `parley run malibu` in a process of its own, everything recorded, without the reply cache. With `--other
FOLDER`, a checkout of another version, the two alternate. The first run of a version may have to convert the weights.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PLAN = ("--suite", "full", "--design", "silent", "--metrics", "all", "--yardstick", "off", "--no-cache", "--quiet")


def child(arguments: Sequence[str], started: float) -> int:
    """`parley` with these arguments in this process; prints when each batch was done."""
    from parley.agents.models.hf import HfClient
    from parley.cli import main as parley

    ends: list[tuple[float, int]] = []
    generate = HfClient._generate

    def timed(self: HfClient, batch: Sequence[Any]) -> list[dict[str, Any]]:
        completions = generate(self, batch)
        ends.append((time.time() - started, len(batch)))
        return completions

    HfClient._generate = timed  # type: ignore[method-assign]
    code = parley(arguments)
    print(json.dumps(ends))
    return code


def run_once(folder: Path, model: str, limit: int, judges: str | None) -> dict[str, float]:
    """One run with the version in a folder."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", str(time.time()), "run", "malibu", *PLAN]
        command += ["--model", model, "--limit", str(limit), "--out", f"{place}/run.sqlite"]
        command += ["--judges", judges] if judges else []
        # Libraries may stand on PYTHONPATH; the version comes first.
        path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        started = time.time()
        done = subprocess.run(
            command, cwd=place, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        total = time.time() - started
    try:
        ends = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        sys.exit(f"the run failed:\n{done.stderr[-2000:]}")
    ballots = sum(count for _, count in ends)
    (first, of_first), (last, _) = ends[0], ends[-1]
    return {
        "first ballot, s": first,
        "ballots/s, passes": (ballots - of_first) / (last - first) if last > first else float("nan"),
        "ballots/s, in all": ballots / total,
        "total, s": total,
        "ballots": ballots,
        "lines of others": sum("%|" in line for line in done.stderr.replace("\r", "\n").splitlines()),
    }


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[3:], float(sys.argv[2]))
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="hf/qwen2.5-coder-1.5b")
    parser.add_argument("--limit", type=int, default=135, help="answers that are judged; 70 ballots each by one judge")
    parser.add_argument("--judges", help="panel that casts the ballots (default: one judge)")
    parser.add_argument("--times", type=int, default=3, help="alternations after the first runs")
    parser.add_argument("--other", type=Path, help="a checkout of another version, to compare with")
    parser.add_argument("--first-limit", type=int, default=2, help="answers in the first runs")
    arguments = parser.parse_args()
    versions = {"this": ROOT} | ({"other": arguments.other.resolve()} if arguments.other else {})
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
    for turn in range(arguments.times + 1):
        for name, folder in versions.items():
            limit = arguments.limit if turn else arguments.first_limit
            figures = run_once(folder, arguments.model, limit, arguments.judges)
            print(
                f"{name:6} run {turn}: " + ", ".join(f"{key} {value:.1f}" for key, value in figures.items()), flush=True
            )
            rows[name] += [figures] if turn else []
    for name, figures_of in rows.items():
        for key in list(figures_of[0])[:3]:
            print(f"{name:6} {key:20} {statistics.median(row[key] for row in figures_of):8.1f} (median)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
