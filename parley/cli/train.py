"""`parley train STAGE --config FILE --set KEY=VALUE`: trains RLDF's policy from debates, and evaluates it."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo

from parley.base.errors import ConfigError
from parley.base.home import say
from parley.base.text import number_text, plural, visible
from parley.base.toml import parse_toml
from parley.cli.command import Answer, Command
from parley.cli.flags import HelpAll, Positional, Repeated, read_config
from parley.cli.run import execute
from parley.cli.shared import AddParser
from parley.judging.rldf.statements import SPLITS
from parley.runs.options import validated
from parley.training.base_model import MISSING
from parley.training.config import PAPERS_PAIRS, TrainConfig, tables_of
from parley.training.device import is_main
from parley.training.exported import manifest_of, referee_checks
from parley.training.folders import state_of
from parley.training.pairs import read_pairs
from parley.training.stages import JOBS, STAGES, STEP_FOLDERS, plan, refuse_unknown_stage


class Train(Command):
    """Train RLDF's policy on one device, or on several with `accelerate launch -m parley train STAGE --config FILE`.
    Finished stages are skipped, and an interrupted stage resumes."""

    usage: ClassVar = "parley train STAGE [--config FILE] [--set KEY=VALUE …] [--out FOLDER] [--dry-run]"
    epilog: ClassVar = "\n".join(
        [
            "stages:",
            *(
                textwrap.fill(what, 80, initial_indent=f"  {name:<10}", subsequent_indent=" " * 12)
                for name, what in {**{name: stage.help for name, stage in STAGES.items()}, **JOBS}.items()
            ),
            "\ndocs/training.md explains the keys; --help-all lists all of them.",
        ]
    )

    stage: Positional[str] = Field(title="STAGE", description="one of the stages below")
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
    dry_run: bool = Field(False, description="show what would be trained, with which settings, and train nothing")
    quiet: bool = Field(False, description="show no progress")

    @classmethod
    def add_to(cls, add_parser: AddParser, words: Sequence[str] = ()) -> argparse.ArgumentParser:
        parser = super().add_to(partial(add_parser, formatter_class=argparse.RawDescriptionHelpFormatter))
        about = "print all keys and their defaults as a TOML file, and exit"
        parser.add_argument("--help-all", action=HelpAll, make=_all_keys, help=about)
        return parser

    def settings(self) -> TrainConfig:
        """The config file, overridden by settings of the command line; ConfigError if one is wrong."""
        config = read_config(self.config) if self.config else {}
        for setting in self.set:
            put(config, *read_setting(setting))
        if self.out is not None:
            config["out"] = self.out
        for name in tables_of():
            if not isinstance(config.get(name, {}), dict):
                raise ConfigError(
                    f"{name} is a table: [{name}] in a config, --set {name}.KEY=VALUE on the command line"
                )
        _refuse_unknown_keys(config)
        if config.get("data") is None:
            raise ConfigError("name the pairs to train on: --set data=FOLDER (of `parley export RUN --format trl`)")
        return validated(TrainConfig, config)

    def answer(self) -> Answer:
        refuse_unknown_stage(self.stage)
        config = self.settings()
        if self.dry_run:
            return _dry_run(self.stage, config)
        for line in referee_checks(manifest_of(Path(config.data))):
            say(line)
        report = (lambda line: None) if self.quiet else _print_progress
        try:
            from parley.training.running import train  # it loads pandas, which --help does without
        except ModuleNotFoundError as error:
            raise ConfigError(f"{MISSING} ('{error.name}' is missing)") from None
        results = train(config, self.stage, report=report, run=partial(execute, quiet=self.quiet or self.as_json))
        if not is_main():
            raise SystemExit(0)  # one of several processes prints the results
        return Answer(results, result_lines(results, config))


def _dry_run(name: str, config: TrainConfig) -> Answer:
    """All steps that would be done, with their settings and result folders."""
    pairs = read_pairs(config) if Path(config.data).exists() else None
    counts = {split: len(getattr(pairs, split)) for split in SPLITS} if pairs else {}
    rows: list[dict[str, Any]] = [
        {"step": step, "folder": str(folder), "state": state_of(folder), "settings": _table(each, step)}
        for step, each in plan(name, config)
        for folder in [Path(each.out) / STEP_FOLDERS.get(step, step)]
    ]
    lines = [
        f"{config.base}: nothing was trained",
        "  pairs: " + (", ".join(f"{count:,} {split}" for split, count in counts.items()) or f"no {config.data} yet"),
    ]
    if 0 < counts.get("train", 0) < PAPERS_PAIRS:
        lines.append(f"  The paper asks for {PAPERS_PAIRS:,} pairs.")
    lines += [f"  {row['step']:<9} {row['folder']}: {row['state']}" for row in rows]
    for step, settings in {row["step"]: row["settings"] for row in rows}.items():
        values = (f"{key} {json.dumps(value)}" for key, value in settings.items())
        lines += [textwrap.fill(f"[{step}] {', '.join(values)}", 100, subsequent_indent="  ")] if settings else []
    return Answer({"base": config.base, "pairs": counts, "steps": rows}, lines)


def _table(config: TrainConfig, step: str) -> dict[str, Any]:
    """The settings of a step's table that have a value."""
    table = getattr(config, step, None)
    return {} if table is None else table.model_dump(mode="json", exclude_none=True)


