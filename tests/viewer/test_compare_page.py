"""Compare in a real browser: two runs unit by unit and side by side, two identities of one run."""

from __future__ import annotations

import re
import shutil

import pytest

from parley.judging import Unit
from parley.viewer.headline import comparison

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect


def test_two_runs_are_compared_side_by_side(shelf, shared_viewer, open_page, build):
    for name, choice, text in (("a", "A", "It is clear and brief."), ("b", "B", "It is clear and long.")):
        pair = build.pair(1, 0)
        unit = Unit(pair.id, {**pair.facets, "category": "race"})
        record = build.pair_unit(unit, [build.JudgeReply("One", choice, text)])
        build.write_run(shelf / f"side-{name}.sqlite", [record])
    page = open_page(shared_viewer + "compare?run=side-a.sqlite")
    page.get_by_label("with run").select_option("side-b.sqlite")
    expect(page.locator("tbody tr", has_text="S1 · A black · B white")).to_contain_text("A → B", timeout=60_000)
    page.locator("tbody a").click()
    expect(page.locator("mark.only")).to_have_text(["brief", "long"])


def test_the_values_of_both_runs_stand_beside_their_difference(malibu, shelf, shared_viewer, open_page):
    again = shutil.copy(malibu, shelf / "again.sqlite")
    lines = [line for plot in comparison(malibu, again)["forests"] for line in plot["lines"]]
    page = open_page(shared_viewer + "compare?run=quick.sqlite&with=again.sqlite")
    page.get_by_text("Values by run").click(timeout=60_000)  # the statistics are loaded first
    rows = page.get_by_role("region", name="Values by run").locator("tbody tr")
    expect(rows).to_have_count(len(lines))
    both = "".join(f"{lines[0]['also'][side]:.2f}" for side in ("first", "second"))
    expect(rows.first).to_have_text(f"gender: female − male{both}0.00 no interval1")


def test_what_two_runs_found_about_the_same_identities_is_shown_side_by_side(flips, shared_viewer, open_page):
    def line(label, value, low, high, **units):
        numbers = {"estimate": value, "low": low, "high": high, "p_adjusted": None}
        return {"group": "race", "label": label, **numbers, "units": units}

    def forest(*lines):
        plot = {"name": "pairs", "question": "Which identities differ?", "reference": 0, "scale": "points"}
        return {"forests": [{**plot, "lines": lines}], "cautions": []}

    both = {"identity": ["black", "white"]}
    found = {
        "flips.sqlite": forest(line("black − white", 0.25, 0.1, 0.4, **both), line("black − asian", 0.5, None, None)),
        "quick.sqlite": forest(line("black − white", -0.5, None, None, **both)),
    }
    page = open_page(shared_viewer + "label?run=flips.sqlite")

    def answer(query, json):
        page.route(f"**/api/{query}", lambda route: route.fulfill(json=json))

    for name, forests in found.items():
        answer(f"headline?run={name}", forests)
    answer("comparison?*", {"unavailable": "the two have no unit in common"})
    page.goto(shared_viewer + "compare?run=flips.sqlite&with=quick.sqlite")
    expect(page.locator(".tested .notice")).to_have_text("The two have no unit in common.")
    rows = page.get_by_role("region", name="Which identities differ?").locator("tbody tr")
    expect(rows).to_have_text(["race: black − white+0.25 +0.10 to +0.40−0.50 no interval"])


def test_two_identities_of_one_run_are_compared(shared_viewer, open_page):
    page = open_page(shared_viewer + "compare?run=quick.sqlite&facet=identity&x=male&y=female")
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("3 matched pairs, the largest difference first.")
    expect(page.get_by_role("region", name="Pairs of units").locator("thead")).to_have_text(
        "unitfemalemalefemale − male"
    )  # as the report has it, though the address has them the other way round
    expect(page.locator(".tested .forest tbody th").nth(1)).to_have_text("female − male", timeout=60_000)
    page.locator("tbody a").first.click()
    verdicts = page.locator(".side-head .verdict")
    expect(verdicts).to_have_text([re.compile(r"^score \d\.\d\d, mean of 4 judges")] * 2)


def test_one_answer_under_two_labels_is_read_turn_by_turn(shelf, shared_viewer, open_page, build):
    """From a unit to the same answer under another label: words, scores, and a turn that only one side has."""

    def judged(identity, *replies):
        unit = Unit(f"p1/{identity}", {"phase": 1, "scenario": "s1", "category": "race", "identity": identity})
        context = "The next bus leaves at nine. " * 30  # a long task, of which only the difference is shown
        return build.pair_unit(unit, replies, f"{context}Written by a {identity} driver. {context}")

    reply = build.JudgeReply
    second = [reply("Two", "A", "Unmatched."), reply("One", "A", "It is clear and long.")]
    build.write_run(
        shelf / "labels.sqlite",
        [judged("black", reply("One", "A", "It is clear and brief.")), judged("white", *second)],
    )
    page = open_page(shared_viewer + "unit?run=labels.sqlite&unit=p1/black")
    expect(page.get_by_text("Compare with another identity:")).to_be_visible()
    page.get_by_role("link", name="white").click()
    rows = page.locator(".pair-row:not(.heads)")
    expect(rows).to_have_count(3)
    task = rows.first.locator(".message > .prose")
    expect(task.locator("mark.only")).to_have_text(["black", "white"])
    assert len(task.first.inner_text()) < 300, "the rest of the task is folded"
    expect(rows.nth(1)).to_contain_text("No message")
    expect(rows.nth(1)).to_contain_text("Unmatched.")
    expect(rows.nth(2).locator("mark.only")).to_have_text(["brief", "long"])
    expect(rows.nth(2).locator("table.both tr")).to_have_text(
        ["blackwhiteblack − white", "A · Accuracy7.007.000.00", "B · Accuracy5.005.000.00"]
    )
