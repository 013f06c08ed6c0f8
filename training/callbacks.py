"""Trainer callbacks: the training log, manifests of checkpoints, the limit on the KL divergence, progress.

The log is JSON lines with one object per logged update, in the same names for RLOO and PPO: `step`, `reward`, `kl`
(nats per completion), `entropy` (nats per token), `length` (tokens per completion), `unfinished` (the share of
completions without an end token); for SFT and the reward model `loss`, `accuracy`, `margin`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from parley.base.errors import ParleyError
from parley.training.device import is_main
from parley.training.folders import sign_checkpoint

LOG_NAMES = {
    "loss": "loss",
    "learning_rate": "learning_rate",
    "lr": "learning_rate",
    "grad_norm": "grad_norm",
    "reward": "reward",
    "objective/scores": "reward",
    "entropy": "entropy",
    "policy/entropy_avg": "entropy",
    "completions/mean_length": "length",
    "completions/clipped_ratio": "unfinished",
    "objective/kl": "kl",
    "accuracy": "accuracy",
    "margin": "margin",
    "eval_loss": "eval_loss",
    "eval_accuracy": "eval_accuracy",
}
"""Parley's names for the log entries of TRL's trainers."""


class TrainingStopped(Exception):
    """Ends a trainer that ignores `should_training_stop` (PPO's)."""


def log_entry(step: int, logs: Mapping[str, Any]) -> dict[str, float]:
    """A trainer's log in our names. RLOO logs KL per token: it is converted to KL per completion."""
    entry = {ours: float(logs[theirs]) for theirs, ours in LOG_NAMES.items() if _is_number(logs.get(theirs))}
    if _is_number(logs.get("kl")) and _is_number(logs.get("completions/mean_length")):
        entry["kl"] = float(logs["kl"]) * float(logs["completions/mean_length"])
    return {"step": step, **entry} if entry else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


class TrainingLog(TrainerCallback):  # type: ignore[misc]
    """Writes the log. A stage resumed from a checkpoint drops what was logged after it.

    Args:
        path: The file.
        resumed_at: The update of the checkpoint, 0 for a new stage.
    """

    def __init__(self, path: Path, resumed_at: int = 0) -> None:
        self.path = path
        entries = [entry for entry in read_log(path) if entry["step"] <= resumed_at]
        if is_main():
            path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if state.is_world_process_zero and (entry := log_entry(state.global_step, logs or {})):
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def read_log(path: Path) -> list[dict[str, float]]:
    """The entries of a log; a line that a crash left incomplete is skipped."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return []
    entries = []
    for line in lines:
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue
    return entries


class CheckpointSigner(TrainerCallback):  # type: ignore[misc]
    """Writes a checkpoint's manifest when all of its files are on disk."""

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            sign_checkpoint(folder)


class FiniteGradients(TrainerCallback):  # type: ignore[misc]
    """Stops a stage whose gradient is not finite before the next checkpoint, since its weights are lost."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        norm = (logs or {}).get("grad_norm")
        if norm is not None and not math.isfinite(norm):
            raise ParleyError(
                f"the gradient of update {state.global_step} is not finite ({float(norm)}), so the weights are lost: "
                "try a lower learning rate, or bf16 = false"
            )


class KlLimit(TrainerCallback):  # type: ignore[misc]
    """Stops when the KL divergence from the SFT model exceeds a limit.

    Args:
        max_kl: The limit, in nats per completion.
        by_exception: For a trainer that ignores `should_training_stop`.
    """

    def __init__(self, max_kl: float, *, by_exception: bool = False) -> None:
        self.max_kl, self.by_exception, self.reached = max_kl, by_exception, 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        kl = log_entry(state.global_step, logs or {}).get("kl", 0.0)
        if kl > self.max_kl:
            self.reached = kl
            control.should_training_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self.reached:
            control.should_training_stop = True
            if self.by_exception:
                raise TrainingStopped


class TrainingProgress(TrainerCallback):  # type: ignore[misc]
    """Prints about ten lines with a stage's progress and last log entry.

    Args:
        stage: The stage's name.
        report: Receives the lines.
    """

    def __init__(self, stage: str, report: Callable[[str], None]) -> None:
        self.stage, self.report, self.last_tenth = stage, report, -1

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        entry = log_entry(state.global_step, logs or {})
        tenth = 10 * state.global_step // max(state.max_steps, 1)
        if entry and state.is_world_process_zero and tenth != self.last_tenth:
            self.last_tenth = tenth
            values = " · ".join(f"{key} {value:.3g}" for key, value in entry.items() if key != "step")
            self.report(f"{self.stage} {state.global_step}/{state.max_steps} · {values}")
