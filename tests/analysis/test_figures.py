"""Limits and ticks of scales that end at both sides."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.analysis.reporting.figures import bounded, dots, save, sheet


@given(st.lists(st.floats(0, 100), min_size=1, max_size=5), st.booleans())
def test_a_percentage_axis_has_no_tick_beyond_its_ends_and_cuts_off_no_point(values: list[float], whole: bool) -> None:
    _, axes = sheet(4, 3)
    axis = axes[0, 0]
    axis.plot(values, range(len(values)), "o")
    bounded(axis, "x", whole=whole)
    first, last = axis.get_xlim()
    assert -4 < first < min(values)
    assert max(values) < last < 104
    assert last - first >= 1, "equal values must not look different"
    ticks = axis.get_xticks()
    assert len(ticks)
    assert all(0 <= tick <= 100 for tick in ticks)


@pytest.mark.parametrize("value", [0.0, 50.0, 100.0])
def test_a_whole_axis_shows_both_ends(value: float) -> None:
    _, axes = sheet(4, 3)
    axes[0, 0].plot([value], [0], "o")
    bounded(axes[0, 0], "x", whole=True)
    assert {0, 100} <= set(axes[0, 0].get_xticks())


def test_an_unbounded_interval_is_an_arrow_that_moves_no_limit(tmp_path: Path) -> None:
    ends = [([0.0, -math.inf, math.nan], [1.0, math.inf, math.nan]), ([0.0, 0.25, 0.1], [1.0, 0.75, 0.9])]
    limits = []
    for low, high in ends:
        figure, axes = sheet(4, 2)
        dots(axes[0, 0], ["a", "b", "c"], *(pd.Series(column) for column in ([0.5] * 3, low, high)), ["k"] * 3)
        limits.append(axes[0, 0].get_xlim())
        drawn = save(figure, tmp_path / "figure")
        assert all(path.stat().st_size > 0 for path in drawn)
        arrows = len(axes[0, 0].texts)
        assert arrows == (2 if -math.inf in low else 0)
    assert limits[0] == limits[1]
