"""Model output is untrusted: it is printed literally, with control characters made visible."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with control characters written out, so that it can neither control the terminal nor reverse text."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
