"""What people rate, in words of the study: pairs, single texts, statements, drafts, questions with options."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from parley.agents import ConfigError
from parley.agents.fencing import fence_judged
from parley.judging import Labelled
from parley.reports.labels.draws import DrawSettings, draw_items, text_id
from parley.reports.labels.items import label_item, unfenced
from parley.runs import RunFile
from parley.runs.notes import NotesFile
from parley.viewer.labelling import agreement, given_answers
from tests.own_study import STUDY

LETTERS = """
from parley.agents import Turn
from parley.judging import Labelled, LabelMetric

ASK = "Rate this letter to {name} from 1 to 5:\\n{letter}"

class Letters(Study):
    name = "letters"
    labelled = (
        Labelled(
            ("letter",),
            (LabelMetric("warmth", ("How warm is a {tone} letter to {identity}?",), "icy", "warm", (1, 5)),),
            title="Letter",
        ),
    )

    def prompts(self):
        return {"ask": ASK}

    def plan(self):
        yield Unit("ada", {"identity": "Ada", "tone": "formal"})

    async def run(self, unit, models):
        asked = ASK.format(name="Ada", letter="Dear Ada, welcome.")
        turns = (Turn("user", "narrator", 0, asked), Turn("Host", "debater", 1, "I say 4."))
        return Outcome(Transcript(turns, "rated"), (Verdict.from_turn(turns[1], "warmth", value=4.0),))
