"""Plans that people have runs of: units, prompts, sources and declarations stay as they were, also with rare settings.

A digest that changes means that runs which were begun before cannot be resumed. Where that is meant, put the new one
here. `tests/golden` has the usual settings, with results.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import nullcontext
from typing import Any

import pytest

from parley.agents import Models, Session, session
from parley.judging import Study
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
        ("malibu", {**GENDER, "cells": "all", "ties": True}, "d09305eeb8"),
        ("malibu", {**SILENT, "metrics": ["all"], "identities": ["gender"]}, "9179a8e6ea"),
        ("malibu", {**SILENT, "yardstick": "brief", "phases": [1], "seed": 5}, "e42d8fc3f8"),
        ("malibu", {**SILENT, "identities": ["race+gender"], "controls": False, "yardstick": "off"}, "2380a5ed08"),
        ("malibu", {**SILENT, "suite": "wide", "limit": 70, "identities": ["gender"], "phases": [1]}, "f55ae864a3"),
        ("malibu", {**SILENT, "model": ["vllm/a", "vllm/b"], "identities": ["black", "white"]}, "315489dc01"),
        ("malibu", {**SILENT, "design": "staged", "debated_bases": 2, "debates": 3, "repeats": 2}, "c03514f0cf"),
        ("malibu", {**SILENT, "design": "talk", "identities": ["gender"], "repeats": 2, "fence": True}, "fadc103db5"),
        ("malibu", {**SILENT, "suite": "german-1", "wordings": "german", "design": "staged"}, "0fee4d7400"),
        ("malibu", {**PAPER, **TWO, "repeats": 2, "consensus": "chair", "cells": "all"}, "db9a3c3530"),
        ("malibu", {**PAPER, "rubric": "three", "ties": True, "fence": True, "cells": "one"}, "c2747d5a7b"),
        ("malibu", {**PAPER, "metrics": ["Accuracy"], "controls": False}, "7dbe90dc6b"),
        ("malibu", {"suite": "quick", "model": "sim/judge"}, "7e66922df1"),
        ("malibu-derive", {"bases": ["law", "fitness"], "count": 3}, "ea823a549a"),
        ("malibu-respond", {"suite": "full", "anew": True, "per_base": 1, "limit": 4}, "6a22bc16f4"),
        ("topics", {"bias": "beauty", "count": 500}, "bf908249df"),
        ("bbq", {**BBQ, **TWO, "method": ["default", "cot"], "repeats": 2, "shuffle": True}, "85502ce87b"),
        ("bbq", {**BBQ, "method": ["mabrf", "stardtox", "fairthinking", "self-debias-explanation"]}, "cdbb3f4904"),
        ("squad", {"data": "squad.json", "limit": 4, "repeats": 2}, "cc4882accb"),
        ("rldf", {**RLDF, "topics": 5, "limit": 4, "repeats": 2, "rereferee": 0.5}, "e5e45f9b6d"),
        ("rldf", {"topics": 3, "bias": "beauty", "design": "silent", "words": 50, "seed": 4}, "a4359a21a6"),
        ("referee", {**JUDGE, "limit": 2}, "788ea29c67"),
        ("referee", {"model": "scorer/ngrams", "bias": ["age", "beauty"], "limit": 2}, "4f14ad8fad"),
        ("framing", {"topics": 4, "limit": 3, "repeats": 2, "author": "sim/a", "bias": "profession"}, "5ba12565be"),
        ("rubric", {"data": "texts.jsonl", "by": "who", "model": ["sim/a", "sim/b"], "examples": True}, "5b84068458"),
        ("stardtox", {**RTP, "method": ["stardtox", "default"], "model": ["sim/a", "sim/b"], "limit": 1}, "51b966c9b2"),
        ("answers", {"limit": 3, "method": ["default", "cot"], "model": ["sim/a", "sim/b"]}, "c90f6ac695"),
        ("rlaif", {"limit": 3, "pairs": 2, "labeller": "sim/b", "topics_from": "beauty"}, "a5c1012d73"),
        ("squad", {"data": "squad.json", "search": ["none", "folder:docs"], "paragraph": True, **SEARCH}, "ffc65266df"),
        ("squad", {"data": "squad.json", "as_published": True, "limit": 3}, "1e186b8fbe"),
        ("bbq", {**BBQ, "method": ["mabrf-search"], "settings": ["engine=folder:docs"]}, "6a0f4be211"),
        ("bbq", {**BBQ, "method": ["fairness-prompt", "stardtox", "self-debias-reprompting"]}, "f232a95f20"),
        ("bbq", {**BBQ, "method": ["mabrf"], "settings": ["measure=sim/b"]}, "82460e6215"),
        ("stardtox", {**RTP, "method": ["stardtox-no-performance", "fairness-prompt"]}, "b528f607fc"),
        ("stardtox", {**RTP, "judge": "sim/b", "criteria": ["toxicity < 0.01"], "max_iterations": 2}, "3177cc7f9e"),
        ("rubric", {"data": "texts.jsonl", "rubrics": ["four"], "context": "prompt"}, "46f71710e8"),
        ("rldf", {**RLDF, **TEACH, "topics": 2}, "93fe5e0340"),
        ("rldf", {**JUDGE, "design": "silent", "topics": 2, "rounds": 3, "feedback": False}, "8b2d0c8352"),
        ("malibu", {**PAPER, "model": "sim/judge", "judges": "demographic"}, "51dc95ec74"),
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
    units = list(made.plan())
    declares = {name for name in dir(Study) if getattr(type(made), name) is not getattr(Study, name)}
    stays: list[Any] = [
        [unit.id, sorted(unit.facets.items()), made.design.task(made.Cell(**unit.facets)) if study == "malibu" else ""]
        for unit in units
    ]
    stays += [dict(made.prompts()), dict(made.sources()), made.models()]
    stays += [repr(getattr(made, name) if name in declares else ()) for name in ("measures", "labelled", "facets")]
    stays += [list(made.notes(dry_run=True))] if "notes" in declares else []
    stays += [made.analysis_plan()] if "analysis_plan" in declares else []
    if all(model.startswith("sim/") for model in made.models()):
        models = Models()
        for unit in units[:: len(units) // 5 or 1]:
            with session(Session(label_words=made.label_words)) if made.label_words else nullcontext():
                outcome = await made.run(unit, models)
            stays += [[turn[:4] for turn in outcome.transcript.turns], outcome.transcript.stop_reason]
            stays += [re.sub(r"(\.\d{6})\d+", r"\1", repr(outcome.verdicts))]
        await models.close()
    assert hashlib.sha256(json.dumps(stays).encode()).hexdigest()[:10] == digest, study
