"""Runs the positive control of training and its twin with shuffled labels, once per seed.

OUT/seed-N/data                   the generated dataset
OUT/seed-N/sft, reward, rl        trained on the planted labels
OUT/seed-N/shuffled/reward, rl    from the same SFT model, on shuffled labels
OUT/seed-N/answers.csv            the answers that the bias is measured on
OUT/control.json, OUT/control.csv
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from parley.base.text import plural
from parley.training.config import TrainConfig, seed_configs
from parley.training.control import PLANTED, SHUFFLED, compare, write_control_data
from parley.training.seeds import mean_over_seeds

DEFAULTS: dict[str, Any] = {
    "max_length": 256,
    "gguf": False,
    "sft": {"learning_rate": 1e-4, "batch_size": 32, "num_train_epochs": 3.0},
    "reward": {"learning_rate": 1e-4, "batch_size": 32},
    "rl": {
        "learning_rate": 5e-5,
        "batch_size": 32,
        "beta": 0.3,
        "max_steps": 24,
        "updates_per_generation": 2,
        "max_completion_length": 32,
        "probe_steps": 12,
        "probe_prompts": 16,
    },
}
"""Settings of the control unless the config has others; chosen for SmolLM2 on one GPU."""


def control_config(config: dict[str, Any]) -> dict[str, Any]:
    """A config file's settings over the control's defaults; its data is always generated."""
    tables = {key: {**value, **config.get(key, {})} for key, value in DEFAULTS.items() if isinstance(value, dict)}
    return {**DEFAULTS, **config, **tables, "data": "generated", "min_pairs": 2}


def run_control(config: TrainConfig, report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Trains on planted and on shuffled labels with each seed, and gives rows by seed and their means.

    Args:
        config: With the control's settings; `seeds` says how often.
        report: Takes lines about the progress.
    """
    rows: list[dict[str, Any]] = []
    configs = seed_configs(config) if config.seeds > 1 else [_in_folder(config)]
    for one in configs:
        report(f"control: seed {one.seed}, {len(rows) // 2 + 1} of {len(configs)}")
        rows += [{"seed": one.seed, **row} for row in _run_seed(one, report)]
    result = {
        "rows": rows,
        "means": mean_over_seeds(rows, ["labels"]),
        "passed": passed(rows),
        "verdict": verdict(rows, config.control.margin),
    }
    out = Path(config.out)
    (out / "control.json").write_text(json.dumps(result, indent=2, ensure_ascii=False), "utf-8")
    pd.DataFrame(rows).to_csv(out / "control.csv", index=False)
    return result


def passed(rows: list[dict[str, Any]]) -> bool:
    """Whether the bias fell with every seed, and with shuffled labels with none."""
    return all(row["lowered"] == (row["labels"] == PLANTED) for row in rows)


def verdict(rows: list[dict[str, Any]], margin: float) -> list[str]:
    """Whether the control passed, in sentences."""
    lowered = {labels: [row["lowered"] for row in rows if row["labels"] == labels] for labels in (PLANTED, SHUFFLED)}
    lines = [
        f"{labels}: the share of biased answers fell by more than {margin:g} in {sum(values)} of "
        f"{plural(len(values), 'seed')}{_refusals(rows, labels)}"
        for labels, values in lowered.items()
    ]
    return [*lines, f"the positive control {'passed' if passed(rows) else 'FAILED'}"]


def _refusals(rows: list[dict[str, Any]], labels: str) -> str:
    """How often RL was not started, because the reward model had learnt nothing."""
    count = sum(row["rl_refused"] for row in rows if row["labels"] == labels)
    return f" (RL not started in {count}: its reward model was no better than chance)" if count else ""


def _in_folder(config: TrainConfig) -> TrainConfig:
    return config.model_copy(update={"out": f"{config.out}/seed-{config.seed}"})


def _run_seed(config: TrainConfig, report: Callable[[str], None]) -> list[dict[str, Any]]:
    from parley.training.pipeline import run_stages
    from parley.training.rl import WeakReward

    out = Path(config.out)
    data = out / "data"
    write_control_data(config, data)
    rl = config.rl.model_copy(update={"topics_from": "debates"})
    sft = config.sft.model_copy(update={"data": str(data / "statements.jsonl")})
    planted = config.model_copy(update={"data": str(data / "planted"), "rl": rl, "sft": sft})
    shuffled = planted.model_copy(
        update={"data": str(data / "shuffled"), "out": str(out / "shuffled"), "sft_model_path": str(out / "sft")}
    )
    run_stages(planted, ["sft", "reward"], report)
    run_stages(shuffled, ["reward"], report)
    before = _sampled("SFT", out / "sft", planted)
    answers, refused = list(before), {}
    for labels, one in ((PLANTED, planted), (SHUFFLED, shuffled)):
        try:
            run_stages(one, ["rl"], report)
            answers += _sampled(labels, Path(one.out) / "rl", planted)
        except WeakReward as error:  # the policy remains the SFT model
            report(f"{labels}: {error}")
            refused[labels] = True
            answers += [{**row, "system": labels} for row in before]
    frame = pd.DataFrame(answers)
    frame.to_csv(out / "answers.csv", index=False)
    rows = compare(frame, config.control.margin)
    return [{**row, "rl_refused": refused.get(row["labels"], False)} for row in rows]


def _sampled(system: str, folder: Path, config: TrainConfig) -> list[dict[str, str]]:
    """Answers of a trained model to the held-out topics."""
    from parley.training import device
    from parley.training.adapters import load_policy
    from parley.training.context import TrainingContext
    from parley.training.generation import sample_completions

    context = TrainingContext.open(config)
    tokenizer = context.chat.tokenizer
    model = load_policy(folder, context.base, tokenizer).to(device.device(), device.inference_dtype(config))
    held_out = [
        (topic, prompt)
        for topic, prompt in context.prompts.test.items()
        for _ in range(config.control.answers_per_topic)
    ]
    completions = sample_completions(
        model,
        context.chat,
        [prompt for _, prompt in held_out],
        max_completion_length=config.rl.max_completion_length,
        temperature=config.rl.temperature,
        seed=config.seed,
        cuda_graphs=config.rl.cuda_graphs,
        batch_size=160,
    )
    return [
        {"system": system, "topic": topic, "text": tokenizer.decode(ids, skip_special_tokens=True)}
        for (topic, _), ids in zip(held_out, completions, strict=True)
    ]
