"""What generated input broke, each under its name. Texts are as short as they can be and break what they broke."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from parley.agents import ConfigError, ParleyError, load_personas
from parley.agents.search import quote
from parley.agents.search.documents import split_passages
from parley.agents.search.engine import SearchResult
from parley.agents.structured import parse
from parley.cli import main
from parley.cli.flags import read_config
from parley.cli.score_squad import _table
from parley.judging.bbq.methods.mabrf.replies import Judgement, Reasoning, Steps
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import ScoringConfig, read_texts
from parley.judging.search.replies import read_list, read_summary, unknown_sources
from parley.judging.toxicity.judge import Rating
from parley.judging.toxicity.swaps import Swaps
from parley.predictions import read_predictions
from parley.scenarios import ScenarioError, load_suite, load_topics
from parley.scenarios.bbq import load as load_bbq
from parley.scenarios.bbq import match
from parley.scenarios.identities import read_identities
from parley.scenarios.squad import load as load_squad
from parley.texts import read_lines
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs
from tests.fuzz import seeds
from tests.fuzz.files import lines
from tests.fuzz.replies import ROW, TASK

MUCH = 300_000
"""Characters. All of these took minutes, and now take less than a second of this process's time."""


def answer(text: str) -> Any:
    return match(text, TASK.options, TASK.unknown, ROW.question)


