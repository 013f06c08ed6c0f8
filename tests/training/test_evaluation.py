"""The evaluation of a tiny model with every system beside Default, the RLAIF baseline, and an ablation. Nothing is
learnt in two updates: the tests check that the parts fit together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.agents.fencing import fence_judged
from tests.bbq_rows import bbq_row, write_bbq

WHY = "training is tested where the extra training is installed"
torch = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

CONFIG = """
base = "{base}"
data = "pairs"
max_length = 96
min_pairs = 4
sft = {{ batch_size = 8, max_steps = 2 }}
reward = {{ batch_size = 8, max_steps = 2 }}
evaluate = {{ bbq = "bbq", bbq_limit = 4, judges = ["sim/judge"], topics = 3, max_tokens = 16 }}

[rl]
topics_from = "debates"
batch_size = 2
num_generations = 2
max_steps = 2
max_completion_length = 8
allow_weak_reward = true
"""


@pytest.fixture
def prepared(place: Path, tiny: Path, planted: Callable[..., Path]) -> Path:
    torch.set_num_threads(1)
    planted(80)
    write_bbq(place / "bbq" / "Age.jsonl", *map(bbq_row, range(8)))
    text = CONFIG.format(base=tiny).replace('bbq = "bbq"', 'bbq = "bbq", categories = ["Age"]')
    (place / "rldf.toml").write_text(text)
    return place


def test_systems_are_compared_with_default_and_not_run_twice(
    prepared: Path, parley: Callable[..., Any], server: Any
) -> None:
    server.answer = lambda nth, body: server.reply('{"less_biased": "tie"}')
    result = parley("train", "all", "--config", "rldf.toml", "--json")
    assert result.status == 0, result.err
    evaluation = result.json["evaluate"]
    systems = ["Default", "SFT", "RLDF", "CoT", "FairThinking"]
    assert list(dict.fromkeys(row["system"] for row in evaluation["bbq"])) == systems
    assert {row["category"] for row in evaluation["bbq"]} >= {"Age", "macro mean"}
    assert {row["metric"] for row in evaluation["rubric"]} == {"BS", "CE", "LS"}
    assert {(row["metric"], row["bias"]) for row in evaluation["rubric_by_bias"]} == {
        (metric, "age") for metric in ("BS", "CE", "LS")
    }
    by_bias, overall = evaluation["rubric_by_bias"], evaluation["rubric"]
    assert [row["mean"] for row in by_bias] == [row["mean"] for row in overall], "there is one bias type here"
    assert {row["category"] for row in evaluation["bbq_pooled"]} == {"Age", "overall"}
    assert {row["system"] for row in evaluation["rubric_paired"]} == set(systems[1:])
    assert {row["system"] for row in evaluation["gains"]} == set(systems[1:])
    assert sum("by the loop's own scorer and" in line for line in evaluation["summary"]) == len(systems[1:])
    assert "Not measured: RLAIF (its policy is not trained: parley train rlaif)." in evaluation["summary"]
    assert any("SIMULATED" in line for line in evaluation["cautions"])
    assert (prepared / "trained" / "evaluate" / "report" / "report.html").is_file()
    runs = {path.name for path in (prepared / "trained" / "evaluate").glob("*.sqlite")}
    assert parley("train", "evaluate", "--config", "rldf.toml", "--json").json["evaluate"] == evaluation
    assert {path.name for path in (prepared / "trained" / "evaluate").glob("*.sqlite")} == runs

    few = parley(
        "train", "evaluate", "--config", "rldf.toml", "--set", 'evaluate.systems=["RLDF", "Default"]', "--json"
    )
    assert [row["system"] for row in few.json["evaluate"]["rubric"]] == ["RLDF"] * 3 + ["Default"] * 3
    assert "Not measured: SFT (not in evaluate.systems)." in few.json["evaluate"]["summary"]
    assert {path.name for path in (prepared / "trained" / "evaluate").glob("bbq-*.sqlite")} <= runs
    alone = parley("train", "evaluate", "--config", "rldf.toml", "--set", 'evaluate.systems=["RLDF"]')
    assert "evaluate.systems must include Default, the baseline" in alone.complaints[0]

    undecided = parley("train", "rlaif", "--config", "rldf.toml", "--set", f"rlaif.labeller={server.model()}")
    assert undecided.status == 1
    assert "the labeller never preferred the same answer of a training pair in both orders" in undecided.complaints[0]


def as_judged(answer: str) -> str:
    """An answer as the labeller reads it, between its fences."""
    return "\n".join(fence_judged(answer, "ANSWER").splitlines()[1:-1])


def test_rlaif_trains_on_pairs_with_the_same_label_in_both_orders(
    prepared: Path, parley: Callable[..., Any], server: Any
) -> None:
    def prefers_the_first_in_the_alphabet(nth: int, body: dict[str, Any]) -> Any:
        prompt = body["messages"][-1]["content"]
        first, second = re.findall(r"^<<<(\w+) ANSWER .\n(.*?)\n\1>>>", prompt, re.DOTALL | re.MULTILINE)
        letter = "A" if first[1] < second[1] else "B"
        return server.reply(json.dumps({"less_biased": letter}))

    server.answer = prefers_the_first_in_the_alphabet
    assert parley("train", "sft", "--config", "rldf.toml").status == 0
    result = parley("train", "rlaif", "--config", "rldf.toml", "--set", f"rlaif.labeller={server.model()}", "--json")
    assert result.status == 0, result.err
    rows = [json.loads(line) for line in (prepared / "trained/rlaif/pairs/train.jsonl").read_text().splitlines()]
    assert len(rows) > 10
    chosen, rejected = ([as_judged(row[side][0]["content"]) for row in rows] for side in ("chosen", "rejected"))
    assert all(first < second for first, second in zip(chosen, rejected, strict=True))
    assert result.json["rlaif"]["rl"]["steps"] == 2
    assert (prepared / "trained" / "rlaif" / "rl" / "model.safetensors").is_file()


def test_several_seeds_give_means_and_standard_deviations(prepared: Path, parley: Callable[..., Any]) -> None:
    text = (prepared / "rldf.toml").read_text().replace('bbq = "bbq", ', "")
    (prepared / "rldf.toml").write_text(text)
    arguments = ["--config", "rldf.toml", "--set", "seeds=2", "--set", 'evaluate.systems=["Default", "RLDF"]']
    result = parley("train", "all", *arguments, "--json")
    assert result.status == 0, result.err
    assert list(result.json["by_seed"]) == ["0", "1"]
    first, second = (result.json["by_seed"][seed]["evaluate"]["rubric"] for seed in ("0", "1"))
    row = next(row for row in result.json["over_seeds"]["rubric"] if row["system"] == "RLDF" and row["metric"] == "BS")
    values = [next(r["mean"] for r in rows if (r["system"], r["metric"]) == ("RLDF", "BS")) for rows in (first, second)]
    assert row["seeds"] == 2
    assert row["mean"] == pytest.approx(sum(values) / 2)
    assert row["mean_sd"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert row["low"] <= row["mean"] <= row["high"]
    weights = [(prepared / "trained" / f"seed-{n}" / "rl" / "model.safetensors").read_bytes() for n in (0, 1)]
    assert weights[0] != weights[1]
    assert (prepared / "trained" / "seeds" / "tables" / "rubric.md").is_file()
    printed = parley("train", "all", *arguments)
    assert f"RLDF, BS, 2 seeds: mean {row['mean']:.3g} ± {row['mean_sd']:.3g}" in printed.out
