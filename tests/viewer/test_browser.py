"""The paths a researcher takes, in a real browser, through the real server."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from hashlib import sha256

import pytest

import parley
from parley.cli import main
from parley.judging import Outcome, Verdict
from parley.runs import RunFile

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect


def test_from_the_runs_to_one_word_of_one_judge(tmp_path, viewer, open_page, hand):
    hand.flipping(tmp_path / "flips.sqlite")
    (tmp_path / "cut.sqlite").write_bytes(b"SQLite format 3\x00 and then nothing")
    page = open_page(viewer(tmp_path))
    broken = page.locator("[data-run='cut.sqlite']")
    expect(broken).to_contain_text("broken")
    expect(broken).to_contain_text(re.compile("is not a Parley run file|damaged"))
    page.get_by_role("link", name="flips.sqlite").click()
    expect(page.locator(".count")).to_have_text("4 units")

    page.get_by_label("Whose verdict").select_option("Three")
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
    found = page.locator(".message.reached")
    expect(found).to_contain_text("The marmalade decides it.")
    expect(found.locator(".parsed")).to_contain_text("preferredA")
    found.get_by_text("exact prompt").click()
    expect(found.locator(".piece")).to_contain_text("Who answered better?")
    expect(page).to_have_url(re.compile("#m2$"))


def test_the_figures_are_the_reports_own(runs, viewer, open_page):
    page = open_page(viewer(runs) + "run?run=quick.sqlite")
    expect(page.locator(".caution")).to_contain_text("SIMULATED")
    from parley import frames
    from parley.analysis import malibu

    with RunFile.open(runs / "quick.sqlite") as file:
        gap = malibu.differences(frames.verdicts(file)).iloc[0]
    row = page.locator(".intervals tr", has_text="female − male")
    low, high = (Decimal(end).quantize(Decimal("0.01"), ROUND_HALF_UP) for end in (gap.low, gap.high))
    expect(row).to_contain_text(f"({low:+} to {high:+})".replace("-", "−"))


def test_keys_lead_through_a_run(runs, viewer, open_page):
    page = open_page(viewer(runs) + "run?run=quick.sqlite")
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


def test_two_runs_side_by_side(tmp_path, viewer, open_page, hand):
    unit = hand.pair(1, 0)
    hand.write_run(tmp_path / "a.sqlite", [hand.pair_unit(unit, [hand.Said("One", "A", "It is clear and brief.")])])
    hand.write_run(tmp_path / "b.sqlite", [hand.pair_unit(unit, [hand.Said("One", "B", "It is clear and long.")])])
    page = open_page(viewer(tmp_path) + "compare?run=a.sqlite")
    page.get_by_label("this run with").select_option("b.sqlite")
    expect(page.locator("main")).to_contain_text("1 units are in both")
    expect(page.locator("tbody tr")).to_contain_text("A → B")
    page.locator("tbody a").click()
    expect(page.locator("del").first).to_have_text("brief")
    expect(page.locator("ins").first).to_have_text("long")


def test_two_identities_within_a_run(runs, viewer, open_page):
    page = open_page(viewer(runs) + "compare?run=quick.sqlite&facet=identity&x=male&y=female")
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("3 units are in both")


def test_notes_stand_beside_the_run_and_filter_it(runs, viewer, open_page):
    before = sha256((runs / "quick.sqlite").read_bytes()).hexdigest()
    address = viewer(runs)
    with RunFile.open(runs / "quick.sqlite") as file:
        unit = file.rows("SELECT id FROM units ORDER BY position")[1][0][0]
    page = open_page(f"{address}unit?run=quick.sqlite&unit={unit}")
    message = page.locator("#m1")
    message.get_by_role("button", name="note").click()
    message.get_by_label("tag").fill("odd")
    message.get_by_label("comment").fill("<b>Why</b> so low?")
    message.get_by_role("button", name="Keep").click()
    expect(page.locator("#m1 .notes")).to_contain_text("<b>Why</b> so low?")
    page.keyboard.press("u")
    page.locator("[data-filter='d.tag'] label", has_text="odd").click()
    expect(page.locator(".count")).to_have_text("1 of 9 units")
    with closing(sqlite3.connect(runs / "quick.notes.sqlite")) as db:
        assert db.execute("SELECT unit, seq, tag FROM notes").fetchall() == [(unit, 1, "odd")]
    assert sha256((runs / "quick.sqlite").read_bytes()).hexdigest() == before


def test_a_critique_loop_shows_its_scores_and_what_each_revision_changed(tmp_path, viewer, open_page, hand):
    hand.write_run(tmp_path / "loop.sqlite", [hand.loop()])
    page = open_page(viewer(tmp_path) + "unit?run=loop.sqlite&unit=loop/1")
    scores = page.get_by_role("img", name=re.compile("Evaluators' scores by iteration"))
    expect(scores).to_have_attribute("aria-label", re.compile("toxicity: iteration 0 60.0, iteration 1 5.0"))
    page.get_by_text("What changed from iteration 0 to 1").click()
    expect(page.locator(".sides del")).to_have_text("dreadful")
    expect(page.locator(".sides ins")).to_have_text("good")
    expect(page.locator(".evidence")).to_contain_text("http://example.invalid/source")
    assert page.locator(".evidence a").count() == 0


def test_a_run_of_stardtox_shows_toxicity_and_quality_on_scales_of_their_own(tmp_path, viewer, open_page, hand):
    scored = [
        Verdict(
            judge="words 1",
            role="evaluator",
            round=at,
            metric="toxicity",
            value=value,
            sampled=value,
            text="rude",
        )
        for at, value in ((0, 0.9), (1, 0.0))
    ] + [
        Verdict(
            judge="performance",
            role="evaluator",
            round=at,
            metric="fluency",
            value=80.0,
            sampled=80.0,
            text="fine",
        )
        for at in (0, 1)
    ]
    record = hand.loop()
    outcome = Outcome(record.outcome.transcript, tuple(scored))
    hand.write_run(tmp_path / "loop.sqlite", [replace(record, outcome=outcome)], study="stardtox")
    page = open_page(viewer(tmp_path) + "unit?run=loop.sqlite&unit=loop/1")
    toxicity = page.get_by_role("img", name=re.compile("toxicity by iteration"))
    expect(toxicity).to_have_attribute("aria-label", re.compile("words 1: iteration 0 0.9, iteration 1 0.0"))
    quality = page.get_by_role("img", name=re.compile("fluency by iteration"))
    expect(quality).to_have_attribute("aria-label", re.compile("performance: iteration 0 80.0, iteration 1 80.0"))
    expect(page.get_by_text("What changed from iteration 0 to 1")).to_be_visible()


def test_a_debiased_chain_of_thought_is_read_before_and_after(tmp_path, viewer, open_page):
    row = {
        "example_id": 1, "question_index": "1", "question_polarity": "neg", "context_condition": "ambig",
        "category": "Age", "context": "Two met.", "question": "Who forgot?", "label": 2,
        "ans0": "The old man", "ans1": "The boy", "ans2": "Not known",
        "answer_info": {"ans0": ["old man", "old"], "ans1": ["boy", "nonOld"], "ans2": ["Not known", "unknown"]},
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["old"], "version": "a"},
    }  # fmt: skip
    (tmp_path / "Age.jsonl").write_text(json.dumps(row))
    chosen = {"data": str(tmp_path), "method": ["mabrf"], "model": "sim/any?base=5&round=-2&noise=0"}
    out = str(tmp_path / "m.sqlite")
    run = threading.Thread(target=lambda: parley.run("bbq", out=out, **chosen))
    run.start()
    run.join()
    page = open_page(viewer(tmp_path) + "unit?run=m.sqlite&unit=Age/1/mabrf/r0")
    bias = page.get_by_role("img", name=re.compile("bias by iteration"))
    expect(bias).to_have_attribute("aria-label", re.compile("Judge: iteration 0 5.0, iteration 1 3.0, iteration 2 1.0"))
    expect(page.get_by_role("img", name=re.compile("relevancy by iteration"))).to_be_visible()
    expect(page.locator("main")).to_contain_text("accepted: bias 3, before 5")
    page.get_by_text("Before and after").click()
    expect(page.locator(".sides ins").first).to_contain_text("To put it neutrally")
    expect(page.locator(".sides del").first).to_contain_text("Answer")


def test_blind_raters_see_no_identity_and_their_agreement_is_measured(runs, viewer, open_page):
    address = viewer(runs)
    page = open_page(address + "label?run=quick.sqlite")
    page.get_by_label("how many items").fill("4")
    page.get_by_role("button", name="Draw").click()
    expect(page.get_by_role("heading", name="Set 1: 4 items")).to_be_visible()
    for rater in ("Ada", "Ben"):
        page.goto(f"{address}label?run=quick.sqlite&set=1&rater={rater}")
        for item in range(4):
            expect(page.locator("main")).to_contain_text(f"{item + 1} of 4 · {rater}")
            shown = page.locator("main").inner_text().lower()
            assert not re.search(r"\b(female|male|sim/judge|examiner)\b", shown)
            for group in page.get_by_role("radiogroup").all():
                group.locator("label").nth(min(item, group.locator("label").count() - 1)).click()
            page.get_by_role("button", name="Keep and go on").click()
        expect(page.locator("main")).to_contain_text("All 4 items are labelled")
    page.goto(address + "label?run=quick.sqlite")
    expect(page.locator("main")).to_contain_text("Agreement of 2 raters")
    expect(page.locator("main")).to_contain_text("Fleiss' κ")
    with closing(sqlite3.connect(runs / "quick.notes.sqlite")) as db:
        assert db.execute("SELECT count(DISTINCT unit), count(DISTINCT rater) FROM labels").fetchone() == (4, 2)


def test_a_hostile_transcript_is_only_text(tmp_path, viewer, open_page, hand):
    hand.hostile(tmp_path / "hostile.sqlite")
    page = open_page(viewer(tmp_path) + "run?run=hostile.sqlite")
    page.locator("a.unit").click()
    expect(page.locator(".message")).to_have_count(6)
    for text in hand.HOSTILE[:2]:
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


def test_a_run_is_followed_while_it_goes_on(tmp_path, viewer, open_page, hand):
    path = hand.write_run(
        tmp_path / "live.sqlite",
        [hand.pair_unit(hand.pair(1, 0), [hand.Said("One", "A")])],
        planned=[hand.pair(1, 1), hand.pair(2, 0)],
    )
    page = open_page(viewer(tmp_path) + "run?run=live.sqlite&d.status=done")
    expect(page.locator(".count")).to_have_text("1 of 3 units")
    expect(page.locator("h1 .pill")).to_have_text("stopped")
    with RunFile.open(path, write=True) as file:
        file.write([hand.pair_unit(hand.pair(1, 1), [hand.Said("One", "A", "Written while you watch.")])])
        expect(page.locator(".count")).to_have_text("2 of 3 units")
        expect(page.locator("h1 .pill")).to_have_text("running")
        expect(page.locator("tbody")).to_contain_text("flipped")
    for _ in range(50):  # the page may be reading at this very moment; whoever closes last tidies up
        if not path.with_name("live.sqlite-wal").exists():
            break
        time.sleep(0.1)
    assert not path.with_name("live.sqlite-wal").exists(), "a run that is looked at can still become one plain file"


def test_a_part_of_a_run_in_one_file_from_disk(tmp_path, open_page, capsys, hand):
    run, target = hand.flipping(tmp_path / "flips.sqlite"), tmp_path / "page.html"
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


def test_a_hostile_export_is_only_text(tmp_path, open_page, hand):
    run, target = hand.hostile(tmp_path / "hostile.sqlite"), tmp_path / "page.html"
    assert main(["view", str(run), "--export", str(target)]) == 0
    page = open_page(target.as_uri())
    page.locator("a.unit").click()
    expect(page.locator(".message")).to_have_count(6)
    assert page.evaluate("window.stolen") is None
    assert page.locator("main script, main img, base").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone_in_the_dark_and_in_the_light(runs, viewer, open_page, scheme):
    address = viewer(runs)
    page = open_page(address, color_scheme=scheme)
    page.set_viewport_size({"width": 375, "height": 800})
    with RunFile.open(runs / "quick.sqlite") as file:
        unit = file.rows("SELECT id FROM units WHERE id LIKE 'p2%'")[1][0][0]
    for path in ("", "run?run=quick.sqlite", f"unit?run=quick.sqlite&unit={unit}", "label?run=quick.sqlite"):
        page.goto(address + path)
        expect(page.locator("h1")).to_be_visible()
        page.wait_for_load_state("networkidle") if not path else None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    contrast = page.evaluate(CONTRAST)
    assert {name: ratio for name, ratio in contrast.items() if ratio < 4.5} == {}


CONTRAST = """() => {
  const rgb = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    return found;
  };
  const linear = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (name) => { const [r, g, b] = rgb(name).map(linear); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const pairs = [
    ["--ink", "--paper"], ["--soft", "--paper"], ["--soft", "--raised"], ["--soft", "--wash"], ["--accent", "--paper"],
    ["--accent", "--raised"], ["--bad", "--bad-wash"], ["--warn", "--warn-wash"], ["--ink", "--new"],
    ["--ink", "--gone"],
  ];
  return Object.fromEntries(pairs.map(([a, b]) => [`${a} on ${b}`, ratio(a, b)]));
}"""
