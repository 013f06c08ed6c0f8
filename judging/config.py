"""Shared parts of studies' configs: fields, options of model calls, shipped data, and methods by name.

Data (rubrics, bias types, personas) is named by a shipped name or the user's TOML file. A study that compares
methods has one `Methods`; each method is a small class with `name`, `Settings` and the other members of the study's
protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from parley.agents import ConfigError, Persona, load_personas
from parley.base.errors import ScenarioError
from parley.base.plugins import Registry
from parley.base.problems import UserFile
from parley.judging.prompts import text_of

C = TypeVar("C", bound=BaseModel)
M = TypeVar("M")

as_list = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
"""Accepts a single value in place of a list."""
NameList = Annotated[list[str], as_list]
"""A list of names, or a single name."""

NO_MEASURE = "none"
"""The value of `--measure` for no outside measure."""


def limit_field(what: str) -> Any:
    """The field `limit`, for a run on part of the data.

    Args:
        what: The limited things, for the help.
    """
    return Field(None, ge=1, description=f"{what} (default: all)")


def require_each_once(**lists: Sequence[str]) -> None:
    """Refuse a list that is empty or has duplicates.

    Args:
        lists: The lists by their keys in the config.
    """
    for key, names in lists.items():
        flag = f"--{key.replace('_', '-')}"
        if not names:
            raise ConfigError(f"{flag} is empty: give at least one")
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise ConfigError(f"{flag}: '{twice}' is given twice")


def call_options(max_tokens: int, temperature: float | None) -> dict[str, Any]:
    """The options of every model call; without a temperature, the model's default applies.

    Args:
        max_tokens: Maximum length of one reply.
        temperature: The sampling temperature, or None.
    """
    options: dict[str, Any] = {"max_tokens": max_tokens}
    return options if temperature is None else {**options, "temperature": temperature}


def load(model: type[C], kind: str, name: str, shipped: Sequence[str], place: str) -> C:
    """Load and validate a TOML file.

    Args:
        model: The type to validate against.
        kind: The kind of file, for messages: "rubric".
        name: One of `shipped`, or a path to the user's own .toml file.
        shipped: The shipped names.
        place: The path of shipped files, with {} for the name.
    """
    if name in shipped:
        path = Path(str(files("parley.judging").joinpath(*place.format(name).split("/"))))
    elif not name.endswith(".toml"):
        raise ConfigError(f"unknown {kind} '{name}' (known: {', '.join(shipped)}, or a path to a .toml file)")
    else:
        path = Path(name)
    try:
        file = UserFile.read(path, kind)
    except ScenarioError as error:
        raise ConfigError(str(error)) from None
    contents = file.validate(model)
    file.refuse(ConfigError)
    assert contents is not None
    return contents


def shipped_personas(file: str, prefix: str = "") -> list[Persona]:
    """The personas of a file in `judging/personas/`, with the user's texts if given.

    Args:
        file: The file.
        prefix: The prefix of their names among the study's prompts.
    """
    personas = load_personas(Path(str(files("parley.judging").joinpath("personas", file))))
    return [who.model_copy(update={"about": text_of(f"persona/{prefix}{who.name}", who.about)}) for who in personas]


class NoSettings(BaseModel, extra="forbid", frozen=True):
    """Settings of a method without any."""


class Methods(Registry, Generic[M]):
    """The methods of one study: the shipped ones, and your own files."""

    def make(self, names: Sequence[str], settings: Mapping[str, str]) -> dict[str, M]:
        """Make methods by name, each with its settings.

        Args:
            names: The methods to make.
            settings: Settings of any of them, as text; an error if no method has such a setting.
        """
        classes: list[Any] = [self.find(name) for name in names]
        settable = {key for method in classes for key in method.Settings.model_fields}
        if unknown := sorted(set(settings) - settable):
            have = f"known: {', '.join(sorted(settable))}" if settable else "they have no settings"
            raise ConfigError(f"none of the chosen methods has a setting '{unknown[0]}' ({have})")
        methods: dict[str, M] = {}
        for method in classes:
            method_settings = {key: value for key, value in settings.items() if key in method.Settings.model_fields}
            try:
                validated = method.Settings.model_validate(method_settings)
            except ValidationError as error:
                first = error.errors()[0]
                raise ConfigError(f"{method.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
            if method.name in methods:
                raise ConfigError(f"the method '{method.name}' is given twice")
            methods[method.name] = method(validated)
        return methods


def read_settings(texts: Sequence[str]) -> dict[str, str]:
    """The settings of `key=value` texts."""
    pairs = [text.partition("=") for text in texts]
    for key, equals, _ in pairs:
        if not equals or not key.strip():
            raise ConfigError(f"a setting must be written key=value, got '{key}'")
    return {key.strip(): value.strip() for key, _, value in pairs}
