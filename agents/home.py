"""The folder for what is shared between runs: model weights, the reply cache, search indexes."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """PARLEY_HOME if set; else `.parley` in the repository's clone; else the user's cache folder."""
    if chosen := os.environ.get("PARLEY_HOME"):
        return Path(chosen)
    clone = Path(__file__).resolve().parents[1]
    if (clone / "pyproject.toml").is_file() and (clone / "parley").is_dir():
        return clone / ".parley"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parley"
