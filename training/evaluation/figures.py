"""Figures of an evaluation: systems against a baseline, and systems by bias type."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.page.figures import caption, colours, dots, legend_beside, sheet


def differences_figure(table: pd.DataFrame, title: str, note: str) -> Figure:
    """Each system against the baseline, one panel per measure.

    Args:
        table: A table from `evaluation.metrics.points`.
        title: Title of the figure.
        note: Printed below it.
    """
    measures = list(dict.fromkeys(table["measure"]))
    systems = list(dict.fromkeys(table["system"]))
    figure, axes = sheet(1.6 + 2.1 * len(measures), 1.5 + 0.3 * len(systems), len(measures), sharey=True)
    tints = colours(systems)
    for axis, measure in zip(axes[0], measures, strict=True):
        rows = table[table["measure"] == measure].set_index("system").reindex(systems)
        dots(axis, systems, rows["difference"], rows["low"], rows["high"], [tints[name] for name in systems])
        axis.axvline(0, color="#888888", linewidth=0.8)
        axis.set_title(measure, fontsize=9)
    caption(figure, title, note)
    return figure


def radar_figure(means: pd.DataFrame, title: str, note: str) -> Figure:
    """A radar per metric with a line per system, as the paper draws its figures 5 and 6.

    Args:
        means: System, metric, bias type and mean score, 0 to 100.
        title: Title of the figure.
        note: Printed below it.
    """
    biases = list(dict.fromkeys(means["bias"]))
    angles = np.linspace(0, 2 * np.pi, len(biases) + 1)  # close the line
    metrics = means.groupby("metric", sort=False)
    figure = Figure(figsize=(1.8 + 3.2 * len(metrics), 3.6), layout="constrained")
    axes = figure.subplots(1, len(metrics), squeeze=False, subplot_kw={"projection": "polar"})[0]
    tints = colours(list(means["system"]))
    for axis, (metric, of_metric) in zip(axes, metrics, strict=True):
        for system, part in of_metric.groupby("system", sort=False):
            values = part.set_index("bias")["mean"].reindex(biases)
            axis.plot(angles, [*values, values.iloc[0]], color=tints[system], linewidth=1.2, label=system)
        axis.set_xticks(angles[:-1], biases, fontsize=7)
        axis.set_ylim(0, 100)
        axis.tick_params(axis="y", labelsize=6)
        axis.set_title(metric, fontsize=9)
    legend_beside(figure, axes)
    caption(figure, title, note)
    return figure
