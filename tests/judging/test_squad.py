"""The study `squad`: questions of fact, with and without search, and no failed call that counts as right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.judging.squad.study import SquadConfig
from parley.reports import make_report

GOLDS = {"Where does the Rhine rise?": ["Switzerland", "in Switzerland"], "Who emptied the Rhine?": []}


@pytest.fixture(autouse=True)
def _files(place):
    """Eight paragraphs, each with one question that can be answered and one that cannot."""
    paragraphs = []
    for n in range(8):
        questions = [
            {"id": f"q{n}{k}", "question": question, "answers": [{"text": gold, "answer_start": 0} for gold in golds]}
            for k, (question, golds) in enumerate(GOLDS.items())
        ]
        paragraphs.append({"context": f"Text {n}: the Rhine rises in Switzerland.", "qas": questions})
    Path("dev.json").write_text(json.dumps({"data": [{"title": "Rhine", "paragraphs": paragraphs}]}))
    Path("docs").mkdir()
    Path("docs/rhine.txt").write_text("The Rhine rises in Switzerland, in the canton of Graubünden.")


ARMS = ["none", "folder:docs"]
SUMMARY = "**Factual Information:**\n- It rises in Switzerland. [SOURCE: rhine]"


@pytest.fixture
def run(speaker, run_whole):
    """A run in which the model searches for `rhine`; `answer` gives its replies."""

    def run(answer: Any, **settings: Any) -> Any:
        def says(body: dict[str, Any]) -> str:
            prompt = str(body["messages"][1]["content"])
            if "queries for a search engine" in prompt:
                return '["rhine", "zq", "zr", "zs", "zt", "zu"]'
            return SUMMARY if "Search results:" in prompt else str(answer(prompt))

        speaker.says = says
        return run_whole("squad", **{"data": "dev.json", "model": speaker.model(), **settings})

    return run


def knows_from_search(prompt: str) -> str:
    """Right if the prompt has the search result; otherwise it guesses, and never says that there is no answer."""
    actual = "Switzerland" in prompt
    if "Who emptied" in prompt:
        return json.dumps({"answer": "Unanswerable." if actual else "Caesar"})
    return json.dumps({"answer": "the Switzerland" if actual else "Germany"})


def test_both_arms_answer_the_same_questions_and_the_report_compares_them(run):
    file = run(knows_from_search, search=ARMS, searched=2)
    assert file.rows("SELECT DISTINCT value FROM verdicts WHERE metric = 'search_queries'") == [(2.0,)]
    assert file.rows("SELECT count(*), count(DISTINCT facets ->> 'question_id') FROM units") == [(32, 16)]
    report = make_report([Path("a.sqlite")], draws=200)
    scores = report.table("scores")
    assert {(row.search, row.question): (row.estimate, row.n) for row in scores.itertuples()} == {
        ("none", "all"): (0, 16), ("none", "answerable"): (0, 8), ("none", "unanswerable"): (0, 8),
        ("folder:docs", "all"): (100, 16), ("folder:docs", "answerable"): (100, 8),
        ("folder:docs", "unanswerable"): (100, 8),
    }  # fmt: skip
    row = report.table("between_arms").set_index(["question", "measure"]).loc[("all", "exact")]
    assert (row["first"], row["second"], row["estimate"]) == ("folder:docs", "none", 100)
    assert row["p"] == pytest.approx(2 / 2**8), "eight paragraphs, all signs alike: two of 256 arrangements"
    assert row["p_mcnemar"] == pytest.approx(2 / 2**16)
    beside = make_report([Path("a.sqlite")], paper=True)
    table = next(table for table in beside.tables if table.name == "table_4-F1")
    assert table.view().iloc[:, 0].tolist() == ["speaker (ours)", "deepseek", "gpt-4"]
    cells = table.frame.set_index(["model", "measure", "method"])
    assert cells.loc[("speaker (ours)", "F1", "with search"), "ours"] == 100
    assert cells.loc[("deepseek", "F1", "with search"), "paper"] == 24.25
    assert sum("“Unanswerable” is ill-defined" in line for line in report.words) == 1


def test_as_published_shows_the_paragraph_and_uses_the_notebooks_settings(run, speaker):
    config = SquadConfig(data="dev.json", as_published=True)
    assert (config.paragraph, config.limit, config.searched, config.temperature) == (True, 100, 5, None)
    assert SquadConfig(**config.model_dump()) == config, "a stored config gives the same run"
    file = run(knows_from_search, search=ARMS, as_published=True, limit=3)
    assert all("Text " in str(body["messages"]) for body in speaker.asked)
    asked = {"search" in str(body["messages"]).lower(): body["temperature"] for body in speaker.asked}
    assert asked == {False: 0.0, True: 0.8}
    assert file.rows("SELECT DISTINCT value FROM verdicts WHERE metric = 'search_queries'") == [(5.0,)]
    ids = {name for (name,) in file.rows("SELECT DISTINCT facets ->> 'question_id' FROM units")}
    assert ids == {"q00", "q01", "q10"}, "the first ones of the file, as the notebooks take them"
    assert not any("ill-defined" in line for line in make_report([Path("a.sqlite")], draws=100).words)


@pytest.mark.parametrize("reply", ["", '{"answer": "  "}', '{"answer": "<the answer>"}', '{"text": "x"}'])
def test_an_unread_reply_is_never_an_empty_answer_that_counts_as_right(run, reply):
    assert run(lambda prompt: reply, limit=2).rows("SELECT DISTINCT value, text, status FROM verdicts") == [
        (None, None, "unparsed")
    ]
