"""Flags from pydantic models, and config files: every field is a flag, a key of TOML or YAML, and a Python argument."""

from __future__ import annotations

import argparse
import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from agents import ConfigError


def add_flags(
    parser: argparse.ArgumentParser,
    schema: type[BaseModel],
    title: str,
    leave_out: Collection[str] = (),
    prefix: str = "",
) -> None:
    """A flag for each field; with a prefix ("rl_"), those of a part of a config."""
    group = parser.add_argument_group(title)
    for name, info in schema.model_fields.items():
        if name in leave_out:
            continue
        flag = "--" + (prefix + name).replace("_", "-")
        kinds = {info.annotation, *get_args(info.annotation)}
        about = (info.description or "").replace("%", "%%")
        if info.default not in (None, ...):
            default = ",".join(map(str, info.default)) if isinstance(info.default, list) else info.default
            about += f" (default: {default})"
        if bool in kinds:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=about)
        elif any(getattr(kind, "__origin__", None) is list for kind in kinds):
            group.add_argument(flag, metavar="A,B", type=items, help=about)
        else:
            group.add_argument(flag, metavar=name.rpartition("_")[2].upper(), help=about)


def items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def given(parsed: argparse.Namespace, schema: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """The flags that were typed."""
    values = {name: getattr(parsed, prefix + name, None) for name in schema.model_fields}
    typed = {name: value for name, value in values.items() if value is not None}
    for name, value in typed.items():
        words = {schema.model_fields[name].annotation, *get_args(schema.model_fields[name].annotation)}
        if isinstance(value, list) and list[str] not in words and all(str(item).isdigit() for item in value):
            typed[name] = [int(item) for item in value]
    return typed


_DEEP = re.compile(r"(?:[\[{]\s*+){64}")
"""Brackets within brackets, as no config has them; PyYAML takes a second to find them too deep."""


class _PlainLoader(yaml.SafeLoader):
    """No aliases: a flat table needs none, and a few lines of them can stand for more than any machine holds."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read; write the value out")
        return super().compose_node(parent, index)


def read_config(path: Path) -> dict[str, Any]:
    """A TOML or YAML file as a flat table."""
    try:
        text = path.read_text("utf-8")
        if _DEEP.search(text):
            raise RecursionError
        table = tomllib.loads(text) if path.suffix == ".toml" else yaml.load(text, _PlainLoader)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply for a config") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: a table of keys and values was expected")
    return table


def split_config(
    table: Mapping[str, Any], study: type[BaseModel], options: type[BaseModel], where: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys of the study and keys of the run, told apart; a key of neither is refused, with the nearest known one."""
    known = [*study.model_fields, *options.model_fields]
    for key in table:
        if key not in known:
            said = str(key)[:80]
            near = difflib.get_close_matches(said, known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f" (known: {', '.join(known)})"
            raise ConfigError(f"{where}: unknown key '{said}'{hint}")
    return (
        {key: value for key, value in table.items() if key in study.model_fields},
        {key: value for key, value in table.items() if key in options.model_fields},
    )
