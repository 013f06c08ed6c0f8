"""Replies that are not the form that was asked for, by what was asked for: each must stay unread."""

from __future__ import annotations

from pathlib import Path


def doubtful() -> dict[str, list[str]]:
    """The lines of `doubtful.txt` by their heading."""
    sections = Path(__file__).with_suffix(".txt").read_text("utf-8").split("# ")[1:]
    return {head: lines for head, *lines in (section.strip().split("\n") for section in sections)}
