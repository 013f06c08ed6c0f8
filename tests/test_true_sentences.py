"""How often reports' sentences are false, in simulated studies; tests/TRUE_SENTENCES.md has a larger sample.

What the rates are of is tested by hand elsewhere: the AUC's interval and units of a flaw in test_malibu_yardstick,
headlines in test_lines, test_bbq_leaderboard and test_rldf, loops' gains in test_gains, the audit's interval in
test_preferences, sizes in test_power_command, skewed bases in test_malibu_scores.
"""

from __future__ import annotations

import pytest

STUDIES = 100


@pytest.mark.nightly
def test_no_sentence_is_false_more_often_than_it_may_be() -> None:
    from tests.true_sentences import all_cells, measure

    found = [(cell, measure(cell, STUDIES, seed=39)) for cell in all_cells()]
    assert len(found) > 30
    assert [f"{cell.sentence}, {cell.setting}: {rate}" for cell, rate in found if rate.above(cell.limit)] == []
