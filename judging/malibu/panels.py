"""Panels of judges: ours by name, or a .toml file of the user's personas."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from parley.agents import ConfigError, Persona, load_personas

PANELS = {"temperaments": "malibu_judges.toml", "demographic": "malibu_demographic.toml"}


def load_panel(name: str) -> list[Persona]:
    if name in PANELS:
        return shipped_personas(PANELS[name])
    if not name.endswith(".toml"):
        raise ConfigError(f"unknown panel '{name}' (known: {', '.join(PANELS)}, or a .toml file of personas)")
    return load_personas(Path(name))


def shipped_personas(file: str) -> list[Persona]:
    return load_personas(Path(str(files("parley.judging").joinpath("personas", file))))
