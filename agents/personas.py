"""Personas: descriptions of whom an agent plays.

ada = Persona("Ada", "You are Ada, an auditor. You trust what can be checked.")
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ValidationInfo
from pydantic_core import PydanticCustomError

from parley.base.errors import ConfigError, ScenarioError
from parley.base.problems import REFUSED, UserFile


class Persona(BaseModel, extra="forbid", frozen=True):
    """The description of whom an agent plays.

    Args:
        name: A Python identifier, as AutoGen requires; names differ within a conversation.
        about: The description for the model, usually "You are …". With "" there is no system message.
        model: A model for this persona only, as `provider/model`; by default that of the conversation.
    """

    name: str
    about: str
    model: str | None = None

    def __init__(self, name: str, about: str, model: str | None = None) -> None:
        super().__init__(name=name, about=about, model=model)
        if not name.isidentifier():
            raise ConfigError(f"a persona's name must be a single word without spaces, not '{name}'")


def load_personas(path: Path) -> list[Persona]:
    """Load personas from a TOML file: `[[persona]]` tables with `name`, `about` and optionally `model`."""
    try:
        file = UserFile.read(path, "list of personas")
    except ScenarioError as error:
        raise ConfigError(str(error)) from None
    if not file.table.get("persona"):
        raise ConfigError(f"{path}: it has no [[persona]] table")
    panel = file.validate(_Panel)
    file.refuse(ConfigError)
    personas = [Persona(row.name, row.about, row.model) for row in panel.persona] if panel else []
    for number, persona in enumerate(personas):
        if persona.name in [earlier.name for earlier in personas[:number]]:
            raise ConfigError(f"{path}: two personas are called '{persona.name}'; names must differ")
    return personas


def _single_word(name: str) -> str:
    if not name.isidentifier():
        raise PydanticCustomError("name", "expected a single word without spaces")
    return name


def _of_no_server(name: str, info: ValidationInfo) -> str:
    if info.context is not None:  # as `UserFile` sets it; elsewhere the user typed the name
        from parley.agents.models.registry import refuse_server  # it loads AutoGen

        try:
            refuse_server(name)
        except ValueError as error:
            raise PydanticCustomError(REFUSED, "{reason}", {"reason": str(error)}) from None
    return name


ModelName = Annotated[str, AfterValidator(_of_no_server)]
"""A model's or scorer's name. In a user's file it must not say where keys go: see `refuse_server`."""


class _Row(BaseModel, extra="forbid"):
    """A persona in a file. (`Persona` itself raises at the first problem.)"""

    name: Annotated[str, AfterValidator(_single_word)]
    about: str
    model: ModelName | None = None


class _Panel(BaseModel, extra="forbid"):
    persona: list[_Row]