def _all_keys() -> str:
    """Every key with its default, type and meaning, as a config file; keys without a default are comments."""
    tables = tables_of()
    lines = [_key_line(name, info) for name, info in TrainConfig.model_fields.items() if name not in tables]
    for table, schema in tables.items():
        lines += [f"\n[{table}]", *(_key_line(name, info) for name, info in schema.model_fields.items())]
    return "\n".join(lines)


def _key_line(name: str, info: FieldInfo) -> str:
    default = None if info.is_required() else info.default
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


def read_setting(text: str) -> tuple[str, Any]:
    """A key and its value, as typed: KEY=VALUE, with the value as in TOML, or a text without quotes."""
    key, equals, value = text.partition("=")
    if not equals or not all(key.strip().split(".")):
        raise ConfigError(f"--set {text}: expected KEY=VALUE, such as rl.beta=0.1")
    try:
        table = parse_toml(f"value = {value.strip()}")
    except (ValueError, RecursionError):
        table = {}
    return key.strip(), table["value"] if len(table) == 1 else value.strip()


def put(config: dict[str, Any], key: str, value: Any) -> None:
    """Put a value into a config; the key may have its table before it, as in rl.beta."""
    *tables, name = key.split(".")
    for table in tables:
        config = config.setdefault(table, {})
        if not isinstance(config, dict):
            raise ConfigError(f"--set {key}: {table} is not a table")
    config[name] = value


def known_keys() -> list[str]:
    """All keys, each with its table before it."""
    tables = tables_of()
    keys = [name for name in TrainConfig.model_fields if name not in tables]
    return keys + [f"{table}.{name}" for table, fields in tables.items() for name in fields.model_fields]


def _refuse_unknown_keys(config: dict[str, Any]) -> None:
    """Refuse the first unknown key in one line, with its replacement or the most similar key."""
    keys = known_keys()
    for key, value in config.items():
        is_table = isinstance(value, dict) and key not in keys
        for name in [f"{key}.{inner}" for inner in value] if is_table else [str(key)]:
            if name not in keys:
                similar = difflib.get_close_matches(name[:80], keys, n=1)
                hint = f"did you mean '{similar[0]}'?" if similar else "`parley train --help-all` lists all keys"
                raise ConfigError(f"unknown key '{name[:80]}' ({hint})")


def _print_progress(line: str) -> None:
    if is_main():
        print(visible(line), file=sys.stderr, flush=True)


def result_lines(results: dict[str, Any], config: TrainConfig) -> list[str]:
    """The results of `train` in words."""
    lines = [line for rows in results.get("over_seeds", {}).values() for line in _seed_lines(rows)]
    for name, stage in STAGES.items():
        if facts := results.get(name):
            lines += [f"{name}: {line}" for line in stage.summary(facts)]
    for line in results.get("evaluate", {}).get("summary", []):
        lines.append(f"evaluate: {line}")
    for row in results.get("ablate", []):
        lines.append("  ".join(f"{key} {number_text(value)}" for key, value in row.items()))
    lines += [f"merged: {name}" for name in results.get("merge", [])]
    return [*lines, f"results are in {config.out}"]


def _seed_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A row's subject, then means ± standard deviations, if any."""
    for row in rows:
        about = ", ".join(value for value in row.values() if isinstance(value, str))
        means = [
            f"{name.removesuffix('_sd')} {number_text(row[name.removesuffix('_sd')])} ± {number_text(row[name])}"
            for name in row
            if name.endswith("_sd")
        ]
        yield f"{about}, {plural(row['seeds'], 'seed')}: {', '.join(means)}"
