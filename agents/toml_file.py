"""TOML that users write: `parse_toml` refuses what takes long to parse."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_DOTTED = re.compile(r"""(?m)(?:^|[\[{,])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""A key of more than 64 parts (a.b.c …), which no file has: tomllib's time is quadratic in their number."""


def parse_toml(text: str) -> dict[str, Any]:
    """The text as a table. Raises ValueError if it is not TOML, and RecursionError if it is nested too deeply."""
    if _DOTTED.search(text):
        raise RecursionError
    return tomllib.loads(text)
