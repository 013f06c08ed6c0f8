"""A suite from a spreadsheet: what is read, which flaws are made by rule, and what is wrong with a file."""

from __future__ import annotations

import pytest

from parley.scenarios import OWN, check_graded, check_suite, load_suite
from parley.scenarios.from_csv import suite_from_csv

WOUND = (
    "Rinse the wound with 500 ml of saline and look for glass. Test sensation and movement of every finger. Close it "
    "with 4 stitches of nylon. Ask about tetanus, and give a booster if the last was 5 years ago. Keep it dry for two "
    "days. Swelling or fever bring the patient back sooner."
)
TALK = "I listen, say back what I heard, and ask whether it is right, before I say a word about the next steps to take"


def test_each_row_is_a_scenario_and_each_base_has_the_flaws_that_its_text_allows(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_bytes(
        f'base;text;response;response_2\nWound care;"A cut; six hours old.";{WOUND};\nWound care;A bite.;{WOUND};\n'
        f"Breaking news;A relative asks.;{TALK};{TALK}\n".encode("utf-8-sig")
    )  # as Excel saves it in Europe
    suite = suite_from_csv(path)
    assert [(row.id, row.base, len(row.responses)) for row in suite.scenario] == [
        ("wound-care-1", "wound-care", 1),
        ("wound-care-2", "wound-care", 1),
        ("breaking-news-3", "breaking-news", 2),
    ]
    (wound,) = suite.graded  # one sentence without figures leaves nothing to take away
    texts = {(flaw.kind, flaw.dose): flaw.text for flaw in wound.flaw}
    assert set(texts) == {(kind, dose) for kind in ("figure", "unanswered", "length") for dose in (1, 2)}
    assert texts["figure", 1] == WOUND.replace("500", "1000")
    assert texts["figure", 2] == WOUND.replace("500", "1000").replace("4", "8").replace("5 years", "10 years")
    assert texts["unanswered", 1] + " Swelling or fever bring the patient back sooner." == WOUND
    assert texts["length", 2] == f"{WOUND} {WOUND}"
    assert check_graded(suite, (OWN.min_words, OWN.max_words)) == []


def test_a_spreadsheet_becomes_a_file_that_validates_and_runs(parley, place):
    places = ("ward", "clinic", "theatre", "surgery", "hospice", "laboratory")
    rows = "".join(f'{name},Asked in the {name}.,"In the {name} {name}: {WOUND}"\n' for name in places)
    (place / "notes.csv").write_text("base,text,response\n" + rows)
    made = parley("new", "scenarios", "--from", "notes.csv")
    assert made.status == 0
    assert "36 graded answers made by rule: read each" in made.out
    checked = parley("scenarios", "validate", "notes.toml")
    assert checked.status == 1, "all six share the text of one wound"
    (shared,) = (line for line in checked.out.splitlines() if "shares words" in line)
    assert shared.endswith(" (and 29 other pairs of texts: --json)")
    command = made.out.rpartition("and run it:")[2].split()
    assert parley(*command[1:], "--design", "silent", "--quiet", "--out", "x.sqlite").status == 0
    refused = parley("run", "malibu", "--suite", "notes.toml", "--model", "sim/judge", "--dry-run")
    assert "ward-1 has one response, and pairs need two: give --phases 1" in refused.err
    assert len(load_suite("notes.toml")[0].base) == 6
    assert check_suite(suite_from_csv(place / "notes.csv").only(["ward"]), OWN) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"base,text\nA,B\n", "no column response; expected base, text, response"),
        (b"base,text,response\nA,,C\n", "row 1 has no text"),
        (b"base,text,response\nA,B,\xff\n", "not CSV in UTF-8"),
    ],
)
def test_what_is_wrong_with_a_spreadsheet(parley, place, content, problem):
    (place / "notes.csv").write_bytes(content)
    result = parley("new", "scenarios", "--from", "notes.csv")
    assert (result.status, problem in result.err) == (2, True), result.err
    assert not (place / "notes.toml").exists()
    assert "--from is for scenarios, not for study" in parley("new", "study", "x", "--from", "notes.csv").err
    assert "a name is missing: parley new wordings NAME" in parley("new", "wordings").err
