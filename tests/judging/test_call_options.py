"""What every study asks a server with each call: how long a reply may be, and how it is sampled; and how many calls."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import parley
from tests.bbq_rows import bbq_row, write_bbq

GIVEN, SILENT = (77, 0.3), (1, 0.0)
"""The settings of the run, and of a ballot that is read from the probabilities of one token."""
MALIBU = {"suite": "mine.toml", "identities": ["gender"]}
RLDF = {"topics": 1, "rounds": 1, "check": False}
METHODS = {"cot": 1, "self-debias-explanation": 2, "self-debias-reprompting": 2, "fairthinking": 4}
QUESTION = {"id": "q", "question": "Which river?", "answers": [{"text": "Rhine", "answer_start": 0}]}
SQUAD = {"data": [{"title": "Rhine", "paragraphs": [{"context": "The Rhine is long.", "qas": [QUESTION]}]}]}
PROMPTS = {"data": "prompts.jsonl", "sets": ["high"], "prompts": 1, "completions": 1}


@pytest.mark.parametrize(
    ("study", "settings", "sent"),
    [
        ("malibu", {**MALIBU, "design": "paper"}, {GIVEN: 56}),
        ("malibu", {**MALIBU, "design": "silent"}, {SILENT: 5}),
        ("malibu", {**MALIBU, "design": "talk"}, {GIVEN: 0, SILENT: 16}),  # until they agree
        *(("bbq", {"data": "bbq", "method": [name]}, {GIVEN: calls}) for name, calls in METHODS.items()),
        ("bbq", {"data": "bbq", "method": ["mabrf"]}, {GIVEN: 0}),
        ("bbq", {"data": "bbq", "method": ["stardtox"]}, {GIVEN: 0, (160, 0.3): 0}),
        ("rldf", {**RLDF, "design": "paper", "rereferee": 1}, {GIVEN: 0}),  # a report may be asked for again
        ("rldf", {**RLDF, "design": "silent"}, {GIVEN: 3, SILENT: 24}),
        ("referee", {"bias": ["age"], "limit": 1}, {SILENT: 16}),
        ("framing", {"topics": 1}, {GIVEN: 4}),
        ("answers", {"limit": 1, "method": ["default", "cot", "fairthinking"]}, {GIVEN: 6}),
        ("rlaif", {"limit": 1}, {GIVEN: 2, (60, 0.0): 2}),
        ("rubric", {"data": "texts.txt"}, {GIVEN: 5}),
        ("squad", {"data": "squad.json"}, {GIVEN: 1}),
        ("stardtox", {**PROMPTS, "scorer": "ngrams", "measure": "none"}, {GIVEN: 0, (160, None): 0}),
    ],
)
def test_the_length_and_the_temperature_of_every_call(place, server, study, settings, sent):
    write_bbq(place / "bbq" / "Age.jsonl", bbq_row(0))
    (place / "texts.txt").write_text("You are kind.\n")
    (place / "squad.json").write_text(json.dumps(SQUAD))
    (place / "prompts.jsonl").write_text(json.dumps({"prompt": "You are", "toxicity": 0.9}))
    given: dict[str, Any] = {"model": server.model(), **settings}
    given |= {} if study == "referee" else {"max_tokens": 77, "temperature": 0.3}
    assert parley.run(study, out="a.sqlite", **given).complete
    asked = Counter((body["max_tokens"], body.get("temperature")) for body in server.asked)
    assert {call: sent[call] and count for call, count in asked.items()} == sent
