"""RealToxicityPrompts from a file: what is read, what is refused, and what a sample is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.scenarios import ScenarioError
from parley.scenarios.rtp import SETS, draw, in_set, load, load_hub

REAL = Path(__file__).parents[3] / "shared" / "data" / "rtp" / "rtp_quark_val_5000.jsonl"


def published(number: int, toxicity: float | None, text: str = "The referee said that") -> dict[str, Any]:
    """A row as published, its text our own and mild."""
    scores = {"profanity": 0.1, "insult": 0.2, "severe_toxicity": 0.05, "toxicity": toxicity}
    place = {"filename": f"{number:07}-abc.txt", "begin": 340, "end": 564, "challenging": False}
    texts = {"prompt": f"{text} {number}", "continuation": " it was fair."}
    return place | {part: {"text": words, **scores} for part, words in texts.items()}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def test_a_published_row(tmp_path):
    rtp = load(write(tmp_path / "prompts.jsonl", published(1, 0.57), published(2, None)))
    assert rtp.rows[0] == ("0000001-abc.txt-340-564", "The referee said that 1", 0.57)
    assert rtp.rows[1].toxicity is None
    assert list(rtp.sources) == ["prompts.jsonl"]


def test_flat_rows_and_line_separators_inside_a_text(tmp_path):
    row = {"prompt": "Half a\u2028line", "toxicity": 0.9, "id": "a/b"}
    path = tmp_path / "flat.jsonl"
    path.write_text(json.dumps(row, ensure_ascii=False) + "\n\n" + json.dumps({"prompt": "Two", "toxicity": 1}))
    assert [tuple(item) for item in load(path).rows] == [("a-b", "Half a\u2028line", 0.9), ("line-2", "Two", 1.0)]


def test_the_ends_of_a_set_belong_to_it(tmp_path):
    levels = [0.499, 0.5, 0.6, 0.601, 0.799, 0.8, 1.0, None]
    rows = load(write(tmp_path / "a.jsonl", *(published(n, t) for n, t in enumerate(levels)))).rows
    assert [row.toxicity for row in in_set(rows, "moderate")] == [0.5, 0.6]
    assert [row.toxicity for row in in_set(rows, "high")] == [0.8, 1.0]


def test_a_sample_depends_on_the_seed_and_not_on_the_order_of_the_file(tmp_path):
    rows = [published(n, 0.55) for n in range(60)]
    first, second = load(write(tmp_path / "a.jsonl", *rows)), load(write(tmp_path / "b.jsonl", *reversed(rows)))
    assert draw(first.rows, "moderate", 10, 3) == draw(second.rows, "moderate", 10, 3)
    assert draw(first.rows, "moderate", 10, 3) != draw(first.rows, "moderate", 10, 4)
    assert len(set(draw(first.rows, "moderate", 60, 3))) == 60


def test_the_hubs_layout_from_another_place(tmp_path):
    pytest.importorskip("datasets")
    path = write(tmp_path / "prompts.jsonl", published(1, 0.57), published(2, None))
    rtp = load_hub(place=str(path), cache=str(tmp_path / "cache"))
    assert [row.toxicity for row in rtp.rows] == [0.57, None]
    with pytest.raises(ScenarioError, match=r"cannot be downloaded .* give its .jsonl file with --data"):
        load_hub(place=str(tmp_path / "none.jsonl"), cache=str(tmp_path / "cache"))


@pytest.mark.skipif(not REAL.exists(), reason="the real rows are not here")
def test_real_rows():
    """Counted with a plain loop over the file's JSON."""
    rtp = load(REAL)
    assert (len(rtp.rows), sum(row.toxicity is None for row in rtp.rows)) == (5000, 19)
    assert {name: len(in_set(rtp.rows, name)) for name in SETS} == {"moderate": 256, "high": 474}
