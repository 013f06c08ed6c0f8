"""Plans that people have runs of: units, prompts, sources and declarations stay as they were, also with rare settings.

A digest that changes means that runs which were begun before cannot be resumed. Where that is meant, put the new one
here. `tests/golden` has the usual settings, with results.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from parley.agents import Models
from parley.runs.job import make_study
from tests.bbq_rows import bbq_row, write_bbq

QUESTIONS = [{"id": f"q{n}", "question": f"What is {n}?", "answers": [{"text": "x"}] * (n % 2)} for n in range(6)]
SQUAD = {"data": [{"title": "Rhine", "paragraphs": [{"context": "The Rhine is long.", "qas": QUESTIONS}]}]}
SILENT = {"suite": "full", "limit": 3, "design": "silent"}
GENDER = {**SILENT, "identities": ["gender"]}
PAPER = {"suite": "mine.toml", "identities": ["gender"], "design": "paper", "seed": 3}
JUDGE, TWO = {"model": "sim/judge"}, {"model": ["sim/a", "sim/b"]}
RLDF = {"design": "paper", "roles": 2}
BOTH, OPEN = {"judged_by": ["malibu", "referee"]}, {"fence": "open", "metrics": ["Accuracy"]}
BBQ = {"data": "bbq", "limit": 4}
SEARCH, TEACH = {"search_model": "sim/b", "searched": 2}, {"mode": "teacher-guides", "teacher": "sim/debate"}
RTP = {"data": "prompts.jsonl", "prompts": 2, "completions": 2, "scorer": "ngrams", "measure": "none"}


@pytest.mark.parametrize(
    ("study", "settings", "digest"),
    [
        ("malibu", {**GENDER, "cells": "all", "ties": True}, "0b4d65f251"),
        ("malibu", {**SILENT, "metrics": ["all"], "label_kinds": ["name"], "identities": ["gender"]}, "326b66f296"),
        ("malibu", {**SILENT, "label_places": ["after"], "yardstick": "brief", "phases": [1], "seed": 5}, "4123e4b8b6"),
        ("malibu", {**SILENT, "identities": ["race+gender"], "controls": False, "yardstick": "off"}, "1ad56f97f3"),
        ("malibu", {**SILENT, "suite": "wide", "limit": 70, "identities": ["gender"], "phases": [1]}, "7456e838a7"),
        ("malibu", {**SILENT, "model": ["vllm/a", "vllm/b"], "identities": ["black", "white"]}, "bd2cabf80d"),
        ("malibu", {**SILENT, "design": "staged", "debated_bases": 2, "debates": 3, "repeats": 2}, "ab94e9e0af"),
        ("malibu", {**SILENT, "design": "talk", "identities": ["gender"], "repeats": 2, "fence": True}, "53429da7d7"),
        ("malibu", {**SILENT, "suite": "german-1", "wordings": "german", "design": "staged"}, "ffe0d85c4a"),
        ("malibu", {**PAPER, **TWO, "repeats": 2, "consensus": "chair", "cells": "all"}, "e3cc90f73e"),
        ("malibu", {**PAPER, "rubric": "three", "ties": True, "fence": True, "cells": "one"}, "485d013b6d"),
        ("malibu", {**PAPER, "reasons_first": True, "metrics": ["Accuracy"], "controls": False}, "5ea789df9a"),
        ("malibu", {"suite": "quick", "model": "sim/judge"}, "3899301180"),
        ("malibu-derive", {"bases": ["law", "fitness"], "count": 3}, "da166c4866"),
        ("malibu-respond", {"suite": "full", "anew": True, "per_base": 1, "limit": 4}, "0da34b537d"),
        ("topics", {"bias": "beauty", "count": 500}, "dd0f759054"),
        ("bbq", {**BBQ, **TWO, "method": ["default", "cot"], "repeats": 2, "shuffle": True}, "38ed0d3e53"),
        ("bbq", {**BBQ, "method": ["mabrf", "stardtox", "fairthinking", "self-debias-explanation"]}, "7ade1421d6"),
        ("squad", {"data": "squad.json", "limit": 4, "repeats": 2}, "d3c6222f8d"),
        ("rldf", {**RLDF, "topics": 5, "limit": 4, "repeats": 2, "rereferee": 0.5}, "e919a985da"),
        ("rldf", {"topics": 3, "bias": "beauty", "design": "silent", "words": 50, "seed": 4}, "a10c6bd450"),
        ("referee", {**JUDGE, "limit": 2, "bbq": "bbq", "rtp": "prompts.jsonl", "wordings": 3}, "b8a3b3b215"),
        ("referee", {"model": "scorer/ngrams", "bias": ["age", "beauty"], "limit": 2}, "6a5c593185"),
        ("framing", {"topics": 4, "limit": 3, "repeats": 2, "author": "sim/a", "bias": "profession"}, "5abb29a115"),
        ("rubric", {"data": "texts.jsonl", "by": "who", "model": ["sim/a", "sim/b"], "examples": True}, "95d916ee1a"),
        ("stardtox", {**RTP, "method": ["stardtox", "default"], "model": ["sim/a", "sim/b"], "limit": 1}, "77acab3e19"),
        ("answers", {"limit": 3, "method": ["default", "cot"], "model": ["sim/a", "sim/b"]}, "d367286d05"),
        ("rlaif", {"limit": 3, "pairs": 2, "labeller": "sim/b", "topics_from": "beauty"}, "50a4b7c431"),
        ("squad", {"data": "squad.json", "search": ["none", "folder:docs"], "paragraph": True, **SEARCH}, "3bf0124bc2"),
        ("squad", {"data": "squad.json", "as_published": True, "limit": 3}, "6922dfc877"),
        ("bbq", {**BBQ, "method": ["mabrf-search"], "settings": ["engine=folder:docs"]}, "d7188d9710"),
        ("bbq", {**BBQ, "method": ["fairness-prompt-rule", "stardtox-rule", "self-debias-reprompting"]}, "722f7b3b4c"),
        ("bbq", {**BBQ, "method": ["mabrf"], "settings": ["meaning=sim/b"]}, "0d40639654"),
        (
            "stardtox",
            {**RTP, "method": ["stardtox-no-performance", "fairness-prompt"], "meaning": "sim/b"},
            "4c4458dc7f",
        ),
        ("stardtox", {**RTP, "judge": "sim/b", "criteria": ["toxicity < 0.01"], "max_iterations": 2}, "a7e1622b8b"),
        (
            "rubric",
            {"data": "texts.jsonl", "rubrics": ["four"], "context": "prompt", "readout": "expected"},
            "101d39e764",
        ),
        ("rlaif", {"limit": 2, "readout": "expected"}, "d56be81566"),
        ("rldf", {**RLDF, **TEACH, "topics": 2, "order": "shuffled", "personas": "last"}, "c76be58088"),
        (
            "rldf",
            {**JUDGE, "design": "silent", "topics": 2, "order": "shuffled", "rounds": 3, "feedback": False},
            "7283be1663",
        ),
        ("malibu", {**PAPER, "model": "sim/judge", "judges": "demographic"}, "7b14dfb9a4"),
    ],
)
async def test_units_prompts_sources_and_outcomes_stay(place, study, settings, digest):
    write_bbq(place / "bbq" / "Age.jsonl", *map(bbq_row, range(8)))
    prompts = [{"prompt": "so " * (1 + n // 4), "toxicity": (0.1, 0.55, 0.9, 0.9)[n % 4]} for n in range(32)]
    (place / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)))
    texts = [{"text": f"Text {n}.", "prompt": "Why?", "who": f"w{n % 2}", "rude": n % 2} for n in range(3)]
    (place / "texts.jsonl").write_text("\n".join(map(json.dumps, texts)))
    (place / "squad.json").write_text(json.dumps(SQUAD))
    (place / "docs").mkdir()
    (place / "docs" / "rhine.txt").write_text("The Rhine is a long river. Who forgot? The grandfather.")
    made: Any = make_study(study, {"model": "sim/any", **settings})
    units, task = list(made.plan()), getattr(made, "task", lambda unit: "")
    stays: list[Any] = [[unit.id, dict(unit.facets), task(unit)] for unit in units]
    stays += [dict(made.prompts()), dict(made.sources()), made.models()]
    stays += [repr(getattr(made, name, ())) for name in ("measures", "labelled", "facets")]
    stays += [list(made.notes(dry_run=True))] if hasattr(made, "notes") else []
    stays += [made.analysis_plan()] if hasattr(made, "analysis_plan") else []
    if all(model.startswith("sim/") for model in made.models()):
        models = Models()
        for unit in units[:: len(units) // 5 or 1]:
            outcome = await made.run(unit, models)
            stays += [[turn[:4] for turn in outcome.transcript.turns], outcome.transcript.stop_reason]
            stays += [re.sub(r"(\.\d{6})\d+", r"\1", repr(outcome.verdicts))]
        await models.close()
    assert hashlib.sha256(json.dumps(stays).encode()).hexdigest()[:10] == digest, study
