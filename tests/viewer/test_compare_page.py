"""Compare in a real browser: two runs unit by unit and side by side, two identities of one run."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from sqlite3 import connect

import pytest

from parley.reports import make_report

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect


def test_two_runs_are_compared_side_by_side(shelf, shared_viewer, open_page, build):
    for name, choice, text in (("a", "A", "It is clear and brief."), ("b", "B", "It is clear and long.")):
        record = build.pair_unit(build.pair(1, 0), [build.JudgeReply("One", choice, text)])
        build.write_run(shelf / f"side-{name}.sqlite", [record])
    page = open_page(shared_viewer + "compare?run=side-a.sqlite")
    page.get_by_label("with run").select_option("side-b.sqlite")
    expect(page.locator("main")).to_contain_text("1 matched pair.")
    expect(page.locator("tbody tr", has_text="S1 · A black, B white")).to_contain_text("A → B")
    page.locator("tbody a").click()
    expect(page.locator("del").first).to_have_text("brief")
    expect(page.locator("ins").first).to_have_text("long")


def test_runs_without_a_shared_unit_are_compared_by_what_they_found_about_identities(
    malibu, shelf, shared_viewer, open_page
):
    """Copies whose units have other ids: only the two reports can be put next to each other."""
    path = shutil.copy(malibu, shelf / "elsewhere.sqlite")
    with closing(connect(path)) as db:
        db.execute("DELETE FROM checks")
        for table, column in (("units", "id"), ("messages", "unit"), ("calls", "unit"), ("verdicts", "unit")):
            db.execute(f"UPDATE {table} SET {column} = 'x' || {column}")
        db.commit()
    page = open_page(shared_viewer + "compare?run=quick.sqlite&with=elsewhere.sqlite")
    expect(page.locator(".tested .notice", has_text="no unit in common")).to_be_visible()
    scores = page.get_by_role("region", name="Do scores depend on the identity?")
    row = scores.get_by_role("row", name=re.compile("female − male"))
    gap = next(row for row in make_report([malibu]).table("differences").itertuples() if row.metric == "all")
    expect(row.get_by_role("cell")).to_have_text([f"+{gap.difference:.2f} no interval"] * 2)


def test_two_identities_of_one_run_are_compared(shared_viewer, open_page):
    page = open_page(shared_viewer + "compare?run=quick.sqlite&facet=identity&x=male&y=female")
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("3 matched pairs.")
