"""Ablations of training: everything is trained and evaluated again at each value of each list, into one table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError
from parley.training.ablation import ablation_levels
from parley.training.config import TrainConfig


def ablate(
    config: TrainConfig,
    train: Callable[[TrainConfig], dict[str, Any]],
    report: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """One row per level, written to OUT/ablate/table.json after each; finished stages of a level are not repeated.

    Args:
        config: Its table [ablate] has the lists.
        train: Trains and evaluates one config, and gives the numbers to compare.
        report: Takes lines about the progress.
    """
    levels = list(ablation_levels(config))
    if not levels:
        raise ConfigError(
            "nothing to ablate: set ablate.pairs, ablate.topics, ablate.rounds, ablate.roles or ablate.data"
        )
    from parley.training.rl import WeakReward

    table = Path(config.out) / "ablate" / "table.json"
    rows: list[dict[str, Any]] = []
    for number, (factor, level, level_config) in enumerate(levels, 1):
        report(f"ablation {number} of {len(levels)}: {factor} = {level}")
        try:
            numbers = train(level_config)
        except WeakReward as error:  # so little data that nothing was learnt is a result too
            report(str(error))
            numbers = {"note": "RL not started: the reward model was no better than chance"}
        rows.append({"factor": factor, "level": level, **numbers})
        table.write_text(json.dumps(rows, indent=2, ensure_ascii=False), "utf-8")
    return rows
