"""Helpers for texts: messages that users read, and texts of others that no file could contain."""

from __future__ import annotations

from typing import Any


def plural(count: int, singular: str, many: str | None = None) -> str:
    """The count with its noun: "1 unit", "2 units", "1,200 units"; `many` where an s is not enough."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def without_surrogates(value: Any) -> Any:
    """What JSON gave, with lone surrogates in its texts and names as escapes: JSON may write them, UTF-8 cannot."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(inner) for key, inner in value.items()}
    return [without_surrogates(inner) for inner in value] if isinstance(value, list) else value
