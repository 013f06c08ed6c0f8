"""One job for several seeds: each is trained and evaluated in OUT/seed-N, and OUT/seeds has their means.

Training differs from seed to seed, and so does the split of a dataset that is one file; an export keeps its splits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from parley.analysis.reporting.render import write
from parley.analysis.reporting.report import Report, Table, json_values
from parley.training.ablation import ablation_summary
from parley.training.config import TrainConfig, seed_configs
from parley.training.seeds import mean_over_seeds

NOTE = "Means over seeds; …_sd is their standard deviation. low and high are means of the seeds' intervals over items."


def run_seeds(
    config: TrainConfig, train: Callable[[TrainConfig], dict[str, Any]], report: Callable[[str], None]
) -> dict[str, Any]:
    """Runs a stage once per seed; results by seed, and tables of means over seeds, written to OUT/seeds.

    Args:
        config: Its `seed` is the first of `seeds`.
        train: Runs the stage with the config of one seed.
        report: Takes lines about the progress.
    """
    results: dict[int, dict[str, Any]] = {}
    for of_seed in seed_configs(config):
        report(f"seed {of_seed.seed}, {len(results) + 1} of {config.seeds}")
        results[of_seed.seed] = train(of_seed)
    tables = seed_tables(results)
    folder = Path(config.out) / "seeds"
    finished = Report(title=f"RLDF on {config.base}, {config.seeds} seeds", tables=tuple(tables))
    write(finished, folder)
    values = {table.name: json_values(table.frame) for table in tables}
    (folder / "seeds.json").write_text(json.dumps(values, indent=2, ensure_ascii=False), "utf-8")
    return {"by_seed": {str(seed): result for seed, result in results.items()}, "over_seeds": values}


def seed_tables(results: Mapping[int, Mapping[str, Any]]) -> list[Table]:
    """A table for every table that the results have: of training, of the ablation and of the evaluation."""
    by_table: dict[str, list[dict[str, Any]]] = {}
    for seed, result in results.items():
        tables = {
            "training": [{"run": "RLDF", **_numbers(ablation_summary(result))}],
            "ablation": result.get("ablate", []),
            **{name: rows for name, rows in result.get("evaluate", {}).items() if _is_table(rows)},
        }
        for name, rows in tables.items():
            by_table.setdefault(name, []).extend({"seed": seed, **row} for row in rows)
    return [
        Table(name=name, title=name, frame=pd.DataFrame(mean_over_seeds(rows, _keys(rows))), note=NOTE)
        for name, rows in by_table.items()
        if rows
    ]


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _is_table(rows: Any) -> bool:
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and "system" in rows[0]


def _keys(rows: list[dict[str, Any]]) -> list[str]:
    """The columns of text, which say what a row is about."""
    return [name for name in rows[0] if name != "note" and all(isinstance(row.get(name), str) for row in rows)]
