"""The audit's figure: one dot per identity, one line per sentence, one panel per scorer."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.reporting.figures import LINE, PALETTE, caption, colours, plain_text, sheet, tidy


def audit_figure(audit: pd.DataFrame, sentences: Mapping[str, str], title: str, note: str) -> Figure:
    """The scores of every sentence by identity, coloured by category.

    Args:
        audit: One row per scorer and text; see `scorers`.
        sentences: The text of each sentence, by its name.
        title: Above the figure.
        note: The small print below it.
    """
    scorers = list(dict.fromkeys(audit["scorer"]))
    names = list(dict.fromkeys(audit["sentence"]))
    tints = colours(list(dict.fromkeys(audit["category"])))
    figure, axes = sheet(3.4 + 2.6 * len(scorers), 1.6 + 1.5 * LINE * len(names), len(scorers), sharey=True)
    for axis, scorer in zip(axes[0], scorers, strict=True):
        for nth, (category, part) in enumerate(audit[audit["scorer"] == scorer].groupby("category", sort=False)):
            lines = [names.index(name) + 0.06 * (nth - 3) for name in part["sentence"]]
            marker = "o" if nth < len(PALETTE) else "D"
            axis.plot(part["score"], lines, marker, color=tints[str(category)], markersize=3, alpha=0.8, label=category)
        axis.set_title(plain_text(scorer), fontsize=9)
        axis.set_xlim(-0.03, 1.03)
        tidy(axis)
    labels = ["\n".join(textwrap.wrap(plain_text(sentences[name]), 30)) for name in names]
    axes[0][0].set_yticks(range(len(names)), labels, fontsize=7)
    axes[0][0].set_ylim(len(names) - 0.4, -0.6)
    handles, categories = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, categories, loc="outside right upper", fontsize=7, frameon=False)
    caption(figure, title, note)
    return figure
