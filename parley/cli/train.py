"""`parley train STAGE --config FILE --set KEY=VALUE`: from debates to a policy, and whether it helped."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo

from parley.base.errors import ConfigError, ParleyError
from parley.base.home import say
from parley.base.text import number_text, plural, visible
from parley.base.toml import parse_toml
from parley.cli.command import Answer, Command
from parley.cli.dry_run import duration
from parley.cli.flags import HelpAll, Positional, Repeated, read_config
from parley.cli.run import execute
from parley.cli.shared import AddParser
from parley.imports.preferences import referee_checks
from parley.runs.job import Job
from parley.runs.options import validated
from parley.training.base_model import MISSING
from parley.training.config import TrainConfig, control_config, tables_of
from parley.training.device import is_main
from parley.training.estimate import ESTIMATED, data_of, estimates, shape_of, trained
from parley.training.stage_registry import JOBS, STAGES, config_class, find_stage


class Train(Command):
    """Train RLDF's policy on one device, or on several with `accelerate launch -m parley train STAGE --config FILE`.
    Finished stages are skipped, and an interrupted stage resumes."""

    usage: ClassVar = "parley train STAGE [--config FILE] [--set KEY=VALUE …] [--out FOLDER] [--dry-run]"
    epilog: ClassVar = "\n".join(
        [
            "stages:",
            *(
                textwrap.fill(what, 80, initial_indent=f"  {name:<10}", subsequent_indent=" " * 12)
                for name, what in {
                    **STAGES.known(),
                    **{name: find_stage(name).help for name in STAGES.shipped},
                    **JOBS,
                }.items()
            ),
            "\ndocs/training.md explains the keys; --help-all lists all of them.",
        ]
    )

    stage: Positional[str] = Field(title="STAGE", description="one of the stages below, or your own as file.py:name")
    config: Path | None = Field(
        None,
        title="FILE",
        description="TOML or YAML, with tables such as [rl]; or qwen1.5-7b or llama2-7b, the paper's",
    )
    set: Repeated[list[str]] = Field(
        [],
        title="KEY=VALUE",
        description="set a key of the config, such as data=pairs or rl.beta=0.1, as in TOML (strings need no quotes); "
        "may be repeated",
    )
    out: str | None = Field(None, title="FOLDER", description="the folder to write to (default: trained)")
    dry_run: bool = Field(False, description="estimate memory and time of sft, reward and rl, and train nothing")
    quiet: bool = Field(False, description="show no progress")

    @classmethod
    def add_to(cls, add_parser: AddParser, words: Sequence[str] = ()) -> argparse.ArgumentParser:
        parser = super().add_to(partial(add_parser, formatter_class=argparse.RawDescriptionHelpFormatter))
        about = "print all keys and their defaults as a TOML file, and exit"
        parser.add_argument("--help-all", action=HelpAll, make=_all_keys, help=about)
        return parser

    def settings(self) -> TrainConfig:
        """The config file with the settings of the command line over it; ConfigError if one of them is wrong."""
        config = read_config(self.config) if self.config else {}
        for setting in self.set:
            _put(config, setting)
        if self.out is not None:
            config["out"] = self.out
        stages = config.get("stages")
        named = [name for name in stages if isinstance(name, str)] if isinstance(stages, list) else []
        schema = config_class([*named, *_asked(self.stage)])
        for name in tables_of(schema):
            if not isinstance(config.get(name, {}), dict):
                raise ConfigError(
                    f"{name} is a table: [{name}] in a config, --set {name}.KEY=VALUE on the command line"
                )
        _refuse_unknown_keys(config, schema)
        if self.stage == "control":
            config = control_config(config)
        if config.get("data") is None:
            raise ConfigError("name the pairs to train on: --set data=FOLDER (of `parley export RUN --format trl`)")
        return validated(schema, config)

    def answer(self) -> Answer:
        config = self.settings()
        if self.dry_run:
            return _dry_run(self.stage, config)
        for line in referee_checks(Path(config.data)):
            say(line)
        report = (lambda line: None) if self.quiet else _print_progress
        try:
            from parley.jobs.training import run_training  # it loads pandas, which --help does without
        except ModuleNotFoundError as error:
            raise ConfigError(f"{MISSING} ('{error.name}' is missing)") from None
        results = run_training(self.stage, config, report, _run_job(self.quiet or self.as_json))
        if not is_main():
            raise SystemExit(0)  # one of several processes prints the results
        passed = results.get("control", {}).get("passed", True)
        return Answer(results, _result_lines(self.stage, results, config), 0 if passed else 1)


def _dry_run(stage: str, config: TrainConfig) -> Answer:
    """What training would take, stage by stage."""
    asked = [name for name in (config.stages if stage == "all" else [stage]) if name in ESTIMATED]
    if not asked:
        raise ConfigError(f"--dry-run estimates all, {', '.join(ESTIMATED)}; not {stage}")
    shape, data = shape_of(config.base), data_of(config)
    found = list(estimates(config, asked, data))
    count, how = trained(config, shape), "LoRA adapters" if config.use_peft else "all of them"
    lines = [
        f"{config.base}: nothing was trained",
        f"  parameters  {shape.parameters:>14,}; trained {count:,} ({how})",
        f"  pairs       {data.pairs:>14,}; {data.mean:.0f} tokens of prompt and answer, at most {data.longest}"
        + (f" (assumed: '{config.data}' is not there yet)" if data.assumed else ""),
    ]
    for each in found:
        memory, time = f"{each.memory_gib:.1f} GiB", duration(each.seconds)
        lines.append(f"  {each.stage:<11} {plural(each.updates, 'update'):>14}   {memory:>10}   {time:>8} on one H200")
    repeated = f"; each of {config.seeds} seeds takes this" if config.seeds > 1 else ""
    lines.append(
        f"Estimates from the model's shape, without evaluation{repeated}. training/estimate.py has the formula."
    )
    facts = {"parameters": shape.parameters, "trained": count, "data": asdict(data), "stages": [*map(asdict, found)]}
    return Answer(facts, lines)


def _asked(stage: str) -> tuple[str, ...]:
    """The stage that the command names, unless it names a job."""
    return () if stage in JOBS else (stage,)


def _all_keys() -> str:
    """Every key with its default, type and meaning, as a config file; keys without a default are comments."""
    tables = tables_of()
    lines = [_key_line(name, info) for name, info in TrainConfig.model_fields.items() if name not in tables]
    for table, schema in tables.items():
        lines += [f"\n[{table}]", *(_key_line(name, info) for name, info in schema.model_fields.items())]
    return "\n".join(lines)


def _key_line(name: str, info: FieldInfo) -> str:
    default = None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
    setting = f"# {name} =" if default is None else f"{name} = {json.dumps(default)}"
    return f"{setting}  # {_type_name(info.annotation)}: {info.description}"


def _type_name(annotation: Any) -> str:
    """A type in TOML's words: `list[int] | None` → list of integers."""
    inner = [part for part in get_args(annotation) if part is not NoneType]
    if get_origin(annotation) is Literal:
        return " or ".join(map(str, inner))
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(map(_type_name, inner))
    if get_origin(annotation) is list:
        return f"list of {_type_name(inner[0])}"
    if get_origin(annotation) is dict:
        return "table"
    return {str: "string", int: "integer", float: "number", bool: "boolean"}[annotation]


