"""Runs in a real browser: findings, units, notes and config, one in progress, an exported part; and their list."""

from __future__ import annotations

import json
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

from parley.cli import main
from parley.cli.found_units import list_behind
from parley.judging import Unit
from parley.judging.malibu.plan import MalibuConfig
from parley.reports import make_report
from parley.reports.labels import label_items
from parley.runs import RunFile
from tests.servers import PATIENCE

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[dev]'")
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
    expect(first.locator("[data-label='difference']")).to_have_text(re.compile(r"^[+−]\d\.\d\d against (fe)?male$"))
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


def test_units_are_read_at_random_in_the_terminal_and_in_the_browser_in_one_order(
    malibu, shelf, shared_viewer, open_page, capsys
):
    path = shutil.copy(malibu, shelf / "drawn.sqlite")
    before = sha256(path.read_bytes()).hexdigest()
    assert main(["show", str(path), "--random", "5"]) == 0
    assert "1 of 5 read (noted in drawn.notes.sqlite); the same command prints the next" in capsys.readouterr().out
    assert main(["show", str(path), "--random", "5", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["read"] for row in listed] == [True, False, False, False, False]
    page = open_page(f"{shared_viewer}run?run=drawn.sqlite&tab=units")
    page.get_by_label("sort by").select_option("random order")
    expect(page.locator(".count")).to_have_text("9 units · 1 of the first 9 read")
    rows = page.locator("tr[data-unit]").evaluate_all("rows => rows.map((row) => row.dataset.unit)")
    assert rows[:5] == [row["id"] for row in listed] != sorted(rows[:5])
    page.locator("tr[data-unit]").nth(1).get_by_role("link").first.click()
    page.get_by_role("button", name="Mark as read").click()
    expect(page.get_by_role("button", name="Mark as read")).to_have_count(0)
    page.keyboard.press("]")
    expect(page.get_by_text("3 of 9")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Mark as read")).to_have_count(0)
    page.keyboard.press("u")
    expect(page.locator(".count")).to_have_text("9 units · 3 of the first 9 read")
    for _ in range(2):
        assert main(["show", str(path), "--random", "5"]) == 0
    assert "5 of 5 read (noted in drawn.notes.sqlite)\n" in capsys.readouterr().out
    assert main(["show", str(path), "--random", "5"]) == 0
    assert capsys.readouterr().out.endswith("5 of 5 units read\n")
    assert sha256(path.read_bytes()).hexdigest() == before


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
    log, until = path.with_name("live.sqlite-wal"), time.monotonic() + PATIENCE
    while log.exists():  # the page may be reading right now; the last connection to close removes the log
        assert time.monotonic() < until, "a run that is being viewed can still become a single file"
        time.sleep(0.1)


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


KINDS = """links => Object.values(Object.fromEntries(links.map((link) => {
  const [path, query = ""] = link.getAttribute("href").split("?");
  const keys = [...new URLSearchParams(query).keys()].filter((key) => key !== "run").sort();
  const place = link.closest("nav, section, .drawer, header, tr")?.className ?? "";
  return [[path, keys, link.className, place].join(), link.getAttribute("href")];
})))"""
"""Of a page's links, one of each kind: where it leads, with which parameters, and where it stands."""


@pytest.mark.parametrize(
    ("options", "where", "least"),
    [
        ({"design": "staged", "debates": 2, "phases": [1, 2]}, [], 12),
        ({"design": "staged", "debates": 2, "phases": [1, 2]}, ["--where", "f.phase=2"], 8),
        ({"design": "silent", "phases": [1]}, ["--where", "f.identity=female"], 6),
    ],
)
def test_every_kind_of_link_on_every_exported_page_leads_somewhere(
    options, where, least, shelf, open_page, build, tmp_path
):
    run = shelf / f"linked-{options['design']}.sqlite"
    if not run.exists():
        settings = {"suite": "wide", "limit": 7, "identities": ["gender"], "yardstick": "brief", "yardstick_bases": 2}
        build.run_study("malibu", run, model="sim/judge?female=+0.6&varies=0.2", **settings, **options)
    exported = tmp_path / "page.html"
    assert main(["view", str(run), "--export", str(exported), *where]) == 0
    page = open_page(exported.as_uri())
    waiting, seen = ["#/run?tab=findings", "#/run?tab=units", "#/run?tab=config"], set()
    while waiting:
        start = waiting.pop(0)
        page.goto(f"{exported.as_uri()}{start}")
        expect(page.locator(".loading:visible")).to_have_count(0)
        for href in page.locator("a[href^='#/']:visible").evaluate_all(KINDS):
            path, _, query = href.partition("?")
            kind = (start.split("?")[0], path, *sorted(parse_qs(query)))
            if kind in seen:
                continue
            seen.add(kind)
            page.goto(f"{exported.as_uri()}{start}")
            expect(page.locator(".loading:visible")).to_have_count(0)
            page.locator(f"a[href='{href}']:visible").first.click()
            expect(page.locator(".loading:visible")).to_have_count(0)
            assert page.locator("#main").inner_text().strip(), href
            assert page.locator(".notice.bad, .error").count() == 0, (start, href)
            assert "No units match" not in page.locator("#main").inner_text(), (start, href)
            waiting.append(href)
    assert len(seen) >= least, seen


def test_an_exported_part_compares_answers_to_one_scenario_and_shows_them_side_by_side(
    shelf, open_page, build, tmp_path
):
    settings = {
        "suite": "full",
        "per_base": 1,
        "limit": 8,
        "identities": ["gender"],
        "design": "talk",
        "yardstick": "off",
    }
    run = build.run_study("malibu", shelf / "part.sqlite", model="sim/judge?noise=1", **settings)
    pages = {phase: tmp_path / f"{phase}.html" for phase in (1, 2)}
    for phase, page in pages.items():
        assert main(["view", str(run), "--export", str(page), "--where", f"f.phase={phase}"]) == 0
    pairs = open_page(pages[2].as_uri() + "#/run?tab=units")
    expect(pairs.locator("[data-label='A − B']").first).to_be_visible()
    assert pairs.locator("[data-label='difference']").count() == 0, "each pair is about another scenario"
    page = open_page(pages[1].as_uri() + "#/run?tab=units&sort=difference&desc=1")
    page.locator("[data-label='difference'] a").first.click()
    heads = page.locator(".pair-row.heads h2")
    expect(heads).to_have_count(2)
    female, male = sorted(heads.all_inner_texts())
    assert "male" in male
    assert female.replace("female", "male") == male, "one scenario"


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


# The list of runs: broken files, sorting, choosing, and going anywhere by Ctrl-K


def test_from_the_runs_page_to_one_reply_of_one_judge(shelf, flips, shared_viewer, open_page):
    (shelf / "cut.sqlite").write_bytes(b"SQLite format 3\x00 and then nothing")
    page = open_page(shared_viewer)
    broken = page.locator("[data-run='cut.sqlite']")
    expect(broken).to_contain_text("broken")
    expect(broken).to_contain_text(re.compile("is not a Parley run file|damaged"))
    page.get_by_role("link", name="flips.sqlite").click()
    page.get_by_role("link", name="Units").click()
    expect(page.locator(".count")).to_have_text("4 units")
    (shelf / "cut.sqlite").unlink()  # the list of runs, which asks for it again and again, is no longer shown

    page.get_by_label("judged by").select_option("Three")
    page.locator("[data-filter='d.flip'] label", has_text="flipped").click()
    expect(page.locator(".count")).to_have_text("2 of 4 units")
    expect(page.locator("tr[data-unit]")).to_have_count(2)

    search = page.get_by_label("Search the text of all messages")
    search.fill("marmalade")
    expect(page.locator(".count")).to_have_text("1 of 4 units")
    expect(page.locator(".excerpt")).to_have_text("Three The marmalade decides it. A")
    expect(page.locator(".excerpt mark")).to_have_text("marmalade")
    assert "judge=Three" in page.url
    assert "d.flip=flipped" in page.url

    page.reload()
    expect(page.locator(".count")).to_have_text("1 of 4 units")
    page.locator("a.unit").click()
    message = page.locator(".message.linked")
    expect(message).to_contain_text("The marmalade decides it.")
    expect(message.locator(".parsed")).to_contain_text("preferredA")
    message.get_by_text("exact prompt").click()
    expect(message.locator(".piece")).to_contain_text("Who answered better?")
    expect(page).to_have_url(re.compile("#m2$"))

    page.go_back()
    search.press("Escape")
    expect(page.locator(".count")).to_have_text("2 of 4 units")
    for _ in range(2):  # leaves the empty box, then clears the filters
        page.keyboard.press("Escape")
    expect(page.locator(".count")).to_have_text("4 units")
    assert "d.flip" not in page.url
    search.fill("justification")
    expect(page.locator("main")).to_contain_text("No units match.")


def test_runs_are_sorted_chosen_and_compared_by_keyboard(shelf, shared_viewer, open_page, build):
    for count, name in enumerate("abc", 1):
        units = [Unit(f"u{number}", {"scenario": f"s{number}"}) for number in range(count)]
        records = [build.pair_unit(unit, [build.JudgeReply("One", "A")]) for unit in units]
        build.write_run(shelf / f"sorted-{name}.sqlite", records)
    (shelf / "sorted-cut.sqlite").write_bytes(b"not a run")
    page = open_page(shared_viewer)
    page.get_by_label("Find a run").fill("sorted-")
    page.locator("h1").click()
    rows = page.locator("tr[data-run]")
    expect(page.locator("tr[data-run='sorted-cut.sqlite']")).to_contain_text("broken")

    def stand(letters):
        """In this order, once the last of the runs has been read."""
        for place, letter in enumerate(letters):
            name = "cut" if letter == "!" else letter
            expect(rows.nth(place)).to_have_attribute("data-run", f"sorted-{name}.sqlite")

    page.get_by_role("button", name="units").click()
    expect(page.get_by_role("columnheader", name="units")).to_have_attribute("aria-sort", "descending")
    stand("cba!")
    page.get_by_role("button", name="units").click()
    expect(page.get_by_role("columnheader", name="units")).to_have_attribute("aria-sort", "ascending")
    stand("abc!")
    expect(page.locator("main")).not_to_contain_text("computing…")
    for key in ("j", "x", "j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    expect(page.locator("h1")).to_have_text("Compare")
    query = parse_qs(urlparse(page.url).query)
    assert sorted([*query["with"], *query["run"]]) == [f"sorted-{name}.sqlite" for name in "abc"]
    for name in "bc":
        expect(page.get_by_role("region", name="Values by run").locator("thead")).to_contain_text(
            f"sorted-{name}.sqlite"
        )
    expect(page.get_by_role("region", name="Values by run")).to_contain_text("no interval")
    (shelf / "sorted-cut.sqlite").unlink()


def test_the_list_shows_cautions_before_findings(malibu, shared_viewer, open_page):
    page = open_page(shared_viewer)
    cell = page.locator("tr", has=page.get_by_role("link", name="quick.sqlite", exact=True)).locator("td.finding")
    expect(cell.locator("div").first).to_have_text("Caution: sim/judge?female=+0.5 is SIMULATED")
    assert cell.locator(".caution").first.get_attribute("title").endswith("not from a language model.")


def test_the_list_shows_another_finding_where_the_main_question_has_none(flips, shared_viewer, open_page):
    page = open_page(shared_viewer + "run?run=flips.sqlite&tab=config")
    main = {"question": "Do scores differ?", "answer": "Undecided.", "shown": 0, "prefix": "SIMULATED. "}
    others = [{"question": f"Question {n}?", "answer": f"Answer {n}.", "shown": 1} for n in (1, 2, 3)]
    found = {"headline": main, "also": others}
    read = {"name": "flips.sqlite", "study": "malibu", "models": [], "units": {"done": 4, "planned": 0, "failed": 0}}
    row = read | {"errors": [], "state": "finished", "cost": 0, "started": 1, "found": found}
    page.route("**/api/runs?*", lambda route: route.fulfill(json={"folder": "runs", "rows": [row]}))
    page.goto(shared_viewer)
    finding = page.locator("[data-run='flips.sqlite'] .finding")
    expect(finding).to_contain_text("SIMULATED. Undecided.")
    expect(finding).to_contain_text("SIMULATED. Answer 1.Question 1?and 2 other findings")


def test_a_run_that_is_missing_or_stopped_early_says_so(shelf, shared_viewer, chromium, build):
    build.write_run(shelf / "early.sqlite", [build.judged(1)], planned=[build.pair(n, 0) for n in range(2, 30)])
    page = chromium.new_page()  # the browser logs an error for the run that is missing
    page.goto(shared_viewer)
    early = page.locator("tr[data-run='early.sqlite']")
    expect(early).to_contain_text("1 of 29")
    expect(early.locator(".finding")).to_contain_text("No verdict yet: 28 of 29 units are to come.")
    early.get_by_role("link").click()
    expect(page.locator(".caution")).to_contain_text("not finished: 1 of 29 units are done")
    page.goto(shared_viewer + "run?run=gone.sqlite")
    expect(page.get_by_role("alert")).to_contain_text("there is no run 'gone.sqlite'")
    expect(page.locator("main")).not_to_contain_text("Computing")
    page.close()


def test_the_page_of_a_deleted_run_keeps_what_it_shows(shelf, shared_viewer, open_page, build):
    path = build.write_run(shelf / "deleted.sqlite", [build.judged(1)])
    page = open_page(shared_viewer + "run?run=deleted.sqlite&tab=units")
    expect(page.locator(".count")).to_have_text("1 unit")
    path.unlink()
    expect(page.get_by_role("alert")).to_contain_text("The file of this run is gone")
    expect(page.locator(".count")).to_have_text("1 unit")


def test_the_switcher_goes_to_pages_runs_and_units(shared_viewer, open_page):
    page = open_page(shared_viewer)
    expect(page.locator("tr[data-run='quick.sqlite']")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("quick")
    expect(page.locator("dialog").get_by_role("option")).to_have_text(["runquick.sqlite"])
    page.keyboard.press("Enter")
    expect(page.locator(".tabs [aria-current]")).to_have_text("Findings")
    page.keyboard.press("Control+k")
    page.keyboard.type("conf")
    page.keyboard.press("Enter")
    setting = page.locator(".config div", has=page.locator("dt", has_text="consensus"))
    described = MalibuConfig.model_fields["consensus"].description
    expect(setting.locator("dd")).to_have_text(f"mean{described}")
    page.locator(".prompt-text summary").first.click()
    page.keyboard.press("Control+k")
    page.keyboard.type("p2 female-male")
    expect(page.locator("dialog").get_by_role("option").first).to_contain_text("p2/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".message").first).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill("theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
