"""What researchers do with the viewer, in a real browser with the real server."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from hashlib import sha256
from urllib.parse import parse_qs, urlparse

import pytest

import parley
from parley.cli import main
from parley.judging import Outcome, Unit, Verdict
from parley.reports import make_report
from parley.runs import RunFile
from parley.runs.notes import NotesFile

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect


def in_thread(work):
    """In a thread of its own: the browser's event loop runs in this one."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_from_the_runs_page_to_one_reply_of_one_judge(tmp_path, viewer, open_page, build):
    build.flipping(tmp_path / "flips.sqlite")
    (tmp_path / "cut.sqlite").write_bytes(b"SQLite format 3\x00 and then nothing")
    page = open_page(viewer(tmp_path))
    broken = page.locator("[data-run='cut.sqlite']")
    expect(broken).to_contain_text("broken")
    expect(broken).to_contain_text(re.compile("is not a Parley run file|damaged"))
    page.get_by_role("link", name="flips.sqlite").click()
    page.get_by_role("link", name="Units").click()
    expect(page.locator(".count")).to_have_text("4 units")

    page.get_by_label("judged by").select_option("Three")
    page.locator("[data-filter='d.flip'] label", has_text="flipped").click()
    expect(page.locator(".count")).to_have_text("2 of 4 units")
    expect(page.locator("tr[data-unit]")).to_have_count(2)

    page.get_by_label("Search the text of all messages").fill("marmalade")
    expect(page.locator(".count")).to_have_text("1 of 4 units")
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


def test_estimates_and_p_values_are_the_reports_and_open_their_units(malibu, shared_viewer, open_page):
    report = make_report([malibu])
    gap = next(row for row in report.table("differences").itertuples() if row.metric == "all")
    page = open_page(shared_viewer + "run?run=quick.sqlite")
    expect(page.locator(".caution").first).to_contain_text("SIMULATED")
    row = page.locator(".forest tr", has_text="female − male").first
    difference = Decimal(gap.difference).quantize(Decimal("0.01"), ROUND_HALF_UP)
    expect(row).to_contain_text(f"{difference:+}".replace("-", "−"))
    expect(row.locator(".p")).to_have_text(f"{float(f'{gap.p_adjusted:.2g}')}".removesuffix(".0"))
    assert gap.low == -math.inf, "three bases: the interval is unbounded"
    expect(row).to_contain_text("no interval")
    for line in report.words[:4]:
        expect(page.locator("main")).to_contain_text(line)
    page.get_by_text("All figures of the report").click()
    expect(page.locator(".picture")).to_have_count(len(report.figures))
    for picture in page.locator(".picture img").all():  # `wait_for_function` is refused by the page's CSP
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("image => image.naturalWidth") > 0
    row.get_by_role("link").first.click()
    assert set(parse_qs(urlparse(page.url).query)["f.identity"]) == {gap.first, gap.second}
    expect(page.locator("tr[data-unit]").first).to_be_visible()


