"""Files of the user's that cannot be used: every kind of file, every damage, and the one line that says where it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.base.errors import ScenarioError
from parley.scenarios import LabelChoice, bbq, load_ballot_wordings, load_suite, rtp, select, squad
from parley.scenarios.statements import load_statements
from parley.scenarios.topics import load_topics
from tests.bbq_rows import bbq_row

ENGLISH = load_ballot_wordings()
KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "suite": ("mine.toml", load_suite),
    "identities": ("who.toml", lambda name: LabelChoice.of(ENGLISH, select([name]))),
    "wordings": ("words.toml", load_ballot_wordings),
    "topics": ("topics.txt", load_topics),
    "bbq": ("Age.jsonl", bbq.load),
    "bbq table": ("hard.csv", bbq.load),
    "rtp": ("prompts.jsonl", rtp.load),
    "squad": ("dev.json", squad.load),
}
"""By kind of file: its name, and what reads it."""

HEAD = 'schema = 1\nname = "mine"\nversion = "1"\n'
BUS = '[[scenario]]\nid = "bus"\ndomain = "x"\ntext = "You drive a bus."\nresponses = ["I stop.", "I go."]\n'
BASE = '[[base]]\nid = "driving"\ntext = "You drive."\nstereotype = "Men drive."\nprobes = ["gender", "race"]\n'
TRAM = '[[scenario]]\nid = "tram"\nbase = "driving"\ntext = "You drive a tram."\n'
SET = '[[graded]]\nbase = "driving"\nscenario = "tram"\ngood = "Walk."\n'
FLAW = '[[graded.flaw]]\nkind = "safety"\ndose = 1\ntext = "Run."\n'


def suites() -> list[tuple[str, str]]:
    suite = HEAD + BUS
    graded = HEAD + BASE + TRAM
    return [
        (suite.replace('"mine"', "mine"), "Invalid value (at line 2"),
        (suite.replace('text = "You drive a bus."\n', ""), ": line 4: scenario 'bus' lacks text"),
        (suite.replace("schema = 1\n", ""), "mine.toml lacks schema = 1"),
        (suite.replace("schema = 1", "schema = 2"), "line 1: schema: expected 1, not 2"),
        (suite.replace('"I stop.", ', '"I stop.", "I wait.", '), "scenario 'bus' responses: expected one or two texts"),
        (suite.replace('"bus"', '"The Bus"'), "id: expected lower-case letters, digits and hyphens, not 'The Bus'"),
        (suite.replace("domain", "colour"), "scenario 'bus' has an unknown key colour (known: id, base"),
        (suite.replace("[[scenario]]", "[scenario]"), "scenario must be written as [[scenario]], one per scenario"),
        (HEAD, "contains no [[scenario]] and no [[base]]"),
        (suite + BUS, "scenario 'bus' id: the id occurs twice"),
        (suite + BASE + BASE, "base 'driving' id: the id occurs twice"),
        (HEAD + BASE + TRAM.replace('"driving"', '"diving"'), "scenario 'tram' base: unknown base 'diving'"),
        (HEAD + BASE.replace('text = "You drive."\n', ""), "base 'driving' lacks text"),
        (graded + SET.replace("tram", "bus"), "line 13: graded 1: 'bus' is not a scenario of the base 'driving'"),
        (graded + SET + SET, "line 17: graded 2: the base 'driving' has another set"),
        (graded + SET + FLAW + FLAW, "dose 1 of 'safety' occurs twice"),
        (graded + SET + FLAW.replace("1", "3"), "line 19: graded 1 flaw 1 dose: expected 1 or 2, not 3"),
        (graded + SET + FLAW.replace("safety", "bad taste"), "line 18: graded 1 flaw 1 kind: "),
        (graded + SET.replace("[[graded]]", "[graded]"), "graded must be written as"),
    ]


DIET = '[categories]\ndiet = ["vegan", "omnivore"]\n'
IDENTITIES = [
    ("[categories", "Expected ']'"),
    ('age = ["a", "b"]', "expected a table [categories] with lists of labels"),
    ("[categories]\n", "expected a table [categories] with lists of labels"),
    ('[categories]\nage = "old"', "line 2: categories age: must be a list of at least two labels"),
    ('[categories]\n"first name" = ["a"]', 'line 2: categories "first name": must be a list of at least two labels'),
    ("[categories]\nage = [20, 70]", "line 2: categories age: must be a list of at least two labels"),
    ('[categories]\nage = ["old", "old"]', "the label 'old' occurs twice"),
    ('[categories]\nage = ["old", "x"]\nwit = ["x", "y"]', "the label 'x' occurs twice"),
    *(
        (f'[categories]\nage = ["{label}", "x"]', f"'{label}' cannot be a label: expected words")
        for label in ("old (70)", "old/new", "a+b", " ")
    ),
    ('[categories]\nfaith = ["none", "some"]', "'none' cannot be a label"),
    ('[categories]\nsex = ["female", "x"]', "'female' cannot be a label: Parley has it already"),
    ('[categories]\nwit = []\nage = ["old", "female"]', "two labels\nwho.toml: line 3: categories age: 'female'"),
    ('[categories]\ngender = ["x", "y"]', "line 2: categories gender: there is already a category 'gender'"),
    (DIET + '[forms]\nvegan = {nuon = "x"}', "[forms] 'vegan': no wording of english uses 'nuon' (known: adjective"),
    (DIET + '[forms]\nvegn = {noun = "x"}', "forms vegn: there is no label 'vegn' in [categories]"),
    (DIET + '[forms]\nvegan = "x"', 'forms vegan: expected words for each form, such as noun = "a vegan"'),
    (DIET + '[forms]\nvegan = {noun = " "}', "forms vegan: expected words for each form"),
    ('forms = ["a vegan"]\n' + DIET, "forms: must be a table [forms]"),
    (
        DIET + '[forms]\nvegan = {category = "diet"}\nomnivore = {category = "food"}',
        "'category' must be the same word for all labels of a category, got 'diet' for vegan, 'food' for omnivore",
    ),
    (DIET + '[allow]\ndiet = ["ages"]', "[allow] 'diet': no wording of english states 'ages' (known: ability, age"),
    (DIET + '[allow]\ndiets = ["age"]', "allow diets: there is no category 'diets' in [categories]"),
    (DIET + '[allow]\ndiet = "age"', 'allow diet: expected a list, such as ["age", "experience"]'),
    ('[categories]\nage = ["a", "b"]\n[allow]\nage = ["age"]', "'age' is what the labels themselves say"),
    (DIET + "[form]\n", "form: there is no such table (known: categories, forms, allow)"),
]

TEXT = (Path(__file__).parents[2] / "scenarios" / "data" / "wordings" / "english.toml").read_text("utf-8")


def line_of(start: str) -> int:
    return next(number for number, line in enumerate(TEXT.splitlines(), 1) if line.startswith(start))


def wordings() -> list[tuple[str, str]]:
    label = "line {}: label 'beside-written-by' text".format(line_of('text = "{answer}, written by {noun}'))
    changes = (
        ("written by {noun}:", "written by someone:", f"{label}: {{adjective}} or {{noun}} is missing"),
        ("written by {noun}:", "written by {nuon}:", f"{label}: unknown placeholder {{nuon}}"),
        ("written by {noun}:", "written by { noun }:", f"{label}: '{{ noun }}' is not a placeholder"),
        ("written by {noun}:", "written by {noun:", f"{label}: '{{noun:' is not a placeholder"),
        ("written by {noun}:", "by {subject} and {noun}:", f"{label}: {{subject}} has no form in [identity.black]"),
        ("{answer}, written by", "By", f"{label}: {{answer}} is missing"),
        ("when we asked {object}", "when asked", "{object} or {person} or"),
        ("Rate the answer from {low}", "Rate the answer from 1", "question 'examiner' single: "),
        ("from {low} (very poor) to {high} (excellent). {m", "{m", "question 'examiner' metric: "),
        ("{tie} for a tie", "T for a tie", f"line {line_of('pair_ties')}: question 'examiner' pair_ties: {{tie}} is"),
        ("{answer_b}\\n", "\\n", f"line {line_of('pair = ')}: prompt pair: {{answer_b}} is missing"),
        ("{format}", "", f"line {line_of('first = ')}: talk first: {{format}} is missing"),
        ("{modifier} {person}", "{modifer} {person}", "otherwise noun: unknown placeholder {modifer}"),
        ('noun = "a woman"', 'noun = "a {woman}"', "identity female noun: unknown placeholder {woman}"),
        ('id = "before-by"', 'id = "before-posted"', "label 'before-posted' id: the id occurs twice"),
        ('kind = "byline"', 'kind = "bylin"', "label 'beside-written-by' kind: expected 'profile'"),
        ("[talk]", "[tlk]", "words.toml lacks talk\nwords.toml: line "),
    )
    assert all(old in TEXT for old, _, _ in changes)
    return [(TEXT.replace(old, new, 1), message) for old, new, message in changes]


ROW = bbq_row(answer_info={"ans0": ["He", "old"], "ans1": ["She", "nonOld"], "ans2": ["Unknown", "unknown"]})
PLACES = ("ans0", "ans1", "ans2")
OTHER = {**ROW, "example_id": 1}


def rows_of_bbq() -> list[tuple[str, str]]:
    """The third line is wrong; the second is empty."""
    wrong: list[tuple[Any, str]] = [
        (json.dumps(OTHER)[:100], "EOF while parsing"),
        ("[1, 2]", "not a"),
        ({"text": "hello"}, "'answer_info' is missing"),
        ({key: value for key, value in OTHER.items() if key != "question"}, "'question' is missing"),
        ({**OTHER, "category": "Height"}, "unknown category of BBQ 'Height'"),
        ({**OTHER, "question_polarity": "pos"}, "question_polarity must be neg or nonneg, got 'pos'"),
        ({**OTHER, "context_condition": "clear"}, "context_condition must be ambig or disambig, got 'clear'"),
        ({**OTHER, "label": 3}, "label must be 0, 1 or 2, got 3"),
        *(({**OTHER, field: 7}, "not a row of BBQ") for field in ("context", "question", "ans0", "ans1", "ans2")),
        ({**OTHER, "answer_info": {n: ["x", "old"] for n in PLACES}}, "no answer is tagged unknown"),
        ({**OTHER, "answer_info": {n: ["x", "unknown"] for n in PLACES}}, "more than one answer is tagged unknown"),
        (ROW, "Age 0 is already in Age.jsonl, line 1"),
    ]
    good = json.dumps(ROW)
    return [
        (f"{good}\n\n{row if isinstance(row, str) else json.dumps(row)}\n", f", line 3: {why}") for row, why in wrong
    ]


PROMPT = '{"id": "a", "prompt": {"text": "So", "toxicity": 0.5}}'
RTP = [
    ('{"prompt": {"text": "Half', "line 2: not JSON"),
    ("[1, 2]", "line 2: expected a JSON object"),
    ('{"prompt": {"toxicity": 0.5}}', "line 2: 'prompt' has no text"),
    ('{"prompt": {"text": "  ", "toxicity": 0.5}}', "line 2: 'prompt' has no text"),
    ('{"prompt": {"text": "So"}}', "line 2: the prompt has no 'toxicity'"),
    *(
        (f'{{"prompt": {{"text": "So", "toxicity": {value}}}}}', f"toxicity must be a number from 0 to 1, got {read}")
        for value, read in (("55", "55"), ("true", "True"), ("NaN", "nan"))
    ),
    (PROMPT, "line 2: the prompt 'a' occurs twice in the file"),
]


def squads() -> list[tuple[str | bytes, str]]:
    def paragraph(data: Any) -> Any:
        return data["data"][0]["paragraphs"][0]

    changes: list[tuple[Callable[[Any], object], str]] = [
        (lambda d: d.pop("data"), "data is missing"),
        (lambda d: d.update(data={}), "data must be a list"),
        (lambda d: d["data"][0].pop("title"), "data[0].title is missing"),
        (lambda d: paragraph(d).update(context=1), "data[0].paragraphs[0].context must be a string"),
        (lambda d: paragraph(d)["qas"][0].pop("answers"), "paragraphs[0].qas[0].answers is missing"),
        (lambda d: paragraph(d)["qas"][0]["answers"].append("x"), "qas[0].answers[1].text is missing"),
        (lambda d: paragraph(d)["qas"].append(paragraph(d)["qas"][0]), "qas[1].id: 'a' is already the id of "),
        (lambda d: paragraph(d)["qas"][0].update(question="\ud83d?"), "qas[0].question contains half a character"),
        (lambda d: d["data"].clear(), "contains no question"),
    ]
    listed: list[tuple[str | bytes, str]] = []
    for change, message in changes:
        question = {"id": "a", "question": "What?", "answers": [{"text": "x", "answer_start": 0}]}
        data = {"data": [{"title": "T", "paragraphs": [{"context": "c", "qas": [question]}]}]}
        change(data)
        listed.append((json.dumps(data), message))
    return [*listed, ('{"data":\n [,]}', "line 2, column 3"), ("[" * 99_999, "not JSON")]


BAD: dict[str, list[tuple[Any, str]]] = {
    "suite": list(suites()),
    "identities": list(IDENTITIES),
    "wordings": list(wordings()),
    "topics": [
        ("# nothing\n", "contains no topic"),
        ("Are buses free?\n\nare buses FREE\n", "line 3: 'are buses FREE' occurs twice (also as 'Are buses free?')"),
        (f"{'x' * 2000}\n{'y' * 2001}\n", f"txt: line 2: '{'y' * 40}…' has 2,001 characters; the limit is 2,000"),
    ],
    "bbq": list(rows_of_bbq()),
    "bbq table": [],
    "rtp": [*((f"{PROMPT}\n{line}\n", why) for line, why in RTP), ("\n", "contains no prompt")],
    "squad": list(squads()),
}


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        pytest.param(kind, *row, id=f"{kind}: {row[1][:40]}")
        for kind in KINDS
        for row in (*BAD[kind], (b"caf\xe9 \xff", ""), (None, "expected a folder" if "bbq" in kind else "No such file"))
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_lines_that_say_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, content: str | bytes | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name, load = KINDS[kind]
    if content is not None:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ScenarioError) as refused:
        load(name)
    said = str(refused.value)
    known = (name, "[forms]", "[allow]")
    assert all(line.startswith(known) for line in said.split("\n")), "tables are checked when wordings are chosen"
    assert message in said


METADATA = "category,question_index,example_id,target_loc,label_type\nAge,1,0,2,label\n"


@pytest.mark.parametrize(
    ("load", "files", "message"),
    [
        (load_suite, {"a.toml": BUS}, "suite.toml: No such file or directory"),
        (load_suite, {"suite.toml": HEAD, "b.toml": "[[scenario]\n"}, "b.toml: "),
        (
            load_suite,
            {"suite.toml": HEAD, "a.toml": BUS, "b.toml": BUS},
            "b.toml, line 2: scenario 'bus' id: the id occ",
        ),
        (load_suite, {"suite.toml": HEAD, "z.toml": 'name = "theirs"\n' + BUS}, "'name' belongs in suite.toml"),
        (bbq.load, {"additional_metadata.csv": "a,b\n1,2\n"}, "csv, line 2: expected category, example_id and"),
        (bbq.load, {"additional_metadata.csv": METADATA}, "csv, line 2: the target of Age 0 is its unknown"),
    ],
)
def test_a_folder_that_cannot_be_used_says_which_file(
    tmp_path: Path, load: Callable[[str], Any], files: dict[str, str], message: str
) -> None:
    for name, text in (files if load is load_suite else {"Age.jsonl": json.dumps(ROW), **files}).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError) as refused:
        load(str(tmp_path))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: select([]), "at least one identity is needed"),
        (lambda: select(["martian"]), "unknown identity 'martian' (known: all, gender, race, religion, weekday, "),
        (lambda: select(["race+martian"]), "unknown identity 'martian'"),
        (lambda: select(["race+"]), "unknown identity ''"),
        (lambda: select(["gender+gender"]), ""),
        (lambda: select(["female+male"]), ""),
        (lambda: select(["race+gender", "black+gender"]), "the label 'black female' is in two categories"),
        (lambda: load_ballot_wordings("klingon"), "unknown wordings 'klingon' (known: english"),
        (lambda: ENGLISH.label_by_id("x"), "no label wording in english called 'x'"),
        (lambda: load_statements("height"), "there are no graded statements 'height'"),
        (lambda: load_topics("height"), "unknown bias type 'height'"),
        (lambda: rtp.draw([], "mild", 2, 0), "unknown set 'mild'"),
        (lambda: rtp.draw([], "high", 2, 0), "'high' has only 0 of the 2 requested prompts in this file"),
    ],
)
def test_what_nobody_has_is_named_with_what_there_is(load: Callable[[], object], message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