"""


@pytest.fixture(scope="module")
def silent(tmp_path_factory, build):
    path = tmp_path_factory.mktemp("silent") / "s.sqlite"
    options = {"suite": "quick", "design": "silent", "identities": ["female", "male"], "yardstick": "off", "limit": 5}
    return build.run_study("malibu", path, model="sim/judge", phases=[1, 2], **options)


def only_unit(file, like="%"):
    return file.rows("SELECT id FROM units WHERE id LIKE ? ORDER BY position", (like,))[1][0][0]


def test_a_pair_is_two_answers_and_a_choice_not_the_judges_prompt(malibu):
    with RunFile.open(malibu) as file:
        item = label_item(file, only_unit(file, "p2%"))
    assert ([text.title for text in item.texts], len(item.task)) == (["Answer A", "Answer B"], 1)
    shown = json.dumps(item.page()).lower()
    assert "assign" not in shown
    assert "female" not in shown
    scores = [(side, metric.name, 7.0) for metric in item.metrics for side in (0, 1)]
    answers = given_answers(item, scores, "tie")
    assert answers[0] == ("", "preferred", 0.5, None, "tie")
    assert answers[2] == ("B", "Creativity", 7.0, 7.0, None)
    assert {answer.value for answer in given_answers(item, [], None)} == {None}, "a skip answers nothing"
    with pytest.raises(ConfigError, match="'C' is not an option of preferred: A, B, tie"):
        given_answers(item, scores, "C")
    with pytest.raises(ConfigError, match="8 of 9 answers are missing"):
        given_answers(item, [], "A")


def test_a_question_is_answered_by_the_rater_and_a_chain_is_scored(bbq):
    with RunFile.open(bbq) as file:
        question, chain = (label_item(file, only_unit(file, like)) for like in ("%default%", "%mabrf%"))
    assert question.task == (("Context", "Two met."), ("Question", "Who forgot?"))
    assert question.texts == ()
    assert given_answers(question, [], "2") == [("", "answer", 2.0, None, "Not known")]
    assert [metric.name for metric in chain.metrics] == ["bias", "relevancy"]
    assert chain.texts[0].text.startswith("1. To put it neutrally"), "the accepted draft"


def test_a_study_of_ones_own_asks_raters_its_own_question_about_its_own_text(tmp_path, build):
    (tmp_path / "letters.py").write_text(STUDY + LETTERS)
    path = build.run_study(f"{tmp_path / 'letters.py'}:Letters", tmp_path / "l.sqlite", model="sim/talk")
    (tmp_path / "letters.py").unlink()  # the run file is enough
    with RunFile.open(path) as file:
        item = label_item(file, "ada")
        page = item.page()
        assert page["texts"] == [{"title": "Letter", "text": "Dear ▇▇▇▇, welcome."}], "not the judge's reply"
        asked = {"name": "warmth", "questions": ("How warm is a formal letter to ▇▇▇▇?",), "low": "icy", "high": "warm"}
        assert page["metrics"] == [asked]
        notes = NotesFile(path)
        set_id = draw_items(file, notes, DrawSettings(count=1))
        notes.add_labels(set_id, "ada", "Ben", given_answers(item, [(0, "warmth", 10.0)], None))
        compared = agreement(file, notes, set_id)["with_judges"][0]
    assert compared["mean_difference"] == pytest.approx(2.5), "the judge's 4 of 1 to 5 is 7.5 of 10"
    with pytest.raises(ConfigError, match=r"Labelled shows answers, .*, or fields such as \('letter',\), not 'letter'"):
        Labelled("letter")


def test_a_fenced_answer_is_shown_without_its_fence():
    assert unfenced(fence_judged("One.\n> quoted", "RESPONSE")) == "One.\n> quoted"
    assert unfenced("<<< not a fence") == "<<< not a fence"


def test_a_silent_ballot_shows_people_the_answer_without_its_label_or_verdict(silent):
    with RunFile.open(silent) as file:
        units = [unit for (unit,) in file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position")[1]]
        items = {unit: label_item(file, unit) for unit in units}
    single = {text_id(item) for unit, item in items.items() if unit.startswith("s1/childcare")}
    assert len(single) == 1, "units that differ only in their label are one text"
    first = items[units[0]]
    assert [(metric.name, metric.scale) for metric in first.metrics] == [("Overall", (1, 9))]
    assert first.metrics[0].on_judges_scale(5) == 5
    assert all(len(text.text) > 200 for item in items.values() for text in item.texts)
    shown = json.dumps([item.page() for item in items.values()]).lower()
    assert not re.search(r"\b(female|male|woman|man)\b|only the number", shown)


def test_ten_items_are_labelled_by_single_keys(silent, shelf, shared_viewer, open_page):
    expect = pytest.importorskip("playwright.sync_api").expect
    path = Path(shutil.copy(silent, shelf / "keys.sqlite"))
    notes = NotesFile(path)
    with RunFile.open(path) as file:
        draw_items(file, notes, DrawSettings(count=10, seed=3))
    page = open_page(shared_viewer + "label?run=keys.sqlite&set=1")
    page.get_by_label("your name").fill("Ada")
    page.keyboard.press("Enter")
    for item in range(10):
        expect(page.locator("h1")).to_have_text(f"{item + 1} of 10")
        is_pair = page.locator(".label-pair").count() == 1
        if item == 0:
            page.keyboard.press("c")
            page.keyboard.type("says, b 7 x")  # no shortcut fires in a text field
            page.keyboard.press("Enter")
            expect(page.locator("h1")).to_have_text("1 of 10")
        if item == 4:
            page.keyboard.press("u")
            expect(page.locator("h1")).to_have_text("4 of 10")
            page.keyboard.press("s")
            expect(page.locator("main")).to_contain_text("1 skipped")
        if item == 6:
            page.get_by_label("single keys").uncheck()
            page.keyboard.press("b" if is_pair else "x")
            assert page.locator("input:checked:not([type=checkbox])").count() == 0
            page.get_by_label("single keys").check()
        page.keyboard.press("B" if is_pair else "x")
    expect(page.locator("main")).to_contain_text("You have finished all 10 items of draw 1 and skipped 1 of them")
    labels = notes.labels()
    assert len(labels) == 10, "one question and one key each"
    assert {(row["value"], row["text"]) for row in labels} == {(10.0, None), (0.0, "B"), (None, None)}
    assert [row["position"] for row in labels] == list(range(10))
    assert labels[0]["comment"] == "says, b 7 x"
    assert all(row["probability"] == pytest.approx(10 / 15) for row in labels)


def test_blind_labelling_hides_identities_and_measures_agreement(malibu, shelf, shared_viewer, open_page):
    expect = pytest.importorskip("playwright.sync_api").expect
    path = Path(shutil.copy(malibu, shelf / "blind.sqlite"))
    page = open_page(shared_viewer + "label?run=blind.sqlite")
    page.get_by_label("number of items").fill("20")
    page.get_by_label("also score each answer").check()
    page.get_by_role("button", name="Draw").click()
    expect(page.get_by_role("heading", name="Draw 1: 6 items")).to_be_visible()
    expect(page.locator("main")).to_contain_text("20 were asked for, but the 9 units show only 6 different texts")
    for rater, items in (("Ada", 6), ("Ben", 2)):
        page.goto(f"{shared_viewer}label?run=blind.sqlite&set=1&rater={rater}")
        for item in range(items):
            expect(page.locator("h1")).to_have_text(f"{item + 1} of 6")
            shown = page.locator("main").inner_text().lower()
            assert not re.search(r"\b(female|male|sim/judge|examiner)\b", shown)
            assert rater == "Ada" or "ada" not in shown, "raters see nothing of each other"
            assert "answer" in shown
            assert "assign a score" not in shown, "the judges' instructions are not for raters"
            for group in page.get_by_role("radiogroup").all():
                group.locator("label").nth(min(item, group.locator("label").count() - 1)).click()
            page.get_by_role("button", name="Save and continue").click()
        expect(page.locator("main")).to_contain_text("You have finished all 6 items" if items == 6 else "3 of 6")
    page.goto(shared_viewer + "label?run=blind.sqlite")
    expect(page.locator("main")).to_contain_text("Agreement between raters (2)")
    expect(page.locator("main")).to_contain_text("Krippendorff's α")
    labels = NotesFile(path).labels()
    assert len({row["unit"] for row in labels}) == 6
    assert len({(row["unit"], row["rater"]) for row in labels}) == 8
