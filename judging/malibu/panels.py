"""Panels of judges: the shipped ones by name, or the user's .toml file of personas."""

from __future__ import annotations

from pathlib import Path

from parley.agents import ConfigError, Persona, load_personas
from parley.judging.config import shipped_personas

PANELS = {"temperaments": "malibu_judges.toml", "demographic": "malibu_demographic.toml"}


def load_panel(name: str) -> list[Persona]:
    """The judges of a shipped panel (`temperaments`, `demographic`), or of a .toml file."""
    if name in PANELS:
        return shipped_personas(PANELS[name])
    if not name.endswith(".toml"):
        raise ConfigError(f"unknown panel '{name}' (known: {', '.join(PANELS)}, or a .toml file of personas)")
    return load_personas(Path(name))
