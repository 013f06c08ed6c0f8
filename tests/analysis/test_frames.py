"""The public statistics on frames of a user's own: the numbers of the papers and textbooks, with intervals."""

from __future__ import annotations

import pandas as pd
import pytest

from parley.analysis import chi_square, win_rates
from parley.analysis.stats.contingency import chi_square_of_counts
from parley.analysis.stats.proportions import cluster_proportion, wilson


def test_chi_square_counts_rows_by_any_two_columns() -> None:
    # Agresti (2007), An Introduction to Categorical Data Analysis, table 2.5: gender by party.
    counts = {("women", "democrat"): 762, ("women", "independent"): 327, ("women", "republican"): 468}
    counts |= {("men", "democrat"): 484, ("men", "independent"): 239, ("men", "republican"): 477}
    rows = pd.DataFrame([pair for pair, count in counts.items() for _ in range(count)], columns=["gender", "party"])
    line = chi_square(rows, by="gender", of="party")
    assert (line.statistic, line.df) == (pytest.approx(30.07, abs=0.005), 2)
    assert line == chi_square_of_counts([[762, 327, 468], [484, 239, 477]])
    assert 0 < line.low < line.estimate < line.high < 0.2
    alone = chi_square(rows[rows["gender"] == "men"], by="gender", of="party")
    assert alone.note == "the table has fewer than two rows or two columns with counts"


def test_win_rates_leave_ties_out_and_hold_together() -> None:
    outcomes = ["a", "a", "b", "tie", "a", "a", "a", "b", "a", "tie", "b", "a"]
    frame = pd.DataFrame({"left": "a", "right": "b", "won": outcomes, "text": [n // 2 for n in range(12)]})
    columns = {"first": "left", "second": "right", "winner": "won", "cluster": "text"}
    rates = win_rates(frame, **columns)
    a, b = rates["a"], rates["b"]
    assert (a.estimate, a.also["wins"], a.also["losses"], a.also["ties"], a.clusters) == (0.7, 7, 3, 2, 6)
    assert (a.also["wilson_low"], a.also["wilson_high"]) == (wilson(7, 10).low, wilson(7, 10).high)
    assert a.also["rate_ties_half"] == pytest.approx(8 / 12)
    decided = frame[frame["won"] != "tie"]
    alone = cluster_proportion(decided["won"] == "a", decided["text"])
    assert (a.low, a.high) == (alone.low, alone.high), "of two, there is one interval"
    assert (b.low, b.high) == (pytest.approx(1 - a.high), pytest.approx(1 - a.low))
    third = pd.concat([frame, frame.assign(right="c", won="c")])
    wider = win_rates(third, **columns)
    assert list(wider) == ["a", "b", "c"]
    assert wider["b"].level == pytest.approx(1 - 0.05 / 3)
    assert wider["b"].low < b.low


def test_win_rates_refuse_a_winner_who_did_not_take_part() -> None:
    frame = pd.DataFrame({"left": "a", "right": "b", "won": ["a", "c"], "text": [0, 1]})
    with pytest.raises(ValueError, match="must be one of the two contestants or 'tie', got 'c'"):
        win_rates(frame, first="left", second="right", winner="won", cluster="text")
