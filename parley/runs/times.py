"""Lengths of time as users and schedulers write them: 90m, 2h30m, 02:00:00, 1-12:00:00."""

from __future__ import annotations

import re

_UNITS = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)")
_DAYS = re.compile(r"(\d+)-(\d+)(?::(\d\d))?(?::(\d\d))?")


def to_seconds(text: str) -> int:
    """The seconds of a length of time; raises `ValueError` if it is not one, or 0.

    A number without a unit is refused: SLURM reads it as minutes, and most programs as seconds.
    """
    text = text.strip().lower()
    if match := _CLOCK.fullmatch(text):
        parts = ("0", *match.groups())
    elif match := _DAYS.fullmatch(text) or _UNITS.fullmatch(text):
        parts = tuple(part or "0" for part in match.groups())
    else:
        raise ValueError(text)
    days, hours, minutes, seconds = map(int, parts)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not total:
        raise ValueError(text)
    return total
