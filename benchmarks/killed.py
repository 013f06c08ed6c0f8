"""`parley train all`, killed once in every stage and in the evaluation, next to the same command left alone.

    python -m benchmarks.killed FOLDER --config benchmarks/killed.toml --set data=PAIRS

FOLDER/undisturbed, FOLDER/again and FOLDER/killed are the working folders of three runs with the same seed. The last
two are compared with the first: results, every logged update, weights, the evaluation's report. What `again` differs by
is due to the hardware; only what `killed` differs by beyond that is due to the kills.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from parley.base.home import home
from parley.training.callbacks import read_log
from parley.training.folders import CHECKPOINT_MANIFEST, LOG, checkpoint_step, read_manifest

ARMS = ("undisturbed", "again", "killed")
STAGES = ("sft", "reward", "rl")
OUT = Path("trained")
OF_THE_MACHINE = ("seconds", "peak_gib")
"""Entries of a manifest that are about the machine and not about the result."""


def train(folder: Path, arguments: Sequence[str], *, kill: bool) -> list[str]:
    """Runs `parley train all` until it is done, and gives the moments at which it was killed.

    Args:
        folder: The working folder. Its home has the user's weights of models, but none of the replies.
        arguments: Of the command.
        kill: Whether to kill it once in every stage, an update or more after a checkpoint, and in the evaluation.
    """
    own_home = folder.resolve() / "home"
    own_home.mkdir(parents=True, exist_ok=True)
    for shared in ("models", "bases"):
        if (home() / shared).is_dir() and not (own_home / shared).exists():
            (own_home / shared).symlink_to((home() / shared).resolve())
    command = [sys.executable, "-m", "parley", "train", "all", *arguments, "--out", str(OUT)]
    to_kill = [*STAGES, "evaluate"] if kill else []
    moments: list[str] = []
    while True:
        with (folder / "output.txt").open("ab") as output:
            process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, "PARLEY_HOME": str(own_home)}, stdout=output, stderr=output
            )
        while process.poll() is None:
            if to_kill and (moment := _moment(folder / OUT, to_kill[0])):
                process.send_signal(signal.SIGKILL)
                moments.append(f"{to_kill.pop(0)} {moment}")
                break
            time.sleep(0.01)
        if process.wait() != -signal.SIGKILL:
            if process.returncode:
                raise SystemExit(f"{' '.join(command)} failed: see {folder / 'output.txt'}")
            return moments


def _moment(out: Path, stage: str) -> str | None:
    """Whether a stage has gone far enough to be killed, and how far."""
    if stage == "evaluate":
        return "during its first run" if list((out / stage).glob("*.sqlite")) else None
    steps = out / f"{stage}.steps"
    saved = [checkpoint_step(path.parent) for path in steps.glob(f"checkpoint-*/{CHECKPOINT_MANIFEST}")]
    logged = [int(entry["step"]) for entry in read_log(steps / LOG)]
    if not saved or max(logged) <= max(saved):
        return None
    return f"after update {max(logged)}, checkpoint of update {max(saved)}"


def compare(one: Path, other: Path) -> list[str]:
    """What differs between the results of two working folders, in a line for each stage and the evaluation."""
    lines = []
    for stage in STAGES:
        first, second = one / OUT / stage, other / OUT / stage
        manifests = [_result(read_manifest(folder) or {}) for folder in (first, second)]
        keys = [key for key in {**manifests[0], **manifests[1]} if manifests[0].get(key) != manifests[1].get(key)]
        logs = [read_log(folder / LOG) for folder in (first, second)]
        same = sum(a == b for a, b in zip(*logs, strict=False))
        lines.append(
            f"{stage}: largest difference of a weight {largest_difference(first, second):g}; "
            f"{same} of {max(map(len, logs))} log entries equal; "
            f"results {'differ in ' + ', '.join(keys) if keys else 'equal'}"
        )
    reports = [folder / OUT / "evaluate" / "report.json" for folder in (one, other)]
    if all(report.is_file() for report in reports):
        first_report, second_report = (json.loads(report.read_text("utf-8")) for report in reports)
        lines.append(f"evaluate: reports {'equal' if first_report == second_report else 'differ'}")
    return lines


def _result(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in OF_THE_MACHINE}


def largest_difference(one: Path, other: Path) -> float:
    """The largest difference between two models' weights of the same name; 0 if they are equal bit by bit."""
    import torch
    from safetensors import safe_open

    largest = 0.0
    for file in sorted(one.glob("*.safetensors")):
        with safe_open(file, framework="pt") as first, safe_open(other / file.name, framework="pt") as second:
            for name in first.keys():  # noqa: SIM118 (not a dictionary)
                a, b = first.get_tensor(name), second.get_tensor(name)
                if not torch.equal(a, b):
                    largest = max(largest, float((a.double() - b.double()).abs().max()), sys.float_info.min)
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--at-once", type=int, default=1, help="runs at a time (default: 1)")
    options = parser.parse_args()
    arguments = ["--config", str(options.config.resolve())]
    arguments += [part for setting in options.set for part in ("--set", setting)]

    def run(arm: str) -> list[str]:
        return train(options.folder / arm, arguments, kill=arm == "killed")

    with ThreadPoolExecutor(options.at_once) as pool:
        *_, killed = pool.map(run, ARMS)
    for moment in killed:
        print(f"killed: {moment}")
    for arm in ARMS[1:]:
        for line in compare(options.folder / ARMS[0], options.folder / arm):
            print(f"{arm}, {line}")


if __name__ == "__main__":
    main()
