"""`parley scenarios list|show|validate`: read a suite, and check whether it is fit to measure with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parley.scenarios import Suite, load_suite

FULL = load_suite("full")[0]
WHOLE = load_suite("malibu-2")[0]
GYM = next(scenario for scenario in FULL.scenario if scenario.id == "fitness-desk-worker")
NASTY = "[red]x[/red] \x1b[2J\x07 \x9b31m \u202eabc :smile:"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MINE = """
schema = 1
name = "mine"
version = "2"
[[scenario]]
id = "bakery"
text = "Bake bread."
"""


def squeezed(text: str) -> str:
    """The text without spaces and line breaks: a terminal wraps lines anywhere."""
    return re.sub(r"\s+", "", text)


@pytest.fixture
def mine(place):
    path = place / "mine.toml"
    path.write_text(MINE)
    return path


# list and show


def test_list_shows_scenarios_bases_and_how_many(parley, mine):
    result = parley("scenarios", "list")
    assert (result.status, result.err) == (0, "")
    assert result.out.endswith("malibu-2 2.0: 280 scenarios of 60 bases\n")
    shown = squeezed(result.out)
    assert all(scenario.profession.split()[0] in shown for scenario in WHOLE.scenario)
    assert "\x1b" not in result.out
    view = parley("scenarios", "list", "tiny").out
    assert view.endswith("malibu-2 2.0: 3 scenarios of 3 bases\n")
    assert re.search(r"\d{2,3} / \d{2,3}", view), "the length of both responses"
    rows = parley("scenarios", "list", "full", "--json").json
    assert [row["id"] for row in rows] == [scenario.id for scenario in FULL.scenario]
    assert rows[0]["responses"] == list(FULL.scenario[0].responses)
    bases = parley("scenarios", "list", "--bases", "--json").json
    assert {row["id"] for row in bases} == {base.id for base in WHOLE.base}
    assert all(row["stereotype"] and row["source"] and row["probes"] for row in bases)
    listed = parley("scenarios", "list", "--bases").out
    assert "stereotype" in listed
    assert "source" in listed
    own = parley("scenarios", "list", "mine.toml").out
    assert re.search(r"bakery.*none yet", own)
    assert own.endswith("mine 2: 1 scenario of 0 bases\n")


def test_show_prints_everything_about_one_scenario(parley, mine):
    result = parley("scenarios", "show", GYM.id)
    base = FULL.base_of(GYM)
    assert base is not None
    shown = squeezed(result.out)
    for text in (GYM.text, *GYM.responses, GYM.profession, GYM.role, GYM.setting, base.stereotype, base.source):
        assert squeezed(text) in shown
    assert re.search(r"^similarity 0\.\d\d$", result.out, re.MULTILINE)
    assert "\x1b" not in result.out
    as_json = parley("scenarios", "show", GYM.id, "--json").json
    assert as_json["responses"] == list(GYM.responses)
    assert (as_json["base"]["id"], as_json["base"]["source"]) == ("fitness", base.source)
    own = ("scenarios", "show", "bakery", "--suite", "mine.toml")
    assert "no responses yet: parley run malibu-respond" in parley(*own).out
    assert parley(*own, "--json").json["base"] == ""


def test_control_characters_in_a_suite_are_made_visible(parley, place):
    bad = GYM.model_copy(update={"id": "bad", "base": "", "text": NASTY, "profession": NASTY, "responses": (NASTY, "")})
    (place / "bad.toml").write_text(Suite(schema=1, name="bad", version="1", scenario=(bad,)).to_toml(), "utf-8")

    for arguments in (("list", "bad.toml"), ("show", "bad", "--suite", "bad.toml"), ("validate", "bad.toml")):
        result = parley("scenarios", *arguments)
        assert not CONTROL.search(result.out + result.err), arguments
        assert "Traceback" not in result.err
    assert "[red]x[/red]" in parley("scenarios", "show", "bad", "--suite", "bad.toml").out


# validate


@pytest.mark.parametrize(
    ("suite", "count", "bases", "directed"), [("malibu-2", 280, 60, 43), ("quick", 20, 20, 15), ("tiny", 3, 3, 3)]
)
def test_what_is_shipped_is_fit_to_measure_with(parley, suite, count, bases, directed):
    result = parley("scenarios", "validate", suite)

    assert (result.status, result.err) == (0, "")
    directions = f"the stereotype has a coded direction in {directed} of {bases} bases\n"
    assert result.out.endswith(f"{directions}malibu-2 2.0: {count} scenarios, fit to measure with\n")
    assert parley("scenarios", "validate", suite, "--json").json == {
        "suite": "malibu-2",
        "scenarios": count,
        "bases": bases,
        "bases_with_direction": directed,
        "findings": [],
    }


def test_findings_are_printed_line_by_line_with_status_one(parley, place):
    first, second = GYM.responses
    scenarios = (
        GYM.model_copy(update={"id": "short", "text": "You bend.", "responses": ("I bend.", "I bend it.")}),
        GYM.model_copy(update={"id": "copied", "text": "A woman asks.", "responses": (first, first)}),
        GYM.model_copy(update={"id": "missing", "text": "You wait.", "responses": ()}),
        GYM.model_copy(update={"id": "again", "text": "You lift.", "responses": (first, second)}),
    )
    (place / "off.toml").write_text(Suite(schema=1, name="off", version="1", scenario=scenarios).to_toml(), "utf-8")

    result = parley("scenarios", "validate", "off.toml")

    assert (result.status, result.err) == (1, "")
    lines = result.out.splitlines()
    *lines, count = lines
    assert count == f"off 1: 4 scenarios, {len(lines)} findings"
    assert "short: response 1 has 2 words (expected 90 to 140)" in lines
    assert "copied: the situation names an identity: woman" in lines
    assert "copied: responses are the same (similarity 1.00, expected at most 0.9)" in lines
    assert "missing: has no responses yet" in lines
    assert any(line.startswith("copied: shares words with again: '") for line in lines)
    as_json = parley("scenarios", "validate", "off.toml", "--json")
    assert as_json.status == 1
    assert [f"{row['scenario']}: {row['problem']}" for row in as_json.json["findings"]] == lines


# Arguments


# wordings of silent ballots


def test_shipped_wordings_are_listed_shown_and_fit(parley):
    listed = parley("scenarios", "list", "english")
    assert listed.out.endswith("english 1.0 (en): 126 label wordings, 30 question wordings\n")
    assert len(parley("scenarios", "list", "english", "--json").json["label"]) == 126
    shown = parley("scenarios", "show", "before-by", "--suite", "english")
    assert shown.out.startswith("before-by: byline, before the answer\nfemale: By a woman\nmale: By a man\n")
    assert parley("scenarios", "show", "before-by", "--suite", "english", "--json").json["shown"]["atheist"] == (
        "By an atheist"
    )
    checked = parley("scenarios", "validate", "english")
    assert checked.status == 0
    assert "gender, e.g. Answer, written by a woman:\n" in checked.out
    assert checked.out.endswith("english 1.0 (en): 126 label wordings, 30 question wordings, fit to measure with\n")
    as_json = parley("scenarios", "validate", "english", "--json").json
    assert as_json == {"wordings": "english", "usable": {"gender": 87, "race": 75, "religion": 75}, "findings": []}


def test_own_wordings_are_checked(parley, place):
    shipped = (Path(__file__).parents[2] / "scenarios" / "data" / "wordings" / "english.toml").read_text("utf-8")
    mine = place / "mine.toml"
    mine.write_text(shipped.replace("from {a} {adjective} colleague", "from a {adjective} colleague"), "utf-8")
    result = parley("scenarios", "validate", "mine.toml")
    assert result.status == 1
    assert result.out.startswith("before-colleague: has a wrong article: 'a Asian' (write {a})\n")
    assert result.out.endswith("2 findings\n")
    mine.write_text(shipped.replace('"By {noun}"', '"By {nonu}"'), "utf-8")
    result = parley("scenarios", "validate", "mine.toml")
    assert result.status == 2
    line = shipped[: shipped.index('text = "By {noun}"')].count("\n") + 1
    assert result.err == f"parley: mine.toml: line {line}: label 'before-by' text: unknown placeholder {{nonu}}\n"
