"""Pairs from completions that a scorer referees, and the evaluation on held-out prompts."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.positive.completions import best_and_worst, read_splits, write_scored_pairs
from benchmarks.positive.evaluation import best_places, completions_table, distinct_pairs, repeated_pairs
from parley.base.errors import ConfigError
from parley.judging.rldf.answers import CONTINUE
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs
from parley.training.prompts import read_prompts
from parley.training.stage_registry import config_class


def rtp(path: Path, count: int, toxicity: float = 0.8) -> Path:
    """Rows as in RealToxicityPrompts, each of its own document."""
    rows = [
        {
            "filename": f"document-{n}.txt",
            "challenging": False,
            "prompt": {"text": f"Those buses here are number {n}", "toxicity": toxicity},
        }
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def config(folder: Path, **more: Any) -> TrainConfig:
    completions = {"prompts": str(folder / "prompts.jsonl"), "num_generations": 4, "margin": 2.0, **more}
    return config_class(["benchmarks.positive.completions:pairs"]).model_validate(
        {"data": str(folder / "pairs"), "out": str(folder / "out"), "min_pairs": 2, "completions": completions}
    )


def test_prompts_are_split_by_document_as_for_the_scorer(tmp_path: Path) -> None:
    rtp(tmp_path / "prompts.jsonl", 200)
    splits = read_splits(config(tmp_path))
    held_out = [n for n in range(200) if int(hashlib.sha256(f"document-{n}.txt".encode()).hexdigest(), 16) % 5 == 0]
    assert [int(text.split()[-1]) for text in splits["test"]] == held_out
    assert sum(map(len, splits.values())) == 200
    assert 0 < len(splits["validation"]) < len(held_out)
    path = rtp(tmp_path / "prompts.jsonl", 3, toxicity=0.2)
    assert not any(read_splits(config(tmp_path)).values()), "harmless prompts, none of them challenging"
    path.write_text('{"text": "no prompt"}\n', "utf-8")
    with pytest.raises(ConfigError, match="expected rows of RealToxicityPrompts"):
        read_splits(config(tmp_path))


def test_the_best_are_paired_with_the_worst_above_the_margin() -> None:
    scored = [("c", 0.5), ("a", 0.1), ("e", 0.9), ("b", 0.4), (" ", 0.0), ("unread", None), ("a ", 0.1)]
    pairs, spread = best_and_worst(scored, 2, margin=1.0)
    assert [(chosen[0], rejected[0]) for chosen, rejected in pairs] == [("a", "e"), ("b", "c")]
    assert spread == pytest.approx(8.0)
    assert [chosen[0] for (chosen, _) in best_and_worst(scored, 2, margin=2.0)[0]] == ["a"]
    assert best_and_worst([("only", 0.3)], 2, margin=0.1) == ([], 0.0)


def test_the_written_pairs_are_read_with_every_prompt_of_their_splits(tmp_path: Path) -> None:
    rtp(tmp_path / "prompts.jsonl", 60)
    settings = config(tmp_path)
    splits = read_splits(settings)
    rows = [
        {"prompt": text, "split": split, "completions": ["good", "fair", "poor", "bad"]}
        for split, texts in splits.items()
        for text in texts
    ]
    without = splits["train"][0]  # all its completions score alike: it gives no pair, and stays a prompt of RL
    scores = [0.5 if row["prompt"] == without else score for row in rows for score in (0.1, 0.2, 0.6, 0.9)]
    facts = write_scored_pairs(settings, rows, scores, tmp_path / "pairs", splits)
    assert facts["pairs"]["train"] == 2 * (len(splits["train"]) - 1)
    pairs = read_pairs(settings)
    assert {(pair.chosen.text, pair.rejected.text) for pair in pairs.train} == {("good", "bad"), ("fair", "poor")}
    prompts = read_prompts(settings, pairs)
    assert set(prompts.train) == set(splits["train"])
    assert prompts.train[without] == CONTINUE(topic=without)
    assert set(prompts.held_out()) == set(splits["test"])


def test_measures_of_texts_by_hand() -> None:
    assert best_places([0.3, 0.1, None, 0.2, None, None], 3) == [1, 3], "the lowest score of each group"
    assert best_places([None, None], 2) == [0]
    assert distinct_pairs(["a b a b", "a b"]) == 2 / 4
    assert math.isnan(distinct_pairs(["one", ""]))
    assert repeated_pairs("We need to talk", "we need to go home") == pytest.approx(2 / 3)
    assert repeated_pairs("Talk", "Talk") == 0.0


def completion(system: str, prompt: str, score: float | None, tokens: int = 2) -> dict[str, Any]:
    return {
        "system": system,
        "prompt": prompt,
        "text": "so it is",
        "tokens": tokens,
        "log_probability_base": -3.0,
        "kl": 0.5,
        "scores": {"ngrams": score, "embedded": score},
    }


def test_differences_are_between_the_same_prompts() -> None:
    # The systems' prompts are in another order, and every prompt's score falls by 0.1 or 0.2.
    rows = [completion("Default", f"p{n}", 0.3 + n / 50) for n in range(20)]
    rows += [completion("RLDF", f"p{n}", 0.3 + n / 50 - (0.1 if n % 2 else 0.2)) for n in reversed(range(20))]
    frame = completions_table(rows, "ngrams").frame
    line = frame[(frame["measure"] == "embedded") & (frame["system"] == "RLDF")].iloc[0]
    assert line["difference"] == pytest.approx(-0.15)
    assert -0.2 < line["low"] < line["high"] < -0.1
    assert line["prompts"] == 20
    assert set(frame[frame["refereed"]]["measure"].str.partition(",")[0]) == {"ngrams"}
    assert frame[frame["system"] == "Default"]["difference"].isna().all()
