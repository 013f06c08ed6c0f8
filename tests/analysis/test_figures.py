"""Limits and ticks of scales that end at both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.analysis.reporting.figures import bounded, sheet


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
