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
from parley.training import device
from parley.training.adapters import load_policy
from parley.training.config import TrainConfig, seed_configs
from parley.training.context import TrainingContext
from parley.training.control import PLANTED, SHUFFLED, compare, write_control_data
from parley.training.folders import WeakReward
from parley.training.repeats import mean_over_seeds
from parley.training.stage_registry import find_stage
from parley.training.tokenization import sample_completions

ANSWERS_PER_TOPIC = 4


def run_control(config: TrainConfig, report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Trains on planted and on shuffled labels with each seed, and gives rows by seed and their means.

    Args:
        config: With the control's settings; `seeds` says how often.
        report: Takes lines about the progress.
    """
    rows: list[dict[str, Any]] = []
    configs = seed_configs(config)
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
    """Whether the bias fell with every seed, and with none if labels were shuffled."""
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


def _run_seed(config: TrainConfig, report: Callable[[str], None]) -> list[dict[str, Any]]:
    from parley.training.pipeline import run_stages  # it loads torch and transformers

    out = Path(config.out)
    data = out / "data"
    write_control_data(config, data)
    tables = {
        "rl": config.rl.model_copy(update={"topics_from": "debates"}),
        "sft": config.sft.model_copy(update={"data": str(data / "statements.jsonl")}),
    }
    planted = config.model_copy(update={"data": str(data / "planted"), **tables})
    shuffled = planted.model_copy(
        update={"data": str(data / "shuffled"), "out": str(out / "shuffled"), "sft_model_path": str(out / "sft")}
    )
    sft, reward, rl = map(find_stage, ("sft", "reward", "rl"))
    run_stages(planted, [sft, reward], report)
    run_stages(shuffled, [reward], report)
    before = _sampled("SFT", out / "sft", planted)
    answers, refused = list(before), {}
    for labels, one in ((PLANTED, planted), (SHUFFLED, shuffled)):
        try:
            run_stages(one, [rl], report)
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
    context = TrainingContext.open(config)
    tokenizer = context.chat.tokenizer
    model = load_policy(folder, context.base, tokenizer).to(device.device(), device.inference_dtype(config))
    held_out = [(topic, prompt) for topic, prompt in context.prompts.test.items() for _ in range(ANSWERS_PER_TOPIC)]
    prompts = [prompt for _, prompt in held_out]
    completions = sample_completions(model, context.chat, prompts, config.rl, seed=config.seed, batch_size=160)
    return [
        {"system": system, "topic": topic, "text": tokenizer.decode(ids, skip_special_tokens=True)}
        for (topic, _), ids in zip(held_out, completions, strict=True)
    ]
