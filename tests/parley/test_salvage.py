"""Runs that are damaged: it is noticed, said in one line, and what can be read is copied to a new run."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from parley.cli import main
from parley.runs.salvage import LOST
from tests.panels import TINY_PANEL
from tests.parley.test_bad_input import one_line

RUN = (*TINY_PANEL, "--repeats", "12", "--model", "sim/judge")
UNITS = 108


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory):
    """A run that is done, large enough for several pages a table."""
    path = tmp_path_factory.mktemp("sound") / "a.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(path.parent / "home"))
        assert main([*RUN, "--out", str(path)]) == 0
    return path


@pytest.fixture
def run(sound_run, place):
    """A copy to be damaged."""
    return Path(shutil.copy(sound_run, place))


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def spoil(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 4096)


FIRST = "(SELECT id FROM units ORDER BY position LIMIT 1)"
CHANGES = {
    "facets": f"UPDATE units SET facets = replace(facets, 'gender', 'gendes') WHERE id = {FIRST}",
    "a verdict": f"UPDATE verdicts SET value = value + 1 WHERE unit = {FIRST} AND nth = 0",
    "a message": f"UPDATE messages SET speaker = 'Eve' WHERE unit = {FIRST} AND seq = 1",
    "a call": f"UPDATE calls SET prompt_tokens = 1 WHERE unit = {FIRST}",
    "a verdict that is gone": f"DELETE FROM verdicts WHERE unit = {FIRST}",
}


@pytest.mark.parametrize("what", CHANGES)
def test_small_damage_is_noticed_and_the_unit_named(parley, run, what):
    sound = parley("show", run, "--json").json["id"]
    change(run, CHANGES[what])
    line = (
        f"a.sqlite is damaged: unit '{sound}' is not as it was written (its checksum differs); parley import --damaged "
    )
    one_line(parley("show", run, sound), 1, line)
    if what == "facets" or "verdict" in what:
        one_line(parley("report", run, "--no-files"), 1, line)
    result = parley("import", "--damaged", run, "--json")
    assert result.status == 1
    kinds = ("again", "gone") if what != "facets" else ("gone", "again")
    assert (result.json["lost"], result.json[kinds[0]], result.json[kinds[1]]) == (1, 1, 0)
    assert result.json["copied"] == UNITS - 1
    if what == "a verdict":
        assert parley("report", "a.salvaged.sqlite", "--no-files", "--draws", "20").status == 0


TEXT = "UPDATE texts SET text = text || '!' WHERE id = (SELECT text FROM messages WHERE {} AND seq = {})"


def test_a_reply_that_was_changed_is_not_copied(parley, run):
    unit = parley("show", run, "--json").json["id"]
    change(run, TEXT.format(f"unit = {FIRST}", 1))
    one_line(parley("show", run), 1, f"a.sqlite is damaged: unit '{unit}' is not as it was written")
    result = parley("import", "--damaged", run, "--json").json
    assert 0 < result["again"] == result["lost"] < 20, "units may have said the same"
    assert parley("show", "a.salvaged.sqlite").status == 0


def test_a_prompt_that_many_share_does_not_lose_their_verdicts(parley, run, run_file):
    story = run_file(run).story()
    change(run, TEXT.format(f"unit = {FIRST}", 0))
    result = parley("import", "--damaged", run)
    assert result.status == 1
    assert "108 units copied, 0 lost" in result.out
    assert "part of a prompt could not be read in 12 copied units" in result.out
    new = run_file("a.salvaged.sqlite")
    assert new.story()["verdicts"] == story["verdicts"]
    new.check()
    assert LOST in parley("show", "a.salvaged.sqlite").out


def test_what_was_lost_is_run_again(parley, run, run_file):
    story = run_file(run).story()
    change(run, CHANGES["a message"])
    result = parley("import", "--damaged", run, "--out", "b.sqlite")
    assert (result.status, result.err) == (1, "")
    assert result.out == (
        "107 units copied, 1 lost: b.sqlite\n"
        "to run the lost units again, add --out b.sqlite to the command that made the run\n"
    )
    assert parley(*RUN, "--out", "b.sqlite").status == 0
    run_file("b.sqlite").check()
    assert run_file("b.sqlite").story() == story


@pytest.mark.parametrize("table", ["units", "messages", "calls", "verdicts", "texts", "checks", "events"])
def test_a_bad_page_loses_its_own_units_only(parley, run, run_file, table):
    story = run_file(run).story()
    with closing(sqlite3.connect(run)) as db:
        last = db.execute("SELECT id FROM units ORDER BY id DESC LIMIT 1").fetchone()[0]
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    data = run.read_bytes()
    at = (root - 1) * 4096
    if data[at] in (2, 5):  # an inner page: the leaf that it names last
        at = (int.from_bytes(data[at + 8 : at + 12], "big") - 1) * 4096
        at = (int.from_bytes(data[at + 8 : at + 12], "big") - 1) * 4096 if data[at] in (2, 5) else at
    spoil(run, at)

    result = parley("import", "--damaged", run, "--json")

    assert result.status == (0 if table in ("checks", "events") else 1), result
    copied, lost = result.json["copied"], result.json["lost"]
    assert copied + lost == UNITS
    assert copied >= (UNITS if table in ("checks", "events") else 40), (table, last)
    new = run_file("a.salvaged.sqlite")
    assert new.count() == copied
    new.check()
    known = new.done()
    for copy, original in zip(
        new.story()["transcript"], [row for row in story["transcript"] if row[0] in known], strict=True
    ):
        told = original[4] == "narrator" and copy[5] == LOST
        assert copy == (*original[:5], LOST if told else original[5], *original[6:])
    assert new.story()["verdicts"] == [row for row in story["verdicts"] if row[0] in known]


def test_a_run_cut_short_gives_what_is_left_of_it(parley, run, run_file):
    os.truncate(run, run.stat().st_size - 5 * 4096)
    one_line(parley("show", run), 1, "a.sqlite is damaged or truncated", "parley import --damaged")
    before = run.read_bytes()
    result = parley("import", "--damaged", run, "--json")
    assert result.status == 1
    assert 20 < result.json["copied"] < UNITS
    run_file("a.salvaged.sqlite").check()
    assert run.read_bytes() == before


def test_nothing_is_written_if_nothing_can_be_read_or_the_copy_fails_or_a_file_is_there(
    parley, run, place, monkeypatch
):
    (place / "b.sqlite").write_text("mine")
    said = "b.sqlite already exists: name another file with --out"
    one_line(parley("import", "--damaged", run, "--out", "b.sqlite"), 2, said)
    assert (place / "b.sqlite").read_text() == "mine"

    def full(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("parley.runs.salvage.copy_units", full)
        with suppress(KeyboardInterrupt):
            parley("import", "--damaged", run)
    change(run, "DELETE FROM units")
    one_line(parley("import", "--damaged", run), 1, "no unit of ", "a.sqlite can be read; nothing was copied")
    assert [path.name for path in place.iterdir() if "salvaged" in path.name] == []


def test_an_event_without_a_time_is_left_out(parley, run, run_file):
    before = run_file("a.sqlite").one("SELECT count(*) FROM events")
    rename = "UPDATE sqlite_schema SET sql = replace(sql, '{}', '{}') WHERE name = 'events'"
    strict, lax = "at REAL NOT NULL", "at REAL"
    change(run, "PRAGMA writable_schema = ON", rename.format(strict, lax))
    change(run, "INSERT INTO events VALUES (NULL, 'stopped', '')")
    change(run, "PRAGMA writable_schema = ON", rename.format(lax, strict))
    assert parley("import", "--damaged", run).status == 0
    assert run_file("a.salvaged.sqlite").one("SELECT count(*) FROM events") == before + 1


def test_a_sound_run_is_copied_whole(parley, run, run_file):
    result = parley("import", "--damaged", run)
    assert (result.status, result.out) == (0, f"108 units copied, 0 lost: {run.with_name('a.salvaged.sqlite')}\n")
    assert run_file("a.salvaged.sqlite").story() == run_file(run).story()
