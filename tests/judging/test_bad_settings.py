"""Files of the user's that a study cannot work with, and the one line that is said before anything is sent.

Wrong settings without a file are rows of tests/parley/bad_commands.txt.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.base.errors import ParleyError, ScenarioError
from parley.runs.job import make_study
from tests.bbq_rows import bbq_row

HEAD = 'schema = 1\nname = "mine"\nversion = "1"\n'
ROLE = '[[role]]\nname = "{0}"\nlabel = "a {0}"\n'
RUBRIC = '[[metric]]\nname = "Safety"\nquestions = ["Safe?"]\n[[metric]]\nname = "Kindness"\nquestions = ["Kind?"]\n'
TEAM = "[[evaluator]]\n"
JUDGE = TEAM + 'name = "{}"\nabout = "You judge."\nmetrics = {{ {} = "x" }}\n'
BATTERY = (Path(__file__).parents[2] / "judging" / "card" / "card-1.toml").read_text("utf-8")
FILES = {
    "bbq/Age.jsonl": json.dumps(bbq_row()),
    "prompts.jsonl": "\n".join(
        json.dumps({"id": f"p{n}", "prompt": f"He said {n}", "toxicity": (0.55, 0.9)[n % 2]}) for n in range(60)
    ),
    "scorer.py": (
        "from parley.judging.toxicity import Toxicity\nclass Counting:\n    name, version = 'counting', '1'\n"
        "    async def score(self, texts): return [Toxicity(0.1) for _ in texts]\n    async def close(self): pass\n"
    ),
    "other.py": "class Other:\n    name = 'other'\n\ndef badness(text):\n    return 0.5\n",
    "one.toml": 'trait = "x"\n' + ROLE.format("A"),
    "same.toml": 'trait = "x"\n' + ROLE.format("A") + ROLE.format("a"),
    "fine.toml": 'trait = "x"\n' + ROLE.format("A") + ROLE.format("B"),
    "t.txt": "Is this a topic?\n",
    "text.jsonl": '{"text": "a"}\n',
    "untitled.jsonl": '{"txt": "a"}\n',
    "blank.jsonl": '{"text": "a"}\n{"text": " "}\n',
    "number.jsonl": '{"text": 5}\n',
    "list.jsonl": '["a"]\n',
    "twice.jsonl": '{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n',
    "t.csv": "a",
    "bare.toml": HEAD + '[[scenario]]\nid = "bakery"\ntext = "Bake bread."\n',
    "bases.toml": HEAD + '[[base]]\nid = "baking"\ntext = "Bake."\nstereotype = "x"\n',
    "hyphens.toml": '[categories]\nkind = ["a", "b-c", "a-b", "c"]\n',
    "rubric0.toml": 'about = "x"',
    "rubric.toml": RUBRIC,
    "rubric1.toml": RUBRIC + 'colour = "red"',
    "rubric2.toml": RUBRIC.replace("Kindness", "Preferred"),
    "rubric3.toml": RUBRIC.replace("Kindness", "BS"),
    "jury.toml": '[[persona]]\nname = "A"\nabout = "You decide."\n',
    "team3.toml": TEAM + 'name = "a"\nabout = "You judge."\nmetrics = { reason = "x" }',
    "team4.toml": TEAM + 'name = "a"\nabout = "You judge."\nmetrics = { wit = "x" }',
    "battery0.toml": BATTERY.replace('"unread-race"', '"unread-gender"'),
    "battery1.toml": BATTERY.replace(BATTERY[BATTERY.index("[size.brief]") : BATTERY.index("[size.sampled]")], ""),
    "battery2.toml": BATTERY.replace('kinds = ["', 'kinds = ["wit", "'),
    "team5.toml": JUDGE.format("a", "wit") + JUDGE.format("a", "charm"),
    "team6.toml": JUDGE.format("a", "wit") + JUDGE.format("b", "wit"),
    "team0.toml": TEAM + 'name = "a"',
    "team1.toml": TEAM + 'name = "a"\nabout = "You judge."',
    "team2.toml": TEAM + 'name = "a"\nscorer = "embedded"\ncriteria = { b = "< 1" }',
}  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    "bbq": {"data": "bbq", "model": "sim/any"},
    "stardtox": {"data": "prompts.jsonl", "prompts": 3, "model": "sim/m", "scorer": "scorer.py:Counting"},
    "rubric": {"data": "text.jsonl", "model": "sim/a"},
    "malibu": {"suite": "tiny", "model": "sim/judge"},
}
"""What a study does not work without."""
PAPER: dict[str, Any] = {"design": "paper"}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("bbq", {"method": ["other.py:Other"]}, "is not a method: Other lacks Settings, "),
    ("squad", {"data": None}, "squad needs data"),
    ("stardtox", {"measure": "scorer.py:Counting"}, "--measure scorer.py:Counting: the loop uses this scorer itself"),
    ("stardtox", {"team": "team0.toml", "scorer": None}, "needs either a scorer, or an LLM judge"),
    ("stardtox", {"team": "team1.toml", "scorer": None}, "a judge needs at least one metric"),
    ("stardtox", {"team": "team2.toml", "scorer": None}, "gives no score 'b'"),
    ("rldf", {"bias": "one.toml", "topics_from": "t.txt"}, "one.toml: role:"),
    ("rldf", {"bias": "same.toml", "topics_from": "t.txt"}, "different names"),
    ("rldf", {"bias": "fine.toml", "roles": 2}, "needs its own topics"),
    ("referee", {"model": "other.py:missing"}, "is not a referee: expected a function"),
    ("rubric", {"data": "untitled.jsonl"}, "line 1: has no field 'text'"),
    ("rubric", {"data": "blank.jsonl"}, "line 2: the field 'text' contains no text"),
    ("rubric", {"data": "number.jsonl"}, "line 1: the field 'text' contains no text"),
    ("rubric", {"data": "list.jsonl"}, "line 1: has no field"),
    ("rubric", {"data": "twice.jsonl"}, "the id '1' occurs twice"),
    ("rubric", {"data": "t.csv"}, "expected a .jsonl or .txt file"),
    ("rubric", {"examples": True, "rubrics": ["rubric.toml"]}, "examples: there are none for Safety"),
    ("injection", {"model": []}, "--model is empty"),
    ("injection", {"judged_by": []}, "at least one"),
    ("malibu-derive", {"suite": "bases.toml", "bases": ["law"]}, "there is no base 'law' in bases.toml (known: baking"),
    ("malibu-derive", {"suite": "mine.toml"}, "mine.toml has no [[base]] to derive from"),
    ("malibu", {"suite": "bare.toml"}, "1 scenario without responses (bakery): write them with `parley run malibu-re"),
    ("malibu", {"suite": "bases.toml"}, "bases.toml has no scenario to judge"),
    ("malibu", {"model": []}, "--model is empty: give at least one"),
    ("malibu", {"phases": []}, "--phases is empty: give at least one"),
    ("malibu", {"metrics": []}, "at least one metric is needed"),
    ("malibu", {"suite": "mine.toml", "yardstick": "full"}, "--yardstick full: mine has no graded responses"),
    ("malibu", {**PAPER, "rubric": "rubric0.toml"}, "rubric0.toml lacks metric"),
    ("malibu", {**PAPER, "rubric": "rubric1.toml"}, "metric 'Kindness' has an unknown key colour (known: name"),
    ("malibu", {**PAPER, "rubric": "rubric2.toml"}, "and none may be called all, justification, preferred, remark"),
    (
        "malibu",
        {**PAPER, "suite": "mine.toml", "identities": ["hyphens.toml"]},
        "two pairs of labels would both be call",
    ),
    (
        "bbq",
        {"method": ["fairthinking"], "settings": ["jury=jury.toml"]},
        "jury.toml: a jury needs at least two person",
    ),
    ("stardtox", {"team": "team3.toml", "scorer": None}, "'reason' cannot be a metric"),
    (
        "stardtox",
        {"team": "team5.toml", "scorer": None},
        "team5.toml: evaluators and their scores need different names",
    ),
    (
        "stardtox",
        {"team": "team6.toml", "scorer": None},
        "team6.toml: evaluators and their scores need different names",
    ),
    ("stardtox", {"team": "team4.toml"}, "the team has no evaluator with a scorer to replace"),
    ("rubric", {"rubrics": ["rubric3.toml", "bs"]}, "a metric is in two of the rubrics: leave one of them out"),
    ("card", {"battery": "battery0.toml"}, "battery0.toml: the line 'unread-gender' occurs twice"),
    (
        "card",
        {"battery": "battery1.toml", "size": "brief"},
        " has no size 'brief' (it has: default, subset, sampled)",
    ),
    ("card", {"battery": "battery2.toml", "size": "brief"}, " has no graded response with a flaw of the kind 'wit'"),
]


@pytest.fixture(autouse=True)
def _begin_with_files(place):
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, "utf-8")


@pytest.mark.parametrize(("study", "settings", "said"), BAD)
def test_settings_that_cannot_work_are_refused_in_one_line_before_anything_is_sent(study, settings, said):
    with pytest.raises((ParleyError, ScenarioError)) as refused:
        list(make_study(study, {**NEEDED.get(study, {}), **settings}).plan())
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
