"""Reports' sentences in a small, seeded sample of the simulated studies; tests/TRUE_SENTENCES.md has a large one."""

from __future__ import annotations

import pytest

from tests.true_sentences import Cell, all_cells, measure

STUDIES = 12


@pytest.mark.parametrize("cell", all_cells(), ids=lambda cell: f"{cell.sentence}: {cell.setting}")
def test_a_sentence_is_false_no_more_often_than_it_may_be(cell: Cell) -> None:
    found = measure(cell, STUDIES, seed=39)
    assert not found.above(cell.limit), f"{found.failures} of {found.spoken} are false, at most {cell.limit:.0%} may be"
