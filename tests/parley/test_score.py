"""`parley run rubric --data FILE` as a user sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")
COMMAND = ("run", "rubric", "--data", "t.jsonl", "--by", "method", "--quiet", "--out", "s.sqlite")


@pytest.fixture(autouse=True)
def texts():
    rows = [
        {"id": f"{method}-{n}", "text": f"Text {n}.", "method": method} for method in ("sft", "rldf") for n in (1, 2)
    ]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def judged(server: Any) -> Callable[[int, dict[str, Any]], Any]:
    """Text 1 is scored 2 by all, text 2 is scored 8: the judges always agree."""

    def answer(nth: int, body: dict[str, Any]) -> Any:
        score = 2 if "Text 1." in body["messages"][-1]["content"] else 8
        return server.reply(json.dumps({"BS": score, "CE": 7, "LS": score}))

    return answer


def test_groups_are_compared_and_agreement_is_shown(parley, server):
    server.answer = judged(server)
    assert parley(*COMMAND, "--model", server.model()).status == 0
    assert len(server.asked) == 4 * 5
    tables = parley("report", "s.sqlite", "--json", "--out", "page").json
    scores = {(row["group"], row["measure"]): row["estimate"] for row in tables["scores"]}
    assert scores["sft", "BS"] == scores["rldf", "BS"] == 50, "the mean of 20 and 80"
    assert scores["sft", "CE"] == 70
    agreement = {(row["metric"], row["measure"]): row for row in tables["agreement"]}
    assert agreement["BS", "points"]["estimate"] == pytest.approx(1)
    constant = agreement["CE", "points"]
    assert constant["estimate"] is None
    assert "agreement beyond chance is not defined" in constant["note"]
    page = Path("page/report.html").read_text("utf-8")
    assert "lower is better" in page
    assert "greement" in page


def test_replies_that_cannot_be_parsed_are_counted(parley, server):
    server.answer = lambda nth, body: server.reply("Rather good.")
    assert parley(*COMMAND, "--model", server.model()).status in (0, 1)
    tables = parley("report", "s.sqlite", "--json").json
    assert {row["unreadable"] for row in tables["scores"]} == {2 * 5}
    assert {row["estimate"] for row in tables["scores"]} == {None}
