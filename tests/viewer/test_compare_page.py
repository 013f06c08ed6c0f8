"""Compare and the grid in a real browser: two runs, two identities, and situations by identities."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parley.agents import Transcript, Turn
from parley.judging import Outcome, Unit, Verdict
from parley.runs import Record

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[dev]'")
expect = playwright.expect


def test_two_runs_are_compared_side_by_side(shelf, shared_viewer, open_page, build):
    both = (("a", "A", "It is clear and brief.", ()), ("b", "B", "It is clear and long.", (build.judged(2),)))
    for name, choice, text, more in both:
        pair = build.pair(1, 0)
        unit = Unit(pair.id, {**pair.facets, "category": "race"})
        record = build.pair_unit(unit, [build.JudgeReply("One", choice, text)])
        build.write_run(shelf / f"side-{name}.sqlite", [record, *more])
    page = open_page(shared_viewer + "compare?run=side-a.sqlite")
    page.get_by_label("with run").select_option("side-b.sqlite")
    rows = page.locator("tbody tr", has_text="S1 · A black · B white")
    expect(rows).to_contain_text("A → B")
    expect(page.locator(".baseline")).to_have_text("baseline: side-a.sqlite")
    expect(page.get_by_role("region", name="What differs in the configs")).to_contain_text("units done12")
    values = page.get_by_role("region", name="Values by run")
    expect(values.locator("thead")).to_have_text("side-a.sqliteside-b.sqlitedifference95% CIcorrected p")
    shares = values.locator("tr", has_text="prefers the first one").locator("td")
    expect(shares).to_have_text(["100%", "0%", "−100.0%", "no interval", "1"])
    pinned = values.locator("thead th").evaluate_all("(all) => all.map((one) => getComputedStyle(one).position)")
    assert pinned == ["sticky", "sticky", "static", "static", "static", "static"]
    page.get_by_role("button", name="make this the baseline").click()
    expect(page.locator(".baseline")).to_have_text("baseline: side-b.sqlite")
    expect(rows).to_contain_text("B → A")
    page.locator("tbody a").click()
    expect(page.locator("mark.only")).to_have_text(["long", "brief"])


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
    page = open_page(shared_viewer + "run?run=flips.sqlite&tab=config")

    def answer(query, json):
        page.route(f"**/api/{query}", lambda route: route.fulfill(json=json))

    for name, forests in found.items():
        answer(f"headline?run={name}", forests)
    answer("comparison?*", {"unavailable": "the two have no unit in common"})
    page.goto(shared_viewer + "compare?run=flips.sqlite&with=quick.sqlite")
    expect(page.locator(".tested .notice")).to_have_text("The two have no unit in common.")
    rows = page.get_by_role("region", name="Which identities differ?").locator("tbody tr")
    expect(rows).to_have_text(["race: black − white+0.25 +0.10 to +0.40−0.50 no interval"])


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


SCORES = {
    ("even", "black"): 5.0, ("even", "white"): 5.25, ("wide", "black"): 2.0, ("wide", "white"): 7.5,
    ("wide", "<b>x</b>"): 4.0, ("even", "female"): 1.0, ("even", "male"): 1.125,
    ("flat", "black"): 3.0, ("flat", "white"): 3.0,
}  # fmt: skip


def ballot(scenario: str, identity: str, score: float, phase: int = 1) -> Record:
    """A silent ballot of which everything is known but what a model would have said."""
    expected = {"Overall=1": 0.25, "Overall=9": 0.75, "Overall": score}
    turns = (Turn("user", "narrator", 0, "Mark it."), Turn("Judge", "debater", 0, "9", expected=expected))
    verdict = Verdict(judge="Judge", role="debater", round=0, metric="Overall", value=score, sampled=9.0)
    category = "gender" if identity in ("female", "male") else "race"
    facets = {"phase": phase, "scenario": scenario, "category": category, "wording": f"of {category}"}
    unit = Unit(f"s{phase}/{scenario}/{identity}", {**facets, "identity": identity})
    return Record(unit=unit, started_at=1.0, finished_at=2.0, outcome=Outcome(Transcript(turns, "done"), (verdict,)))


@pytest.fixture(scope="module")
def silent(shelf, build):
    records = [ballot(*key, score) for key, score in SCORES.items()]
    return build.write_run(shelf / "grid.sqlite", [*records, ballot("even", "black", 9.0, phase=3)])


GRID = "async (run) => (await (await import('/static/units.js')).unitsOf(run)).grid(new URLSearchParams())"


def test_situations_come_by_their_spread_and_the_grid_is_read_by_keys(silent, shared_viewer, open_page):
    page = open_page(shared_viewer + "run?run=grid.sqlite&tab=grid")
    found = page.evaluate(GRID, silent.name)
    assert (found["rowFacet"], found["columnFacet"], found["part"]) == ("scenario", "identity", {"phase": "1"})
    assert found["columns"] == ["black", "white", "<b>x</b>", "female", "male"]
    assert found["groups"] == ["race", "race", "race", "gender", "gender"]
    assert [(row["name"], row["spread"]) for row in found["rows"]] == [("wide", 5.5), ("even", 0.25), ("flat", 0.0)]
    scores = [[cell and cell["score"] for cell in row["cells"]] for row in found["rows"][:2]]
    assert scores == [[2.0, 7.5, 4.0, None, None], [5.0, 5.25, None, 1.0, 1.125]], "without the ballot of phase 3"
    even = found["rows"][1]
    deviations = [cell and cell["deviation"] for cell in even["cells"]]
    assert deviations == [-0.125, 0.125, None, -0.0625, 0.0625], "the wording of gender is 4 points below that of race"
    assert (even["highest"], even["lowest"]) == (1, 0)

    expect(page.locator(".grid-about")).to_contain_text("Wide · black: 2.00")
    page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".grid-about")).to_contain_text("Even · white: 5.25")
    expect(page.get_by_role("list", name="Probability of each score")).to_contain_text("75%9")
    expect(page.locator(".heat button[tabindex='0']")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".drawer .verdict")).to_contain_text("expected score 5.25 on a scale of 1 to 9")
    page.keyboard.press("Escape")
    expect(page.locator(".heat button:focus")).to_contain_text("5.25 ▲")
    assert page.locator(".heat b:has-text('x')").count() == 0, "what a file says is text"


def test_a_unit_stands_beside_the_one_that_differs_only_in_its_label_and_most_in_its_score(
    silent, shared_viewer, open_page
):
    page = open_page(shared_viewer + "run?run=grid.sqlite&tab=units")
    page.get_by_label("sort by").select_option("difference")
    shown = page.locator("[data-label='difference']")
    differences = [
        "−5.50 against white",
        "+5.50 against black",
        "−3.50 against white",
        "−0.25 against white",
        "+0.25 against black",
        "−0.13 against male",
        "+0.13 against female",
    ]
    expect(shown).to_have_text([*differences, "0.00 against white", "0.00 against black", "–"])  # phase 3 has one unit
    page.get_by_label("different only").check()
    expect(shown).to_have_text(differences)
    expect(page.locator("[data-label='wording']")).to_have_count(0)
    page.get_by_label("all columns").check()
    expect(page.locator("[data-label='wording']").first).to_have_text("of race")
    page.get_by_role("link", name="−5.50 against white").click()
    expect(page.locator(".pair-row.heads")).to_contain_text("Wide · white")


PAIR = "Situation:\n{situation}\n\n{answer_a}\n\n{answer_b}\n\n{question}"
SHOWN = "Situation:\nIt rains.\n\nAnswer A:\nStay.\n\n(By a man)\n\nAnswer B:\nGo.\n\n(By a woman)\n\nWhich:\nA or B?"


def test_a_silent_pair_has_both_answers_and_its_log_odds_and_a_score_what_it_means(
    silent, shelf, build, shared_viewer, open_page
):
    record = ballot("rain", "man", 0.5, phase=2)
    expected = {"preferred=A": 0.62, "preferred=B": 0.38, "preferred on scale": 1.0, "preferred log-odds": 0.5}
    turns = (Turn("user", "narrator", 0, SHOWN), Turn("Judge", "debater", 0, "A", expected=expected))
    common = {"judge": "Judge", "role": "debater", "round": 0}
    found = (
        Verdict(**common, metric="preferred", value=0.62, text="A"),
        Verdict(**common, metric="log-odds", value=0.5),
    )
    outcome = Outcome(Transcript(turns, "0 rounds completed"), found)
    path = build.write_run(
        shelf / "silent-pair.sqlite", [replace(record, outcome=outcome)], prompts={"prompt/pair": PAIR}
    )
    page = open_page(shared_viewer + f"unit?run={path.name}&unit={record.unit.id}")
    parts = page.locator(".material .part")
    expect(parts).to_have_count(4)
    for nth, words in enumerate(("It rains.", "Stay.\n\n(By a man)", "Go.\n\n(By a woman)", "Which:\nA or B?")):
        expect(parts.nth(nth)).to_contain_text(words)
    expect(page.get_by_text("Probability of each choice, log-odds 0.50.")).to_be_visible()
    expect(page.get_by_text("0 rounds completed")).to_have_count(0)
    expect(page.get_by_role("group", name="parsed reply")).to_contain_text("62%A38%B")

    page.goto(shared_viewer + "unit?run=grid.sqlite&unit=s1/even/black")
    ballot_text = "Expected Overall 5.00, the mean of these options by their probabilities."
    expect(page.get_by_role("group", name="parsed reply")).to_contain_text(ballot_text)
    expect(page.locator(".matrix")).to_have_count(0)
