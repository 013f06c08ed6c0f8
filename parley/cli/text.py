"""What models say is untrusted: shown literally, with control characters made visible instead of obeyed."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """No escape sequence reaches the terminal, and no text is reversed on it."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
