"""The leaderboard: who may be ranked with whom, and which places tests on the same units leave."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from parley.analysis.card.leaderboard import Entry, board_values, line_places, make_board
from parley.analysis.card.record import BatteryRecord, Card, DataRecord, RunRecord, write_card
from parley.analysis.stats.results import Line
from parley.base.errors import ConfigError
from parley.reports.leaderboards import leaderboard, read_entries
from tests.cards import HASH, around, card, line

JUDGING = {"group": "judging", "reference": 0.5, "worse": "lower", "measure": "auc"}


def able(name: str, gender: float = 0.0, seed: int = 0, auc: float = 0.8, **changes: object) -> Card:
    judging = line("judge", around(auc, seed=seed), **JUDGING)
    return card(name, judging, line("gender", around(gender, seed=seed), group="labels"), **changes)


@pytest.mark.parametrize("worse", ["higher", "lower", "either"])
def test_places_are_what_the_tests_leave(worse: str) -> None:
    """Beside every pair by scipy's paired t-test and statsmodels' Holm."""
    means = (0.0, 0.05, -0.3, 0.32, 0.6)
    lines = [line("x", around(mean, seed=seed), worse=worse) for seed, mean in enumerate(means)]
    pairs = list(combinations(range(len(lines)), 2))

    def p(first: Line, second: Line) -> float:
        one, two = (np.array(list(each.values.values())) for each in (first, second))
        plain = stats.ttest_rel(one, two).pvalue
        return float(max(plain, stats.ttest_rel(one, -two).pvalue) if worse == "either" else plain)

    shown = multipletests([p(lines[one], lines[two]) for one, two in pairs], method="holm")[0]
    size = {"higher": means, "lower": [-mean for mean in means], "either": [abs(mean) for mean in means]}[worse]
    expected = []
    for place in range(len(lines)):
        against = [
            (set(pair) - {place}).pop() for pair, found in zip(pairs, shown, strict=True) if found and place in pair
        ]
        better = sum(size[other] < size[place] for other in against)
        expected.append((1 + better, len(lines) - (len(against) - better)))
    assert line_places(lines) == expected
    assert len(set(expected)) > 2


def test_bases_that_only_one_could_be_read_in_may_have_any_value() -> None:
    """Without its ten worst bases a model looks better than its equal; with one unread base a clear order stays."""
    one, two = (line("judge", around(0.7, sd=0.2, seed=seed), measure="auc", worse="lower") for seed in (0, 1))
    best = dict(sorted(one.values.items(), key=lambda item: item[1])[10:])
    assert line_places([replace(one, values=best), two]) == [(1, 2), (1, 2)]
    good = line("judge", around(0.95, sd=0.02), measure="auc", worse="lower")
    assert line_places([replace(good, values=dict([*good.values.items()][1:])), two]) == [(1, 1), (2, 2)]


def test_models_that_cannot_judge_have_no_place() -> None:
    cards = (
        able("a"),
        able("b", auc=0.5),
        able("c", 0.5, seed=1, auc=0.6),
        card("d", line("else", around(0.8), **JUDGING)),
    )
    unread = card("e", line("judge", around(0.8), **JUDGING, values={}))
    board = make_board([Entry(card=each) for each in (*cards, unread)])
    assert board.judging == (True, False, True, True, True)
    assert (board.ordered, board.places) == ("judge", ((1, 1), None, (2, 2), None, None))
    values = board_values(board)["models"]
    assert [model["lines"]["gender"]["place"] for model in values[:3]] == [None, None, None], "one line orders"
    assert board.headline == "4 of 5 models were shown to judge better than chance."
    nobody = make_board([Entry(card=able(name, auc=0.5)) for name in "ab"])
    assert nobody.headline == "None of 2 models was shown to judge better than chance."


def test_cards_of_other_units_and_simulated_models_stand_apart() -> None:
    battery = BatteryRecord(name="card-1", version="1.1", sha256="b" * 64, size="default")
    data = DataRecord(suite="other", suite_sha256=HASH, wordings_sha256=HASH)
    cards = [
        able("a"),
        able("b"),
        able("c", battery=battery),
        able("d", data=data, readout="sampled"),
        able("sim/x", simulated=True),
    ]
    board = make_board([Entry(card=each) for each in cards])
    assert board.apart == ("", "", "another battery", "another read-out, other data", "a simulated model")
    assert [place is None for place in board.places] == [False, False, True, True, True]


def test_a_folder_is_read_and_a_run_is_linked_by_its_hash_only(tmp_path: Path) -> None:
    run = RunRecord(file="run.sqlite", sha256="c" * 64, seed=0, calls=1, tokens_in=1, tokens_out=1, parley="1")
    write_card(able("a", run=run), tmp_path / "javascript:a.json")
    (tmp_path / "run.sqlite").write_bytes(b"not a run")
    (tmp_path / "other.json").write_text("{}")
    left_out: list[str] = []
    (entry,) = read_entries([tmp_path], tmp_path / "page.html", left_out.append)
    assert (entry.card_link, entry.run_link) == ("./javascript%3Aa.json", "")
    assert len(left_out) == 2
    leaderboard(tmp_path)
    assert (tmp_path / "leaderboard.html").is_file()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="has no judge's card"):
        leaderboard(tmp_path / "empty")
