"""Run files that are no runs, damaged, of another version, or full of odd values: every command that reads them says so
in one line, changes nothing, and runs none of their code."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parley.runs.opening import reason
from tests.parley.test_bad_input import SIM, one_line

FEW = ("--no-files", "--draws", "20")
READS = (("show",), ("report", "--no-files"), ("export", "--format", "transcripts"), ("compare", "whole.sqlite"))


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def text(path: Path) -> None:
    path.write_text("Dear diary, today I ran a study.\n" * 50)


def another_database(path: Path) -> None:
    path.unlink()
    execute(path, "CREATE TABLE recipes (name TEXT)")


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def broken_page(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'units'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)


def sql(*statements: str) -> Callable[[Path], None]:
    return lambda path: execute(path, *statements)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
NOT_OURS = "that Parley did not write"
OF_FORMAT = "Parley (format {}; this one reads format 4)"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text": (text, "whole.sqlite is not a Parley run file"),
    "another database": (another_database, "whole.sqlite is not a Parley run file"),
    "truncated": (half, "whole.sqlite is damaged or truncated"),
    "a broken page": (broken_page, "whole.sqlite is damaged"),
    "an older format": (sql("PRAGMA user_version = 2"), f"was written by an older {OF_FORMAT.format(2)}"),
    "a newer format": (sql("PRAGMA user_version = 7"), f"was written by a newer {OF_FORMAT.format(7)}"),
    "a trigger": (sql("CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END"), NOT_OURS),
    "another view": (sql("CREATE VIEW extra AS SELECT 1"), NOT_OURS),
    "a computed column": (sql("ALTER TABLE units ADD COLUMN big AS (zeroblob(1000000000))"), NOT_OURS),
    "a virtual table": (sql("CREATE VIRTUAL TABLE words USING fts5(x)"), NOT_OURS),
    "a column behind a comment": (sql("ALTER TABLE units ADD COLUMN big AS/**/(zeroblob(1000000000))"), NOT_OURS),
    "a table behind comments": (sql("CREATE/**/VIRTUAL/**/TABLE words USING fts5(x)"), NOT_OURS),
    "an index over an expression": (sql("CREATE INDEX slow ON units (length(facets))"), NOT_OURS),
    "a default of its own": (sql("ALTER TABLE units ADD COLUMN more TEXT DEFAULT 'much'"), NOT_OURS),
    "a view without end": (sql("DROP VIEW transcript", f"CREATE VIEW transcript AS {ENDLESS}"), NOT_OURS),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_no_sound_run_is_named_and_not_changed(parley, whole, name):
    damage, words = DAMAGE[name]
    damage(whole)
    before = whole.read_bytes()
    for command in READS:
        one_line(parley(command[0], "whole.sqlite", *command[1:]), 1, words)
    assert whole.read_bytes() == before
    one_line(parley(*SIM, "--out", "whole.sqlite"), 1, words)
    assert whole.read_bytes() == before or name == "a broken page", "which is found only after the run was noted"


FIRST = "(SELECT id FROM units ORDER BY position LIMIT 1)"
CHANGES = {
    "facets": f"UPDATE units SET facets = replace(facets, 'gender', 'gendes') WHERE id = {FIRST}",
    "a verdict": f"UPDATE verdicts SET value = value + 1 WHERE unit = {FIRST} AND nth = 0",
    "a message": f"UPDATE messages SET speaker = 'Eve' WHERE unit = {FIRST} AND seq = 1",
    "a call": f"UPDATE calls SET prompt_tokens = 1 WHERE unit = {FIRST}",
    "a verdict's message": f"UPDATE verdicts SET seq = seq - 1 WHERE unit = {FIRST} AND nth = 0",
    "a verdict that is gone": f"DELETE FROM verdicts WHERE unit = {FIRST}",
}


@pytest.mark.parametrize("what", CHANGES)
def test_small_damage_is_noticed_and_the_unit_named(parley, whole, what):
    sound = parley("show", whole, "--json").json["id"]
    execute(whole, CHANGES[what])
    line = f"whole.sqlite is damaged: unit '{sound}' is not as it was written (its checksum differs); docs/runs.md says"
    one_line(parley("show", whole, sound), 1, line)
    if what in ("facets", "a verdict", "a verdict that is gone"):
        one_line(parley("report", whole, "--no-files"), 1, line)


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="needs sqlite3")
def test_the_recipe_for_a_damaged_run(parley, whole, run_file):
    """What docs/runs.md says, as printed; then the same command again."""
    story, unit = run_file(whole).story(), parley("show", whole, "--json").json["id"]
    execute(whole, CHANGES["a message"])
    Path("runs").mkdir()
    shutil.copy(whole, "runs/try.sqlite")
    page = (Path(__file__).parents[2] / "docs" / "runs.md").read_text("utf-8")
    recipes = re.findall(r"```text\n(.*?)```", page, re.S)
    dump = next(recipe for recipe in recipes if ".dump" in recipe).partition("\n")[2]
    again = next(recipe for recipe in recipes if "UNIT" in recipe).replace("UNIT", unit)
    for line in (dump, again):
        assert subprocess.run(["sh", "-c", line]).returncode == 0
    assert parley(*SIM, "--out", "runs/new.sqlite").status == 0
    run_file("runs/new.sqlite").check()
    assert run_file("runs/new.sqlite").story() == story


VALUES = {
    "UPDATE units SET facets = 'no'": "units.facets",
    "UPDATE units SET facets = '[]'": "units.facets",
    "UPDATE messages SET parsed = '{'": "messages.parsed",
    'UPDATE messages SET expected = \'{"a": "b"}\'': "an expected score is not a number",
    "UPDATE calls SET latency = 'long'": "calls.latency",
    "UPDATE calls SET prompt = '[[1]]'": "a prompt is not a list of texts",
    "UPDATE run SET value = 'no' WHERE key = 'config'": "the table 'run' cannot be read",
}


def test_a_value_that_cannot_be_is_named(parley, whole, finished):
    for statement, named in VALUES.items():
        whole.write_bytes(finished)
        execute(whole, "DELETE FROM checks", statement)  # as in a run from before checksums
        command = ("report", "--no-files") if "UPDATE run" in statement else ("show", "--prompts")
        one_line(parley(command[0], whole, command[1]), 1, f"is damaged: {named}")


def test_a_run_file_cannot_make_parley_load_code(parley, whole, place):
    """A run with a Python file beside it: the report executed the file."""
    (place / "evil.py").write_text("from pathlib import Path\nPath('stolen').write_text('gone')\nclass Panel: pass\n")
    execute(
        whole,
        "UPDATE run SET value = '\"mine\"' WHERE key = 'study'",
        "UPDATE run SET value = '\"evil.py:Panel\"' WHERE key = 'target'",
    )
    assert parley("report", whole, *FEW).status == 0
    assert not (place / "stolen").exists()


def changed(run: Path, change: Callable[[dict[str, Any]], Any]) -> str:
    """A copy of a run whose units have other facets."""
    Path("changed.sqlite").write_bytes(run.read_bytes())
    with closing(sqlite3.connect("changed.sqlite")) as db:
        for unit, facets in db.execute("SELECT id, facets FROM units").fetchall():
            table = json.loads(facets)
            change(table)
            db.execute("UPDATE units SET facets = ? WHERE id = ?", (json.dumps(table), unit))
        db.execute("DELETE FROM checks")
        db.commit()
    return "changed.sqlite"


REQUIRED = {
    "malibu": ("phase", "scenario", "category", "identity"),
    "bbq": ("category", "condition", "label", "target", "unknown", "method", "scenario", "question", "example_id"),
    "squad": ("question_id", "paragraph", "answers", "search", "answerable", "repeat", "paragraph_shown"),
    "rldf": ("topic",),
    "framing": ("topic",),
    "rubric": ("item", "group"),
    "stardtox": ("set", "prompt", "completion", "method", "iterations"),
}
ODD = ((None, [1], {"a": 1}), ("\ud800", 10**400, 1e308), ("", True, None))


@pytest.mark.parametrize("study", [*REQUIRED, "mine"])
def test_facets_may_be_missing_or_anything(parley, prepared, study):
    run = prepared / f"{study}.sqlite"
    for facet in REQUIRED.get(study, ()):
        path = changed(run, lambda facets, facet=facet: facets.pop(facet, None))
        one_line(parley("report", path, *FEW), 2, f"changed.sqlite cannot be reported as a run of '{study}'", facet)
    for values in ODD:
        odd = changed(run, lambda facets, values=values: facets.update(zip(facets, values, strict=False)))
        result = parley("report", odd, *FEW)
        if result.status:
            one_line(result, result.status, "changed.sqlite")


def test_a_report_says_what_it_cannot_compute_from(parley, prepared):
    endless = changed(prepared / "stardtox.sqlite", lambda facets: facets.update(iterations=2**31))
    one_line(parley("report", endless, *FEW), 2, "2.14748e+09 iterations", "100 at most")
    no_json = changed(prepared / "squad.sqlite", lambda facets: facets.update(answers="no JSON"))
    place = "squad/report.py, line"
    one_line(parley("report", no_json, *FEW), 1, "changed.sqlite cannot be read: JSONDecodeError", place)
    no_topic = changed(prepared / "rldf.sqlite", lambda facets: facets.pop("topic"))
    one_line(parley("export", no_topic, "--format", "trl"), 2, "changed.sqlite", "has no topic")
    for value in ("9e999", "1e308"):
        far = changed(prepared / "malibu.sqlite", lambda facets: None)
        execute(Path(far), f"UPDATE verdicts SET value = {value} WHERE nth = 0")
        one_line(parley("report", far, *FEW), 2, f"a verdict of {float(value):g}")


def test_other_commands_on_a_run_that_is_not_ours(parley, prepared):
    Path("changed.sqlite").write_bytes((prepared / "framing.sqlite").read_bytes())
    execute(
        Path("changed.sqlite"),
        "UPDATE run SET value = '[1, null]' WHERE key = 'models'",
        "DELETE FROM run WHERE key = 'study'",
        "UPDATE units SET facets = 'true'",
        "DELETE FROM checks",
    )
    for command in (
        "export {} --format transcripts",
        "view {} --export x.html",
        "compare {} {}",
        "run attention --from {}",
    ):
        result = parley(*command.replace("{}", "changed.sqlite").split())
        one_line(result, result.status, "changed.sqlite")
        assert result.status in (1, 2)


def test_markup_and_control_characters_in_a_models_name_are_shown_as_they_are(parley, prepared):
    def renamed(facets):
        if not facets["answerable"]:  # reports name a model where there are several
            facets["model"] = "[/bold]x[red]\x1b[31m$x_1$<b>"

    result = parley("report", changed(prepared / "squad.sqlite", renamed), "--draws", "20")
    assert (result.status, result.err) == (0, "")
    assert "[/bold]x[red]" in result.out
    assert "\x1b" not in result.out
    assert "<b>" not in Path("changed-report/report.html").read_text("utf-8")


WHY = {
    OSError(28, "No space left on device"): "the disk is full",
    sqlite3.OperationalError("database or disk is full"): "the disk is full",
    OSError(13, "Permission denied"): "the file or its folder is read-only",
    OSError(30, "Not writable"): "the file or its folder is read-only",
    sqlite3.OperationalError("attempt to write a readonly database"): "the file or its folder is read-only",
    OSError(0, "Read-only file system"): "the file or its folder is read-only",
    sqlite3.OperationalError("database is locked"): "another process is writing to it",
    OSError(5, "Input/output error"): "Input/output error",
    ValueError("odd"): "odd",
}


def test_why_a_file_cannot_be_written():
    assert [reason(error) for error in WHY] == list(WHY.values())
