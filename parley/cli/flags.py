"""Flags from pydantic models, and config files: every field is a flag, a key of TOML or YAML, and a Python argument."""

from __future__ import annotations

import argparse
import difflib
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from parley.agents import ConfigError


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
        about = _about(info).replace("%", "%%")
        if bool in kinds:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=about)
        elif any(get_origin(kind) is list for kind in kinds):
            group.add_argument(flag, metavar="A,B", type=items, help=about)
        else:
            group.add_argument(flag, metavar=name.rpartition("_")[2].upper(), help=about)


def _about(info: FieldInfo) -> str:
    """What a field is for, the words it may be where they are not said yet, and what it is unless told."""
    about = info.description or ""
    choices = _choices(info.annotation)
    if not all(re.search(rf"\b{re.escape(choice)}\b", about) for choice in choices):
        about += f": {', '.join(choices)}"
    if info.is_required():
        return about if "must be given" in about else f"{about} (must be given)"
    default = info.get_default(call_default_factory=True, validated_data={})
    if default in (None, []) or "default:" in about:
        return about
    if isinstance(default, bool):
        default = "yes" if default else "no"
    return f"{about} (default: {','.join(map(str, default)) if isinstance(default, list) else default})"


def _choices(annotation: Any) -> list[str]:
    """The words of a Literal, also of one that may be None or stands in a list."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def refuse_unknown(rest: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """One line for a flag that was mistyped, with the nearest there is."""
    if not rest:
        return
    near = difflib.get_close_matches(rest[0].partition("=")[0], parser.format_help().split(), n=1)
    hint = f"did you mean {near[0]}? " if rest[0].startswith("-") and near else ""
    raise ConfigError(f"unknown: {' '.join(rest)} ({hint}`{parser.prog} --help` lists all flags)")


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
        text = path.read_text("utf-8-sig")
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
