"""MALIBU's numbers, from a frame of verdicts: what the paper computes, and statistics that respect the design.

report(verdicts).words
"""

from analysis.malibu.agreement import agreement, changed_minds, parsing
from analysis.malibu.pairs import flips, position, ranking, win_rates
from analysis.malibu.panel import MissingColumns, last_word, panel_preferences, panel_scores
from analysis.malibu.report import report
from analysis.malibu.scores import differences, mean_scores
from analysis.malibu.significance import significance

__all__ = [
    "MissingColumns",
    "agreement",
    "changed_minds",
    "differences",
    "flips",
    "last_word",
    "mean_scores",
    "panel_preferences",
    "panel_scores",
    "parsing",
    "position",
    "ranking",
    "report",
    "significance",
    "win_rates",
]