def test_runs_are_sorted_chosen_and_compared_by_keyboard(tmp_path, viewer, open_page, build):
    for name, numbers in (("a", (1,)), ("b", (1, 2)), ("c", (1, 2, 3))):
        units = [Unit(f"u{number}", {"scenario": f"s{number}"}) for number in numbers]
        build.write_run(
            tmp_path / f"{name}.sqlite", [build.pair_unit(unit, [build.JudgeReply("One", "A")]) for unit in units]
        )
    (tmp_path / "cut.sqlite").write_bytes(b"not a run")
    page = open_page(viewer(tmp_path))
    rows = page.locator("tr[data-run]")
    expect(page.locator("tr[data-run='cut.sqlite']")).to_contain_text("broken")

    def order():
        return rows.evaluate_all("rows => rows.map((row) => row.dataset.run[0]).join('')")

    page.get_by_role("button", name="units").click()
    expect(page.get_by_role("columnheader", name="units")).to_have_attribute("aria-sort", "descending")
    assert order() == "cbac", "the broken file is last"
    page.get_by_role("button", name="units").click()
    expect(page.get_by_role("columnheader", name="units")).to_have_attribute("aria-sort", "ascending")
    assert order() == "abcc"
    expect(page.locator("main")).not_to_contain_text("computing…")
    for key in ("j", "x", "j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    expect(page.locator("h1")).to_have_text("Compare")
    assert sorted([*parse_qs(urlparse(page.url).query)["with"], parse_qs(urlparse(page.url).query)["run"][0]]) == [
        "a.sqlite",
        "b.sqlite",
        "c.sqlite",
    ]
    expect(page.locator(".numbers thead")).to_contain_text("b.sqlite")
    expect(page.locator(".numbers thead")).to_contain_text("c.sqlite")
    expect(page.locator(".forest").first).to_contain_text("no interval")


def test_the_switcher_goes_to_pages_runs_and_units(shared_viewer, open_page):
    page = open_page(shared_viewer)
    expect(page.locator("tr[data-run]")).to_have_count(1)
    page.keyboard.press("Control+k")
    page.keyboard.type("quick")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".tabs [aria-current]")).to_have_text("Findings")
    page.keyboard.press("Control+k")
    page.keyboard.type("conf")
    page.keyboard.press("Enter")
    expect(page.locator(".config").first).to_contain_text("malibu")
    page.get_by_text("malibu/single").first.click()
    page.keyboard.press("Control+k")
    page.keyboard.type("p2 female-male")
    expect(page.get_by_role("option").first).to_contain_text("p2/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".message").first).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_escape_clears_search_and_filters(tmp_path, viewer, open_page, build):
    build.flipping(tmp_path / "flips.sqlite")
    page = open_page(viewer(tmp_path) + "run?run=flips.sqlite&f.scenario=s1")
    expect(page.locator(".count")).to_have_text("2 of 4 units")
    search = page.get_by_label("Search the text of all messages")
    search.fill("marmalade")
    expect(page.locator(".count")).to_have_text("1 of 4 units")
    search.press("Escape")
    expect(page.locator(".count")).to_have_text("2 of 4 units")
    for _ in range(2):  # leaves the empty box, then clears the filters
        page.keyboard.press("Escape")
    expect(page.locator(".count")).to_have_text("4 units")
    assert "f.scenario" not in page.url


def test_a_run_that_is_missing_or_stopped_early_says_so(tmp_path, viewer, chromium, build):
    unit = build.pair_unit(build.pair(1, 0), [build.JudgeReply("One", "A")])
    build.write_run(tmp_path / "early.sqlite", [unit], planned=[build.pair(n, 0) for n in range(2, 30)])
    address = viewer(tmp_path)
    page = chromium.new_page()  # the browser logs an error for the run that is missing
    page.goto(address)
    early = page.locator("tr[data-run='early.sqlite']")
    expect(early).to_contain_text("1 of 29")
    expect(early.locator(".finding")).to_contain_text("Not known yet")
    page.goto(address + "run?run=gone.sqlite")
    expect(page.get_by_role("alert")).to_contain_text("there is no run 'gone.sqlite'")
    expect(page.locator("main")).not_to_contain_text("computed")
    page.close()


def test_keyboard_shortcuts(shared_viewer, open_page):
    page = open_page(shared_viewer + "run?run=quick.sqlite&tab=units")
    expect(page.locator("tr[data-unit]")).to_have_count(9)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr[data-unit]").nth(1).locator("a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".message")).to_have_count(10)
    first = page.locator("h1").text_content()
    page.keyboard.press("]")
    expect(page.locator("h1")).not_to_have_text(first)
    page.keyboard.press("j")
    expect(page.locator("#m0")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next message")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page.locator("tr[data-unit]")).to_have_count(9)
    page.keyboard.press("/")
    expect(page.get_by_label("Search the text of all messages")).to_be_focused()


def test_two_runs_are_compared_side_by_side(tmp_path, viewer, open_page, build):
    unit = build.pair(1, 0)
    build.write_run(
        tmp_path / "a.sqlite", [build.pair_unit(unit, [build.JudgeReply("One", "A", "It is clear and brief.")])]
    )
    build.write_run(
        tmp_path / "b.sqlite", [build.pair_unit(unit, [build.JudgeReply("One", "B", "It is clear and long.")])]
    )
    page = open_page(viewer(tmp_path) + "compare?run=a.sqlite")
    page.get_by_label("with run").select_option("b.sqlite")
    expect(page.locator("main")).to_contain_text("1 matched pair.")
    expect(page.locator("tbody tr", has_text="S1 · A black, B white")).to_contain_text("A → B")
    page.locator("tbody a").click()
    expect(page.locator("del").first).to_have_text("brief")
    expect(page.locator("ins").first).to_have_text("long")


def test_two_identities_of_one_run_are_compared(shared_viewer, open_page):
    page = open_page(shared_viewer + "compare?run=quick.sqlite&facet=identity&x=male&y=female")
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("3 matched pairs.")


def test_notes_are_stored_beside_the_run_and_tags_are_filters(runs, viewer, open_page):
    before = sha256((runs / "quick.sqlite").read_bytes()).hexdigest()
    address = viewer(runs)
    with RunFile.open(runs / "quick.sqlite") as file:
        unit = file.rows("SELECT id FROM units ORDER BY position")[1][0][0]
    page = open_page(f"{address}unit?run=quick.sqlite&unit={unit}")
    message = page.locator("#m1")
    message.get_by_role("button", name="note").click()
    message.get_by_label("tag").fill("odd")
    message.get_by_label("comment").fill("<b>Why</b> so low?")
    message.get_by_role("button", name="Save").click()
    expect(page.locator("#m1 .notes")).to_contain_text("<b>Why</b> so low?")
    page.keyboard.press("u")
    page.locator("[data-filter='d.tag'] label", has_text="odd").click()
    expect(page.locator(".count")).to_have_text("1 of 9 units")
    with closing(sqlite3.connect(runs / "quick.notes.sqlite")) as db:
        assert db.execute("SELECT unit, seq, tag FROM notes").fetchall() == [(unit, 1, "odd")]
    assert sha256((runs / "quick.sqlite").read_bytes()).hexdigest() == before


def test_search_finds_words_and_not_the_keys_of_replies(tmp_path, viewer, open_page, build):
    build.flipping(tmp_path / "flips.sqlite")
    page = open_page(viewer(tmp_path) + "run?run=flips.sqlite&q=marmalade")
    expect(page.locator(".excerpt")).to_have_text("Three The marmalade decides it. A…")
    page.get_by_label("Search the text of all messages").fill("justification")
    expect(page.locator("main")).to_contain_text("No units match.")


def test_a_unit_says_its_verdict_below_its_title_and_the_drawer_explains_its_keys(tmp_path, viewer, open_page, build):
    replies = [build.JudgeReply(name, "A") for name in ("One", "Two", "Three")]
    first = build.pair_unit(build.pair(1, 0), [*replies, build.JudgeReply("Four", "B")])
    second = build.pair_unit(build.pair(1, 1), replies)
    build.write_run(tmp_path / "flips.sqlite", [first, second], planned=[build.pair(0, 0)])
    page = open_page(viewer(tmp_path) + "unit?run=flips.sqlite&unit=p2/s1/o0")
    expect(page.locator(".verdict")).to_have_text("A (black), 3 of 4 judges · other order: flipped")
    page.keyboard.press("u")
    expect(page.locator("tr[data-unit]").last).to_contain_text("planned")
    page.keyboard.press("v")
    expect(page.locator(".drawer .verdict")).to_have_text("A (black), 3 of 4 judges · other order: flipped")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("next unit")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill("white s1 o1")
    expect(page.get_by_role("option", name="S1 · A white, B black")).to_be_visible()


def test_filters_and_the_finding_are_in_words_and_a_phone_shows_a_unit_first(shared_viewer, open_page):
    page = open_page(shared_viewer + "run?run=quick.sqlite")
    found = page.locator(".finding h2")
    expect(found).to_contain_text("SIMULATED")
    size = "(node) => parseFloat(getComputedStyle(node).fontSize)"
    assert found.evaluate(size) == max(page.locator("main *").evaluate_all(f"(all) => all.map({size})"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(shared_viewer + "run?run=quick.sqlite&tab=units")
    expect(page.locator("tr[data-unit]").first).to_be_in_viewport()
    page.get_by_text("Filters").click()
    expect(page.locator("[data-filter='f.phase']")).to_contain_text("single answers")


def test_notes_are_a_page_and_not_a_download(runs, viewer, open_page):
    address = viewer(runs)
    with RunFile.open(runs / "quick.sqlite") as file:
        unit = file.rows("SELECT id FROM units ORDER BY position")[1][0][0]
    NotesFile(runs / "quick.sqlite").add(unit, 1, "Ada", "odd", "<b>Why</b>?")
    page = open_page(f"{address}run?run=quick.sqlite&tab=notes")
    expect(page.locator(".notes li")).to_contain_text("<b>Why</b>?")
    page.locator(".notes a").click()
    expect(page.locator("#m1.linked")).to_be_visible()


def test_a_run_gets_a_name_a_group_and_tags_and_ctrl_k_finds_it(tmp_path, viewer, open_page, build):
    run = build.flipping(tmp_path / "a.sqlite")
    build.write_run(tmp_path / "b.sqlite", [build.pair_unit(build.pair(1, 0), [build.JudgeReply("One", "B")])])
    before = sha256(run.read_bytes()).hexdigest()
    page = open_page(viewer(tmp_path) + "run?run=a.sqlite&tab=notes")
    page.get_by_label("name", exact=True).fill("The <i>first</i> one")
    page.get_by_label("group", exact=True).fill("pilots")
    page.get_by_label("tags", exact=True).fill("kept, kept, blind")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_contain_text("The <i>first</i> one")
    assert NotesFile(run).about_run() == ("The <i>first</i> one", "pilots", ("kept", "blind"))
    assert NotesFile(run).notes() == []
    assert sha256(run.read_bytes()).hexdigest() == before
    page.goto(page.url.split("/run?")[0] + "/")
    page.get_by_label("group", exact=True).select_option("pilots")
    expect(page.locator("tr[data-run]")).to_have_count(1)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill("theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to").fill("blind")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("run=a.sqlite"))
    page.goto(page.url.split("/run?")[0] + "/compare?run=a.sqlite&with=b.sqlite")
    expect(page.locator(".baseline")).to_have_text("baseline: The <i>first</i> one")
    expect(page.get_by_role("region", name="What differs in the configs")).to_contain_text("units done41")
    page.get_by_role("button", name="make it the baseline").click()
    expect(page.locator(".baseline")).to_have_text("baseline: b.sqlite")


def test_a_critique_loop_shows_scores_and_changes_by_iteration(tmp_path, viewer, open_page, build):
    build.write_run(tmp_path / "loop.sqlite", [build.critique_loop()])
    page = open_page(viewer(tmp_path) + "unit?run=loop.sqlite&unit=loop/1")
    scores = page.get_by_role("img", name=re.compile("Evaluators' scores by iteration"))
    expect(scores).to_have_attribute("aria-label", re.compile("toxicity: iteration 0 60.0, iteration 1 5.0"))
    page.get_by_text("What changed from iteration 0 to 1").click()
    expect(page.locator(".sides del")).to_have_text("dreadful")
    expect(page.locator(".sides ins")).to_have_text("good")
    expect(page.locator(".evidence")).to_contain_text("http://example.invalid/source")
    assert page.locator(".evidence a").count() == 0


def evaluator_verdict(judge, iteration, metric, value, text):
    return Verdict(judge=judge, role="evaluator", round=iteration, metric=metric, value=value, sampled=value, text=text)


def test_a_thought_is_folded_and_a_cut_reply_is_marked(tmp_path, viewer, open_page, build):
    build.write_run(tmp_path / "loop.sqlite", [build.critique_loop()])
    page = open_page(f"{viewer(tmp_path)}unit?run=loop.sqlite&unit=loop/1")
    message = page.locator("#m5")
    expect(message.locator("header")).to_contain_text("cut")
    expect(message).not_to_contain_text("Shorter?")
    message.get_by_text("thought · 15 characters").click()
    expect(message).to_contain_text("<b>Shorter?</b>")


def test_a_stardtox_run_shows_toxicity_and_quality_on_separate_scales(tmp_path, viewer, open_page, build):
    scored = [
        evaluator_verdict("words 1", iteration, "toxicity", value, "rude") for iteration, value in ((0, 0.9), (1, 0.0))
    ] + [evaluator_verdict("performance", iteration, "fluency", 80.0, "fine") for iteration in (0, 1)]
    record = build.critique_loop()
    outcome = Outcome(record.outcome.transcript, tuple(scored))
    build.write_run(tmp_path / "loop.sqlite", [replace(record, outcome=outcome)], study="stardtox")
    page = open_page(viewer(tmp_path) + "unit?run=loop.sqlite&unit=loop/1")
    toxicity = page.get_by_role("img", name=re.compile("toxicity by iteration"))
    expect(toxicity).to_have_attribute("aria-label", re.compile("words 1: iteration 0 0.9, iteration 1 0.0"))
    quality = page.get_by_role("img", name=re.compile("fluency by iteration"))
    expect(quality).to_have_attribute("aria-label", re.compile("performance: iteration 0 80.0, iteration 1 80.0"))
    expect(page.get_by_text("What changed from iteration 0 to 1")).to_be_visible()


def test_a_debiased_chain_of_thought_is_shown_before_and_after(tmp_path, viewer, open_page):
    row = {
        "example_id": 1, "question_index": "1", "question_polarity": "neg", "context_condition": "ambig",
        "category": "Age", "context": "Two met.", "question": "Who forgot?", "label": 2,
        "ans0": "The old man", "ans1": "The boy", "ans2": "Not known",
        "answer_info": {"ans0": ["old man", "old"], "ans1": ["boy", "nonOld"], "ans2": ["Not known", "unknown"]},
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["old"], "version": "a"},
    }  # fmt: skip
    (tmp_path / "Age.jsonl").write_text(json.dumps(row))
    options = {"data": str(tmp_path), "method": ["mabrf"], "model": "sim/any?base=5&round=-2&noise=0"}
    out = str(tmp_path / "m.sqlite")
    in_thread(lambda: parley.run("bbq", out=out, **options))
    page = open_page(viewer(tmp_path) + "unit?run=m.sqlite&unit=Age/1/mabrf/r0")
    bias = page.get_by_role("img", name=re.compile("bias by iteration"))
    expect(bias).to_have_attribute("aria-label", re.compile("Judge: iteration 0 5.0, iteration 1 3.0, iteration 2 1.0"))
    expect(page.get_by_role("img", name=re.compile("relevancy by iteration"))).to_be_visible()
    expect(page.locator("main")).to_contain_text("accepted: bias 3, before 5")
    page.get_by_text("Before and after").click()
    expect(page.locator(".sides ins").first).to_contain_text("To put it neutrally")
    expect(page.locator(".sides del").first).to_contain_text("Answer")


def test_blind_labelling_hides_identities_and_measures_agreement(runs, viewer, open_page):
    address = viewer(runs)
    page = open_page(address + "label?run=quick.sqlite")
    page.get_by_label("number of items").fill("20")
    page.get_by_label("also score each answer").check()
    page.get_by_role("button", name="Draw").click()
    expect(page.get_by_role("heading", name="Draw 1: 6 items")).to_be_visible()
    expect(page.locator("main")).to_contain_text("20 were asked for, but the 9 units show only 6 different texts")
    for rater in ("Ada", "Ben"):
        page.goto(f"{address}label?run=quick.sqlite&set=1&rater={rater}")
        for item in range(6):
            expect(page.locator("h1")).to_have_text(f"{item + 1} of 6")
            shown = page.locator("main").inner_text().lower()
            assert not re.search(r"\b(female|male|sim/judge|examiner)\b", shown)
            assert rater == "Ada" or "ada" not in shown, "raters see nothing of each other"
            assert "answer" in shown
            assert "assign a score" not in shown, "the judges' instructions are not for raters"
            for group in page.get_by_role("radiogroup").all():
                group.locator("label").nth(min(item, group.locator("label").count() - 1)).click()
            page.get_by_role("button", name="Save and continue").click()
        expect(page.locator("main")).to_contain_text("You have labelled all 6 items")
    page.goto(address + "label?run=quick.sqlite")
    expect(page.locator("main")).to_contain_text("Raters with each other (2)")
    expect(page.locator("main")).to_contain_text("Krippendorff's α")
    with closing(sqlite3.connect(runs / "quick.notes.sqlite")) as db:
        assert db.execute("SELECT count(DISTINCT unit), count(DISTINCT rater) FROM labels").fetchone() == (6, 2)


def test_a_hostile_transcript_is_shown_as_text(tmp_path, viewer, open_page, build):
    build.hostile(tmp_path / "hostile.sqlite")
    page = open_page(viewer(tmp_path) + "run?run=hostile.sqlite&tab=units")
    page.locator("a.unit").click()
    expect(page.locator(".message")).to_have_count(6)
    for text in build.HOSTILE[:2]:
        expect(page.locator(".reply .prose", has_text=text).first).to_be_attached()
    assert page.evaluate("window.stolen") is None
    assert page.locator("main script, main img, main base, main b:has-text('0')").count() == 0
    long = page.locator(".message", has_text="more characters")
    assert len(long.inner_text()) < 30_000
    long.get_by_text("more characters").click()
    assert len(long.inner_text()) > 200_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("u")
    page.get_by_label("Search the text of all messages").fill("שלום")
    expect(page.locator(".count")).to_have_text("1 unit")
    expect(page.locator(".excerpt mark")).to_have_text("שלום")


def test_a_running_run_is_followed_live(tmp_path, viewer, open_page, build):
    path = build.write_run(
        tmp_path / "live.sqlite",
        [build.pair_unit(build.pair(1, 0), [build.JudgeReply("One", "A")])],
        planned=[build.pair(1, 1), build.pair(2, 0)],
    )
    page = open_page(viewer(tmp_path) + "run?run=live.sqlite&d.status=done")
    expect(page.locator(".count")).to_have_text("1 of 3 units")
    expect(page.locator("h1 .pill")).to_have_text("stopped")
    with RunFile.open(path, write=True) as file:
        file.write(
            [build.pair_unit(build.pair(1, 1), [build.JudgeReply("One", "A", "Written while the page is open.")])]
        )
        expect(page.locator(".count")).to_have_text("2 of 3 units")
        expect(page.locator("h1 .pill")).to_have_text("running")
        expect(page.locator("tbody")).to_contain_text("flipped")
    for _ in range(50):  # the page may be reading right now; the last connection to close removes the log
        if not path.with_name("live.sqlite-wal").exists():
            break
        time.sleep(0.1)
    assert not path.with_name("live.sqlite-wal").exists(), "a run that is being viewed can still become a single file"


def test_an_exported_page_opens_from_disk(tmp_path, open_page, capsys, build):
    run, target = build.flipping(tmp_path / "flips.sqlite"), tmp_path / "page.html"
    command = ["view", str(run), "--export", str(target), "--where", "f.scenario=s1"]
    assert main(command) == 0
    page = open_page(target.as_uri())
    expect(page.locator(".count")).to_have_text("2 units")
    page.get_by_label("Search the text of all messages").fill("marmalade")
    expect(page.locator(".count")).to_have_text("1 of 2 units")
    page.locator("a.unit").click()
    message = page.locator(".message", has_text="The marmalade decides it.")
    message.get_by_text("exact prompt").click()
    expect(message.locator(".piece")).to_contain_text("Who answered better?")
    page.reload()
    expect(page.locator(".message", has_text="The marmalade decides it.")).to_be_visible()


def test_pages_fit_a_phone_and_have_enough_contrast(malibu, shared_viewer, open_page):
    address = shared_viewer
    page = open_page(address)
    page.set_viewport_size({"width": 375, "height": 800})
    with RunFile.open(malibu) as file:
        unit = file.rows("SELECT id FROM units WHERE id LIKE 'p2%'")[1][0][0]
    for path in ("", "run?run=quick.sqlite", f"unit?run=quick.sqlite&unit={unit}", "label?run=quick.sqlite"):
        page.goto(address + path)
        expect(page.locator("h1")).to_be_visible()
        page.wait_for_load_state("networkidle") if not path else None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        contrast = page.evaluate(CONTRAST)
        assert {name: ratio for name, ratio in contrast.items() if ratio < 4.5} == {}


CONTRAST = """() => {
  const rgb = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const channels = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    return channels;
  };
  const linear = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (name) => { const [r, g, b] = rgb(name).map(linear); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const pairs = [
    ["--ink", "--paper"], ["--soft", "--paper"], ["--soft", "--raised"], ["--soft", "--wash"], ["--accent", "--paper"],
    ["--accent", "--raised"], ["--bad", "--bad-wash"], ["--warn", "--warn-wash"], ["--ink", "--added"],
    ["--ink", "--removed"],
  ];
  return Object.fromEntries(pairs.map(([a, b]) => [`${a} on ${b}`, ratio(a, b)]));
}"""
