"""MALIBU in the paper's design, for tests of panels that talk, without silent ballots before it."""

from __future__ import annotations

from typing import Any

from parley.judging.malibu.plan import MalibuConfig
from parley.judging.malibu.study import Malibu

ONE_CELL: dict[str, Any] = {"design": "paper"}
"""Settings of MALIBU: the paper's own, one cell of each pair."""
PANEL: dict[str, Any] = {**ONE_CELL, "cells": "all"}
"""The same with every pair judged with both assignments of label to response and in both orders."""
PANEL_FLAGS = ("--design", "paper", "--cells", "all")
PAPER_DEBATES = ("run", "rldf", "--design", "paper", "--no-check")
"""RLDF's debates with a referee that writes reports, and no check of it before them."""
RUN_PANEL = ("run", "malibu", "--design", "paper")
"""A command: the panel judges one cell of each pair, three units per scenario of the suite `tiny`."""
TINY_PANEL = (*RUN_PANEL, "--suite", "tiny", "--quiet")
"""The same on the suite `tiny`: 9 units of 8 calls, and no progress is shown."""


def in_design(settings: dict[str, Any], panel: dict[str, Any] = PANEL) -> dict[str, Any]:
    """Settings of MALIBU with those of a panel, unless they name a design."""
    return settings if "design" in settings else {**panel, **settings}


def panel_study(**settings: Any) -> Malibu:
    """MALIBU with these settings, in the panel's design unless they name one."""
    return Malibu(MalibuConfig(**in_design(settings)))
