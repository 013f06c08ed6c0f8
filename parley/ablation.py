"""Ablations of training by one command: everything again at each value of each list, and one table of what came out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.training.config import AblateConfig, TrainConfig

LISTS = ("pairs", "topics", "rounds", "roles")


def levels(config: TrainConfig) -> Iterator[tuple[str, str, TrainConfig]]:
    """Factor, level, and the config that has it."""
    part = config.ablate
    for factor in LISTS:
        for value in getattr(part, factor):
            yield factor, str(value), _at(config, factor, str(value), {factor: value})
    for name, folder in part.data.items():
        yield "data", name, _at(config, "data", name, {"data": folder})


def _at(config: TrainConfig, factor: str, level: str, change: dict[str, Any]) -> TrainConfig:
    folder = Path(config.out) / "ablate" / f"{factor}-{re.sub(r'[^A-Za-z0-9.]+', '-', level)}"
    return TrainConfig.model_validate(
        {**config.model_dump(), **change, "out": str(folder), "ablate": AblateConfig().model_dump()}
    )


def ablate(
    config: TrainConfig, train: Callable[[TrainConfig], dict[str, Any]], tell: Callable[[str], None] = lambda line: None
) -> list[dict[str, Any]]:
    """One row a level, written to OUT/ablate/table.json as it grows; a level that is done is not trained again."""
    planned = list(levels(config))
    if not planned:
        raise ConfigError(
            "nothing to ablate: set ablate.pairs, ablate.topics, ablate.rounds, ablate.roles or ablate.data"
        )
    rows: list[dict[str, Any]] = []
    for number, (factor, level, here) in enumerate(planned, 1):
        tell(f"ablation {number} of {len(planned)}: {factor} = {level}")
        rows.append({"factor": factor, "level": level, **train(here)})
        path = Path(config.out) / "ablate" / "table.json"
        path.write_text(json.dumps(rows, indent=2, ensure_ascii=False), "utf-8")
    return rows
