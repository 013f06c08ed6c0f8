"""MALIBU's numbers, from a frame of verdicts: what the paper computes, and statistics that respect the design.

report(verdicts).words

The functions reduce the frame as they need it. Where several are called, `PanelData(verdicts)` in place of the frame
shares the reductions between them.
"""

from parley.analysis.malibu.agreement import agreement, changed_minds
from parley.analysis.malibu.aligned import aligned_contrast
from parley.analysis.malibu.bases import effects_by_base
from parley.analysis.malibu.diagnostics import no_label_differences
from parley.analysis.malibu.pairs import flips, position, preferences, win_rates
from parley.analysis.malibu.panel import PanelData, panel_preferences
from parley.analysis.malibu.report import report
from parley.analysis.malibu.scores import differences, mean_scores
from parley.analysis.malibu.significance import significance
from parley.analysis.reporting.verdicts import MissingColumns

__all__ = [
    "MissingColumns",
    "PanelData",
    "agreement",
    "aligned_contrast",
    "changed_minds",
    "differences",
    "effects_by_base",
    "flips",
    "mean_scores",
    "no_label_differences",
    "panel_preferences",
    "position",
    "preferences",
    "report",
    "significance",
    "win_rates",
]
