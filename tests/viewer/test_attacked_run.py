"""A run in which every text is an attack, on every page."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from urllib.parse import urlencode

import pytest

from parley.cli import main
from parley.runs.notes import NotesFile

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect
ATTACK = (
    '<img src=x onerror="window.stolen = 1"></script><script>window.stolen = 1</script>\'"{{7*7}}`${window.stolen = 1}`'
)
TEXTS = {
    "texts": ("text",),
    "prompts": ("text",),
    "units": ("error", "stop_reason"),
    "messages": ("speaker", "parse_status"),
    "calls": ("model",),
    "verdicts": ("judge", "role", "subject", "metric", "text", "status"),
    "events": ("kind", "detail"),
}
"""Columns that a model, a data set or a config may fill; ids, facets and the run's own description are set below."""


def attack(path):
    """Puts the attack into every text of a run; its units and judges stay distinct. Returns the first unit's id."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM checks")
        for table, columns in TEXTS.items():
            for column in columns:
                db.execute(f"UPDATE {table} SET {column} = ? || coalesce(substr({column}, 1, 40), '')", (ATTACK,))
        db.execute("UPDATE messages SET parsed = ? WHERE parsed IS NOT NULL", (json.dumps({ATTACK: ATTACK}),))
        for unit, facets in db.execute("SELECT id, facets FROM units").fetchall():
            attacked_facets = {
                key: f"{ATTACK}{value}" if isinstance(value, str) else value
                for key, value in json.loads(facets).items()
            }
            new = f"{ATTACK}/{unit}"
            values = (new, json.dumps({**attacked_facets, ATTACK: ATTACK}), unit)
            db.execute("UPDATE units SET id = ?, facets = ? WHERE id = ?", values)
            for table in ("messages", "calls", "verdicts"):
                db.execute(f"UPDATE {table} SET unit = ? WHERE unit = ?", (new, unit))
        info = {
            "config": {"suite": ATTACK, ATTACK: [ATTACK], "seed": 0},
            "study": ATTACK,
            "models": [ATTACK],
            "versions": {ATTACK: ATTACK},
        }
        for key, value in info.items():
            db.execute("UPDATE run SET value = ? WHERE key = ?", (json.dumps(value), key))
        first = db.execute("SELECT id FROM units ORDER BY position").fetchone()[0]
        db.commit()
    notes = NotesFile(path)
    notes.add(first, 1, ATTACK[:80], ATTACK[:60], ATTACK)
    return first


def assert_unharmed(page, *more):
    assert page.evaluate("window.stolen") is None
    assert page.locator(", ".join(("main script, main img, main base, main iframe, main style", *more))).count() == 0


def test_a_runs_texts_are_never_markup_on_a_page_in_an_export_or_report(
    malibu, shelf, shared_viewer, open_page, tmp_path
):
    run, target, folder = shelf / "attack.sqlite", tmp_path / "page.html", tmp_path / "report"
    run.write_bytes(malibu.read_bytes())
    attacked = attack(run)
    page = open_page(shared_viewer)
    expect(page.locator("main")).to_contain_text("onerror")
    assert_unharmed(page)
    for path in (
        "run?run=attack.sqlite",
        f"unit?{urlencode({'run': run.name, 'unit': attacked})}",
        "compare?run=attack.sqlite&with=attack.sqlite",
    ):
        page.goto(shared_viewer + path)
        expect(page.locator("h1")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert_unharmed(page)
    page.goto(shared_viewer + "run?run=attack.sqlite&q=onerror")
    expect(page.locator(".excerpt mark").first).to_be_visible()
    assert_unharmed(page)
    page.close()  # it asks for the run's state again and again, and the run is deleted below
    assert main(["view", str(run), "--export", str(target)]) == 0
    page = open_page(target.as_uri())
    page.locator("a.unit").first.click()
    expect(page.locator(".message").first).to_be_visible()
    assert_unharmed(page)
    assert main(["report", str(run), "--out", str(folder), "--draws", "10"]) == 0
    page.goto((folder / "report.html").as_uri())
    expect(page.locator("h1").first).to_be_visible()
    assert_unharmed(page, "script, base, iframe, img[src='x']")
    for path in shelf.glob("attack.*"):
        path.unlink()
