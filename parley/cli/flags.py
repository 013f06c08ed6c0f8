"""Flags made from pydantic models, and config files: a field is a flag, a TOML or YAML key, and an argument in
Python.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from parley.base.errors import ConfigError, several
from parley.base.problems import near_key
from parley.base.toml import parse_toml, read_text
from parley.judging.study import ADVANCED

T = TypeVar("T")
POSITIONAL, REPEATED = object(), object()
Positional = Annotated[T, POSITIONAL]
"""The type of a field that is typed without a flag: `Positional[str]`, `Positional[list[str]]`."""
Repeated = Annotated[T, REPEATED]
"""The type of a list whose flag may be given several times, with one value each: it may have commas."""
CONFIGS = Path(__file__).parent / "configs"
"""The shipped configs, which --config takes by name."""
SUFFIXES = (".toml", ".yaml", ".yml")


def add_flags(
    parser: argparse.ArgumentParser,
    schema: type[BaseModel],
    title: str | None = None,
    leave_out: Collection[str] = (),
    everything: bool = True,
) -> None:
    """Add a flag for each field of a pydantic model.

    Args:
        parser: The parser that gets the flags.
        schema: The model.
        title: A separate heading for these flags in --help. Such flags are also keys of a config file, so their
            switches can be set and unset.
        leave_out: Fields that get no flag.
        everything: Whether --help shows the flags of `Advanced` fields too; they are accepted either way.
    """
    group = parser.add_argument_group(title) if title else parser
    fields = [(name, info) for name, info in schema.model_fields.items() if name not in leave_out]
    # Pydantic lists a base's fields first: --json, and a run that need not be named.
    for name, info in sorted(fields, key=_place):
        settings: dict[str, Any] = {"dest": name, "metavar": _metavar(name, info)}
        flag = flag_of(name, info)
        shown = everything or ADVANCED not in info.metadata
        settings["help"] = help_text(info).replace("%", "%%") if shown else argparse.SUPPRESS
        if POSITIONAL in info.metadata:
            several = "+" if info.is_required() else "*"
            settings["nargs"] = several if _is_list(info) else None if info.is_required() else "?"
            group.add_argument(name, **{key: value for key, value in settings.items() if key != "dest"})
        elif bool in {info.annotation, *get_args(info.annotation)}:
            del settings["metavar"]
            if title:
                group.add_argument(flag, **settings, action=argparse.BooleanOptionalAction, default=None)
            else:  # the description is that of the only word that can be typed
                flag, settings["help"] = f"--no-{flag[2:]}" if info.default else flag, info.description
                group.add_argument(flag, **settings, action="store_const", const=not info.default)
        elif REPEATED in info.metadata:
            group.add_argument(flag, **settings, action="append")
        elif _is_list(info):  # given twice, or with commas
            group.add_argument(flag, **settings, action="extend", type=comma_separated)
        elif name == "model":
            group.add_argument(flag, **settings, action=_OneModel)
        else:
            group.add_argument(flag, **settings)


def _place(field: tuple[str, FieldInfo]) -> tuple[bool, bool]:
    """The position of a flag: --json last, required positionals before optional ones."""
    name, info = field
    return name == "as_json", POSITIONAL in info.metadata and not info.is_required()


def comma_separated(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def flag_of(name: str, info: FieldInfo) -> str:
    """A field as typed: --dry-run; RUN if it is positional."""
    word = (info.alias or name).replace("_", "-")
    return word.upper() if POSITIONAL in info.metadata else f"--{word}"


def count_advanced(*schemas: type[BaseModel]) -> int:
    """Number of flags that only `--help-all` shows."""
    return sum(ADVANCED in info.metadata for schema in schemas for info in schema.model_fields.values())


class HelpAll(argparse.Action):
    """Prints a longer help and exits, like --help.

    Args:
        make: Makes the text.
    """

    def __init__(self, *, make: Callable[[], str], **settings: Any) -> None:
        super().__init__(**settings, nargs=0, default=argparse.SUPPRESS)
        self.make = make

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(self.make())
        parser.exit()


METAVARS = {
    "budget_cost": "USD",
    "criteria": "CRITERION",
    "data": "PATH",
    "grace": "SECONDS",
    "judge": "MODEL",
    "judges": "PANEL",
    "measure": "SCORER",
    "model": "MODEL",
    "out": "FILE",
    "topics_from": "FILE",
    "without": "EVALUATOR",
}
"""Placeholders for values in the help, if neither type nor name gives one."""


class _OneModel(argparse.Action):
    """A flag for a single model; an error if two are given."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, *_: Any) -> None:
        if getattr(namespace, self.dest) not in (None, value):
            raise ConfigError(
                f"{parser.prog}: --model takes one model, got {getattr(namespace, self.dest)} and {value}"
            )
        setattr(namespace, self.dest, value)


