"""What watches a trainer: the log a tracker can read, signed checkpoints, a stop on divergence, answers on the way.

The log is JSON lines with one object a logged update, in one vocabulary whatever the algorithm: `step`, `reward`, `kl`
(nats an answer), `entropy` (nats a token), `length` (tokens an answer), and at a probe `win_rate`, `probe_reward`,
`probe_score` (the same without what is taken off answers that do not end), `probe_unfinished` (their share),
`probe_length`; for SFT and the reward model `loss`, `accuracy`, `margin`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from parley.training.device import is_main
from parley.training.stage import sign_checkpoint

NAMES = {
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
    "rewards/accuracies": "accuracy",
    "rewards/margins": "margin",
    "num_tokens": "tokens",
    "eval_loss": "eval_loss",
    "eval_accuracy": "eval_accuracy",
}
"""What TRL's trainers call things, and what we do."""


class Stopped(Exception):
    """Raised where a trainer does not listen when it is told to stop (PPO)."""


def entry(step: int, logs: Mapping[str, Any]) -> dict[str, float]:
    """A trainer's log in our words. RLOO and GRPO log divergence by token: it is brought to the whole answer."""
    found = {ours: float(logs[theirs]) for theirs, ours in NAMES.items() if _number(logs.get(theirs))}
    if _number(logs.get("kl")) and _number(logs.get("completions/mean_length")):
        found["kl"] = float(logs["kl"]) * float(logs["completions/mean_length"])
    return {"step": step, **found} if found else {}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


class TrainingLog(TrainerCallback):  # type: ignore[misc]
    """Writes the log; a stage that goes on from a checkpoint drops what was logged after it."""

    def __init__(self, path: Path, resumed_at: int = 0) -> None:
        self.path = path
        kept = [line for line in read_log(path) if line["step"] <= resumed_at]
        if is_main():
            path.write_text("".join(json.dumps(line) + "\n" for line in kept), "utf-8")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if state.is_world_process_zero and (line := entry(state.global_step, logs or {})):
            self.write(line)

    def write(self, line: Mapping[str, float]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_log(path: Path) -> list[dict[str, float]]:
    """The lines of a log; one cut short by a crash is left out."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


class Sign(TrainerCallback):  # type: ignore[misc]
    """Signs a checkpoint when all of it is on the disk."""

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            sign_checkpoint(folder)


class KlStop(TrainerCallback):  # type: ignore[misc]
    """Stops when the policy has moved too far from where it began."""

    def __init__(self, most: float, *, by_force: bool = False) -> None:
        self.most, self.by_force, self.reached = most, by_force, 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        kl = entry(state.global_step, logs or {}).get("kl", 0.0)
        if kl > self.most:
            self.reached = kl
            control.should_training_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self.reached:
            control.should_training_stop = True
            if self.by_force:
                raise Stopped


class SampleProbe(TrainerCallback):  # type: ignore[misc]
    """Every so often, `look` at the model; what it finds goes into the log."""

    def __init__(self, log: TrainingLog, every: int, look: Callable[[Any], Mapping[str, float]]) -> None:
        self.log, self.every, self.look, self.last = log, every, look, -1

    def _take(self, state: Any, model: Any) -> None:
        if state.global_step != self.last:
            self.last = state.global_step
            found = self.look(getattr(model, "policy", model))
            if state.is_world_process_zero:
                self.log.write({"step": state.global_step, **found})

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        self._take(state, model)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        if state.global_step % self.every == 0 or state.global_step == state.max_steps:
            self._take(state, model)

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        self._take(state, model)


class TrainingProgress(TrainerCallback):  # type: ignore[misc]
    """A line now and then: how far, and what was logged last."""

    def __init__(self, stage: str, *, lines: int = 10) -> None:
        self.stage, self.lines, self.said = stage, lines, -1

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        line = entry(state.global_step, logs or {})
        part = state.global_step * self.lines // max(state.max_steps, 1)
        if line and state.is_world_process_zero and part != self.said:
            self.said = part
            facts = " · ".join(f"{key} {value:.3g}" for key, value in line.items() if key != "step")
            print(f"{self.stage} {state.global_step}/{state.max_steps} · {facts}", file=sys.stderr, flush=True)
