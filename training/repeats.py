"""Repeated training: the configs of an ablation, and tables of means over seeds."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from parley.training.config import AblationSettings, TrainConfig

FACTORS = ("pairs", "topics", "rounds", "roles")
COUNTS = ("seed", "n", "topics", "clusters", "unparsed", "unreadable", "answers", "empty", "p", "p_adjusted")
"""Columns without a standard deviation: counts, p-values, and interval limits, whose names end in low or high."""


class AblationLevel(NamedTuple):
    """A factor at one of its values, with a config that has its own folder."""

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
    """The numbers that an ablation compares; None if not measured.

    Args:
        results: The results of `parley train all`, by stage.
    """
    reward, evaluation = results.get("reward", {}), results.get("evaluate", {})
    accuracy = {row["control"]: row["accuracy"] for row in reward.get("quality", [])}
    bbq = [row for row in evaluation.get("bbq", []) if row["system"] == "RLDF" and row["category"] == "macro mean"]
    return {
        "pairs": reward.get("pairs"),
        "reward_accuracy": accuracy.get("all pairs"),
        **{f"bbq_{key}_{row['context']}": row[key] for row in bbq for key in ("accuracy", "bias")},
        **{row["metric"]: row["mean"] for row in evaluation.get("rubric", []) if row["system"] == "RLDF"},
        **{
            f"{row['metric']}_{row['bias']}": row["mean"]
            for row in evaluation.get("rubric_by_bias", [])
            if row["system"] == "RLDF"
        },
    }


def mean_over_seeds(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """One row per combination of the keys: every number's mean over its seeds, and its standard deviation, `…_sd`.

    Interval limits are averaged too: an interval over items is the uncertainty of one seed's number, the standard
    deviation the change from training with another seed. p-values are left out.

    Args:
        rows: The rows of all seeds.
        keys: The columns that identify a row.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return [{**dict(zip(keys, group, strict=True)), **_summary(members)} for group, members in groups.items()]


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"seeds": len(rows)}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        numbers = [float(value) for value in values if value is not None and _is_number(value)]
        if not numbers or name in ("seed", "p", "p_adjusted"):
            continue
        summary[name] = statistics.fmean(numbers)
        if name not in COUNTS and not name.endswith(("low", "high")):
            summary[f"{name}_sd"] = statistics.stdev(numbers) if len(numbers) > 1 else None
    return summary


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