def _is_list(info: FieldInfo) -> bool:
    return any(get_origin(part) is list for part in (info.annotation, *get_args(info.annotation)))


def _metavar(name: str, info: FieldInfo) -> str:
    """The placeholder for a field's value: its title, the choices, or N for a number; lists end with an ellipsis."""
    types = {info.annotation, *get_args(info.annotation)}
    more = ",…" * (_is_list(info) and REPEATED not in info.metadata)
    if info.title:
        return info.title + more
    if choices := _choices(info.annotation):
        return f"{{{','.join(choices)}}}{more}"
    if POSITIONAL in info.metadata:
        return flag_of(name, info)
    if {int, list[int]} & types:
        return f"N{more}"
    if name in METAVARS:
        return METAVARS[name] + more
    if float in types:
        return "X"
    word = name.rpartition("_")[2].upper()
    return re.sub("IES$", "Y", word).removesuffix("S") + more if more else word


def help_text(info: FieldInfo) -> str:
    """A field's description and its default."""
    about = info.description or ""
    if POSITIONAL in info.metadata:
        return about
    if info.is_required():
        return about if "required" in about else f"{about} (required)"
    default = info.get_default(call_default_factory=True, validated_data={})
    if default in (None, []) or "default:" in about:
        return about
    if isinstance(default, bool):
        default = "yes" if default else "no"
    return f"{about} (default: {','.join(map(str, default)) if isinstance(default, list) else default})"


def _choices(annotation: Any) -> list[str]:
    """The values of a Literal, also inside `| None` or a list."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def given(parsed: argparse.Namespace, schema: type[BaseModel]) -> dict[str, Any]:
    """The values of typed flags, by field name.

    Args:
        parsed: The parsed arguments.
        schema: The model that the flags were made from.
    """
    values = {name: getattr(parsed, name, None) for name in schema.model_fields}
    typed = {
        name: value
        for name, value in values.items()
        if value is not None and (value != [] or POSITIONAL not in schema.model_fields[name].metadata)
    }
    for name, value in typed.items():
        types = {schema.model_fields[name].annotation, *get_args(schema.model_fields[name].annotation)}
        if isinstance(value, list) and list[str] not in types and all(str(item).isdigit() for item in value):
            typed[name] = [int(item) for item in value]
    return typed


_DEEP = re.compile(r"(?:[\[{]\s*+){64}")
"""64 nested brackets: PyYAML takes a second to fail on them."""


class _PlainLoader(yaml.SafeLoader):
    """A loader without aliases, since a few lines of them can expand beyond any memory."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not supported; write the value out")
        return super().compose_node(parent, index)


def read_config(path: Path) -> dict[str, Any]:
    """Read a TOML or YAML file as a flat table, or the shipped config of that name."""
    shipped = {file.stem: file for file in sorted(CONFIGS.glob("*.toml"))}
    if path.name == str(path) in shipped and not path.exists():
        path = shipped[path.name]
    try:
        text = read_text(path)
        if _DEEP.search(text):
            raise RecursionError
        table = parse_toml(text) if path.suffix == ".toml" else yaml.load(text, _PlainLoader)
    except OSError as error:
        choices = "" if path.suffix in SUFFIXES else f" (shipped configs: {', '.join(shipped)})"
        raise ConfigError(f"{path}: {error.strerror}{choices}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{place}: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply for a config") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: expected a table of keys and values")
    return table


def split_config(
    table: Mapping[str, Any], study: type[BaseModel], options: type[BaseModel], where: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a config into the keys of the study and those of the run; raise an error on any other key.

    Args:
        table: The config.
        study: The study's config model.
        options: The run's options model.
        where: The name of the file, for error messages.
    """
    fields = {**study.model_fields, **options.model_fields}
    if unknown := [str(key)[:80] for key in table if key not in fields]:
        raise several(ConfigError, (f"{where}: unknown key '{name}'{near_key(name, [*fields])}" for name in unknown))
    values = {
        key: comma_separated(value) if isinstance(value, str) and _is_list(fields[key]) else value
        for key, value in table.items()
    }
    return (
        {key: value for key, value in values.items() if key in study.model_fields},
        {key: value for key, value in values.items() if key in options.model_fields},
    )
