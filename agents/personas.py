"""Personas: who an agent is told to be.

ada = Persona("Ada", "You are Ada, an auditor. You trust what can be checked.")
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from parley.base.errors import ConfigError
from parley.base.toml import parse_toml


class Persona(BaseModel, extra="forbid", frozen=True):
    """Who an agent is told to be.

    Args:
        name: A Python identifier, as AutoGen requires; names differ within a conversation.
        about: The description the model is given, usually "You are …". With "" there is no system message.
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
    """Personas from a TOML file: `[[persona]]` tables with `name`, `about` and, where it differs, `model`."""
    try:
        rows = parse_toml(path.read_text("utf-8-sig"))["persona"]
        personas = [Persona(**row) for row in rows]
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except KeyError:
        raise ConfigError(f"{path}: it has no [[persona]] table") from None
    except (ValueError, TypeError) as error:  # not TOML, not UTF-8, or not a persona
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply for a list of personas") from None
    if not personas:
        raise ConfigError(f"{path}: it has no [[persona]] table")
    return personas
