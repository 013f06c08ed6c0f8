"""The list of runs in a real browser: broken files, sorting, choosing, and going anywhere by Ctrl-K."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

import pytest

from parley.judging import Unit
from parley.judging.malibu.plan import MalibuConfig

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect


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
    setting = page.locator(".config div", has=page.locator("dt", has_text="speaking_order"))
    described = MalibuConfig.model_fields["speaking_order"].description
    expect(setting.locator("dd")).to_have_text(f"fixed{described}")
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
