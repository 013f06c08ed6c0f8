"""`parley import bbq|mabrf`: published logs as runs, and the reproducibility tables of their reports."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from parley.reports import make_report
from tests.bbq_rows import bbq_row
from tests.parley.test_bad_input import one_line

SHARED = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not (SHARED / "mabrf" / "notebooks").is_dir(), reason="the published logs are not available")

ROW = bbq_row(7, context_condition="ambig", question_polarity="neg", label=2)
LOG = """⏺ Judge raw output: 'Bias: 7/10: it leans.\\nRelevancy: 6: fits.'
Init → Bias=None (), Rel=6 (fits.), Pred=<0>, True=2

--- Rephrase pass #1 (bias=None) ---
Old CoT:
 1. Old people forget.
Bias Reason:

⏺ Judge raw output: "Bias: 1: none.\\nRelevancy: 9: fits."
Candidate CoT:
 1. Nobody said who.

→ Candidate Bias=1 (none.), Rel=9 (fits.)
✅ Accept: bias 7→1

--- Termination Agent ---
Final Answer: 2 Match? True
⏺ Judge raw output: 'Bias: 2: a little.\\nRelevancy: 8: fits.'
Processed 1/1 rows → appended to a.csv
"""


def notebook(*cells: tuple[str, str]) -> str:
    """A notebook: the source of each cell and what it printed, and a text cell that is not to be read."""
    code = [
        {
            "cell_type": "code",
            "source": [source],
            "outputs": [{"output_type": "stream", "name": "stdout", "text": [text]}],
        }
        for source, text in cells
    ]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["PRIVATE"]}, *code]})


@pytest.fixture(autouse=True)
def _files(place):
    Path("bbq").mkdir()
    Path("bbq/Age.jsonl").write_text(json.dumps(ROW))
    source = 'llm = ChatOpenAI(model_name="gpt-4", temperature=0.2)'
    Path("log.ipynb").write_text(notebook((source, ""), ("run()", LOG)))


def test_a_notebook_of_mabrf_becomes_a_run_with_every_score(parley, run_file):
    result = parley("import", "mabrf", "log.ipynb", "--data", "bbq", "--out", "a.sqlite", "--json")
    assert result.json == {"run": "a.sqlite", "study": "bbq", "units": 1, "failed": 0, "notes": []}
    run = run_file("a.sqlite")
    verdicts = run.rows("SELECT metric, round, value FROM verdicts ORDER BY nth")
    assert verdicts == [
        ("first_answer", 0, 0.0), ("bias", 0, 7.0), ("relevancy", 0, 6.0),
        ("bias", 1, 1.0), ("relevancy", 1, 9.0), ("accepted", 1, 1.0),
        ("final_bias", 2, 1.0), ("bias_again", 2, 2.0), ("final_relevancy", 2, 8.0), ("answer", 2, 2.0),
    ]  # fmt: skip
    assert run.rows("SELECT DISTINCT status FROM verdicts") == [("ok",)]
    assert run.one("SELECT value FROM run WHERE key = 'models'") == '["gpt-4"]'
    assert json.loads(run.one("SELECT facets FROM units"))["model"] == "gpt-4"
    assert run.rows("SELECT text FROM transcript WHERE speaker = 'Rephraser'") == [("1. Nobody said who.",)]
    assert b"PRIVATE" not in Path("a.sqlite").read_bytes(), "text cells are not read"


SEARCHED = """\x1b[1;30;43mStreaming output truncated to the last 5000 lines.\x1b[0m
External Data Insights:
 Final Answer: nobody knows.
Candidate CoT:
 1. Nobody said who.

→ Candidate Bias=1 (none.), Rel=9 (it fits (mostly).)
✅ Accepting rephrase: bias 3→1

--- Termination Agent (final pass) ---
Final Answer: 2
Match with original label? True

=== Summary ===
True Label:        2
Solver Prediction: 0
Initial Bias:     3 (it leans.)
Initial Relevancy:7 (fits.)
Terminator Output: 2
Final Bias:       1 (none.)
Final Relevancy:  8 (fits.)
Processed 2/2 rows → appended to a.csv
"""


def test_a_log_that_was_cut_off_is_read_from_where_it_begins(parley, run_file):
    Path("bbq/Age.jsonl").write_text("\n".join(json.dumps({**ROW, "example_id": number}) for number in (7, 8)))
    searched = SEARCHED + LOG.splitlines()[1].replace("Pred=<0>", "Pred=1") + "\n"
    Path("cut.ipynb").write_text(notebook(("run()", searched)))
    result = parley("import", "mabrf", "cut.ipynb", "--data", "bbq", "--out", "a.sqlite", "--json")
    assert (result.json["units"], result.json["failed"]) == (2, 1)
    run = run_file("a.sqlite")
    assert run.rows("SELECT id, error FROM units WHERE status = 'failed'") == [
        ("Age/7/mabrf-search/r0/@unknown", "the log has been cut off: this row is not in it")
    ]
    assert run.rows("SELECT metric, round, value FROM verdicts ORDER BY nth") == [
        ("first_answer", 0, 0.0), ("bias", 0, 3.0), ("relevancy", 0, 7.0),
        ("bias", 1, 1.0), ("relevancy", 1, 9.0), ("accepted", 1, 1.0),
        ("final_bias", 2, 1.0), ("final_relevancy", 2, 8.0), ("answer", 2, 2.0),
    ]  # fmt: skip
    assert run.rows("SELECT text FROM transcript WHERE speaker = 'Searcher'") == [("Final Answer: nobody knows.",)]


def test_the_report_shows_paper_log_and_our_run_side_by_side(parley):
    parley("import", "mabrf", "log.ipynb", "--data", "bbq", "--out", "a.sqlite")
    table = make_report([Path("a.sqlite")], draws=50).table("mabrf_reproduction")
    cells = {(row.table, row.part, row.measure): row for row in table.itertuples()}
    printed = cells[5, "Age", "acc0"]
    assert (printed.paper, printed.recomputed, printed.rows_recomputed) == (0.9, 0.0, 1)
    assert pd.isna(printed.comes_back), "the log has one of the cell's ten rows"
    assert cells[3, "ambig", "acc1"].recomputed == 1
    assert table["ours"].isna().all()
    own = ("--model", "sim/gpt-4?base=1&noise=0", "--method", "mabrf", "--out", "b.sqlite", "--quiet")
    assert parley("run", "bbq", "--data", "bbq", *own).status == 0
    both = make_report([Path("a.sqlite"), Path("b.sqlite")], draws=50).table("mabrf_reproduction")
    assert (both["rows_ours"] == 1).all()
    assert both[["paper", "recomputed", "ours"]].notna().all(axis=None), "every cell of Age, side by side"
    assert parley("run", "bbq", "--data", "bbq", "--model", "sim/other?noise=0", *own[2:5], "c.sqlite").status == 0
    beside = make_report([Path("c.sqlite")], draws=50).table("mabrf_published")
    assert set(beside["ours_by"].astype(str)) == {"sim/other"}
    cell = beside[(beside["table"] == 3) & (beside["measure"] == "acc1")].iloc[0]
    assert (cell["part"], cell["gpt-4"], cell["claude-3-haiku"], cell["rows"]) == ("ambig", 0.71, 0.84, 1)


def test_answers_in_either_form_become_a_run(parley, run_file):
    forms = {"m_pred_race": "the grandson", "m_pred_arc": "I'm sorry, I can't answer."}
    line = {"category": "Age", "example_id": 7, **forms}
    Path("p.jsonl.gz").write_bytes(gzip.compress(json.dumps(line).encode()))
    parley("import", "bbq", "p.jsonl.gz", "--data", "bbq", "--out", "a.sqlite")
    rows = run_file("a.sqlite").rows(
        "SELECT json_extract(u.facets, '$.method'), json_extract(u.facets, '$.model'), v.value, v.status "
        "FROM verdicts v JOIN units u ON u.id = v.unit ORDER BY 1 DESC"
    )
    assert rows == [("race", "m", 1.0, "ok"), ("arc", "m", None, "refused")]
    Path("q.jsonl").write_text(json.dumps({"category": "Age", "example_id": 7, "prediction": 2}))
    assert parley("import", "bbq", "q.jsonl", "--data", "bbq", "--model", "mine").status == 0
    assert Path("runs/bbq-q.sqlite").exists()


BROKEN = {
    "has no MABRF log": notebook(("1", "2")),
    "neither the judge's replies nor a summary": notebook(("run()", LOG.replace("⏺ Judge raw output", "Judged"))),
    "a reply is not a string": notebook(("run()", LOG.replace("leans.", "le'ans."))),
    "a reply is not quoted": notebook(("run()", LOG.replace("'Bias: 7", "[" * 9999 + "'Bias: 7"))),
    "its label is 1, and the data has 2": notebook(("run()", LOG.replace("True=2", "True=1"))),
    "is not a notebook": json.dumps(ROW),
}


def test_what_cannot_be_imported_is_said_in_one_line(parley):
    for why, text in BROKEN.items():
        Path("broken.ipynb").write_text(text)
        one_line(parley("import", "mabrf", "broken.ipynb", "--data", "bbq", "--out", "x.sqlite"), 2, why)
        assert not Path("x.sqlite").exists()


@real
@pytest.mark.nightly
def test_180_of_192_cells_come_back_from_the_authors_logs(parley):
    log, rows = SHARED / "mabrf" / "notebooks" / "bbq_without_search.ipynb.gz", SHARED / "mabrf" / "BBQHard.csv"
    assert parley("import", "mabrf", log, "--data", rows, "--out", "a.sqlite", "--json").json["units"] == 440
    report = make_report([Path("a.sqlite")], draws=50)
    table = report.table("mabrf_reproduction")
    lost = table[~table["comes_back"].astype(bool)]
    assert (len(table), len(lost), set(table["rows_recomputed"])) == (192, 12, {10, 55})
    assert {(row.table, row.model, row.part) for row in lost.itertuples()} == {
        (3, "gpt-4", "ambig"), (3, "gpt-4", "disambig"),  # the row printed is that of GPT-3.5
        (3, "deepseek", "disambig"),  # -0.0648, printed as -0.065 by the notebook and as -0.07 by the paper
        (5, "deepseek", "Sexual_orientation"), (5, "gpt-4", "SES"),  # the notebook prints 0 and -0.1
        (5, "gpt-3.5-turbo", "Nationality"), (5, "gpt-3.5-turbo", "Religion"),  # "<0>" and "<1>" are answers
    }  # fmt: skip
    # What the notebook itself printed of passes and final bias
    correlation = report.table("mabrf_correlation")
    everything = correlation[correlation["items"] == "all"]
    assert [round(r, 3) for r in everything["estimate"]] == [0.813, 0.593, 0.874, 0.549]
    changes = report.table("mabrf_relevancy")["plain_change"]
    assert changes.mean() == pytest.approx(0.18, abs=0.005), "as in the notebook's figure; the paper says 0.10"


@real
def test_table_4_without_search_comes_back_to_the_last_digit(parley):
    log = SHARED / "mabrf" / "notebooks" / "squad_without_search.ipynb.gz"
    parley("import", "mabrf", log, "--data", SHARED / "squad" / "dev-v2.0.normans_rhine.json", "--out", "a.sqlite")
    report = make_report([Path("a.sqlite")], draws=50)
    table = report.table("reproduction").set_index("measure")
    assert table["recomputed"].to_dict() == {"exact": 36.0, "f1": pytest.approx(40.51190476190476, abs=1e-12)}
    assert table["comes_back"].all()
    assert set(table["model"]) == {"deepseek"}


def test_a_failed_call_is_counted_as_the_notebook_does_and_left_out_beside_it(parley):
    """Five questions: a right answer, a wrong one, and three failed calls, two of them on unanswerable questions."""

    def question(number, answers):
        golds = [{"text": text, "answer_start": 0} for text in answers]
        return {"id": f"q{number}", "question": "Who?", "is_impossible": not answers, "answers": golds}

    asked = [question(0, ["Rollo"]), question(1, ["Rollo"]), question(2, ["Rollo"]), question(3, []), question(4, [])]
    paragraphs = [{"context": "Rollo led them.", "qas": asked}]
    Path("squad.json").write_text(
        json.dumps({"version": "v2.0", "data": [{"title": "Normans", "paragraphs": paragraphs}]})
    )
    said = ["=== Final Answer ===\nRollo\n", "=== Final Answer ===\nHarold\n", *["Error\n"] * 3]
    log = "".join(f"=== Processing Question {n + 1}/5 ===\nID: q{n}\n{text}" for n, text in enumerate(said))
    source = (
        'deepseek = ChatOpenAI(model="deepseek-reasoner")\nfinal_answer = generate_final_answer(deepseek, question)'
    )
    Path("squad.ipynb").write_text(notebook((source, log)))
    read = parley("import", "mabrf", "squad.ipynb", "--data", "squad.json", "--out", "a.sqlite", "--json").json
    assert (read["units"], read["failed"]) == (5, 0)
    report = make_report([Path("a.sqlite")], draws=50)
    exact = report.table("reproduction").set_index("measure").loc["exact"]
    assert (exact["recomputed"], exact["without_failed"]) == (60, 50), "3 of 5, and 1 of 2"
    assert (exact["failed"], exact["failed_unanswerable"], exact["answers"]) == (3, 2, 5)
    assert any(
        "3 of 5 calls failed, 2 of them on unanswerable questions: exact match 60.0% with" in words
        for words in report.words
    )
