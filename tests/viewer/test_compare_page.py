"""Compare in a real browser: two runs unit by unit and side by side, two identities of one run."""

from __future__ import annotations

import shutil

import pytest

from parley.viewer.headline import comparison

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect


def test_two_runs_are_compared_side_by_side(shelf, shared_viewer, open_page, build):
    for name, choice, text in (("a", "A", "It is clear and brief."), ("b", "B", "It is clear and long.")):
        record = build.pair_unit(build.pair(1, 0), [build.JudgeReply("One", choice, text)])
        build.write_run(shelf / f"side-{name}.sqlite", [record])
    page = open_page(shared_viewer + "compare?run=side-a.sqlite")
    page.get_by_label("with run").select_option("side-b.sqlite")
    expect(page.locator("main")).to_contain_text("1 matched pair.")
    expect(page.locator("tbody tr", has_text="S1 · A black · B white")).to_contain_text("A → B")
    page.locator("tbody a").click()
    expect(page.locator("del").first).to_have_text("brief")
    expect(page.locator("ins").first).to_have_text("long")


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
        return {
            "group": "race",
            "label": label,
            "estimate": value,
            "low": low,
            "high": high,
            "p_adjusted": None,
            "units": units,
        }

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
    expect(page.locator("main")).to_contain_text("3 matched pairs.")
