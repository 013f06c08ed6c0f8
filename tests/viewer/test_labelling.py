"""What people rate, in words of the study: pairs, single texts, statements, drafts, questions with options."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

import parley
from parley.agents import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.reports.export.settings import Settings
from parley.reports.export.sources import Opened, labelled
from parley.reports.label_draw import DrawSettings, draw_items
from parley.reports.label_texts import label_item, unfenced
from parley.runs import RunFile
from parley.runs.notes import Answer, Item, NotesFile
from parley.viewer.labelling import agreement, label_rows

BBQ_ROW = {
    "example_id": 1, "question_index": "1", "question_polarity": "neg", "context_condition": "ambig",
    "category": "Age", "context": "Two met.", "question": "Who forgot?", "label": 2,
    "ans0": "The old man", "ans1": "The boy", "ans2": "Not known",
    "answer_info": {"ans0": ["old man", "old"], "ans1": ["boy", "nonOld"], "ans2": ["Not known", "unknown"]},
    "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["old"], "version": "a"},
}  # fmt: skip


def run_study(name, path, **options):
    thread = threading.Thread(target=lambda: parley.run(name, out=str(path), **options))
    thread.start()
    thread.join()
    return RunFile.open(path)


@pytest.fixture(scope="module")
def bbq(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bbq")
    (folder / "Age.jsonl").write_text(json.dumps(BBQ_ROW))
    model = "sim/any?base=5&round=-2&noise=0"
    with run_study("bbq", folder / "b.sqlite", data=str(folder), method=["default", "mabrf"], model=model) as file:
        yield file


@pytest.fixture(scope="module")
def debate(tmp_path_factory):
    options = {"topics": 1, "rounds": 2, "model": "sim/any?base=4&round=-1"}
    with run_study("rldf", tmp_path_factory.mktemp("rldf") / "d.sqlite", **options) as file:
        yield file


def only_unit(file, like="%"):
    return file.rows("SELECT id FROM units WHERE id LIKE ? ORDER BY position", (like,))[1][0][0]


def test_a_pair_is_two_answers_and_a_choice_not_the_judges_prompt(malibu):
    with RunFile.open(malibu) as file:
        item = label_item(file, only_unit(file, "p2%"))
    assert [text.title for text in item.texts] == ["Answer A", "Answer B"]
    assert [title for title, _ in item.task] == ["Situation"]
    assert [value for value, _ in item.options] == ["A", "B", "tie"]
    assert [metric.name for metric in item.metrics] == ["Creativity", "Accuracy", "Efficiency", "Reliability"]
    shown = json.dumps(item.page()).lower()
    assert "assign" not in shown
    assert "female" not in shown
    assert label_rows(item, [(1, "Accuracy", 7.0)], "tie") == [
        ("B", "Accuracy", 7.0, 7.0, None),
        ("", "preferred", 0.5, None, "tie"),
    ]
    with pytest.raises(ConfigError, match="no option 'C'"):
        label_rows(item, [], "C")


def test_a_question_is_answered_by_the_rater_and_a_chain_is_scored(bbq):
    question = label_item(bbq, only_unit(bbq, "%default%"))
    assert question.task == (("Context", "Two met."), ("Question", "Who forgot?"))
    assert question.texts == ()
    assert label_rows(question, [], "2") == [("", "answer", 2.0, None, "Not known")]
    chain = label_item(bbq, only_unit(bbq, "%mabrf%"))
    assert [metric.name for metric in chain.metrics] == ["bias", "relevancy"]
    assert chain.texts[0].text.startswith("1. To put it neutrally"), "the accepted draft"


def test_the_statements_of_a_debate_are_scored_without_names_or_roles(debate):
    item = label_item(debate, only_unit(debate))
    assert [text.subject for text in item.texts] == ["Sixty", "Twenty", "Forty"]
    assert "Sixty" not in json.dumps(item.page())
    assert label_rows(item, [(2, "bias", 4.0)], None) == [("Forty", "bias", 4.0, 4.0, None)]


def test_raters_are_compared_with_the_judges_metric_by_metric(debate):
    unit = only_unit(debate)
    item = label_item(debate, unit)
    notes = NotesFile(debate.path)
    set_id = draw_items(debate, notes, [unit], DrawSettings(count=1))
    scores = dict(
        debate.rows(
            "SELECT subject, value FROM verdicts WHERE unit = ? AND metric = 'bias' AND round = ?", (unit, item.round)
        )[1]
    )
    rows = label_rows(item, [(n, "bias", scores[text.subject] + 1) for n, text in enumerate(item.texts)], None)
    notes.add_labels(set_id, unit, "Ada", rows)
    compared = agreement(debate, notes, set_id)["with_judges"][0]
    assert compared["scores"] == 3
    assert compared["mean_difference"] == pytest.approx(1.0)


def test_a_dataset_from_labels_has_the_labelled_text_not_the_judges_reply(malibu, tmp_path):
    path = Path(shutil.copy(malibu, tmp_path / "m.sqlite"))
    with RunFile.open(path) as file:
        single, pair = only_unit(file, "p1%"), only_unit(file, "p2%")
        notes = NotesFile(path)
        notes.add_labels(1, single, "Ada", [Answer("", "Accuracy", 7.0, 7.0, None)])
        notes.add_labels(1, pair, "Ada", [Answer("B", "Accuracy", 4.0, 4.0, None)])
        run = Opened(file, "m", "m", "malibu", HiddenAddresses(file.info()))
        exported = list(labelled(run, Settings(labels=True, metric="Accuracy")))
        answers = {text.text for unit in (single, pair) for text in label_item(file, unit, blind=False).texts}
    assert [(statement.speaker, statement.score) for statement in exported] == [("", 7.0), ("B", 4.0)]
    assert all(statement.text in answers for statement in exported)


def test_a_fenced_answer_is_shown_without_its_fence():
    assert unfenced("<<<ab12 RESPONSE\n> One.\n>\n> > quoted\nab12>>>") == "One.\n\n> quoted"
    assert unfenced("<<< not a fence") == "<<< not a fence"


def test_a_pair_is_labelled_with_the_keyboard(runs, viewer, open_page):
    sync_api = pytest.importorskip("playwright.sync_api")
    expect = sync_api.expect
    with RunFile.open(runs / "quick.sqlite") as file:
        unit = only_unit(file, "p2%")
        NotesFile(runs / "quick.sqlite").add_draw("random", 1, [Item(unit, "1", 1.0, 0)], {})
    page = open_page(viewer(runs) + "label?run=quick.sqlite&set=1&rater=Ada")
    expect(page.locator(".sides article")).to_have_count(2)
    assert page.locator(".sides mark.only").count() > 4
    page.keyboard.press("b")
    page.get_by_role("button", name="Save and continue").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("8 are missing")
    for group in page.get_by_role("radiogroup").all()[1:]:
        group.locator("input").first.focus()
        page.keyboard.press("Space")
        page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Save and continue").press("Enter")
    expect(page.locator("main")).to_contain_text("You have labelled all 1 item of set 1")
    with closing(sqlite3.connect(runs / "quick.notes.sqlite")) as db:
        stored = db.execute("SELECT subject, question, value, text FROM labels ORDER BY subject, question").fetchall()
    assert stored[0] == ("", "preferred", 0.0, "B")
    assert stored[1] == ("A", "Accuracy", 1.0, None)
    assert len(stored) == 9
