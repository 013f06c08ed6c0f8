"""Nobody loses a file to us: what exists is not overwritten, moved or deleted unless we wrote it and are told to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parley import run as run_study
from parley.agents import ConfigError
from parley.base.files import new_file, new_folder, unused_file
from parley.scenarios import Suite, load_suite
from parley.training.folders import StageFolder
from tests.servers import PATIENCE

PAIRS = ["--format", "trl", "--to", "mine"]


@pytest.fixture(scope="module")
def debates(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("debates") / "a.sqlite"
    run_study("rldf", model="sim/judge", topics=3, out=str(path))
    return path.read_bytes()


@pytest.fixture
def run(place: Path, debates: bytes) -> Path:
    (place / "a.sqlite").write_bytes(debates)
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
    theirs = {"notes.md": "my notes", "README.md": "my card", "train.jsonl": "{}", "export.json": '{"files": {}}'}
    for name, text in theirs.items():
        assert parley("export", run, *PAIRS).status == 2
        (place / "mine" / name).write_text(text)
        before = contents(place)
        assert "not an unchanged export, or has other files" in parley("export", run, *PAIRS, "--force").err
        assert contents(place) == before
        shutil.rmtree(place / "mine")
        assert parley("export", run, *PAIRS).status == 0


@pytest.mark.parametrize(("kind", "name"), [("csv", "labels.csv"), ("transcripts", "whole.jsonl")])
def test_force_replaces_a_runs_own_file_until_somebody_writes_in_it(run, place, parley, kind, name):
    words = ("export", run, "--format", kind, "--to", name)
    assert [parley(*words).status, parley(*words).status, parley(*words, "--force").status] == [0, 2, 0]
    assert parley(*words, "--force", *(["--seed", 7] if kind == "csv" else [])).status == 0, "in another order"
    file = place / name
    written = file.read_bytes()
    changes = (written.rstrip(b"\n") + b"7\n", written + b"x", b"notes\n" + written, run.read_bytes(), b"\n7\n")
    for changed in changes:  # filled in, longer, with a heading, or a run of that name
        file.write_bytes(changed)
        refused = parley(*words, "--force")
        assert (refused.status, file.read_bytes()) == (2, changed)
        assert "was changed, or not written by this installation: choose another name with --to" in refused.err


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


REPORT = ("report", "a.sqlite", "--out")


@pytest.mark.parametrize("theirs", ["mine/notes.txt", "mine/report.html", "mine/tables/scores.csv", "mine"])
def test_a_report_is_not_written_among_files_of_others(run, place, parley, theirs):
    (place / theirs).parent.mkdir(parents=True, exist_ok=True)
    (place / theirs).write_text("mine")
    before = contents(place)
    result = parley(*REPORT, "mine")
    assert (result.status, len(result.err.splitlines())) == (2, 1), result.err
    assert "choose another one with --out" in result.err
    assert contents(place) == before


def test_a_report_is_written_again_and_leaves_notes_in_its_folder(run, place, parley):
    (place / "out").mkdir()
    assert parley(*REPORT, "out").status == 0, "an empty folder is free"
    (place / "out" / "notes.md").write_text("mine")
    (place / "out" / "tables" / "change.md").unlink()
    (place / "elsewhere.md").write_text("mine")
    (place / "out" / "tables" / "change.md").symlink_to(place / "elsewhere.md")
    assert parley(*REPORT, "out").status == 0
    assert (place / "out" / "notes.md").read_text() == "mine"
    assert (place / "elsewhere.md").read_text() == "mine", "links are replaced, not followed"
    assert not [name for name in os.listdir(place) if name.startswith(".")]


def test_a_report_is_not_written_beside_the_tables_of_another_run(run, place, parley):
    shutil.copy(run, place / "a.db")
    run_study("malibu", model="sim/judge", suite="tiny", out="m.sqlite")
    assert parley("report", "a.sqlite").status == 0
    before = contents(place / "a-report")
    for words in (("a.db",), ("m.sqlite", "--out", "a-report"), ("a.sqlite", "a.db", "--out", "a-report")):
        refused = parley("report", *words)
        assert refused.status == 2
        assert "is not the folder of a report on" in refused.err
        assert contents(place / "a-report") == before
    assert parley("report", "a.sqlite", "--draws", 50).status == 0, "its own is written again"
    assert contents(place / "a-report").keys() == before.keys()


@pytest.mark.parametrize("link", ["a-report", "a-report/tables", "a-report/figures"])
def test_a_report_is_not_written_through_a_link(run, place, parley, link):
    assert parley("report", "a.sqlite").status == 0
    (place / link).rename(place / "elsewhere")
    (place / link).symlink_to(place / "elsewhere")
    before = contents(place / "elsewhere")
    refused = parley("report", "a.sqlite", "--draws", 50)
    assert (refused.status, len(refused.err.splitlines())) == (2, 1)
    assert "or has links: choose another one with --out" in refused.err
    assert contents(place / "elsewhere") == before


@pytest.mark.parametrize("to", ["bare.toml", "./bare.toml", "link.toml", "settings.toml"])
def test_a_run_does_not_write_over_what_it_reads_even_with_force(place, parley, to):
    (place / "settings.toml").write_text('model = "sim/any"\n')
    bases = Suite(schema=1, name="bases", version="1", base=load_suite("full")[0].base[:1])
    (place / "bare.toml").write_text(bases.to_toml(), "utf-8")
    (place / "link.toml").symlink_to("bare.toml")
    before = contents(place)
    words = ("run", "malibu-derive", "--config", "settings.toml", "--suite", "bare.toml", "--to", to, "--force")
    result = parley(*words)
    assert (result.status, len(result.err.splitlines())) == (2, 1), result.err
    assert "is read or written by this run" in result.err
    assert contents(place) == before


def test_training_does_not_remove_what_is_not_its_own(tmp_path):
    stage = StageFolder(tmp_path / "sft", {"data": "digest"})
    for name in ("sft", "sft.steps"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("mine")
        with pytest.raises(ConfigError, match="choose another --out"):
            stage.begin()
        assert (tmp_path / name / "notes.txt").read_text() == "mine"
        (tmp_path / name / "notes.txt").unlink()
        if name == "sft":
            (tmp_path / name).rmdir()
    (tmp_path / "sft.part").mkdir()
    stage.begin()
    stage.finish(lambda folder: None, {})
    assert sorted(os.listdir(tmp_path)) == ["sft", "sft.part"]


def test_a_merged_model_is_not_written_over_a_folder_of_others(tmp_path):
    with pytest.raises(ConfigError), new_folder(tmp_path, lambda path: (path / "merged.json").is_file()):
        raise AssertionError


@pytest.mark.parametrize("repeats", ["100000000", "10001"])
def test_too_many_repeats_are_one_line(place, parley, repeats):
    result = parley("run", "malibu", "--suite", "tiny", "--model", "sim/judge", "--repeats", repeats, "--dry-run")
    assert (result.status, len(result.err.splitlines())) == (2, 1), result.err
    assert "10000" in result.err


def test_too_many_units_are_one_line(place, parley, monkeypatch):
    monkeypatch.setattr("parley.runs.plan.MOST_UNITS", 10)
    result = parley("run", "malibu", "--suite", "tiny", "--model", "sim/judge", "--dry-run")
    assert (result.status, len(result.err.splitlines())) == (2, 1), result.err
    assert "more than 10 units" in result.err


def in_clone(place: Path, *, copy: bool) -> tuple[int, str]:
    """`python -m parley --version` in a folder with a `parley/` of its own, with another one installed or not."""
    root = Path(__file__).parents[2]
    (place / "parley").mkdir()
    for name in ("__init__.py", "__main__.py", "base", "cli"):
        (place / "parley" / name).symlink_to(root / "parley" / name)
    if copy:
        shutil.copytree(root / "parley" / "cli", place / "site" / "parley" / "cli")
        (place / "site" / "parley_autogen-9.dist-info").mkdir()
        (place / "site" / "parley_autogen-9.dist-info" / "METADATA").write_text("Name: parley-autogen\nVersion: 9\n")
    environment = {**os.environ, "PYTHONPATH": str(place / "site")}
    words = [sys.executable, "-m", "parley", "--version"]
    ended = subprocess.run(
        words, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("copy", [True, False])
def test_a_clone_says_in_one_line_that_another_parley_is_installed(tmp_path, copy):
    status, said = in_clone(tmp_path, copy=copy)
    assert (status, len(said.splitlines())) == (0, int(copy)), said
    assert not copy or str(tmp_path / "site" / "parley") in said
