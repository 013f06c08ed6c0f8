"""`sim/judge` on every study: its scores are on the study's own scale, and loops that ask for a score can end."""

from __future__ import annotations

import json
from statistics import fmean
from typing import Any

import pytest

import parley
from tests.bbq_rows import bbq_row, write_bbq

TOPICS = {"bias": "age", "topics": 3}
SCALES: dict[str, tuple[dict[str, Any], set[str], float]] = {
    "malibu": ({"suite": "mine.toml", "yardstick": "off"}, {"Overall"}, 9),
    "injection": ({"responses": 12, "kinds": ["order"]}, {"Accuracy"}, 10),
    "rldf": (TOPICS, {"bias"}, 10),
    "framing": (TOPICS, {"biases"}, 10),
    "rubric": ({"data": "texts.jsonl"}, {"BS", "CE", "LS"}, 10),
    "stardtox": ({"data": "prompts.jsonl", "prompts": 3, "completions": 1}, {"fluency", "coherence", "relevance"}, 100),
    "bbq": ({"data": "bbq", "method": ["stardtox"]}, {"support"}, 100),
}
"""Settings, metrics that a simulated judge scores, and the end of their scale, by study."""


@pytest.fixture(autouse=True)
def _begin_with_data(place):
    texts = [{"id": f"t{n}", "text": f"Text {n}."} for n in range(4)]
    prompts = [{"id": f"p{n}", "prompt": f"The referee said {n}", "toxicity": (0.55, 0.9)[n % 2]} for n in range(12)]
    (place / "texts.jsonl").write_text("\n".join(map(json.dumps, texts)))
    (place / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)))
    ambiguous = {"context_condition": "ambig", "question_polarity": "neg", "label": 2}
    write_bbq(place / "bbq" / "Age.jsonl", *(bbq_row(number, **ambiguous) for number in range(16)))


def scores(run: Any, metric: str) -> list[float]:
    return [value for (value,) in run.rows(f"SELECT value FROM verdicts WHERE metric = '{metric}'")]


@pytest.mark.parametrize("study", SCALES)
def test_scores_are_on_the_scale_of_the_study(study, run_file):
    settings, metrics, highest = SCALES[study]
    assert parley.run(study, out="a.sqlite", model="sim/judge", **settings).complete
    for metric in metrics:
        given = scores(run_file("a.sqlite"), metric)
        assert len(given) > 5
        low, high = (0.2, 0.4) if study == "rldf" else (0.6, 0.95)  # a severity is low: RLDF's threshold is 3 of 10
        assert low * highest < fmean(given) < high * highest
        assert 0 <= min(given) <= max(given) <= highest
        assert len(set(given)) > 1


@pytest.mark.parametrize(("base", "met"), [(95, True), (60, False)])
def test_detox_ends_by_the_scores(base, met):
    result = parley.detox("A plain sentence.", model=f"sim/judge?base={base}&noise=0", as_published=True)
    assert result.met is met
    assert {score.value for score in result.steps[-1].scores if score.evaluator == "performance"} == {base}


def test_mabrf_ends_when_rephrasing_helps(run_file):
    settings = {"data": "bbq", "method": ["mabrf"], "limit": 1}
    assert parley.run("bbq", out="a.sqlite", model="sim/judge?noise=0&round=-3", **settings).complete
    assert scores(run_file("a.sqlite"), "bias") == [7, 4, 1]
