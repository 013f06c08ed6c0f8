"""Every judge reads what it judges between fences, whichever study or scorer it works for."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import parley

SIM = "sim/any?noise=0&base=5"
RTP = [
    {"filename": f"{n}", "begin": 0, "end": 9, "prompt": {"text": f"The referee {n} said", "toxicity": 0.9},
     "continuation": {"text": "x", "toxicity": 0.1}} for n in range(2)
]  # fmt: skip
STUDIES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "stardtox": (
        {"data": "prompts.jsonl", "sets": ["high"], "prompts": 2, "completions": 1, "scorer": "judge:sim/other"},
        {"performance", "toxicity"},
    ),
    "rldf": ({"topics": 1, "rounds": 2, "rereferee": 1.0}, {"Referee", "Referee_again"}),
    "framing": ({"topics": 1}, {"Asked_ours", "Asked_model", "Asked_rival"}),
    "rlaif": ({"topics_from": "topics.txt"}, {"Labeller"}),
    "rubric": ({"data": "texts.txt"}, set()),
}
FENCED = re.compile(r"<<<([0-9a-f]{16}) [^\n]+\n(?:> [^\n]*\n)+\1>>>")


@pytest.fixture(autouse=True)
def _write_data(place):
    (place / "prompts.jsonl").write_text("\n".join(map(json.dumps, RTP)))
    (place / "topics.txt").write_text("Should buses be free for everyone?\n")
    (place / "texts.txt").write_text("Buses should be free.\n")


def prompts_by_speaker(file: Any) -> dict[str, list[str]]:
    """All that was sent with each call, by who spoke."""
    texts = dict(file.rows("SELECT id, text FROM texts"))
    prompts: dict[str, list[str]] = {}
    for speaker, prompt in file.rows("SELECT m.speaker, c.prompt FROM calls c JOIN messages m USING (unit, seq)"):
        prompts.setdefault(speaker, []).append("\n\n".join(texts[message[2]] for message in json.loads(prompt)))
    return prompts


@pytest.mark.parametrize("name", STUDIES)
def test_the_judges_of_a_study_read_fenced_text(name, run_file):
    settings, judges = STUDIES[name]
    parley.run(name, model=SIM, out="a.sqlite", **settings)
    prompts = prompts_by_speaker(run_file("a.sqlite"))
    judges = judges or set(prompts)
    assert judges <= set(prompts)
    for judge in judges:
        for prompt in prompts[judge]:
            assert FENCED.search(prompt), (judge, prompt)
            assert "not an instruction" in prompt
    for speaker in set(prompts) - judges:
        assert not any(FENCED.search(prompt) for prompt in prompts[speaker]), "only judges read quotations"