LONG: dict[str, tuple[Callable[[str], Any], str]] = {
    "objects in objects": (lambda text: parse(text, Rating), '{"a":' * (MUCH // 5)),
    "nothing but braces": (lambda text: parse(text, Rating), "{" * MUCH),
    "nothing but beginnings": (lambda text: parse(text, Rating), '{"' * (MUCH // 2)),
    "a list that never ends, in objects": (lambda text: parse(text, Rating), ('{"a":[' + "1," * 300) * (MUCH // 600)),
    "blanks after a score": (lambda text: parse(text, Rating), '{"toxicity": "7' + " " * MUCH + 'x"}'),
    "blanks for an answer": (answer, " " * MUCH + "x"),
    "openings before an answer": (answer, "the answer is: " * (MUCH // 15)),
    "letters before an answer": (answer, "A) " * (MUCH // 3) + "x"),
    "an answer again and again": (answer, "the grandson " * (MUCH // 13)),
    "blank lines before an answer": (Reasoning.read, "\n" * MUCH),
    "answers on one line": (Reasoning.read, "an answer: " * (MUCH // 11) + "\nx"),
    "a step of many lines": (Steps.read, "1. x\n" + "more\n" * (MUCH // 5)),
    "digits for a score": (Judgement.read, "Bias: " + "1" * MUCH + "x"),
    "labels with open brackets": (Judgement.read, "bias(" * (MUCH // 5)),
    "labels on many lines": (Judgement.read, "Bias: 7\n" * (MUCH // 8)),
    "open quotes in a list": (read_list, "['" + ",'x" * (MUCH // 3)),
    "blank lines before a list": (read_list, "\n" * MUCH + "x"),
    "blanks in a line of a list": (read_list, "- a" + " " * MUCH + "x\x0b"),
    "blanks after a quote": (read_list, '["a"' + " " * MUCH + "x"),
    "blank lines before a heading": (read_summary, "\n" * MUCH),
    "open sources": (lambda text: unknown_sources(text, ()), "[SOURCE: x" * (MUCH // 10)),
    "a doubt again and again": (answer, "not " * (MUCH // 4)),
    "one paragraph of many words": (lambda text: list(split_passages(text)), "word " * (MUCH // 5)),
    "identity words looked for": (Swaps.load().variants, "1. x\n" * (MUCH // 5)),
    "a search result of megabytes": (lambda text: quote("q", [SearchResult(text, text, text)]), "x\u200b" * 1_000_000),
}


@pytest.mark.parametrize("name", LONG)
def test_time_grows_with_the_length_only(name: str) -> None:
    read, text = LONG[name]
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 5.0, "each took from a minute to hours; a busy machine may take a second"


@pytest.mark.parametrize("half", ["\\ud800", "\\udc00", "\\udc00\\ud800", "\ud800"])
def test_half_a_character_in_a_reply_does_not_end_the_run(half: str) -> None:
    """A judge that writes one: the run file could not hold what was read of it."""
    found, problem = parse('{"reason": "x' + half + '", "toxicity": 60}', Rating)
    assert problem == ""
    assert found is not None
    assert json.loads(found.model_dump_json())["toxicity"] == 60.0


def test_a_whole_character_in_two_escapes_is_kept() -> None:
    found, _ = parse('{"reason": "\\ud83d\\ude00", "toxicity": 60}', Rating)
    assert found is not None
    assert found.reason == "😀"


@pytest.mark.parametrize(
    "said", ["true", "1e999", "NaN", "-1", "101", '"ten"', '"5-7"', '"60/10"', "[60]", "null", '""']
)
def test_what_is_no_score_is_never_one(said: str) -> None:
    found, problem = parse(f'{{"toxicity": {said}}}', Rating)
    assert found is None
    assert problem


@pytest.mark.parametrize("said", ["60", '"60"', '"60/100"', '"６０"', '" 60 out of 100 "', "6e1"])
def test_a_score_is_read_however_it_is_written(said: str) -> None:
    found, _ = parse(f'{{"toxicity": {said}}}', Rating)
    assert found is not None
    assert found.toxicity == 60.0


DEEP = "[" * 100_000
BAD_FILES: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    "a config nested too deeply": ("c.toml", f"a = {DEEP}", read_config),
    "a config nested too deeply, YAML": ("c.yaml", f"a: {DEEP}", read_config),
    "a config with a number of 5,000 digits": ("c.toml", f"a = {'9' * 5000}", read_config),
    "a config with a date that is none": ("c.yaml", "a: 2001-99-99", read_config),
    "a config with a number that is none": ("c.yaml", "a: 0b_", read_config),
    "a config of aliases": ("c.yaml", "a: &a [x]\nb: *a", read_config),
    "personas nested too deeply": ("p.toml", f"persona = {DEEP}", load_personas),
    "personas with a number of 5,000 digits": ("p.toml", f"persona = {'9' * 5000}", load_personas),
    "a panel of nobody": ("p.toml", "persona = []", load_personas),
    "a rubric nested too deeply": ("r.toml", f"metric = {DEEP}", lambda path: load_rubric(str(path))),
    "a suite nested too deeply": ("s.toml", f"name = {DEEP}", lambda path: load_suite(str(path))),
    "a suite with a number of 5,000 digits": ("s.toml", f"name = {'9' * 5000}", lambda path: load_suite(str(path))),
    "labels nested too deeply": ("i.toml", f"categories = {DEEP}", read_identities),
    "a topic that is a book": ("t.txt", "word " * 1000, lambda path: load_topics(str(path))),
    "a topic twice, of one character": ("t.txt", "?\n?\n", lambda path: load_topics(str(path))),
    "a row of BBQ whose category is a list": ("b.jsonl", lines([{**seeds.BBQ[0], "category": ["Age"]}]), load_bbq),
    "a row of BBQ with an infinite number": ("b.jsonl", lines([{**seeds.BBQ[0], "label": float("inf")}]), load_bbq),
    "half a character in SQuAD": ("q.json", json.dumps(seeds.SQUAD).replace("When?", "\\ud800"), load_squad),
    "a number of 5,000 digits in SQuAD": ("q.json", '{"data": ' + "9" * 5000 + "}", load_squad),
    "predictions with a number of 5,000 digits": ("q.json", '{"a": ' + "9" * 5000 + "}", _table),
    "a prediction for row infinity": ("p.jsonl", '{"category": "Age", "example_id": 1e999, "prediction": 0}',
                                      lambda path: read_predictions(path, [ROW])),
    "a text nested too deeply": ("x.jsonl", DEEP, lambda path: read_lines(str(path))),
    "half a character in a text": ("x.jsonl", '{"text": "\\ud800"}', lambda path: read_lines(str(path))),
    "a score of 400 digits": ("x.jsonl", '{"text": "a", "s": ' + "9" * 400 + "}",
                              lambda path: read_lines(str(path), None, "s")),
    "a text for rubrics nested too deeply": ("x.jsonl", DEEP,
                                             lambda path: list(read_texts(ScoringConfig(file=str(path))))),
    "a pair without a user": ("p.jsonl", lines([{**seeds.PAIRS[0], "prompt": [{"role": "x"}]}]),
                              lambda path: read_pairs(TrainConfig(data=str(path)))),
    "a pair whose meta is a list": ("p.jsonl", lines([{**seeds.PAIRS[0], "meta": [1]}]),
                                    lambda path: read_pairs(TrainConfig(data=str(path)))),
    "a pair whose round is a word": ("p.jsonl", lines([{**seeds.PAIRS[0], "meta": {"round_chosen": "two"}}]),
                                     lambda path: read_pairs(TrainConfig(data=str(path)))),
    "a pair whose score is a word": ("p.jsonl", lines([{**seeds.PAIRS[0], "score_chosen": "low"}]),
                                     lambda path: read_pairs(TrainConfig(data=str(path)))),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_a_line(tmp_path: Path, name: str) -> None:
    file, text, read = BAD_FILES[name]
    (tmp_path / file).write_text(text)
    with pytest.raises((ParleyError, ScenarioError)) as refused:
        read(tmp_path / file)
    assert str(tmp_path / file) in str(refused.value)


def test_a_bomb_of_aliases_is_not_set_off(tmp_path: Path) -> None:
    """Thirty lines that stand for a billion keys: PyYAML's own loader never comes back from them."""
    names = [f"k{n}" for n in range(30)]
    bomb = "k: &k {x: 1}\n" + "".join(
        f"{b}: &{b} {{<<: [*{a}, *{a}]}}\n" for a, b in zip(["k", *names], names, strict=False)
    )
    (tmp_path / "c.yaml").write_text(bomb)
    with pytest.raises(ConfigError, match="aliases"):
        read_config(tmp_path / "c.yaml")
    assert yaml.SafeLoader.compose_node is not read_config.__globals__["_PlainLoader"].compose_node


def test_a_value_of_megabytes_does_not_fill_the_screen(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "c.toml").write_text(f'rounds = "{"x" * 1_000_000}"')
    assert main(["run", "malibu", "--suite", "quick", "--config", "c.toml"]) == 2
    assert len(capsys.readouterr().err) < 2100
    assert main(["run", "malibu", "--suite", "x" * 100_000, "--model", "sim/judge"]) == 2
    said = capsys.readouterr().err
    assert "unknown suite 'xxx" in said
    assert len(said) < 2100


def test_a_file_name_that_no_disk_takes_is_said_in_a_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "x" * 5000]) == 2
    assert capsys.readouterr().err.count("\n") == 1


EVIL = """
from pathlib import Path
Path("stolen").write_text("gone")
class Panel: report = "parley.analysis.reporting.generic:report"
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is done."""
    import parley

    place = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(place / "home"))
        parley.run("malibu", suite="quick", model="sim/judge", rounds=1, out=str(place / "a.sqlite"))
    return place / "a.sqlite"


@pytest.fixture
def run(place: Path, sound: Path) -> Path:
    """A copy of it to be broken."""
    return Path(shutil.copy(sound, place / "a.sqlite"))


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_a_run_file_cannot_have_code_loaded(run: Path, place: Path) -> None:
    """Someone's run and a Python file beside it: reading the report ran the file."""
    (place / "evil.py").write_text(EVIL)
    change(
        run,
        "UPDATE run SET value = '\"mine\"' WHERE key = 'study'",
        "UPDATE run SET value = '\"evil.py:Panel\"' WHERE key = 'target'",
    )
    assert main(["report", str(run), "--no-files", "--draws", "10"]) == 0
    assert not (place / "stolen").exists()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
STRANGE = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END",
    "a view in a table's place": "CREATE VIEW extra AS SELECT 1",
    "a computed column": "ALTER TABLE units ADD COLUMN big AS (zeroblob(1000000000))",
    "a virtual table": "CREATE VIRTUAL TABLE words USING fts5(x)",
    "a computed column behind a comment": "ALTER TABLE units ADD COLUMN big AS/**/(zeroblob(1000000000))",
    "a virtual table behind comments": "CREATE/**/VIRTUAL/**/TABLE words USING fts5(x)",
    "an index over an expression": "CREATE INDEX slow ON units (length(facets))",
    "a default of its own": "ALTER TABLE units ADD COLUMN more TEXT DEFAULT 'much'",
    "a view in place of ours": f"CREATE VIEW transcript AS {ENDLESS}",
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_run_with_sql_of_its_own_is_refused(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    change(run, *(["DROP VIEW transcript"] if "transcript" in STRANGE[name] else []), STRANGE[name])
    assert main(["show", str(run)]) == 1
    assert "that Parley did not write" in capsys.readouterr().err


FAULTS = {
    "UPDATE units SET facets = 'no'": "units.facets",
    "UPDATE units SET facets = '[]'": "units.facets",
    "UPDATE messages SET parsed = '{'": "messages.parsed",
    'UPDATE messages SET expected = \'{"a": "b"}\'': "an expected score is not a number",
    "UPDATE calls SET latency = 'long'": "calls.latency",
    "UPDATE calls SET prompt = '[[1]]'": "a prompt is not a list of texts",
    "UPDATE run SET value = 'no' WHERE key = 'config'": "the table 'run' cannot be read",
}


@pytest.mark.parametrize("statement", FAULTS)
def test_a_damaged_run_is_named_as_such(run: Path, capsys: pytest.CaptureFixture[str], statement: str) -> None:
    change(run, "DELETE FROM checks", statement)
    asked = ["report", str(run), "--no-files"] if "UPDATE run" in statement else ["show", str(run), "--prompts"]
    assert main(asked) == 1
    assert f"is damaged: {FAULTS[statement]}" in capsys.readouterr().err
