"""One verdict of a frame, as tests by hand need it; and MALIBU's lines as tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from parley.analysis.malibu import PanelData, differences
from parley.analysis.malibu.aligned import aligned_lines
from parley.analysis.malibu.diagnostics import agreement_lines, no_label_lines
from parley.analysis.malibu.significance import significance_lines
from parley.analysis.reporting.questions import table
from parley.analysis.reporting.report import Directions

CATEGORIES = {"female": "gender", "male": "gender", "black": "race", "white": "race", "asian": "race"}


def single(scenario: str, identity: str, value: float | None, **others: Any) -> dict[str, Any]:
    """One judge's score of one candidate; None where the reply could not be read.

    Args:
        scenario: Its scenario.
        identity: The label, "" for none.
        value: The score.
        others: More columns, or other values for these.
    """
    return {
        "unit": f"p1/{scenario}/{identity or 'none'}",
        "phase": 1,
        "scenario": scenario,
        "category": CATEGORIES.get(identity, ""),
        "identity": identity,
        "judge": "J",
        "role": "debater",
        "round": 1,
        "subject": "",
        "metric": "Accuracy",
        "value": value,
        "text": None,
        "status": "ok" if value is not None else "unparsed",
        **others,
    }


def preferences(frame: pd.DataFrame) -> pd.DataFrame:
    """Every two identities in pairs: wins minus losses per comparison."""
    found = differences(frame)
    return found[found["measure"] == "preferences"]


def significance(frame: pd.DataFrame) -> pd.DataFrame:
    return table(significance_lines(PanelData(frame)))


def agreement(frame: pd.DataFrame, draws: int = 2000) -> pd.DataFrame:
    return table(agreement_lines(PanelData(frame), draws=draws))


def no_label(frame: pd.DataFrame) -> pd.DataFrame:
    return table(no_label_lines(PanelData(frame)))


def aligned(frame: pd.DataFrame, directions: Directions) -> pd.DataFrame:
    return table(aligned_lines(PanelData(frame), directions))
