"""MALIBU's numbers, from a frame of verdicts: what the paper computes, and statistics that respect the design.

report(verdicts).words

The functions reduce the frame as they need it. Where several are called, `PanelData(verdicts)` in place of the frame
shares the reductions between them.
"""

from parley.analysis.malibu.pairs import flips, position, win_rates
from parley.analysis.malibu.panel import PanelData, panel_preferences
from parley.analysis.malibu.report import report
from parley.analysis.malibu.scores import differences, mean_scores
from parley.analysis.reporting.verdicts import MissingColumns

__all__ = [
    "MissingColumns",
    "PanelData",
    "differences",
    "flips",
    "mean_scores",
    "panel_preferences",
    "position",
    "report",
    "win_rates",
]
