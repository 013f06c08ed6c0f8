"""`python -m tests.path`: which modules and forms a number goes through."""

from __future__ import annotations

import pandas as pd

from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.paired import paired_difference
from parley.base.text import p_text
from tests.path import Watch


def test_modules_and_forms_that_hold_a_number_are_counted() -> None:
    first, second = pd.Series([7.25, 6.0, 5.0]), pd.Series([1.0, 5.0, 3.0])
    watch = Watch({7.25}).run(lambda: paired_difference(first, second, pd.Series(["a", "b", "c"])))
    assert watch.modules == ["analysis/stats/paired.py", "analysis/stats/tables.py"]  # a difference is another number
    assert watch.forms == ["Series", "ndarray"]


def test_a_module_that_is_only_entered_is_not_counted() -> None:
    watch = Watch({2.0}).run(lambda: p_text(mean_test([1.0, 2.0, 3.5]).p))
    assert ("base/text.py", "p_text") in watch.entered
    assert "base/text.py" not in watch.modules
    assert watch.forms[0] == "several float"


def test_a_text_is_found_in_what_holds_it() -> None:
    line = pd.DataFrame({"unit": ["s1/nurse"], "value": [0.5]})
    watch = Watch(texts=("s1/nurse",))
    assert watch.holds([line])
    assert watch.form([line]) == "DataFrame(unit, value, …)"
    assert not watch.holds({"unit": "s1/engineer"})
