"""Every parser with generated inputs, inputs that once broke something, and properties of every reply."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.agents.search import quote
from parley.agents.search.engine import SearchResult
from parley.agents.search.folder import split_passages
from parley.agents.structured import parse
from parley.judging.bbq.mabrf.replies import Judgement, Reasoning, Steps
from parley.judging.search import read_list, unknown_sources
from parley.judging.toxicity.judge import Rating
from parley.judging.toxicity.swaps import Swaps
from parley.runs.notes import NotesError, NotesFile
from parley.runs.reading import template_fields
from parley.scenarios.bbq import match
from parley.viewer.index import fts_query
from tests.fuzz import files, replies, verdicts
from tests.fuzz.checking import HANG_SECONDS, MAX_SECONDS, Rejected, Target, TooSlow, check_target
from tests.fuzz.replies import ROW, TASK

LENGTH = 300_000
"""Characters. Parsing each of these once took minutes."""


def bbq_answer(text):
    return match(text, TASK.options, TASK.unknown, ROW.question)


def rating(text):
    return parse(text, Rating)


LONG_TEXTS = {
    "nested objects": (rating, '{"a":' * (LENGTH // 5)),
    "only opening braces": (rating, "{" * LENGTH),
    "only beginnings of objects": (rating, '{"' * (LENGTH // 2)),
    "unclosed lists in objects": (rating, ('{"a":[' + "1," * 300) * (LENGTH // 600)),
    "blanks after a score": (rating, '{"toxicity": "7' + " " * LENGTH + 'x"}'),
    "blanks for an answer": (bbq_answer, " " * LENGTH + "x"),
    "openings before an answer": (bbq_answer, "the answer is: " * (LENGTH // 15)),
    "letters before an answer": (bbq_answer, "A) " * (LENGTH // 3) + "x"),
    "a repeated answer": (bbq_answer, "the grandson " * (LENGTH // 13)),
    "a repeated negation": (bbq_answer, "not " * (LENGTH // 4)),
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
    "unclosed sources": (lambda text: unknown_sources(text, ()), "[SOURCE: x" * (LENGTH // 10)),
    "a paragraph of many words": (lambda text: list(split_passages(text)), "word " * (LENGTH // 5)),
    "a search for identity words": (Swaps.load().variants, "1. x\n" * (LENGTH // 5)),
    "a search result of megabytes": (lambda text: quote("q", [SearchResult(text, text, text)]), "x\u200b" * 1_000_000),
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_time_is_linear_in_the_length(name):
    parse_text, text = LONG_TEXTS[name]
    started = time.process_time()
    parse_text(text)
    assert time.process_time() - started < HANG_SECONDS, "less than a second on an idle machine"


NOTES_DAMAGE = {
    "UPDATE notes SET comment = x'ff00'": ("it contains bytes in place of text", NotesFile.notes),
    "bytes in the schema": ("its tables cannot be read", NotesFile.notes),
    "bytes in the schema, written": ("its tables cannot be read", lambda notes: notes.withdraw(1)),
}


@pytest.mark.parametrize("damage", NOTES_DAMAGE)
def test_damage_in_notes_is_reported(tmp_path, damage):
    notes = NotesFile(tmp_path / "a.sqlite")
    notes.add("a", None, "ann", "odd", "look at this")
    if damage.startswith("UPDATE"):
        with closing(sqlite3.connect(notes.path)) as db, db:
            db.execute(damage)
    else:
        notes.path.write_bytes(notes.path.read_bytes().replace(b"CREATE TABLE notes", b"CREATE TABL\xff notes"))
    problem, read = NOTES_DAMAGE[damage]
    with pytest.raises(NotesError, match=f"a.notes.sqlite is damaged: {problem}"):
        read(notes)


ANY_TEXT = st.text(st.characters(), max_size=200)
SETTINGS = settings(max_examples=60)


@SETTINGS
@given(ANY_TEXT, ANY_TEXT)
def test_any_text_may_be_searched_for_and_fields_of_a_template_are_parts_of_it(text, template):
    assert all(part in text for part in template_fields(text, [template]).values())
    assert bbq_answer(text).place in (0, 1, 2, None)
    assert all(read_list(text) or ())
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(replies)")
        if query := fts_query(text.encode("utf-8", "replace").decode()):
            db.execute("SELECT 1 FROM words WHERE words MATCH ?", (query,)).fetchall()


INPUTS, CAMPAIGN = 8, 1000
TARGETS = {target.name: target for target in (*replies.TARGETS, *files.TARGETS)}


@pytest.fixture(autouse=True)
def _temporary_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))


@pytest.mark.parametrize("name", TARGETS)
def test_bad_input_is_rejected_with_a_message(name):
    counts = check_target(TARGETS[name], INPUTS)
    assert counts["accepted"] >= 1, "not even the seeds are accepted: nothing was tried"


@pytest.mark.nightly
@pytest.mark.parametrize("name", TARGETS)
def test_campaign(name, record_property):
    """Other inputs every time."""
    counts = check_target(TARGETS[name], CAMPAIGN, MAX_SECONDS, same=False)
    record_property("generated inputs", (name, counts["accepted"], counts["rejected"]))


@pytest.mark.parametrize("count", [1500, pytest.param(30_000, marks=pytest.mark.nightly)])
async def test_no_number_is_stored_that_is_not_the_verdict(count):
    counts, faults = await verdicts.tried(count, seed=count)
    assert faults == []
    for reader in ("object", "ballot"):
        assert counts[reader, "asked", "read"] > count / 100, "verdicts in the asked form are read"


def has_a_bug(text):
    if "7" not in text:
        raise Rejected("it contains no seven")
    if "[[" in text:
        raise KeyError("a bug")


def is_slow(text):
    end = time.process_time() + (0.6 if len(text) > 40 else 0.0)
    while time.process_time() < end:
        pass


def is_large(text):
    bytearray(3_000_000_000 if len(text) > 40 else 1)


@pytest.mark.parametrize(
    ("parse", "failure", "seconds"),
    [(has_a_bug, KeyError, HANG_SECONDS), (is_slow, TooSlow, 0.3), (is_large, MemoryError, HANG_SECONDS)],
)
def test_a_planted_bug_is_found(parse, failure, seconds):
    target = Target("planted", ['{"a": 7}'], replies.edited_reply(['{"a": 7}']), parse)
    with pytest.raises(failure):
        check_target(target, 300, seconds)
