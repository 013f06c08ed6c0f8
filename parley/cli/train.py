"""`parley train STAGE --config FILE`: from debates to a policy, and whether it helped."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from parley.agents import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.cli.commands import AddParser
from parley.cli.flags import add_flags, given, read_config
from parley.execute import Job, explain
from parley.training.config import TABLES, TrainConfig

TRAINED_STAGES = ("sft", "reward", "rl")
HELP = {
    "sft": "fine-tune the base model on low-bias statements",
    "reward": "train the reward model on pairs, and assess it on held-out ones",
    "rl": "train the policy against the reward model",
    "rlaif": "the baseline without debates: a model labels pairs, then reward and rl on them",
    "evaluate": "BBQ, and BS, CE and LS on held-out topics, of trained systems and baselines",
    "control": "a positive control: train on generated data with a planted bias, and check that the bias falls",
    "merge": "write the models that were trained with use_peft as whole ones, to OUT/STAGE/merged",
    "ablate": "train and evaluate at each value of the lists in [ablate]",
    "all": "sft, reward, rl, rlaif if rlaif.labeller is set, evaluate if evaluate.bbq or evaluate.judges is set",
}
WITHOUT_FLAGS = {"ablate": ("data",), "evaluate": ("models",)}
"""Tables within a table of the config, which have no flags."""
Report = Callable[[str], None]
"""Takes a line about the progress."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        usage="parley train STAGE [flags]",
        description="On one device, or on several: accelerate launch -m parley train STAGE --config FILE. Finished "
        "stages are skipped, an interrupted one is resumed.",
        epilog="; ".join(f"{name}: {what}" for name, what in HELP.items()),
    )
    parser.add_argument("stage", choices=HELP, metavar="STAGE", help=", ".join(HELP))
    parser.add_argument(
        "--config", metavar="FILE", help="TOML or YAML: keys are the flags below, with tables such as [rl]"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    add_flags(parser, TrainConfig, "training", leave_out=tuple(TABLES))
    for name, table in TABLES.items():
        add_flags(parser, table, f"[{name}]", WITHOUT_FLAGS.get(name, ()), prefix=f"{name}_")
    parser.set_defaults(handler=handle)


def make_config(parsed: argparse.Namespace) -> TrainConfig:
    """The config file with the flags over it; ConfigError if a setting is wrong."""
    config = read_config(Path(parsed.config)) if parsed.config else {}
    for name, table in TABLES.items():
        settings = config.get(name, {})
        if not isinstance(settings, dict):
            raise ConfigError(f"{parsed.config}: {name} must be a table: [{name}]")
        config[name] = {**settings, **given(parsed, table, f"{name}_")}
    if parsed.stage == "control":
        from parley.jobs.control import control_config

        config = control_config(config)
    flags = {key: value for key, value in given(parsed, TrainConfig).items() if key not in TABLES}
    try:
        return TrainConfig.model_validate({**config, **flags})
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "missing" and first["loc"] == ("data",):
            raise ConfigError(
                "name the pairs to train on: --data FOLDER (of `parley export RUN --format trl`)"
            ) from None
        schema: type[BaseModel] = TABLES.get(str(first["loc"][0]), TrainConfig)
        raise ConfigError(explain(error, schema)) from None


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    config = make_config(parsed)
    report = (lambda line: None) if parsed.quiet else _print_progress
    results = run_training(parsed.stage, config, report, quiet=parsed.quiet or parsed.json)
    if not _is_main():
        return 0
    if parsed.json:
        print(json.dumps(results, ensure_ascii=False))
    else:
        for line in _result_lines(results, config):
            print(visible(line))
    return 0 if results.get("control", {}).get("passed", True) else 1


def run_training(stage: str, config: TrainConfig, report: Report, *, quiet: bool) -> dict[str, Any]:
    """Runs one stage, or all; the results by stage.

    Args:
        stage: A key of `HELP`.
        config: The whole config.
        report: Takes lines about the progress.
        quiet: Whether the runs of an evaluation show no progress.
    """
    if config.seeds > 1 and stage != "control":  # which has seeds of its own
        from parley.jobs.seeds import run_seeds

        return run_seeds(config, lambda one: run_training(stage, one, report, quiet=quiet), report)
    if stage == "ablate":
        from parley.jobs.ablation import ablate
        from parley.training.ablation import ablation_summary

        def train(level: TrainConfig) -> dict[str, Any]:
            return ablation_summary(run_training("all", level, report, quiet=quiet))

        return {"ablate": ablate(config, train, report)}
    if stage == "control":
        from parley.jobs.control import run_control
        from parley.training.base_model import require_packages

        require_packages()
        return {"control": run_control(config, report)}
    if stage == "merge":
        from parley.jobs.evaluation import merge

        return {"merge": merge(config)}
    results: dict[str, Any] = {}
    stages = [name for name in TRAINED_STAGES if stage in (name, "all")]
    if config.sft_model_path and stage == "all":
        stages.remove("sft")
    measured = bool(config.evaluate.bbq or config.evaluate.judges)
    evaluates = stage == "evaluate" or (stage == "all" and measured)
    if stages:
        results |= _train(config, stages, report, will_evaluate=evaluates)
    if stage == "rlaif" or (stage == "all" and config.rlaif.labeller):
        from parley.jobs.rlaif import label_pairs

        results["rlaif"] = _train(label_pairs(config, _run_job(quiet)), ["reward", "rl"], report)
    if _is_main() and evaluates:
        from parley.jobs.evaluation import evaluate

        results["evaluate"] = evaluate(config, _run_job(quiet)).data()
    return results


def _train(config: TrainConfig, stages: list[str], report: Report, *, will_evaluate: bool = False) -> dict[str, Any]:
    from parley.training.base_model import require_packages
    from parley.training.pairs import read_pairs

    read_pairs(config)  # before the packages: errors in the data are shown on machines without them too
    require_packages()
    from parley.training.pipeline import run_stages

    return dict(run_stages(config, stages, report, will_evaluate=will_evaluate))


def _run_job(quiet: bool) -> Callable[[Job], None]:
    from parley.cli import run

    def run_job(job: Job) -> None:
        if run.execute_job(job, quiet=quiet, as_json=True, last=False):
            raise ParleyError(f"{job.path} is not complete; the same command resumes it")

    return run_job


def _is_main() -> bool:
    from parley.training.device import is_main

    return is_main()


def _print_progress(line: str) -> None:
    if _is_main():
        print(visible(line), file=sys.stderr, flush=True)


def _result_lines(results: dict[str, Any], config: TrainConfig) -> list[str]:
    lines = [line for rows in results.get("over_seeds", {}).values() for line in _seed_lines(rows)]
    if sft := results.get("sft"):
        loss = f"{_format(sft['held_out_loss_before'])} → {_format(sft['held_out_loss_after'])}"
        statements, updates = plural(sft["examples"], "statement"), plural(sft["steps"], "update")
        lines.append(f"sft: {statements}, {updates}; held-out loss {loss}")
    if reward := results.get("reward"):
        lines += [f"reward: {line}" for line in reward["verdict"]] + [f"reward: ECE {_format(reward['ece'])}"]
    if rl := results.get("rl"):
        stopped = f"; stopped at a KL of {rl['stopped_at_kl']:.1f} nats" if rl["stopped_at_kl"] else ""
        before, after = rl["held_out_before"]["probe_reward"], rl["held_out"]["probe_reward"]
        lines.append(
            f"rl: {rl['algorithm']}, {plural(rl['steps'], 'update')}; reward on held-out prompts "
            f"{_format(before)} → {_format(after)}, win rate against SFT {rl['held_out']['win_rate']:.2f} by the "
            f"reward model{stopped}"
        )
    for line in results.get("evaluate", {}).get("summary", []):
        lines.append(f"evaluate: {line}")
    for row in results.get("ablate", []):
        lines.append("  ".join(f"{key} {_format(value)}" for key, value in row.items()))
    lines += _control_lines(results["control"]) if "control" in results else []
    lines += [f"merged: {name}" for name in results.get("merge", [])]
    return [*lines, f"results are in {config.out}"]


def _seed_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Means ± standard deviations of what has one, after what the row is about."""
    for row in rows:
        about = ", ".join(value for value in row.values() if isinstance(value, str))
        means = [
            f"{name.removesuffix('_sd')} {_format(row[name.removesuffix('_sd')])} ± {_format(row[name])}"
            for name in row
            if name.endswith("_sd")
        ]
        yield f"{about}, {plural(row['seeds'], 'seed')}: {', '.join(means)}"


def _control_lines(control: dict[str, Any]) -> list[str]:
    lines = [
        f"seed {row['seed']}, {row['labels']}: biased answers {row['biased_before']:.2f} → {row['biased_after']:.2f} "
        f"(difference {row['difference']:+.2f}, {row['low']:+.2f} to {row['high']:+.2f}); after: fair "
        f"{row['fair_after']:.2f}, neither {row['neither_after']:.2f}"
        for row in control["rows"]
    ]
    for row in control["means"]:
        if row["seeds"] > 1:
            lines.append(
                f"{row['labels']}, {row['seeds']} seeds: {row['biased_before']:.2f} ± {row['biased_before_sd']:.2f} → "
                f"{row['biased_after']:.2f} ± {row['biased_after_sd']:.2f} (mean ± SD), difference "
                f"{row['difference']:+.2f} ± {row['difference_sd']:.2f}"
            )
    return [*lines, *control["verdict"]]


def _format(value: Any) -> str:
    """A number with three digits; a dash for one that was not measured."""
    return "–" if value is None or value != value else f"{value:.3g}" if isinstance(value, float) else str(value)
