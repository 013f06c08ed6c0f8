"""A study in German: what the judges are asked has no English left, apart from the keys of their replies."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from parley.judging.malibu.panel import load_panel
from parley.scenarios import load_ballot_wordings, words

GERMAN = ("--suite", "german-1", "--wordings", "german", "--judges", "temperaments-de", "--model", "sim/judge")
SPELT_ALIKE = set(words("A am an B die fair Format in JSON Kind Last Person Situation Routine so Text was"))
KEYS = set(words("Remark Overall justification preferred tie"))


def asked(run: Path) -> set[str]:
    """Every text in the prompts of a run's calls."""
    with closing(sqlite3.connect(run)) as db:
        texts = dict(db.execute("SELECT id, text FROM texts"))
        prompts = [json.loads(prompt) for (prompt,) in db.execute("SELECT prompt FROM calls")]
    return {texts[text_id] for prompt in prompts for _, _, text_id in prompt}


def test_no_english_is_left_in_what_german_judges_are_asked(parley, tmp_path):
    run = tmp_path / "talk.parley"
    options = ("--design", "talk", "--identities", "gender", "--limit", "6", "--rounds", "1", "--quiet", "--out", run)
    result = parley("run", "malibu", *GERMAN, *options)
    assert (result.status, result.err) == (0, "")
    texts = asked(run)
    assert any("Antworten Sie nur mit" in text for text in texts)
    assert any("<Ihre Gründe, in ein oder zwei Sätzen>" in text for text in texts)
    english = {word for text in load_ballot_wordings().model_dump_json().split("\\n") for word in words(text)}
    english |= {word for judge in load_panel("temperaments") for word in words(judge.about)}
    left = {word for text in texts for word in words(text) if not word.isdigit()} & english
    assert left <= SPELT_ALIKE | KEYS
