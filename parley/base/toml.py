"""TOML that users write, as a text or a file; what takes long to parse is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from parley.base.errors import ScenarioError

_DOTTED = re.compile(r"""(?m)(?:^|[\[{,])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""A key of more than 64 parts (a.b.c …), which no file has: tomllib's time is quadratic in their number (20,000 parts:
5 s)."""


def parse_toml(text: str) -> dict[str, Any]:
    """The text as a table. Raises ValueError if it is not TOML, and RecursionError if it is nested too deeply."""
    if _DOTTED.search(text):
        raise RecursionError
    return tomllib.loads(text)


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """The table in a file; ScenarioError, in one line, if it cannot be read.

    Args:
        path: The file.
        kind: What it should be, for messages: "suite".
    """
    try:
        return parse_toml(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: nested too deeply for a {kind}") from None
