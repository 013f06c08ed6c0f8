"""The configs of an ablation, one for each value of each list in [ablate], and the numbers that are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from parley.training.config import AblationSettings, TrainConfig

FACTORS = ("pairs", "topics", "rounds", "roles")


class AblationLevel(NamedTuple):
    """A factor at one of its values, with the config that trains it into its own folder."""

    factor: str
    level: str
    config: TrainConfig


def ablation_levels(config: TrainConfig) -> Iterator[AblationLevel]:
    """Every level of every factor that the config ablates."""
    for factor in FACTORS:
        for value in getattr(config.ablate, factor):
            yield _level(config, factor, str(value), {factor: value})
    for name, folder in config.ablate.data.items():
        yield _level(config, "data", name, {"data": folder})


def _level(config: TrainConfig, factor: str, level: str, changes: Mapping[str, Any]) -> AblationLevel:
    folder = Path(config.out) / "ablate" / f"{factor}-{re.sub(r'[^A-Za-z0-9.]+', '-', level)}"
    changed = TrainConfig.model_validate(
        {**config.model_dump(), **changes, "out": str(folder), "ablate": AblationSettings().model_dump()}
    )
    return AblationLevel(factor, level, changed)


def ablation_summary(results: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that an ablation compares; None for those that were not measured.

    Args:
        results: What `parley train all` gave, by stage.
    """
    reward, rl, evaluation = (results.get(name, {}) for name in ("reward", "rl", "evaluate"))
    accuracy = {row["control"]: row["accuracy"] for row in reward.get("quality", [])}
    bbq = [row for row in evaluation.get("bbq", []) if row["system"] == "RLDF" and row["category"] == "macro mean"]
    return {
        "pairs": reward.get("pairs"),
        "reward_accuracy": accuracy.get("all pairs"),
        "win_rate": rl.get("held_out", {}).get("win_rate"),
        **{f"bbq_{key}_{row['context']}": row[key] for row in bbq for key in ("accuracy", "bias")},
        **{row["metric"]: row["mean"] for row in evaluation.get("rubric", []) if row["system"] == "RLDF"},
        **{
            f"{row['metric']}_{row['bias']}": row["mean"]
            for row in evaluation.get("rubric_by_bias", [])
            if row["system"] == "RLDF"
        },
    }