def _put(config: dict[str, Any], setting: str) -> None:
    """Put KEY=VALUE into a config; a key may have its table before it, as in rl.beta=0.1."""
    key, equals, text = setting.partition("=")
    *tables, name = key.strip().split(".")
    if not equals or not all((*tables, name)):
        raise ConfigError(f"--set {setting}: expected KEY=VALUE, such as rl.beta=0.1")
    for table in tables:
        config = config.setdefault(table, {})
        if not isinstance(config, dict):
            raise ConfigError(f"--set {setting}: {table} is not a table")
    config[name] = _value(text.strip())


def _value(text: str) -> Any:
    """A value as in TOML; anything that TOML cannot read is a text without quotes."""
    try:
        table = parse_toml(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text


def _refuse_unknown_keys(config: dict[str, Any], schema: type[TrainConfig]) -> None:
    """One line for the first key that does not exist, with the one most like it."""
    tables = tables_of(schema)
    known = [name for name in schema.model_fields if name not in tables]
    known += [f"{table}.{name}" for table, fields in tables.items() for name in fields.model_fields]
    for key, value in config.items():
        is_table = isinstance(value, dict) and key not in known
        for name in [f"{key}.{inner}" for inner in value] if is_table else [str(key)]:
            if name not in known:
                similar = difflib.get_close_matches(name[:80], known, n=1)
                hint = f"did you mean '{similar[0]}'?" if similar else "`parley train --help-all` lists all keys"
                raise ConfigError(f"unknown key '{name[:80]}' ({hint})")


def _run_job(quiet: bool) -> Callable[[Job], None]:
    def run_job(job: Job) -> None:
        _, result = execute(job, quiet=quiet)
        if not result.complete:
            why = result.stopped or result.first_error or "units failed"
            raise ParleyError(f"{job.path} is not complete ({why}); the same command resumes it")

    return run_job


def _print_progress(line: str) -> None:
    if is_main():
        print(visible(line), file=sys.stderr, flush=True)


def _result_lines(stage: str, results: dict[str, Any], config: TrainConfig) -> list[str]:
    lines = [line for rows in results.get("over_seeds", {}).values() for line in _seed_lines(rows)]
    shown = map(find_stage, (*config.stages, *STAGES.shipped, *_asked(stage)))
    for name, each in {each.name: each for each in shown}.items():
        if facts := results.get(name):
            lines += [f"{name}: {line}" for line in each.summary(facts)]
    for line in results.get("evaluate", {}).get("summary", []):
        lines.append(f"evaluate: {line}")
    for row in results.get("ablate", []):
        lines.append("  ".join(f"{key} {number_text(value)}" for key, value in row.items()))
    lines += _control_lines(results["control"]) if "control" in results else []
    lines += [f"merged: {name}" for name in results.get("merge", [])]
    return [*lines, f"results are in {config.out}"]


def _seed_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What the row is about, then means ± standard deviations where there are any."""
    for row in rows:
        about = ", ".join(value for value in row.values() if isinstance(value, str))
        means = [
            f"{name.removesuffix('_sd')} {number_text(row[name.removesuffix('_sd')])} ± {number_text(row[name])}"
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
