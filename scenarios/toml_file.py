"""TOML files of scenarios, labels and attempts: read, or refused with one line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from parley.scenarios.errors import ScenarioError

_DOTTED = re.compile(r"""(?m)(?:^|[\[{,])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""A key of more than 64 parts (a.b.c …), which no file has: tomllib's time is quadratic in their number."""


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """The table in a file.

    Args:
        path: The file.
        kind: What it should be, for messages: "suite".
    """
    try:
        text = path.read_text("utf-8-sig")
        if _DOTTED.search(text):
            raise RecursionError
        return tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: nested too deeply for a {kind}") from None
