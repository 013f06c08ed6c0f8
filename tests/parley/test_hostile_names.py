"""Names in a run file of somebody else control no terminal, whichever command prints them."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
from contextlib import closing

import pytest

from parley import run as run_study
from parley.base.home import say

EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\r\u202e"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
COMMANDS = (
    """
show R; show R --list; show R --list --json; show R --where bias=B; show R U; show R U --json; show R nope
show R --finding 1; show R --finding 1 --json; show R --finding 9; show R --where nope=1; show R U --beside bias=B
report R --no-files; report R --all --no-files; report R --json; report R --out pages
compare R R; compare R S; compare R S --json; compare R --models sim/judge,x
export R --to out; export R --to out2 --json; export R --format transcripts --to t.jsonl
view R --export page.html; view R --export page.html --where f.bias=B
power --from R; run attention --from R --model sim/judge
""".strip()
    .replace("\n", ";")
    .split(";")
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Two runs whose models, units, facets, subjects, judges and texts have control characters."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("r.sqlite", "s.sqlite"):
        run_study("rldf", model="sim/judge", topics=3, out=str(folder / name))
        with closing(sqlite3.connect(folder / name)) as db:
            evil = json.dumps(EVIL)[1:-1]
            (unit,) = db.execute("SELECT id FROM units ORDER BY position LIMIT 1").fetchone()
            for table, column in (("units", "id"), ("verdicts", "unit"), ("messages", "unit"), ("calls", "unit")):
                if column in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]:
                    db.execute(f"UPDATE {table} SET {column} = {column} || ? WHERE {column} = ?", (EVIL, unit))
            db.execute("UPDATE units SET facets = replace(facets, '\"age\"', ?)", (f'"age{evil}"',))
            db.execute("UPDATE run SET value = replace(value, 'sim/judge', ?)", (f"sim/judge{evil}",))
            for column in ("judge", "subject", "metric", "text", "role"):
                if column in [row[1] for row in db.execute("PRAGMA table_info(verdicts)")]:
                    db.execute(f"UPDATE verdicts SET {column} = {column} || ? WHERE {column} != ''", (EVIL,))
            db.execute("DELETE FROM checks")
            db.commit()
    return folder, unit + EVIL


@pytest.mark.parametrize("command", COMMANDS)
def test_no_control_character_of_a_name_is_printed(hostile, parley, command, place):
    folder, unit = hostile
    names = {"R": str(folder / "r.sqlite"), "S": str(folder / "s.sqlite"), "U": unit, "bias=B": f"bias=age{EVIL}"}
    result = parley(*(names.get(word, word) for word in command.split()))
    printed = result.out + result.err
    assert printed, "it says something"
    assert not CONTROL.search(printed), repr(CONTROL.search(printed))
    assert "Traceback" not in printed


def test_the_names_are_printed_with_their_control_characters_written_out(hostile, parley):
    folder, unit = hostile
    assert "\\x1b[31m" in parley("show", folder / "r.sqlite", "--list").out
    assert "\\u009b" in parley("show", folder / "r.sqlite", unit, "--json").out


@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8 there")
def test_a_run_whose_name_is_not_utf8_is_reported_shown_and_exported(parley, whole, place):
    folder = place / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    names = [folder / os.fsdecode(b"r\xff.sqlite"), place / os.fsdecode(b"r\xff.sqlite")]
    for name in names:
        name.write_bytes(whole.read_bytes())
    for words in (
        ("report",),
        ("report", "--json"),
        ("show",),
        ("view", "--export", "page.html", "--where", "f.phase=1"),
    ):
        result = parley(words[0], names[0], *words[1:])
        assert (result.status, result.complaints) == (0, []), words
    assert parley("report", *names, "--out", "both").status == parley("compare", *names).status == 0
    (report,) = folder.glob("*/report.html")
    assert "r\\udcff.sqlite" in report.read_text("utf-8")
    assert "r\\\\udcff.sqlite" in (place / "page.html").read_text("utf-8")


def test_a_remark_to_standard_error_has_none_either(capsys):
    say(f"the cache {EVIL} was set aside")
    assert not CONTROL.search(capsys.readouterr().err)
