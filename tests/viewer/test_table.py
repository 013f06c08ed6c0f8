"""Filters, counts, flips and search, beside what plain SQL or a hand count says."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from parley.judging import Unit
from parley.runs import RunFile
from parley.viewer import bitmaps
from parley.viewer.compare import swapped_units
from parley.viewer.context import ViewerContext
from parley.viewer.figures import PANEL, VerdictRow, unit_figures
from parley.viewer.index import SearchIndex, fts_query
from parley.viewer.labelling import agreement
from parley.viewer.reading import blotted, template_fields
from parley.viewer.table import Query


@pytest.fixture
def desk(tmp_path, hand):
    desks = []

    def sit(path):
        desks.append(ViewerContext(path))
        assert desks[-1].wait(60)
        return desks[-1]

    yield sit
    for one in desks:
        one.close()


def counts(found, key):
    return {value: n for one in found["filters"] if one["key"] == key for value, n in one["values"]}


def test_filters_and_their_counts_are_those_of_sql(runs, desk):
    run = runs / "quick.sqlite"
    found = desk(run).page(Query({"f.phase": ["1"], "f.identity": ["female"]}), "", asked=False)
    with closing(sqlite3.connect(run)) as db:
        phase, identity = "json_extract(facets, '$.phase')", "json_extract(facets, '$.identity')"
        both = db.execute(
            f"SELECT id FROM units WHERE {phase} = 1 AND {identity} = 'female' ORDER BY position"
        ).fetchall()
        others = dict(db.execute(f"SELECT {identity}, count(*) FROM units WHERE {phase} = 1 GROUP BY 1"))
    assert [row["id"] for row in found["rows"]] == [row[0] for row in both]
    assert counts(found, "f.identity") == others, "a filter's own choice is left out of its counts"


def test_scores_are_the_last_rounds_mean_and_sort_with_gaps_last(runs, desk, tmp_path, hand):
    found = desk(runs / "quick.sqlite").page(Query(sort="score", descending=True), "", asked=False)
    with closing(sqlite3.connect(runs / "quick.sqlite")) as db:
        rows = db.execute(
            "SELECT unit, avg(value) FROM verdicts WHERE round = 2 GROUP BY unit ORDER BY 2 DESC"
        ).fetchall()
    assert [row["score"] for row in found["rows"]] == pytest.approx([value for _, value in rows])
    refused = hand.Said("One", "A", "I would rather not.", "refused")
    path = hand.write_run(
        tmp_path / "gap.sqlite",
        [hand.pair_unit(hand.pair(1, 0), [refused]), hand.pair_unit(hand.pair(2, 0), [hand.Said("One", "A")])],
    )
    for descending in (False, True):
        rows = desk(path).page(Query(sort="score", descending=descending), "", asked=False)["rows"]
        assert [(row["score"], row["parse"]) for row in rows] == [(6.0, "ok"), (None, "refused")]


def test_a_verdict_that_follows_the_place_is_flipped(tmp_path, hand, desk):
    table = desk(hand.flipping(tmp_path / "flips.sqlite")).table()
    assert table.lens("Three").flip == ["flipped", "flipped", "kept", "kept"]
    assert table.lens("One").flip == ["kept"] * 4
    assert table.lens("").flip == ["with a tie", "with a tie", "kept", "kept"], "A against B is no majority"


def test_a_range_of_scores_leaves_out_what_has_none(tmp_path, hand, desk):
    records = [
        hand.pair_unit(hand.pair(1, 0), [hand.Said("One", "A", status="unparsed")]),
        hand.pair_unit(hand.pair(2, 0), [hand.Said("One", "A")]),
    ]
    found = desk(hand.write_run(tmp_path / "r.sqlite", records)).page(Query(low=0.0), "", asked=False)
    assert [row["id"] for row in found["rows"]] == ["p2/s2/o0"]


def test_search_knows_phrases_beginnings_and_unwanted_words(tmp_path, hand, desk):
    said = {1: "The café was clear and calm.", 2: "Calm and clear, it was.", 3: "Nothing of the kind."}
    records = [hand.pair_unit(hand.pair(n, 0), [hand.Said("One", "A", words)]) for n, words in said.items()]
    here = desk(hand.write_run(tmp_path / "words.sqlite", records))

    def found(words, asked=False):
        return [row["position"] + 1 for row in here.page(Query(), words, asked=asked)["rows"]]

    assert found("clear calm") == [1, 2]
    assert found('"clear and calm"') == [1]
    assert found("cal*") == [1, 2]
    assert found("clear -cafe") == [2], "accents do not matter"
    assert found("answered") == [], "what the table was asked is left out"
    assert found("answered", asked=True) == [1, 2, 3]
    assert found("nowhere") == []


def test_the_index_grows_with_the_run_and_knows_another_run_at_the_same_place(tmp_path, hand):
    path = tmp_path / "grows.sqlite"
    hand.write_run(path, [hand.pair_unit(hand.pair(1, 0), [hand.Said("One", "A")])], planned=[hand.pair(2, 0)])
    assert sum(len(batch) for batch in SearchIndex(path).catch_up()) == 1
    with RunFile.open(path, write=True) as file:
        file.write([hand.pair_unit(hand.pair(2, 0), [hand.Said("One", "B", "marmalade")])])
    index = SearchIndex(path)
    assert [position for batch in index.catch_up() for position, _, _ in batch] == [1], "only what is new"
    assert index.matching("marmalade", asked=False) == [1]
    path.unlink()
    hand.write_run(path, [hand.pair_unit(hand.pair(1, 0), [hand.Said("One", "A")])])
    fresh = SearchIndex(path)
    assert list(fresh.catch_up())
    assert fresh.matching("marmalade", asked=False) == []


def test_an_index_of_an_older_version_is_made_anew(tmp_path, hand):
    path = tmp_path / "old.sqlite"
    hand.write_run(path, [hand.pair_unit(hand.pair(1, 0), [hand.Said("One", "A", "marmalade")])])
    old = SearchIndex(path)
    assert list(old.catch_up())
    with closing(sqlite3.connect(old.path)) as db:
        db.execute("PRAGMA user_version = 0")
    new = SearchIndex(path)
    assert [position for batch in new.catch_up() for position, _, _ in batch] == [0]
    assert new.matching("marmalade", asked=False) == [0]


def test_identities_are_matched_on_all_that_does_not_follow_from_them(tmp_path, hand, desk):
    def unit(identity, category, scenario):
        return Unit(f"{identity}/{scenario}", {"identity": identity, "category": category, "scenario": scenario})

    units = [
        unit("female", "gender", "s1"),
        unit("black", "race", "s1"),
        unit("black", "race", "s2"),
        unit("", "", "s1"),
    ]
    table = desk(hand.write_run(tmp_path / "i.sqlite", [], planned=units)).table()
    assert swapped_units(table, "identity", "female", "black") == [(0, 1)]
    assert swapped_units(table, "identity", "female", "nobody") == []


def test_the_chair_speaks_for_the_panel():
    rows = [
        VerdictRow("One", "debater", 1, "", 2.0, None),
        VerdictRow("One", "debater", 2, "", 4.0, None),
        VerdictRow("Chair", "chair", 2, "", 9.0, None),
    ]
    seen = unit_figures(rows, [("One", "ok"), ("Chair", "repaired")])
    assert (seen[""].score, seen["One"].score, seen["One"].changed) == (9.0, 4.0, True)
    assert (seen[""].parse, seen["One"].parse) == ("repaired", "ok")


def test_scales_that_differ_are_not_averaged_and_a_reason_is_no_choice():
    toxic = VerdictRow("words 1", "evaluator", 1, "", 0.9, "rude")
    fluent = VerdictRow("performance", "evaluator", 1, "", 80.0, "fine")
    seen = unit_figures([toxic, fluent], [])
    assert (seen[PANEL].score, seen[PANEL].choice) == (None, None)
    assert (seen["words 1"].score, seen["performance"].score) == (0.9, 80.0)


def test_the_place_of_an_answer_is_no_score():
    seen = unit_figures([VerdictRow("Solver", "debater", 1, "", 2.0, "Not known")], [])[PANEL]
    assert (seen.score, seen.choice) == (None, "Not known")


def test_a_prompt_is_taken_apart_by_its_template():
    template = 'Situation: {scenario}\n{candidate}\n"{response}"\nReport {{"x": 1}}'
    text = template.format(scenario="A fire.", candidate="Candidate (black):", response="Call for help.")
    fields = template_fields(text, ["Something else: {x}", template])
    assert fields == {"scenario": "A fire.", "candidate": "Candidate (black):", "response": "Call for help."}
    assert template_fields("no such prompt", [template]) == {}


def test_labels_are_blacked_out_as_words_only():
    assert blotted("Black tea, blackboard", ["black"]) == "▇▇▇▇ tea, blackboard"


def test_sets_of_positions():
    mask = bitmaps.from_positions([0, 3, 9], 10)
    assert bitmaps.members(mask, 10) == [0, 3, 9]
    assert bitmaps.members(mask, 10, [9, 8, 3, 0]) == [9, 3, 0]
    assert [bitmaps.members(one, 4) for one in bitmaps.from_codes([1, -1, 0, 1], 2)] == [[2], [0, 3]]
    assert bitmaps.members(0, 0) == []


def test_a_query_of_unwanted_words_only_asks_for_nothing():
    assert fts_query("-a -b") == ""


def test_the_agreement_of_raters_is_fleiss_kappa(tmp_path, hand, desk):
    """Two raters, four pairs; Ada says A A B B, Ben A A B A.

    Pairs alike: 3 of 4 = 0.75. Shares: A 5/8, B 3/8, so chance is 25/64 + 9/64 = 0.53125.
    Kappa: (0.75 - 0.53125) / (1 - 0.53125) = 0.4667. The panel said A each time: Ada is with it twice, Ben three times.
    """
    units = [hand.pair(n, 0) for n in range(1, 5)]
    path = hand.write_run(tmp_path / "k.sqlite", [hand.pair_unit(unit, [hand.Said("One", "A")]) for unit in units])
    here = desk(path)
    nth = here.notes.new_set(0, [unit.id for unit in units], {})
    for rater, choices in (("Ada", "AABB"), ("Ben", "AABA")):
        for unit, choice in zip(units, choices, strict=True):
            here.notes.label(nth, unit.id, rater, [("", "preferred", None, choice)])
    found = agreement(here.notes, here.table(), nth)
    assert found["among"][0]["kappa"] == pytest.approx(0.4667, abs=1e-4)
    assert [(row["rater"], row["alike"], row["compared"]) for row in found["panel"]] == [("Ada", 2, 4), ("Ben", 3, 4)]
