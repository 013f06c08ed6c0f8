"""Data that is shipped by name, or comes from the user's TOML file: rubrics, bias types, personas."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from parley.agents import ConfigError, Persona, load_personas
from parley.base.toml import parse_toml

T = TypeVar("T", bound=BaseModel)


def load(model: type[T], kind: str, name: str, known: Sequence[str], place: str) -> T:
    """The validated contents of a TOML file.

    Args:
        model: The type to validate against.
        kind: What it is, for messages: "rubric".
        name: One of `known`, or a path to the user's own .toml file.
        known: The shipped names.
        place: Where the shipped files are, with {} for the name.
    """
    if name in known:
        text = files("parley.judging").joinpath(*place.format(name).split("/")).read_text("utf-8")
    elif not name.endswith(".toml"):
        raise ConfigError(f"unknown {kind} '{name}' (known: {', '.join(known)}, or a path to a .toml file)")
    else:
        try:
            text = Path(name).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{name}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    try:
        return model.model_validate(parse_toml(text))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply for a {kind}") from None


def shipped_personas(file: str) -> list[Persona]:
    """The personas of a file in `judging/personas/`."""
    return load_personas(Path(str(files("parley.judging").joinpath("personas", file))))
