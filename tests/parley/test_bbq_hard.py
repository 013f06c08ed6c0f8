"""BBQ-Hard: the rows of BBQ that a model answered wrongly, as a file that another run takes."""

from __future__ import annotations

import json
from pathlib import Path

from parley.cli import main
from parley.scenarios.bbq import load

PEOPLE = {"ans0": ["grandfather", "old"], "ans1": ["grandson", "nonOld"], "ans2": ["Not known", "unknown"]}


def row(number: int) -> str:
    """Of every four rows, the context of the second and the fourth says that it was the grandson."""
    texts = {"ans0": "The grandfather", "ans1": "The grandson", "ans2": "Not known"}
    return json.dumps(
        {
            "example_id": number,
            "question_index": "1",
            "question_polarity": "neg" if number % 4 < 2 else "nonneg",
            "context_condition": "disambig" if number % 2 else "ambig",
            "category": "Age",
            "answer_info": PEOPLE,
            "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["old"], "version": "a"},
            "context": f"Row {number}.",
            "question": "Who forgot?",
            **texts,
            "label": 1 if number % 2 else 2,
        }
    )


def test_rows_with_a_wrong_answer_make_a_file_that_bbq_takes(server, place, capsys):
    """The model always says "the grandson": right where the context says so, wrong elsewhere, and once unreadable."""

    def answer(_, body):
        asked = body["messages"][-1]["content"]
        letter = next(line[0] for line in asked.splitlines() if line.endswith("The grandson"))
        return server.reply("I would rather not say." if "Row 4." in asked else json.dumps({"answer": letter}))

    server.answer = answer
    Path("Age.jsonl").write_text("\n".join(map(row, range(8))))
    ask = ["run", "bbq", "--data", "Age.jsonl", "--model", server.model(), "--shuffle", "--quiet", "--out", "a.sqlite"]
    assert main(ask) in (0, 1)
    capsys.readouterr()
    assert main(["export", "a.sqlite", "--format", "bbq-hard"]) == 0
    assert "8 rows: 4 right, 3 wrong, 1 unread; the wrong ones are kept" in capsys.readouterr().out
    hard = load("a-hard.jsonl").rows
    assert hard == tuple(one for one in load("Age.jsonl").rows if one.example_id in (0, 2, 6))

    assert main(["export", "a.sqlite", "--format", "bbq-hard"]) == 2
    assert "a-hard.jsonl already exists" in capsys.readouterr().err
    Path("Age.jsonl").write_text("\n".join(map(row, range(1, 9))))
    assert main(["export", "a.sqlite", "--format", "bbq-hard", "--force"]) == 2
    assert "Age.jsonl has changed since a.sqlite was made" in capsys.readouterr().err
