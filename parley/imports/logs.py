"""Recorded logs of published experiments: what the readers of BBQ's predictions and MABRF's notebooks share."""

from __future__ import annotations

import gzip
from pathlib import Path

from parley.agents import ConfigError

SOURCE = "log"
"""The facet `source` of a unit that was read from another's log; reports tell recomputed values from ours by it."""
MAX_BYTES = 512 * 2**20
"""Of an unpacked file: a few kilobytes of gzip may unpack to far more than any memory."""


def read_log(path: Path) -> str:
    """The text of a file, unpacked if its name ends in .gz.

    Args:
        path: The file.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES // 2**20} MiB")
        return content.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None


def bare_name(path: Path) -> str:
    """The name of a file without .gz and its suffix."""
    return Path(path.name.removesuffix(".gz")).stem
