"""Nobody loses a file to us: what exists is not overwritten, moved or deleted unless we wrote it and are told to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley import run as run_study
from parley.agents import ConfigError
from parley.base.files import new_file, new_folder, unused_file

PAIRS = ["--format", "trl", "--to", "mine"]


@pytest.fixture
def run(place: Path) -> Path:
    run_study("rldf", model="sim/judge", topics=3, out="a.sqlite")
    return place / "a.sqlite"


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("words", "theirs", "status"),
    [
        ("view a.sqlite --export a.sqlite", "", 2),
        ("view a.sqlite --export ./a.sqlite", "", 2),
        ("view a.sqlite --export link.html", "link.html", 2),
        ("view a.sqlite --export j.toml", "j.toml", 2),
        ("view a.sqlite --export page.html", "page.html", 2),
        ("view a.sqlite --export new.html", "new.html.part", 0),
        ("view a.sqlite --export folder", "folder/x", 2),
        ("export a.sqlite --format trl --to mine", "mine.part/notes.txt", 0),
        ("export a.sqlite --format trl --to mine", "mine/notes.txt", 2),
        ("export a.sqlite --format trl --to mine --force", "mine/notes.txt", 2),
        ("export a.sqlite --format trl --to mine --force", "mine/export.json", 2),
        ("export a.sqlite --format trl --to a.sqlite --force", "", 2),
        ("export a.sqlite --format transcripts --to t.jsonl", "t.jsonl.part", 0),
        ("export a.sqlite --format transcripts --to t.jsonl", "t.jsonl", 2),
    ],
)
def test_what_somebody_put_there_stays(run, place, parley, words, theirs, status):
    if theirs:
        (place / theirs).parent.mkdir(exist_ok=True)
        (place / theirs).write_text("mine")
    before = contents(place)
    result = parley(*words.split())
    assert result.status == status, result.err
    assert {name: data for name, data in contents(place).items() if name in before} == before
    assert len(result.err.splitlines()) == (1 if status else 0)
    assert not [name for name in os.listdir(place) if name.startswith(".")], "no temporary file stays behind"


def test_a_note_in_an_earlier_export_stops_force_and_an_untouched_export_is_replaced(run, place, parley):
    assert parley("export", run, *PAIRS).status == 0
    assert parley("export", run, *PAIRS).status == 2
    assert parley("export", run, *PAIRS, "--force").status == 0
    (place / "mine" / "notes.md").write_text("my notes")
    before = contents(place)
    assert "has other files" in parley("export", run, *PAIRS, "--force").err
    assert contents(place) == before


def test_a_run_that_is_given_twice_counts_once_with_a_line(run, parley):
    once, twice = parley("report", run, "--json"), parley("report", run, run.parent / "." / run.name, run, "--json")
    assert (twice.status, twice.json) == (0, once.json)
    assert "2 files are given twice: each run counts once" in twice.err


@pytest.mark.parametrize(
    "words", ["view a.sqlite --port 70000", "view a.sqlite --port -1", "view j.csv", "view --port x"]
)
def test_a_wrong_port_or_file_is_one_line_before_anything_runs(run, place, parley, words):
    (place / "j.csv").write_text("a,b")
    result = parley(*words.split())
    assert (result.status, len(result.err.splitlines())) == (2, 1), result.err


@pytest.mark.parametrize("port", ["0", "65536", "99999", "x", "-1"])
def test_a_port_out_of_range_in_an_address_is_one_line(place, parley, port):
    model = f"server/m?base_url=http://127.0.0.1:{port}/v1"
    result = parley("run", "malibu", "--suite", "tiny", "--model", model, "--dry-run")
    assert (result.status, len(result.err.splitlines())) == (2, 1), result.err
    assert "port" in result.err


def test_our_own_page_is_written_again(run, place, parley):
    for _ in range(2):
        assert parley("view", run, "--export", "page.html").status == 0


def test_the_parts_of_others_are_not_ours_when_a_run_begins(place):
    (place / "b.sqlite.part").write_text("mine")
    run_study("rldf", model="sim/judge", topics=2, out="b.sqlite")
    assert (place / "b.sqlite.part").read_text() == "mine"


def test_a_block_that_fails_leaves_what_was_there(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    for make in (new_file, new_folder):
        with pytest.raises(ZeroDivisionError), make(tmp_path / "old.txt", lambda path: True):
            raise ZeroDivisionError
    assert contents(tmp_path) == {"old.txt": b"old"}
    assert [unused_file(tmp_path / "x").exists(), unused_file(tmp_path / "x").stat().st_mode & 0o077 != 0] == [
        True,
        True,
    ]


def test_what_appears_meanwhile_is_not_overwritten(tmp_path):
    def both() -> None:
        with new_file(tmp_path / "x.txt") as file:
            file.write("ours")
            (tmp_path / "x.txt").write_text("theirs")

    with pytest.raises(ConfigError, match="already exists"):
        both()
    assert contents(tmp_path) == {"x.txt": b"theirs"}
