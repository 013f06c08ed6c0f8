"""One run in a real browser: findings, units, notes and config, a run in progress, an exported part of it, a phone."""

from __future__ import annotations

import math
import re
import shutil
import time
from contextlib import closing
from decimal import ROUND_HALF_UP, Decimal
from hashlib import sha256
from pathlib import Path
from sqlite3 import connect
from urllib.parse import parse_qs, urlparse

import pytest

from parley.cli.found_units import list_behind
from parley.reports import make_report
from parley.reports.labels import label_items
from parley.runs import RunFile

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect
ACCESSIBILITY = (Path(__file__).parent / "accessibility.js").read_text("utf-8").split("\n", 1)[1]


def test_estimates_and_p_values_are_the_reports_and_open_their_units(malibu, shared_viewer, open_page):
    report = make_report([malibu])
    gap = next(row for row in report.table("differences").itertuples() if row.metric == "all")
    page = open_page(shared_viewer + "run?run=quick.sqlite")
    expect(page.locator(".caution").first).to_contain_text("SIMULATED")
    row = page.locator(".forest tr", has_text="female − male").first
    difference = Decimal(gap.estimate).quantize(Decimal("0.01"), ROUND_HALF_UP)
    expect(row).to_contain_text(f"{difference:+}".replace("-", "−"))
    expect(row.locator(".p")).to_have_text(f"{float(f'{gap.p_adjusted:.2g}')}".removesuffix(".0"))
    assert gap.low == -math.inf, "three bases: the interval is unbounded"
    expect(row).to_contain_text("no interval")
    for line in report.words[:4]:
        expect(page.locator("main")).to_contain_text(line)
    expect(page.locator(".forest")).to_have_count(1)
    found = page.locator(".finding h2")
    expect(found).to_contain_text("SIMULATED")
    size = "(node) => parseFloat(getComputedStyle(node).fontSize)"
    assert found.evaluate(size) == max(page.locator("main *").evaluate_all(f"(all) => all.map({size})"))
    row.get_by_role("link").first.click()
    assert set(parse_qs(urlparse(page.url).query)["f.identity"]) == {gap.first, gap.second}
    first = page.locator("tr[data-unit]").first
    with RunFile.open(malibu) as file:
        pairs = list_behind(file, 1, ()).data["units"]  # what `parley show --finding 1` lists
        of_its_scenario = f"/{pairs[0]['units'][0]['id'].split('/')[1]}/"
        answer = next(item.text for item in label_items(file).values() if of_its_scenario in item.facets["unit"])
    expect(first.locator(".excerpt")).to_have_text(re.compile(rf"^{re.escape(answer[:90])}"))
    expect(first.locator("[data-label='difference']")).to_have_text(re.compile(r"^[+−]\d\.\d\d (fe)?male$"))
    shown = page.locator("tr[data-unit]").evaluate_all("(rows) => rows.map((row) => row.dataset.unit)")
    both = [{unit["id"] for unit in pair["units"]} for pair in pairs]
    assert [set(shown[2 * nth : 2 * nth + 2]) for nth in range(len(pairs))] == both, "the largest difference first"


def test_notes_are_stored_beside_the_run_and_tags_are_filters(malibu, shelf, shared_viewer, open_page):
    path = shutil.copy(malibu, shelf / "noted.sqlite")
    before = sha256(path.read_bytes()).hexdigest()
    with RunFile.open(path) as file:
        unit = file.rows("SELECT id FROM units ORDER BY position")[1][0][0]
    page = open_page(f"{shared_viewer}unit?run=noted.sqlite&unit={unit}")
    message = page.locator("#m1")
    message.get_by_role("button", name="note").click()
    message.get_by_label("tag").fill("odd")
    message.get_by_label("comment").fill("<b>Why</b> so low?")
    message.get_by_role("button", name="Save").click()
    expect(page.locator("#m1 .notes")).to_contain_text("<b>Why</b> so low?")
    page.keyboard.press("u")
    page.locator("[data-filter='d.tag'] label", has_text="odd").click()
    expect(page.locator(".count")).to_have_text("1 of 9 units")
    with closing(connect(shelf / "noted.notes.sqlite")) as db:
        assert db.execute("SELECT unit, seq, tag FROM notes").fetchall() == [(unit, 1, "odd")]
        db.execute("INSERT INTO notes (unit, author, tag, comment, at) VALUES ('', '', 'name', 'a run of 2025', 0)")
        db.commit()  # as versions stored it that let people name runs
    assert sha256(path.read_bytes()).hexdigest() == before
    page.get_by_role("link", name="Notes").click()
    expect(page.locator(".notes li")).to_have_count(1)
    expect(page.locator(".notes li")).to_contain_text("<b>Why</b> so low?")
    page.locator(".notes a").click()
    expect(page.locator("#m1.linked")).to_be_visible()


