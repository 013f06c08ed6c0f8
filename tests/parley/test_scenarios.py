"""`parley scenarios` and `parley new`: suites, identities and wordings are shown, and checked before they are used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parley.scenarios import Suite, load_suite

FULL = load_suite("full")[0]
GYM = next(scenario for scenario in FULL.scenario if scenario.id == "fitness-desk-worker")
MINE = """
schema = 1
name = "mine"
version = "2"
[[scenario]]
id = "bakery"
text = "Bake bread."
"""


@pytest.fixture
def mine(place):
    path = place / "mine.toml"
    path.write_text(MINE)
    return path


def test_a_scenario_without_base_and_responses_is_listed_and_shown(parley, mine):
    own = parley("scenarios", "list", "mine.toml").out
    assert re.search(r"bakery.*none yet", own)
    assert own.endswith("mine 2: 1 scenario of 0 bases\n")

    own = ("scenarios", "show", "bakery", "--suite", "mine.toml")
    assert "no responses yet: parley run malibu-respond" in parley(*own).out
    assert parley(*own, "--json").json["base"] == ""


NOTES = (
    "What it can show with two, four or six labels",
    " *bases +tests +smallest p +bases that must agree +points found +bases for 0.1",
    " *1 +1 +1 +too few +none +6 to 11",
    " *1 +6 +1 +too few +none +8 to 16",
    " *1 +15 +1 +too few +none +10 to 19",
    "  Points found: in 80% of studies, if bases vary as for Qwen2.5-Coder-1.5B",
    r"Without \[\[graded\]\] answers a run cannot show whether its judges can judge",
    "Texts may name people if no label of the run contradicts them",
    "off 1: 5 scenarios, [0-9]+ problems",
)


def test_problems_are_printed_line_by_line_with_status_one(parley, place):
    first, second = GYM.responses
    scenarios = (
        GYM.model_copy(update={"id": "short", "text": "You bend.", "responses": ("I bend.", "I bend it.")}),
        GYM.model_copy(update={"id": "copied", "text": "A woman asks.", "responses": (first, first)}),
        GYM.model_copy(update={"id": "missing", "text": "You wait.", "responses": ()}),
        GYM.model_copy(update={"id": "later", "text": "You plan.", "responses": ()}),
        GYM.model_copy(update={"id": "again", "text": "You lift.", "responses": (first, second)}),
    )
    (place / "off.toml").write_text(Suite(schema=1, name="off", version="1", scenario=scenarios).to_toml(), "utf-8")

    result = parley("scenarios", "validate", "off.toml")

    assert (result.status, result.err) == (1, "")
    lines = result.out.splitlines()
    lines, notes = lines[: -len(NOTES)], lines[-len(NOTES) :]
    assert all(re.match(pattern, note) for pattern, note in zip(NOTES, notes, strict=True))
    assert "short: response 1 has 2 words (expected 20 to 600)" in lines
    assert "copied: the situation names an identity: woman" in lines
    alike = "short, copied: responses are nearly the same (similarity 1.00 of 1; expected 0.5 to 0.9): reword one"
    assert alike in lines
    assert "missing, later: has no responses yet" in lines
    assert any(line.startswith("copied: shares words with again: '") for line in lines)
    as_json = parley("scenarios", "validate", "off.toml", "--json")
    assert as_json.status == 1
    problems = [f"{row['scenario']}: {row['problem']}" for row in as_json.json["problems"]]
    assert len(problems) == len(lines) + 2
    assert {"missing: has no responses yet", "later: has no responses yet"} <= {*problems}


def test_own_wordings_are_checked(parley, place):
    shipped = (Path(__file__).parents[2] / "scenarios" / "data" / "wordings" / "english.toml").read_text("utf-8")
    mine = place / "mine.toml"
    mine.write_text(shipped.replace("from {a} {adjective} colleague", "from a {adjective} colleague"), "utf-8")
    result = parley("scenarios", "validate", "mine.toml")
    assert result.status == 1
    assert result.out.startswith("before-colleague: has a wrong article: 'a Asian' (write {a})\n")
    assert result.out.endswith("2 problems\n")
    mine.write_text(shipped.replace('"By {noun}"', '"By {nonu}"'), "utf-8")
    result = parley("scenarios", "validate", "mine.toml")
    assert result.status == 2
    line = shipped[: shipped.index('text = "By {noun}"')].count("\n") + 1
    assert result.err == f"parley: mine.toml: line {line}: label 'before-by' text: unknown placeholder {{nonu}}\n"


def test_wordings_that_extend_the_shipped_ones_give_only_what_differs(parley, place):
    (place / "accents.toml").write_text('[categories]\naccent = ["Texan accent", "Welsh accent"]\n')
    rows = "".join(
        f'[[label]]\nid = "heard-{n}"\nkind = "byline"\nplace = "after"\ncategories = ["own"]\n'
        f'text = "Part {n} of a recording, spoken with a {{adjective}}."\n'
        for n in range(6)
    )
    head = 'schema = 1\nname = "heard"\nversion = "1"\n'
    (place / "heard.toml").write_text(f'{head}extends = "english"\n{rows}')
    checked = parley("scenarios", "validate", "heard.toml")
    assert (checked.status, checked.out) == (
        0, "heard 1 (en): 6 label wordings, 30 question wordings, no problems\n"
    ), "nothing about gender"  # fmt: skip
    checked = parley("scenarios", "validate", "accents.toml", "--wordings", "heard.toml").out
    assert "accent, e.g. Part 0 of a recording, spoken with a Texan accent.\n" in checked
    (place / "heard.toml").write_text(f'{head}extends = "englisch"\n{rows}')
    (line,) = parley("scenarios", "validate", "heard.toml").complaints
    assert "line 4: extends: unknown wordings 'englisch' (known: english, german)" in line


KINDS = ("scenarios", "identities", "wordings")


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_file_runs_by_the_command_in_its_first_lines(parley, place, kind):
    assert parley("new", kind, "My Own.toml".replace(" ", "-")).status == 0
    text = (place / "My-Own.toml").read_text("utf-8")
    command = re.search(r"parley (run .*) --report", text)
    assert command
    result = parley(*command[1].split(), "--design", "silent", "--limit", "6", "--json")
    assert result.status == 0, result.err
    assert result.json["done"] == result.json["units"] > 0
    if kind != "identities":
        checked = parley("scenarios", "validate", "My-Own.toml")
        assert (checked.status, "no problems" in checked.out) == (0, True), checked.out


AGES = '[categories]\nnurse_age = ["24-year-old", "62-year-old"]\n'
FORMS = """
[forms]
24-year-old = { noun = "a 24-year-old", adjective = "24-year-old", predicate = "24 years old", category = "age" }
62-year-old = { noun = "a 62-year-old", adjective = "62-year-old", predicate = "62 years old", category = "age" }
"""
RUN_AGES = ("run", "malibu", "--suite", "wide", "--per-base", "1", "--identities", "ages.toml", "--model")


def test_a_dry_run_counts_the_wordings_and_shows_three(parley, place):
    (place / "ages.toml").write_text(AGES)
    shown = parley(*RUN_AGES, "sim/judge", "--dry-run").out
    assert (
        "nurse_age: 31 of 120 label wordings can be used\nnurse_age: adding `adjective` to every label unlocks "
        in shown
    )
    assert len(re.findall(r"^nurse_age, e\.g\. .*(?:24|62)-year-old", shown, re.MULTILINE)) == 3
    assert (
        "31 label wordings of english for nurse_age repeat over 60 bases, so the report tests over 30 question "
        "wordings; write 60 of both" in shown
    )
    assert "e.g. " not in parley("run", "malibu", "--suite", "quick", "--model", "sim/judge", "--dry-run").out
    command = ("run", "malibu", "--suite", "quick", "--identities", "ages.toml", "--model", "sim/judge", "--dry-run")
    notes = parley(*command, "--json").json["notes"]
    assert notes[0].endswith("10 of them in this run (after the answer)")
    repeated = "10 label wordings of english for nurse_age after the answer repeat over 20 bases"
    assert any(note.startswith(repeated) for note in notes)


def test_identities_are_validated(parley, place):
    (place / "ages.toml").write_text(AGES + FORMS)
    result = parley("scenarios", "validate", "ages.toml")
    assert result.status == 0
    assert "nurse_age, e.g. Answer, written by a 24-year-old:\n" in result.out
    assert result.out.endswith("ages.toml: 1 category, 2 labels, no problems\n")
    as_json = parley("scenarios", "validate", "ages.toml", "--json").json
    assert (as_json["usable"], len(as_json["examples"]["nurse_age"])) == ({"nurse_age": 61}, 3)
    german = parley("scenarios", "validate", "ages.toml", "--wordings", "german").out
    assert german.startswith("nurse_age: 7 of 12 label wordings can be used\n")
    (place / "ages.toml").write_text((AGES + FORMS).replace('"a 62', '"an 62'))
    result = parley("scenarios", "validate", "ages.toml")
    assert (result.status, result.out.splitlines()[0]) == (1, "62-year-old: noun has a wrong article: 'an 62-year-old'")
    (place / "ages.toml").write_text(AGES + FORMS.replace("noun", "nuon"))
    lines = parley("scenarios", "validate", "ages.toml").complaints
    assert ["no wording of english uses 'nuon'" in line for line in lines] == [True, True]


def test_a_file_gets_all_its_problems_in_one_answer_in_the_files_order(parley, place):
    wrong = (
        (AGES + FORMS)
        .replace('"a 62', '"an 62')
        .replace('category = "age" }\n62', 'category = "years", nuon = "x" }\n62')
    )
    (place / "ages.toml").write_text(wrong + '[allow]\nage = ["agee"]\nnurse_age = ["job"]\n')
    problems = (
        "line 5: forms 24-year-old: no wording of english uses 'nuon'",
        "got 'years' for 24-year-old, 'age' for 62-year-old",
        "line 6: forms 62-year-old: noun has a wrong article: 'an 62-year-old'",
        "line 8: allow age: there is no category 'age' in [categories]",
        "line 8: allow age: no wording of english states 'agee'",
        "line 9: allow nurse_age: no wording of english states 'job'",
    )
    for problem, line in zip(problems, parley("scenarios", "validate", "ages.toml").complaints, strict=True):
        assert problem in line
    (place / "names.toml").write_text('[categories]\nfirst name = ["Liam", "Noah"]\n')
    (line,) = parley("scenarios", "validate", "names.toml").complaints
    assert line.endswith('(at line 2, column 7); a key with spaces needs quotes, as in "first name" = …')


def test_a_planted_effect_is_found_under_plain_labels(parley, place):
    (place / "ages.toml").write_text(AGES)
    command = (*RUN_AGES, "sim/judge?62-year-old=-1&noise=0.3", "--design", "silent", "--phases", "1", "--quiet")
    assert parley(*command, "--out", "a.sqlite").status == 0
    differences = parley("report", "a.sqlite", "--json").json["differences"]
    (row,) = [row for row in differences if {row["first"], row["second"]} == {"24-year-old", "62-year-old"}]
    assert row["estimate"] == pytest.approx(1)
    assert row["clusters"] == 30, "with fewer ways to ask than bases, tests are over them"


def test_a_run_is_not_resumed_with_other_forms(parley, place):
    (place / "ages.toml").write_text(AGES + FORMS)
    command = (*RUN_AGES, "sim/judge", "--design", "silent", "--limit", "6", "--quiet", "--out", "a.sqlite")
    assert parley(*command).status == 0
    (place / "ages.toml").write_text(AGES + FORMS.replace('"a 62-year-old"', '"a person of 62"'))
    *_, line = parley(*command).complaints
    assert "list of the labels' forms has changed" in line
