"""A panel in the paper's prompts with blind first ballots: settings for tests of panels, without silent ballots."""

from __future__ import annotations

from typing import Any

from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu

PANEL: dict[str, Any] = {
    "design": "paper",
    "cells": "all",
    "blind": True,
    "speaking_order": "shuffled",
    "ties": True,
    "reasons_first": True,
}
"""Settings of MALIBU: every pair is judged with both assignments of label to response and in both orders."""
ONE_CELL: dict[str, Any] = {**PANEL, "cells": "one"}
"""The same with one of these four, drawn by the seed."""
PANEL_FLAGS = (
    *("--design", "paper", "--cells", "all", "--blind"),
    *("--speaking-order", "shuffled", "--ties", "--reasons-first"),
)
PAPER_DEBATES = ("run", "rldf", "--design", "paper", "--no-check")
"""RLDF's debates with a referee that writes reports, and no check of it before them."""
RUN_PANEL = ("run", "malibu", *PANEL_FLAGS, "--cells", "one")
"""A command: the panel judges one cell of each pair, three units per scenario of the suite `tiny`."""
TINY_PANEL = (*RUN_PANEL, "--suite", "tiny", "--quiet")
"""The same on the suite `tiny`: 9 units of 8 calls, and no progress is shown."""


def in_design(settings: dict[str, Any], panel: dict[str, Any] = PANEL) -> dict[str, Any]:
    """Settings of MALIBU with those of a panel, unless they name a design."""
    return settings if "design" in settings else {**panel, **settings}


def panel_study(**settings: Any) -> Malibu:
    """MALIBU with these settings, in the panel's design unless they name one."""
    return Malibu(MalibuConfig(**in_design(settings)))
