"""Inputs that generated tests once broke something with, reduced and named."""

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
from parley.imports.imported import read_log
from parley.imports.predictions import _bbq_answers, _object
from parley.judging.bbq.methods.mabrf.replies import Judgement, Reasoning, Steps
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import ScoringConfig, read_texts
from parley.judging.search import read_list, read_summary, unknown_sources
from parley.judging.texts import read_lines
from parley.judging.toxicity.judge import Rating
from parley.judging.toxicity.swaps import Swaps
from parley.runs.notes import Answer, Item, NotesError, NotesFile
from parley.scenarios import ScenarioError, load_attempts, load_suite, load_topics
from parley.scenarios.bbq import load as load_bbq
from parley.scenarios.bbq import match
from parley.scenarios.identities import read_identities
from parley.scenarios.squad import load as load_squad
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs
from tests.fuzz import seeds
from tests.fuzz.checking import HANG_SECONDS
from tests.fuzz.replies import ROW, TASK
from tests.fuzz.strategies import as_jsonl

LENGTH = 300_000
"""Characters. Parsing each of these once took minutes."""


def bbq_answer(text: str) -> Any:
    return match(text, TASK.options, TASK.unknown, ROW.question)


LONG_TEXTS: dict[str, tuple[Callable[[str], Any], str]] = {
    "nested objects": (lambda text: parse(text, Rating), '{"a":' * (LENGTH // 5)),
    "only opening braces": (lambda text: parse(text, Rating), "{" * LENGTH),
    "only beginnings of objects": (lambda text: parse(text, Rating), '{"' * (LENGTH // 2)),
    "unclosed lists in objects": (lambda text: parse(text, Rating), ('{"a":[' + "1," * 300) * (LENGTH // 600)),
    "blanks after a score": (lambda text: parse(text, Rating), '{"toxicity": "7' + " " * LENGTH + 'x"}'),
    "blanks for an answer": (bbq_answer, " " * LENGTH + "x"),
    "openings before an answer": (bbq_answer, "the answer is: " * (LENGTH // 15)),
    "letters before an answer": (bbq_answer, "A) " * (LENGTH // 3) + "x"),
    "a repeated answer": (bbq_answer, "the grandson " * (LENGTH // 13)),
    "blank lines before an answer": (Reasoning.read, "\n" * LENGTH),
    "answers on one line": (Reasoning.read, "an answer: " * (LENGTH // 11) + "\nx"),
    "a step of many lines": (Steps.read, "1. x\n" + "more\n" * (LENGTH // 5)),
    "digits for a score": (Judgement.read, "Bias: " + "1" * LENGTH + "x"),
    "labels with open brackets": (Judgement.read, "bias(" * (LENGTH // 5)),
    "labels on many lines": (Judgement.read, "Bias: 7\n" * (LENGTH // 8)),
    "open quotes in a list": (read_list, "['" + ",'x" * (LENGTH // 3)),
    "blank lines before a list": (read_list, "\n" * LENGTH + "x"),
    "blanks in a line of a list": (read_list, "- a" + " " * LENGTH + "x\x0b"),
    "blanks after a quote": (read_list, '["a"' + " " * LENGTH + "x"),
    "blank lines before a heading": (read_summary, "\n" * LENGTH),
    "unclosed sources": (lambda text: unknown_sources(text, ()), "[SOURCE: x" * (LENGTH // 10)),
    "a repeated negation": (bbq_answer, "not " * (LENGTH // 4)),
    "a paragraph of many words": (lambda text: list(split_passages(text)), "word " * (LENGTH // 5)),
    "a search for identity words": (Swaps.load().variants, "1. x\n" * (LENGTH // 5)),
    "a search result of megabytes": (lambda text: quote("q", [SearchResult(text, text, text)]), "x\u200b" * 1_000_000),
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_time_is_linear_in_the_length(name: str) -> None:
    parse_text, text = LONG_TEXTS[name]
    started = time.process_time()
    parse_text(text)
    assert time.process_time() - started < HANG_SECONDS, "less than a second on an idle machine"


@pytest.mark.parametrize("half", ["\\ud800", "\\udc00", "\\udc00\\ud800", "\ud800"])
def test_half_a_surrogate_pair_in_a_reply_is_replaced(half: str) -> None:
    """It cannot be encoded as UTF-8, so storing the parsed reply ended the run."""
    value, problem = parse('{"reason": "x' + half + '", "toxicity": 60}', Rating)
    assert problem == ""
    assert value is not None
    assert json.loads(value.model_dump_json())["toxicity"] == 60.0


def test_a_surrogate_pair_in_two_escapes_is_kept() -> None:
    value, _ = parse('{"reason": "\\ud83d\\ude00", "toxicity": 60}', Rating)
    assert value is not None
    assert value.reason == "😀"


@pytest.mark.parametrize(
    "text", ["true", "1e999", "NaN", "-1", "101", '"ten"', '"5-7"', '"60/10"', "[60]", "null", '""']
)
def test_something_that_is_not_a_score_is_rejected(text: str) -> None:
    value, problem = parse(f'{{"toxicity": {text}}}', Rating)
    assert value is None
    assert problem


@pytest.mark.parametrize("text", ["60", '"60"', '"60/100"', '"６０"', '" 60 out of 100 "', "6e1"])
def test_a_score_is_parsed_in_every_notation(text: str) -> None:
    value, _ = parse(f'{{"toxicity": {text}}}', Rating)
    assert value is not None
    assert value.toxicity == 60.0


DEEPLY_NESTED = "[" * 100_000
BAD_FILES: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    "a config nested too deeply": ("c.toml", f"a = {DEEPLY_NESTED}", read_config),
    "a config nested too deeply, YAML": ("c.yaml", f"a: {DEEPLY_NESTED}", read_config),
    "a config with a number of 5,000 digits": ("c.toml", f"a = {'9' * 5000}", read_config),
    "a config with an invalid date": ("c.yaml", "a: 2001-99-99", read_config),
    "a config with an invalid number": ("c.yaml", "a: 0b_", read_config),
    "a config with aliases": ("c.yaml", "a: &a [x]\nb: *a", read_config),
    "personas nested too deeply": ("p.toml", f"persona = {DEEPLY_NESTED}", load_personas),
    "personas with a number of 5,000 digits": ("p.toml", f"persona = {'9' * 5000}", load_personas),
    "an empty panel": ("p.toml", "persona = []", load_personas),
    "a rubric nested too deeply": ("r.toml", f"metric = {DEEPLY_NESTED}", lambda path: load_rubric(str(path))),
    "a suite nested too deeply": ("s.toml", f"name = {DEEPLY_NESTED}", lambda path: load_suite(str(path))),
    "a suite with a number of 5,000 digits": ("s.toml", f"name = {'9' * 5000}", lambda path: load_suite(str(path))),
    "attempts nested too deeply": ("a.toml", f"name = {DEEPLY_NESTED}", lambda path: load_attempts(str(path))),
    "attempts with a number of 5,000 digits": ("a.toml", f"name = {'9' * 5000}", lambda path: load_attempts(str(path))),
    "labels nested too deeply": ("i.toml", f"categories = {DEEPLY_NESTED}", read_identities),
    "a topic of 1,000 words": ("t.txt", "word " * 1000, lambda path: load_topics(str(path))),
    "a duplicate topic of one character": ("t.txt", "?\n?\n", lambda path: load_topics(str(path))),
    "a row of BBQ whose category is a list": ("b.jsonl", as_jsonl([{**seeds.BBQ[0], "category": ["Age"]}]), load_bbq),
    "a row of BBQ with an infinite number": ("b.jsonl", as_jsonl([{**seeds.BBQ[0], "label": float("inf")}]), load_bbq),
    "half a surrogate pair in SQuAD": ("q.json", json.dumps(seeds.SQUAD).replace("When?", "\\ud800"), load_squad),
    "a number of 5,000 digits in SQuAD": ("q.json", '{"data": ' + "9" * 5000 + "}", load_squad),
    "predictions with a number of 5,000 digits": ("q.json", '{"a": ' + "9" * 5000 + "}", _object),
    "a prediction for an infinite row number": ("p.jsonl", '{"category": "Age", "example_id": 1e999, "prediction": 0}',
                                      lambda path: list(_bbq_answers(path, read_log(path), [ROW]))),
    "a text nested too deeply": ("x.jsonl", DEEPLY_NESTED, lambda path: read_lines(str(path))),
    "half a surrogate pair in a text": ("x.jsonl", '{"text": "\\ud800"}', lambda path: read_lines(str(path))),
    "a score of 400 digits": ("x.jsonl", '{"text": "a", "s": ' + "9" * 400 + "}",
                              lambda path: read_lines(str(path), None, "s")),
    "a text for rubrics nested too deeply": ("x.jsonl", DEEPLY_NESTED,
                                             lambda path: list(read_texts(ScoringConfig(data=str(path))))),
    "a pair without a user": ("p.jsonl", as_jsonl([{**seeds.PAIRS[0], "prompt": [{"role": "x"}]}]),
                              lambda path: read_pairs(TrainConfig(data=str(path)))),
    "a pair whose meta is a list": ("p.jsonl", as_jsonl([{**seeds.PAIRS[0], "meta": [1]}]),
                                    lambda path: read_pairs(TrainConfig(data=str(path)))),
    "a pair whose round is a word": ("p.jsonl", as_jsonl([{**seeds.PAIRS[0], "meta": {"round_chosen": "two"}}]),
                                     lambda path: read_pairs(TrainConfig(data=str(path)))),
    "a pair whose score is a word": ("p.jsonl", as_jsonl([{**seeds.PAIRS[0], "score_chosen": "low"}]),
                                     lambda path: read_pairs(TrainConfig(data=str(path)))),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_rejected_with_a_message(tmp_path: Path, name: str) -> None:
    file, text, read = BAD_FILES[name]
    (tmp_path / file).write_text(text)
    with pytest.raises((ParleyError, ScenarioError)) as raised:
        read(tmp_path / file)
    assert str(tmp_path / file) in str(raised.value)


TOML_READERS: dict[str, Callable[[Path], Any]] = {
    "config": read_config,
    "list of personas": load_personas,
    "rubric": lambda path: load_rubric(str(path)),
    "suite": lambda path: load_suite(str(path)),
    "list of labels": read_identities,
    "set of attempts": lambda path: load_attempts(str(path)),
}
LONG_KEYS = {
    "bare": "a." * 20_000 + "a = 1",
    "quoted": "\"a b\".'c' . " * 10_000 + "a = 1",
    "of a table": "[" + "a." * 20_000 + "a]\n",
    "of a list of tables": "[[ " + "a." * 20_000 + "a]]\n",
    "in an inline table": "x = {y = 1, " + "a." * 20_000 + "a = 1}",
}


@pytest.mark.parametrize("kind", TOML_READERS)
@pytest.mark.parametrize("key", LONG_KEYS)
def test_a_key_of_20_000_parts_is_rejected_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, key: str
) -> None:
    """tomllib takes seconds for one, four times as many for one that is twice as long."""
    path = tmp_path / "a.toml"
    path.write_text(LONG_KEYS[key])
    monkeypatch.setattr("tomllib.loads", lambda _: pytest.fail("it is parsed"))
    with pytest.raises((ParleyError, ScenarioError), match=f"nested too deeply for a {kind}"):
        TOML_READERS[kind](path)


def test_texts_with_many_dots_are_no_long_keys(tmp_path: Path) -> None:
    text = "Yes. No. " * 100 + "a.b.c." * 30
    path = tmp_path / "a.toml"
    path.write_text(f'a = "{text}"\nb = ["{text}"]\n"{text}" = 1.5\n[c.d.e]\n')
    assert read_config(path) == {"a": text, "b": [text], text: 1.5, "c": {"d": {"e": {}}}}


def test_a_yaml_alias_bomb_is_rejected(tmp_path: Path) -> None:
    """Thirty lines that expand to a billion keys: PyYAML's own loader never finishes."""
    names = [f"k{n}" for n in range(30)]
    bomb = "k: &k {x: 1}\n" + "".join(
        f"{b}: &{b} {{<<: [*{a}, *{a}]}}\n" for a, b in zip(["k", *names], names, strict=False)
    )
    (tmp_path / "c.yaml").write_text(bomb)
    with pytest.raises(ConfigError, match="aliases"):
        read_config(tmp_path / "c.yaml")
    assert yaml.SafeLoader.compose_node is not read_config.__globals__["_PlainLoader"].compose_node


def test_a_long_value_is_shortened_in_the_error(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "c.toml").write_text(f'rounds = "{"x" * 1_000_000}"')
    assert main(["run", "malibu", "--suite", "tiny", "--config", "c.toml"]) == 2
    assert len(capsys.readouterr().err) < 2100
    assert main(["run", "malibu", "--suite", "x" * 100_000, "--model", "sim/judge"]) == 2
    error = capsys.readouterr().err
    assert "unknown suite 'xxx" in error
    assert len(error) < 2100


def test_a_file_name_that_is_too_long_is_a_one_line_error(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "x" * 5000]) == 2
    assert capsys.readouterr().err.count("\n") == 1


MALICIOUS_STUDY = """
from pathlib import Path
Path("stolen").write_text("gone")
class Panel: report = "parley.analysis.reporting.generic:report"
"""


@pytest.fixture(scope="module")
def intact_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    import parley

    folder = tmp_path_factory.mktemp("intact")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        parley.run("malibu", suite="tiny", model="sim/judge", rounds=1, out=str(folder / "a.sqlite"))
    return folder / "a.sqlite"


@pytest.fixture
def run(place: Path, intact_run: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copy(intact_run, place / "a.sqlite"))


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_a_run_file_cannot_make_parley_load_code(run: Path, place: Path) -> None:
    """A run with a Python file beside it: the report executed the file."""
    (place / "evil.py").write_text(MALICIOUS_STUDY)
    execute(
        run,
        "UPDATE run SET value = '\"mine\"' WHERE key = 'study'",
        "UPDATE run SET value = '\"evil.py:Panel\"' WHERE key = 'target'",
    )
    assert main(["report", str(run), "--no-files", "--draws", "10"]) == 0
    assert not (place / "stolen").exists()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
FOREIGN_SQL = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END",
    "another view": "CREATE VIEW extra AS SELECT 1",
    "a computed column": "ALTER TABLE units ADD COLUMN big AS (zeroblob(1000000000))",
    "a virtual table": "CREATE VIRTUAL TABLE words USING fts5(x)",
    "a computed column behind a comment": "ALTER TABLE units ADD COLUMN big AS/**/(zeroblob(1000000000))",
    "a virtual table behind comments": "CREATE/**/VIRTUAL/**/TABLE words USING fts5(x)",
    "an index over an expression": "CREATE INDEX slow ON units (length(facets))",
    "a default of its own": "ALTER TABLE units ADD COLUMN more TEXT DEFAULT 'much'",
    "a view in place of ours": f"CREATE VIEW transcript AS {ENDLESS}",
}


@pytest.mark.parametrize("name", FOREIGN_SQL)
def test_a_run_with_foreign_sql_is_rejected(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    execute(run, *(["DROP VIEW transcript"] if "transcript" in FOREIGN_SQL[name] else []), FOREIGN_SQL[name])
    assert main(["show", str(run)]) == 1
    assert "that Parley did not write" in capsys.readouterr().err


DAMAGE = {
    "UPDATE units SET facets = 'no'": "units.facets",
    "UPDATE units SET facets = '[]'": "units.facets",
    "UPDATE messages SET parsed = '{'": "messages.parsed",
    'UPDATE messages SET expected = \'{"a": "b"}\'': "an expected score is not a number",
    "UPDATE calls SET latency = 'long'": "calls.latency",
    "UPDATE calls SET prompt = '[[1]]'": "a prompt is not a list of texts",
    "UPDATE run SET value = 'no' WHERE key = 'config'": "the table 'run' cannot be read",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_damage_in_a_run_is_reported(run: Path, capsys: pytest.CaptureFixture[str], statement: str) -> None:
    execute(run, "DELETE FROM checks", statement)
    command = ["report", str(run), "--no-files"] if "UPDATE run" in statement else ["show", str(run), "--prompts"]
    assert main(command) == 1
    assert f"is damaged: {DAMAGE[statement]}" in capsys.readouterr().err


NOTES_DAMAGE: dict[str, tuple[str, Callable[[NotesFile], object]]] = {
    "UPDATE notes SET comment = x'ff00'": ("it contains bytes in place of text", NotesFile.notes),
    "UPDATE labels SET rater = x'ff00'": ("it contains bytes in place of text", NotesFile.labels),
    "UPDATE draws SET settings = 'no'": ("a draw cannot be read", NotesFile.draws),
    "UPDATE draws SET settings = 'null'": ("a draw cannot be read", NotesFile.draws),
    "UPDATE items SET position = 'one'": ("a position is not a number", NotesFile.drawn),
    "UPDATE items SET probability = 'one'": ("a probability is not a number", NotesFile.drawn),
    "UPDATE labels SET value = 'seven'": ("a label's value is not a number", NotesFile.labels),
}


@pytest.mark.parametrize("statement", NOTES_DAMAGE)
def test_damage_in_notes_is_reported(run: Path, statement: str) -> None:
    notes = NotesFile(run)
    notes.add("a", None, "ann", "odd", "look at this")
    draw = notes.add_draw("random", 0, [Item("a", "1", 1.0, 0)], {})
    notes.add_labels(draw, "a", "ann", [Answer("", "Accuracy", 7.0, 7.0, None)])
    execute(notes.path, statement)
    problem, read = NOTES_DAMAGE[statement]
    with pytest.raises(NotesError, match=f"a.notes.sqlite is damaged: {problem}"):
        read(notes)


def test_notes_with_bytes_in_their_schema_are_reported(run: Path) -> None:
    notes = NotesFile(run)
    notes.add("a", None, "ann", "odd", "look at this")
    notes.path.write_bytes(notes.path.read_bytes().replace(b"CREATE TABLE notes", b"CREATE TABL\xff notes"))
    for use in (notes.notes, lambda: notes.withdraw(1)):
        with pytest.raises(NotesError, match="is damaged: its tables cannot be read"):
            use()
