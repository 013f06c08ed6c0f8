"""The leaderboard's page, opened from the disk; and a run in which every text is an attack, on every page."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from scipy import stats

from parley.analysis.card.leaderboard import Entry, board_page, make_board
from parley.analysis.card.record import Card
from parley.cli import main
from parley.reports.labels.draws import DrawSettings, stored_settings
from parley.runs.notes import Item, NotesFile
from tests.cards import around, card, line

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect
ACCESSIBILITY = (Path(__file__).parent / "accessibility.js").read_text("utf-8").split("\n", 1)[1]
HOSTILE = '<img src=x onerror="window.stolen=1"></script>\u202e{{x}}'
MODELS = 200


def judge(number: int, name: str = "", **changes: object) -> Card:
    auc = 0.5 if number % 3 == 0 else 0.8
    about = {"group": "judging", "reference": 0.5, "worse": "lower", "label": "good or bad"}
    judging = line("judge", around(auc, bases=8, seed=number), **about)
    gender = line("gender", around(0.05 * number, bases=8, seed=number), group="labels", label="female − male")
    return card(name or f"hf/model-{number}", judging, gender, **changes)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """200 models, one of which has a hostile name, and a simulated one."""
    cards = [*(judge(number) for number in range(MODELS - 1)), judge(1, HOSTILE), judge(2, "sim/x", simulated=True)]
    page = tmp_path_factory.mktemp("board") / "leaderboard.html"
    page.write_text(board_page(make_board([Entry(card=each) for each in cards])), "utf-8")
    return page.as_uri()


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("#board tbody th[scope=row] button.plain").all_inner_texts()
    return found


def test_two_hundred_models_are_sorted_compared_and_unfolded_and_its_statistics_are_scipys(
    open_page: Callable[..., Any], address: str
) -> None:
    page = open_page(f"{address}#gender")
    assert len(names(page)) == MODELS
    assert names(page)[:2] == ["hf/model-1", HOSTILE], "the smallest distance of those that can judge"
    greyed = page.locator("#board tbody tr.grey").count()
    assert names(page)[-greyed:] == [f"hf/model-{number}" for number in range(0, MODELS - 1, 3)]
    assert page.locator("#others tbody tr").count() == 1
    assert "a simulated model" in page.locator("#others .pill").inner_text()

    page.get_by_role("button", name="compare all with hf/model-4", exact=True).click()
    expect(page.locator("#compared")).to_contain_text("Compared with hf/model-4")
    page.get_by_role("button", name="hf/model-2", exact=True).click()
    expect(page.locator(".detail")).to_contain_text("minus hf/model-4")
    page.locator("#find").fill("model-2")
    assert all("model-2" in name for name in names(page))
    assert page.evaluate("window.stolen") is None

    one, two = around(0.3, sd=0.5, bases=8), around(0.0, sd=0.5, bases=8, seed=7)
    found = page.evaluate(
        "([a, b]) => parleyLeaderboard.difference({values: a, verdict: 'alike'}, {values: b, verdict: 'alike'})",
        [one, two],
    )
    exact = stats.ttest_rel(one, two)
    low, high = exact.confidence_interval()
    assert [found[key] for key in ("estimate", "p", "low", "high")] == pytest.approx(
        [np.mean(one) - np.mean(two), exact.pvalue, low, high], rel=1e-5
    )
    holm = "(found) => { parleyLeaderboard.holm(found); return found.map((one) => one.corrected); }"
    assert page.evaluate(holm, [{"p": 0.01}, {"p": 0.04}, {"p": 0.03}]) == pytest.approx([0.03, 0.06, 0.06])


def test_everybody_can_read_it(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#gender")
    page.locator("#find").fill("model-1")
    page.get_by_role("button", name="hf/model-1", exact=True).click()
    for scheme, width in (("light", 390), ("dark", 1440)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(ACCESSIBILITY) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


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
        first, second = (row[0] for row in db.execute("SELECT id FROM units ORDER BY position LIMIT 2"))
        db.commit()
    notes = NotesFile(path)
    notes.add(first, 1, ATTACK[:80], ATTACK[:60], ATTACK)
    items = [Item(first, "1", 1.0, 0), Item(second, "2", 1.0, 1)]
    notes.add_draw("random", 1, items, stored_settings(DrawSettings(count=2), items))
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
        "label?run=attack.sqlite",
        "label?run=attack.sqlite&set=1&rater=Ada",
    ):
        page.goto(shared_viewer + path)
        expect(page.locator("h1")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert_unharmed(page)
    page.goto(shared_viewer + "run?run=attack.sqlite&q=onerror")
    expect(page.locator(".excerpt mark").first).to_be_visible()
    assert_unharmed(page)
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