def test_a_running_run_is_followed_live(shelf, shared_viewer, open_page, build):
    path = build.write_run(shelf / "live.sqlite", [build.judged(1)], planned=[build.pair(1, 1), build.pair(2, 0)])
    page = open_page(shared_viewer + "run?run=live.sqlite&d.status=done")
    expect(page.locator(".count")).to_have_text("1 of 3 units")
    expect(page.locator("h1 .pill")).to_have_text("stopped")
    with RunFile.open(path, write=True) as file:
        file.write([build.judged(1, 1, text="Written while the page is open.")])
        expect(page.locator(".count")).to_have_text("2 of 3 units")
        expect(page.locator("h1 .pill")).to_have_text("running")
        expect(page.locator("tbody")).to_contain_text("flipped")
    for _ in range(50):  # the page may be reading right now; the last connection to close removes the log
        if not path.with_name("live.sqlite-wal").exists():
            break
        time.sleep(0.1)
    assert not path.with_name("live.sqlite-wal").exists(), "a run that is being viewed can still become a single file"


def test_the_units_that_match_on_a_page_are_exported_from_it_and_open_from_disk(
    flips, shared_viewer, open_page, tmp_path
):
    page = open_page(shared_viewer + "run?run=flips.sqlite&d.flip=flipped&judge=Three")
    expect(page.locator(".count")).to_have_text("2 of 4 units")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri() + "#/run?tab=units&judge=Three")
    expect(page.locator(".count")).to_have_text("2 units")
    expect(page.locator("tbody")).to_contain_text("flipped")
    page.keyboard.press("v")
    position = page.locator(".drawer").evaluate("(node) => getComputedStyle(node).position")
    assert position == "fixed", "its style is there"
    page.keyboard.press("Escape")
    page.get_by_label("Search the text of all messages").fill("marmalade")
    expect(page.locator(".count")).to_have_text("1 of 2 units")
    page.locator("a.unit").click()
    message = page.locator(".message", has_text="The marmalade decides it.")
    message.get_by_text("exact prompt").click()
    expect(message.locator(".piece")).to_contain_text("Who answered better?")
    page.reload()
    expect(page.locator(".message", has_text="The marmalade decides it.")).to_be_visible()


def test_pages_fit_a_phone_and_everybody_can_read_them(malibu, shared_viewer, open_page):
    page = open_page(shared_viewer)
    page.set_viewport_size({"width": 375, "height": 800})
    with RunFile.open(malibu) as file:
        unit = file.rows("SELECT id FROM units WHERE id LIKE 'p2%'")[1][0][0]
    run = "run?run=quick.sqlite"
    for path in ("", run, f"{run}&tab=config", f"unit?run=quick.sqlite&unit={unit}"):
        page.goto(shared_viewer + path)
        expect(page.locator("h1")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto(f"{shared_viewer}{run}&tab=units")
    expect(page.locator("tr[data-unit]").first).to_be_in_viewport()
    page.get_by_text("Filters").click()
    expect(page.locator("[data-filter='f.phase']")).to_contain_text("single answers")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(ACCESSIBILITY) == []
    # The widest interval, such as BBQ's changes of accuracy over few templates, made a page 7 pixels too wide.
    line = {"label": "self-debias-explanation − default", "estimate": -0.167, "low": -1.0, "high": 1.0, "n": 12}
    line |= {"p_adjusted": 1.0, "group": "context: ambiguous", "units": {}, "secondary": False, "simultaneous": None}
    plot = {"name": "accuracy", "question": "Does a method change the accuracy?", "axis": "accuracy", "lines": [line]}
    plot |= {"reference": 0.0, "scale": "share", "table": "accuracy", "note": "", "constant": ""}
    lines = [line | {"units": {"phase": [phase], "identity": ["male"]}} for phase in ("1", "2")]
    others = [plot | {"answer": "Undecided.", "lines": lines}, plot | {"answer": ""}]
    shown = {"headline": None, "also": [], "cautions": [], "sentences": [], "forests": [plot, *others]}
    page.set_viewport_size({"width": 390, "height": 800})
    page.route("**/api/headline?*", lambda route: route.fulfill(json=shown))
    page.goto(shared_viewer + run)
    expect(page.locator(".forest .interval").last).to_contain_text("−100.0% to +100.0%")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.locator(".forest:visible")).to_have_count(1)
    page.get_by_text("Exploratory plots").click()
    expect(page.locator(".forest:visible")).to_have_count(2)
    page.get_by_role("link", name="Undecided.").click()
    asked = parse_qs(urlparse(page.url).query)
    assert (asked["f.phase"], asked["f.identity"]) == (["1", "2"], ["male"]), "the units of all its lines"


def test_an_interval_that_excludes_0_does_not_end_at_a_rounded_one(malibu, shared_viewer, open_page):
    page = open_page(shared_viewer + "run?run=quick.sqlite")
    line = {"label": "a − b", "group": "", "estimate": 0.03, "p_adjusted": 0.03, "simultaneous": False}
    ends = [(0.004, 0.056), (-0.056, -0.004), (-0.004, 0.056), (0.0, 0.056)]
    plot = {
        "name": "n",
        "question": "?",
        "axis": "points",
        "reference": 0,
        "scale": "",
        "note": "",
        "low": -1,
        "high": 1,
    }
    plot["lines"] = [{**line, "low": low, "high": high} for low, high in ends]
    shown = page.evaluate(
        "async (plot) => { const { forestPlot } = await import('/static/forest.js'); "
        "return [...forestPlot(plot, () => null).querySelectorAll('td.interval')].map((cell) => cell.textContent); }",
        plot,
    )
    assert shown == ["above 0, up to 0.06", "below 0, down to −0.06", "0.00 to +0.06", "0.00 to +0.06"]
