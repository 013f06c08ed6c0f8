"""Helpers for messages that users read."""

from __future__ import annotations


def plural(count: int, singular: str, many: str | None = None) -> str:
    """The count with its noun: "1 unit", "2 units", "1,200 units"; `many` where an s is not enough."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"
