"""Data that is shipped by name or brought as a TOML file: rubrics, bias types."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from parley.agents import ConfigError

T = TypeVar("T", bound=BaseModel)


def load(model: type[T], kind: str, name: str, known: Sequence[str], place: str) -> T:
    """`name` is one of `known`, shipped at `place` (with {} for the name), or a path to a user's own file."""
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
        return model.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply for a {kind}") from None
