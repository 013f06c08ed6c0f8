"""A card as a picture for a slide: its main lines, shares at the left, points at the right."""

from __future__ import annotations

import math
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parley.analysis.card.record import Card
from parley.analysis.card.words import POINTS, SHARES, sentences, tone
from parley.analysis.reporting.figures import caption, dots, sheet
from parley.analysis.stats.results import Line

LABEL_WIDTH = 30
COLOURS = {"good": "#00805c", "bad": "#c4440a", "open": "#6b7076", "blocked": "#b8bcc2"}
"""Colours by a verdict's tone."""


def card_picture(card: Card) -> Figure:
    """The picture, 16 to 9."""
    lines = {line.name: line for line in card.lines if math.isfinite(line.estimate)}
    left, right = ([lines[name] for name in names if name in lines] for names in (SHARES, POINTS))
    figure, ((shares, points),) = sheet(12.8, 7.2, 2)
    _draw(shares, left, 0.5, "share (dashed: guessing, or no preference)")
    shares.set_xlim(-0.03, 1.03)
    _draw(points, right, 0.0, f"points of {card.model.scale[0]} to {card.model.scale[1]} (dashed: no effect)")
    said = next((line for line in sentences(card) if not line.startswith("This judge is SIM")), "")
    model = card.model
    caption(
        figure,
        f"{model.name} as a judge",
        f"{said} Dots with 95% intervals over bases. Green: good news; red: bad news; grey: undecided; pale: not "
        f"measured. {card.battery.name} {card.battery.version} ({card.battery.size}), {card.run.calls:,} calls, "
        f"{model.date}.",
    )
    return figure


def _draw(axis: Axes, lines: list[Line], null: float, label: str) -> None:
    values, low, high = (
        pd.Series([getattr(line, name) for line in lines], dtype=float) for name in ("estimate", "low", "high")
    )
    titles = [fill(f"{line.label} ({line.verdict})", LABEL_WIDTH) for line in lines]
    dots(axis, titles, values, low, high, [COLOURS[tone(line)] for line in lines])
    axis.axvline(null, color="#777777", linewidth=1.0, linestyle=(0, (3, 2)), zorder=0)
    axis.tick_params(labelsize=11)
    axis.set_xlabel(label, fontsize=11)
