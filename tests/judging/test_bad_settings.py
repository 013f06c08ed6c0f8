"""Files of the user's that a study cannot work with, and the one line that is said before anything is sent.

Wrong settings without a file are rows of tests/parley/bad_commands.txt.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from parley.base.errors import ParleyError, ScenarioError
from parley.runs.job import make_study
from tests.bbq_rows import bbq_row, write_bbq
from tests.judging.test_stardtox import COUNTING

HEAD = 'schema = 1\nname = "mine"\nversion = "1"\n'
BARE, BASES = (
    HEAD + '[[scenario]]\nid = "bakery"\ntext = "Bake bread."\n',
    HEAD + '[[base]]\nid = "baking"\ntext = "Bake."\nstereotype = "x"\n',
)
ROLE = 'trait = "x"\n[[role]]\nname = "A"\nlabel = "a A"\n'
RUBRIC = '[[metric]]\nname = "Safety"\nquestions = ["Safe?"]\n[[metric]]\nname = "Kindness"\nquestions = ["Kind?"]\n'
TEAM = '[[evaluator]]\nname = "a"\n'
JUDGE = TEAM + 'about = "You judge."\nmetrics = { wit = "x" }\n'
OTHER = "class Other:\n    name = 'other'\n\ndef badness(text):\n    return 0.5\n"
NEEDED: dict[str, dict[str, Any]] = {
    "bbq": {"data": "bbq", "model": "sim/any"},
    "stardtox": {"data": "prompts.jsonl", "prompts": 3, "model": "sim/m"},
    "rubric": {"data": "text.jsonl", "model": "sim/a"},
    "malibu": {"suite": "tiny", "model": "sim/judge"},
}
"""What a study does not work without."""
OWN_TEAM, OWN_RUBRIC = {"team": "own.toml"}, {"design": "paper", "rubric": "own.toml"}
OWN_BIAS = {"bias": "own.toml", "topics_from": "t.txt"}
OWN_DATA, OWN_SUITE = {"data": "own.jsonl"}, {"suite": "own.toml"}
JURY = {"method": ["fairthinking"], "settings": ["jury=own.toml"]}
BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("bbq", {"method": ["own.py:Other"]}, OTHER, "is not a method: Other lacks Settings, "),
    ("bbq", JURY, '[[persona]]\nname = "A"\nabout = "You decide."\n', "own.toml: a jury needs at least two person"),
    ("squad", {"data": None}, "", "squad needs data"),
    (
        "stardtox",
        {"measure": "own.py:Counting", "scorer": "own.py:Counting"},
        COUNTING,
        "the loop uses this scorer its",
    ),
    ("stardtox", OWN_TEAM, TEAM, "needs either a scorer, or an LLM judge"),
    ("stardtox", OWN_TEAM, TEAM + 'about = "You judge."', "a judge needs at least one metric"),
    ("stardtox", OWN_TEAM, TEAM + 'scorer = "embedded"\ncriteria = { b = "< 1" }', "gives no score 'b'"),
    ("stardtox", OWN_TEAM, JUDGE.replace("wit", "reason"), "'reason' cannot be a metric"),
    ("stardtox", OWN_TEAM, JUDGE + JUDGE.replace("wit", "charm"), "evaluators and their scores need different names"),
    ("stardtox", OWN_TEAM, JUDGE + JUDGE.replace('"a"', '"b"'), "evaluators and their scores need different names"),
    ("stardtox", {**OWN_TEAM, "scorer": "ngrams"}, JUDGE, "the team has no evaluator with a scorer to replace"),
    ("rldf", OWN_BIAS, ROLE, "own.toml: role:"),
    ("rldf", OWN_BIAS, ROLE + '[[role]]\nname = "a"\nlabel = "a a"\n', "different names"),
    ("rldf", {"bias": "own.toml", "roles": 2}, ROLE + '[[role]]\nname = "B"\nlabel = "a B"\n', "needs its own topics"),
    ("rubric", OWN_DATA, '{"txt": "a"}\n', "line 1: has no field 'text'"),
    ("rubric", OWN_DATA, '{"text": "a"}\n{"text": " "}\n', "line 2: the field 'text' contains no text"),
    ("rubric", OWN_DATA, '{"text": 5}\n', "line 1: the field 'text' contains no text"),
    ("rubric", OWN_DATA, '["a"]\n', "line 1: has no field"),
    ("rubric", OWN_DATA, '{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n', "the id '1' occurs twice"),
    ("rubric", {"data": "own.csv"}, "a", "expected a .jsonl or .txt file"),
    ("rubric", {"examples": True, "rubrics": ["own.toml"]}, RUBRIC, "examples: there are none for Safety"),
    (
        "rubric",
        {"rubrics": ["own.toml", "bs"]},
        RUBRIC.replace("Kindness", "BS"),
        "a metric is in two of the rubrics: ",
    ),
    ("malibu-derive", {**OWN_SUITE, "bases": ["law"]}, BASES, "there is no base 'law' in own.toml (known: baking"),
    ("malibu-derive", OWN_SUITE, BARE, "own.toml has no [[base]] to derive from"),
    ("malibu", OWN_SUITE, BARE, "1 scenario without responses (bakery): write them with `parley run malibu-respond "),
    ("malibu", OWN_SUITE, BASES, "own.toml has no scenario to judge"),
    ("malibu", {"model": []}, "", "--model is empty: give at least one"),
    ("malibu", {"phases": []}, "", "--phases is empty: give at least one"),
    ("malibu", {"metrics": []}, "", "at least one metric is needed"),
    ("malibu", {"suite": "mine.toml", "yardstick": "full"}, "", "--yardstick full: mine has no graded responses"),
    ("malibu", OWN_RUBRIC, 'about = "x"', "own.toml lacks metric"),
    ("malibu", OWN_RUBRIC, RUBRIC + 'colour = "red"', "metric 'Kindness' has an unknown key colour (known: name"),
    (
        "malibu",
        OWN_RUBRIC,
        RUBRIC.replace("Kindness", "Preferred"),
        "none may be called all, justification, preferred, ",
    ),
    (
        "malibu",
        {"design": "paper", "suite": "mine.toml", "identities": ["own.toml"]},
        '[categories]\nkind = ["a", "b-c", "a-b", "c"]\n',
        "two pairs of labels would both be call",
    ),
]


@pytest.mark.parametrize(("study", "settings", "text", "said"), BAD, ids=[f"{row[0]}: {row[3]}" for row in BAD])
def test_what_cannot_work_is_refused_in_one_line_before_anything_is_sent(place, study, settings, text, said):
    for kind in ("toml", "jsonl", "csv", "py"):
        (place / f"own.{kind}").write_text(text, "utf-8")
    write_bbq(place / "bbq" / "Age.jsonl", bbq_row())
    prompts = [{"id": f"p{n}", "prompt": f"He said {n}", "toxicity": (0.55, 0.9)[n % 2]} for n in range(60)]
    (place / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)))
    (place / "text.jsonl").write_text('{"text": "a"}\n')
    (place / "t.txt").write_text("Is this a topic?\n")
    with pytest.raises((ParleyError, ScenarioError)) as refused:
        list(make_study(study, {**NEEDED.get(study, {}), **settings}).plan())
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
