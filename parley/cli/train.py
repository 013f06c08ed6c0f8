"""`parley train STAGE --config FILE`: from debates to a policy, and whether it helped."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from parley.agents import ConfigError, ParleyError
from parley.cli.commands import AddParser
from parley.cli.flags import add_flags, given, read_config
from parley.cli.text import visible
from parley.execute import Job, explain
from parley.training.config import PARTS, TrainConfig

STAGES = ("sft", "reward", "rl")
WHAT = {
    "sft": "fine-tune the base on low-bias statements",
    "reward": "train the reward model on pairs, and look at what it has learnt",
    "rl": "train the policy against the reward model",
    "rlaif": "the baseline without debates: have pairs labelled, and train on them",
    "evaluate": "BBQ, and BS, CE and LS on held-out topics, before and after",
    "ablate": "train and evaluate at each value of the lists in [ablate]",
    "all": "sft, reward, rl, rlaif where a labeller is named, evaluate where there is something to evaluate by",
}


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        usage="parley train STAGE [flags]",
        description="On one device, or on many: accelerate launch -m parley train STAGE --config FILE. What is done "
        "is left alone, what was cut short goes on.",
        epilog="; ".join(f"{name}: {what}" for name, what in WHAT.items()),
    )
    parser.add_argument("stage", choices=WHAT, metavar="STAGE", help=", ".join(WHAT))
    parser.add_argument(
        "--config", metavar="FILE", help="TOML or YAML: keys as the flags below, parts as tables ([rl])"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="print what came out as JSON")
    add_flags(parser, TrainConfig, "training", leave_out=tuple(PARTS))
    for name, part in PARTS.items():
        leave_out = ("data",) if name == "ablate" else ()
        add_flags(parser, part, f"[{name}]", leave_out, prefix=f"{name}_")
    parser.set_defaults(handler=handle)


def make_config(parsed: argparse.Namespace) -> TrainConfig:
    table = read_config(Path(parsed.config)) if parsed.config else {}
    for name, part in PARTS.items():
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{parsed.config}: [{name}] is a table")
        table[name] = {**inner, **given(parsed, part, f"{name}_")}
    top = {key: value for key, value in given(parsed, TrainConfig).items() if key not in PARTS}
    try:
        return TrainConfig.model_validate({**table, **top})
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "missing" and first["loc"] == ("data",):
            raise ConfigError(
                "name the pairs to train on: --data FOLDER (of `parley export RUN --format trl`)"
            ) from None
        schema: type[BaseModel] = PARTS.get(str(first["loc"][0]), TrainConfig)
        raise ConfigError(explain(error, schema)) from None


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    config = make_config(parsed)
    say = (lambda line: None) if parsed.quiet else _say
    found = carry_out(parsed.stage, config, say, quiet=parsed.quiet or parsed.json)
    if not _is_main():
        return 0
    if parsed.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        for line in _lines(found, config):
            print(visible(line))
    return 0


def carry_out(stage: str, config: TrainConfig, say: Any, *, quiet: bool) -> dict[str, Any]:
    """What each part of the work gave."""
    if stage == "ablate":
        from parley.ablation import ablate

        return {"ablate": ablate(config, lambda one: _summary(carry_out("all", one, say, quiet=quiet)), say)}
    found: dict[str, Any] = {}
    wanted = [name for name in STAGES if stage in (name, "all")]
    if config.begin and stage == "all":
        wanted.remove("sft")
    chosen = config.evaluate
    evaluated = stage == "evaluate" or (stage == "all" and bool(chosen.bbq or chosen.judges))
    if wanted:
        found |= _train(config, wanted, say, to_evaluate=evaluated)
    if stage == "rlaif" or (stage == "all" and config.rlaif.labeller):
        from parley.rlaif import rlaif_config

        found["rlaif"] = _train(rlaif_config(config, _runner(quiet)), ["reward", "rl"], say)
    if _is_main() and evaluated:
        from parley.evaluation import evaluate

        found["evaluate"] = evaluate(config, _runner(quiet)).data()
    return found


def _train(config: TrainConfig, stages: list[str], say: Any, *, to_evaluate: bool = False) -> dict[str, Any]:
    from parley.training.base import need_packages
    from parley.training.pairs import read_pairs

    read_pairs(config)  # what is wrong with the data is said even where nothing can be trained
    need_packages()
    from parley.training.run import run_stages

    return dict(run_stages(config, stages, say, to_evaluate=to_evaluate))


def _runner(quiet: bool) -> Any:
    from parley.cli import run

    def go(job: Job) -> None:
        if run.execute_job(job, quiet=quiet, as_json=True, last=False):
            raise ParleyError(f"{job.path} is not complete; the same command goes on")

    return go


def _is_main() -> bool:
    from parley.training.device import is_main

    return is_main()


def _say(line: str) -> None:
    if _is_main():
        print(visible(line), file=sys.stderr, flush=True)


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    """What an ablation compares, one number each; what was not measured is None."""
    reward, rl, evaluated = (found.get(name, {}) for name in ("reward", "rl", "evaluate"))
    quality = {row["control"]: row["accuracy"] for row in reward.get("quality", [])}
    held_out = rl.get("held_out", {})
    bbq = [row for row in evaluated.get("bbq", []) if row["system"] == "RLDF" and row["category"] == "macro mean"]
    scores = {row["metric"]: row["mean"] for row in evaluated.get("rubric", []) if row["system"] == "RLDF"}
    return {
        "pairs": reward.get("pairs"),
        "reward_accuracy": quality.get("all pairs"),
        "win_rate": held_out.get("win_rate"),
        **{f"bbq_{key}_{row['context']}": row[key] for row in bbq for key in ("accuracy", "bias")},
        **scores,
    }


def _lines(found: dict[str, Any], config: TrainConfig) -> list[str]:
    lines = []
    if sft := found.get("sft"):
        before, after = sft["held_out_loss_before"], sft["held_out_loss_after"]
        moved = f"{_number(before)} → {_number(after)}"
        lines.append(f"sft: {sft['examples']} statements, {sft['steps']} updates; held-out loss {moved}")
    if reward := found.get("reward"):
        lines += [f"reward: {line}" for line in reward["verdict"]] + [f"reward: ECE {_number(reward['ece'])}"]
    if rl := found.get("rl"):
        stopped = f"; stopped at a divergence of {rl['stopped_at_kl']:.1f} nats" if rl["stopped_at_kl"] else ""
        lines.append(
            f"rl: {rl['algorithm']}, {rl['steps']} updates; reward on held-out prompts "
            f"{_number(rl['held_out_before']['probe_reward'])} → {_number(rl['held_out']['probe_reward'])}, win rate "
            f"against SFT {rl['held_out']['win_rate']:.2f} by the reward model{stopped}"
        )
    for line in found.get("evaluate", {}).get("summary", []):
        lines.append(f"evaluate: {line}")
    for row in found.get("ablate", []):
        lines.append("  ".join(f"{key} {_number(value)}" for key, value in row.items()))
    return [*lines, f"everything is in {config.out}"]


def _number(value: Any) -> str:
    return "–" if value is None or value != value else f"{value:.3g}" if isinstance(value, float) else str(value)
