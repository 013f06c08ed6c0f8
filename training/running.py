"""Runs a stage of training, or all: once, once per seed, or at each level of an ablation.

    parley.train({"data": "pairs"}, "sft")

    OUT/STAGE                 the result of a stage
    OUT/seed-N/STAGE          with several seeds; OUT/seeds has their means
    OUT/ablate/FACTOR-LEVEL   one level of an ablation; OUT/ablate/table.json and OUT/ablate/report compare them

Training differs from seed to seed, and so does the split of a dataset that is one file; an export keeps its splits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from parley.agents.providers import SAMPLED
from parley.analysis.page.render import write
from parley.analysis.page.report import Report, Table
from parley.analysis.say import json_values
from parley.base.errors import ConfigError, ParleyError
from parley.base.files import new_file
from parley.judging.bbq.study import HUB
from parley.runs import Result
from parley.runs.job import Job, complete
from parley.runs.options import validated
from parley.training.base_model import require_packages
from parley.training.config import TrainConfig, seed_configs
from parley.training.device import is_main
from parley.training.evaluation.ablation import ablation_report, policy_scores
from parley.training.evaluation.systems import RunJob, evaluate, merge
from parley.training.folders import WeakReward
from parley.training.pairs import read_pairs
from parley.training.repeats import ablation_levels, ablation_summary, mean_over_seeds
from parley.training.rlaif import label_pairs
from parley.training.stages import STAGES, refuse_unknown_stage, run_stages, steps

NOTE = "Means over seeds; …_sd is their standard deviation. low and high are means of the seeds' intervals over items."
Progress = Callable[[str], None]
"""Receives a progress line."""
Execute = Callable[[Job], tuple[Job, Result]]
"""Executes a job, and returns it with how it ended."""


def train(
    config: TrainConfig | Mapping[str, Any],
    stage: str = "all",
    *,
    report: Progress = lambda line: None,
    run: Execute | None = None,
) -> dict[str, Any]:
    """Run a stage of training, as `parley train STAGE` does; finished stages are skipped. Returns results by stage.

    Args:
        config: The config, or its keys as in a config file: `{"data": "pairs", "rl": {"beta": 0.1}}`.
        stage: sft, reward, rl, rlaif, evaluate, ablate, merge or all.
        report: Receives progress lines; they are not shown by default.
        run: Executes the studies of RLAIF and of the evaluation; returns the job and how it ended.
    """
    refuse_unknown_stage(stage)
    chosen = config if isinstance(config, TrainConfig) else validated(TrainConfig, config)

    def run_job(job: Job) -> None:
        _, result = run(job) if run else asyncio.run(complete(job))
        if not result.complete:
            why = result.stopped or result.first_error or "units failed"
            again = "" if SAMPLED in why else "; the same command resumes it"  # another model is another run
            raise ParleyError(f"{job.path} is not complete ({why}){again}")

    return run_training(stage, chosen, report, run_job)


def run_training(stage: str, config: TrainConfig, report: Progress, run: RunJob) -> dict[str, Any]:
    """Run a stage, or all; returns results by stage.

    Args:
        stage: A stage or a job.
        config: The whole config.
        report: Receives progress lines.
        run: Runs the studies of RLAIF and of the evaluation.
    """
    if config.seeds > 1:
        return run_seeds(stage, config, report, run)
    if stage == "ablate":
        return {"ablate": ablate(config, report, run)}
    if stage == "merge":
        return {"merge": merge(config)}
    todo = steps(stage, config)
    if "evaluate" in todo and config.evaluate.bbq not in (None, HUB) and not Path(str(config.evaluate.bbq)).exists():
        raise ConfigError(f"evaluate.bbq: there is no {config.evaluate.bbq}")  # before hours of training
    results: dict[str, Any] = {}
    if stages := [name for name in todo if name in STAGES]:
        results |= _train(config, stages, report)
    if "rlaif" in todo:
        results["rlaif"] = _train(label_pairs(config, run), ["reward", "rl"], report)
    if is_main() and "evaluate" in todo:
        results["evaluate"] = evaluate(config, run).data()
    return results


def _train(config: TrainConfig, names: list[str], report: Progress) -> dict[str, Any]:
    read_pairs(config)  # before the packages: errors in the data are shown on machines without them too
    require_packages()
    return run_stages(config, [STAGES[name] for name in names], report)


def ablate(config: TrainConfig, report: Progress, run: RunJob) -> list[dict[str, Any]]:
    """Train and evaluate at every level of the config's [ablate].

    There is one row per level, written to OUT/ablate/table.json after each; finished stages are not repeated. The
    report is in OUT/ablate/report.
    """
    levels = list(ablation_levels(config))
    if not levels:
        raise ConfigError(
            "nothing to ablate: set ablate.pairs, ablate.topics, ablate.rounds, ablate.roles or ablate.data"
        )
    table = Path(config.out) / "ablate" / "table.json"
    rows: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    cautions: list[str] = []
    for number, (factor, level, level_config) in enumerate(levels, 1):
        report(f"ablation {number} of {len(levels)}: {factor} = {level}")
        try:
            results = run_training("all", level_config, report, run)
            numbers = ablation_summary(results)
            evaluation = results.get("evaluate", {})
            scores += policy_scores(factor, level, evaluation)
            cautions += evaluation.get("cautions", [])
        except WeakReward as error:  # learning nothing from so little data is a result too
            report(str(error))
            numbers = {"note": "RL not started: the reward model was no better than chance"}
        rows.append({"factor": factor, "level": level, **numbers})
        with new_file(table, Path.is_file) as file:
            json.dump(rows, file, indent=2, ensure_ascii=False)
    if is_main():
        write(ablation_report(rows, scores, config.base, cautions), table.with_name("report"))
    return rows


def run_seeds(stage: str, config: TrainConfig, report: Progress, run: RunJob) -> dict[str, Any]:
    """Run a stage once per seed; write results by seed and tables of means to OUT/seeds."""
    results: dict[int, dict[str, Any]] = {}
    for of_seed in seed_configs(config):
        report(f"seed {of_seed.seed}, {len(results) + 1} of {config.seeds}")
        results[of_seed.seed] = run_training(stage, of_seed, report, run)
    tables = seed_tables(results)
    folder = Path(config.out) / "seeds"
    finished = Report(title=f"RLDF on {config.base}, {config.seeds} seeds", tables=tuple(tables))
    write(finished, folder)
    values = {table.name: json_values(table.frame) for table in tables}
    with new_file(folder / "seeds.json", Path.is_file) as file:
        json.dump(values, file, indent=2, ensure_ascii=False)
    return {"by_seed": {str(seed): result for seed, result in results.items()}, "over_seeds": values}


def seed_tables(results: Mapping[int, Mapping[str, Any]]) -> list[Table]:
    """All tables of the results: of training, of the ablation and of the evaluation."""
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
    """The text columns, which identify a row."""
    return [name for name in rows[0] if name != "note" and all(isinstance(row.get(name), str) for row in rows)]
