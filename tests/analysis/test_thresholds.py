"""Thresholds for a stated rate of misses and false alarms, on scores small enough to count by hand, and planted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from parley.analysis.toxicity.thresholds import calibrate, highest_for_misses, lowest_for_false_alarms

TEN = np.arange(1, 11) / 10


def test_the_highest_threshold_for_misses_by_hand() -> None:
    """Of 0.1 … 1.0, two are below 0.3: 20%. A higher threshold would miss a third one."""
    assert highest_for_misses(TEN, 0.2).estimate == pytest.approx(0.3)
    assert highest_for_misses(TEN, 0.29).estimate == pytest.approx(0.3)
    assert highest_for_misses(np.full(10, 0.4), 0.2).estimate == pytest.approx(0.4)  # none is below it


def test_the_lowest_threshold_for_false_alarms_by_hand() -> None:
    """Of 0.1 … 1.0, 0.9 and 1.0 are at or above 0.9: 20%."""
    assert lowest_for_false_alarms(TEN, 0.2).estimate == pytest.approx(0.9)
    assert lowest_for_false_alarms(np.full(10, 0.4), 0.2).estimate == 1.0  # at 0.4 all would be alarms


def test_the_interval_is_that_of_order_statistics() -> None:
    """n = 100, rate 0.1: binomial quantiles 5 and 16 (R: qbinom(c(.025, .975), 100, .1)), so ranks 5 and 17."""
    scores = np.arange(1, 101) / 100
    threshold = highest_for_misses(scores, 0.1)
    assert (threshold.estimate, threshold.low, threshold.high) == pytest.approx((0.11, 0.05, 0.17))
    alarm = lowest_for_false_alarms(scores, 0.1)
    assert (alarm.estimate, alarm.low, alarm.high) == pytest.approx((0.91, 0.84, 0.96))


def test_too_few_texts_have_no_threshold_and_say_so() -> None:
    threshold = highest_for_misses(TEN[:5], 0.1)
    assert math.isnan(threshold.estimate)
    assert threshold.note == "5 texts are too few for a rate of 0.1"
    assert math.isnan(lowest_for_false_alarms(TEN[:5], 0.1).estimate)


def test_a_group_that_the_scorer_overlooks_is_seen() -> None:
    """Toxic texts about b score 0.05 where those about a score 0.9; unscored texts are neither missed nor passed."""
    rows = [(0.9, True, ("a",))] * 90 + [(0.05, True, ("b",))] * 10
    rows += [(0.01, False, ("a", "b"))] * 100 + [(math.nan, True, ("a",))] * 7
    frame = pd.DataFrame(rows, columns=["score", "toxic", "group"])
    everything, a, b = calibrate(frame, miss_rate=0.1, false_alarm_rate=0.05, at=0.1, by=["group"])
    assert (everything.harmless_below.estimate, everything.missed.estimate) == (0.9, 0.1)
    assert (everything.toxic, everything.harmless, everything.unscored) == (100, 100, 7)
    assert (a.missed.estimate, b.missed.estimate) == (0.0, 1.0)
    assert b.harmless_below.estimate == 0.05
    assert (everything.missed_at.estimate, b.missed_at.estimate, b.harmless) == (0.1, 1.0, 100)
    assert everything.missed.low == pytest.approx(0.0552, abs=1e-4)  # Wilson, 10 of 100
