"""`parley report` on datasets of others, in every form that TRL reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

Row = dict[str, Any]


def message(role: str, content: str) -> Row:
    return {"role": role, "content": content}


def rows(form: str, count: int = 40) -> list[Row]:
    """Pairs on ten topics; the chosen answer is always the shorter one."""
    made = []
    for n in range(count):
        question, good, bad = f"Question {n % 10}?", f"answer {n}", f"answer {n} is this and {n + 1} is that"
        made.append(
            {
                "plain": {"prompt": question, "chosen": good, "rejected": bad},
                "conversation": {
                    "prompt": [message("user", question)],
                    "chosen": [message("assistant", good)],
                    "rejected": [message("assistant", bad)],
                },
                "implicit": {
                    "chosen": [message("user", question), message("assistant", good)],
                    "rejected": [message("user", question), message("assistant", bad)],
                },
                "implicit text": {
                    "chosen": f"\n\nHuman: {question}\n\nAssistant: {good}",
                    "rejected": f"\n\nHuman: {question}\n\nAssistant: {bad}",
                },
            }[form]
        )
    return made


def write(path: str, listed: list[Row]) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in listed), "utf-8")
    return path


@pytest.mark.parametrize("form", ["plain", "conversation", "implicit", "implicit text"])
def test_every_form_of_trl_is_read_alike(parley, form):
    write("set/data/train.jsonl", rows(form)[:30])
    write("set/data/test.jsonl", rows(form)[30:])
    found = parley("report", "set", "--json").json
    assert (found["settings"]["pairs"], found["settings"]["topics"]) == (40, 10)
    by_name = {row["predictor"]: row for row in found["shortcuts"]}
    assert by_name["length"]["estimate"] == 1
    assert by_name["round"]["note"].startswith("not checked")
    assert next(row for row in found["repetitions"] if row["what"] == "topics in more than one split")["count"] == 10


def test_parquet_and_datasets_on_disk_are_read(parley):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list(rows("conversation"))
    Path("hub").mkdir()
    table.to_parquet("hub/train-00000-of-00001.parquet")
    datasets.DatasetDict({"train": table}).save_to_disk("disk")
    for folder in ("hub", "disk"):
        result = parley("report", folder, "--json")
        assert result.status == 0, result.err
        assert result.json["settings"]["pairs"] == 40


def test_the_terminal_says_it_in_words_and_files_are_written(parley):
    write("pairs.jsonl", rows("plain"))
    Path("told.txt").write_text("Say what this is.")
    result = parley("report", "pairs.jsonl", "--out", "out", "--instructions", "told.txt")
    assert result.status == 0, result.err
    assert "Length alone predicts the choice in 100%" in " ".join(result.out.split())
    assert "words of the instructions: " not in result.out, "they were given"
    for file in ("report.html", "tables/shortcuts.csv", "figures/forest-shortcuts.svg"):
        assert Path("out", file).is_file()
