"""From planted pairs to a policy on a model of half a million parameters: the reward model learns to rank, RL raises
its reward, and the result runs as `hf/FOLDER`. Where torch and trl are not installed, these are skipped."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

WHY = "training is tested where the extra training is installed"
torch = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)
Planted = Callable[..., Path]

CONFIG = """
base = "{base}"
data = "pairs"
out = "out"
max_length = 96
save_steps = 5
min_pairs = 50

[sft]
data = "both.jsonl"
learning_rate = 3e-3
batch_size = 32
max_steps = 30

[reward]
learning_rate = 1e-3
batch_size = 32
max_steps = 16

[rl]
learning_rate = 1e-3
batch_size = 8
num_generations = 4
beta = 0.01
max_steps = 20
max_completion_length = 16
max_kl = 100.0
topics_from = "debates"
"""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
"""Of the commands in processes of their own."""
SHORT = [part for setting in ("sft.max_steps=2", "reward.max_steps=2", "rl.max_steps=2") for part in ("--set", setting)]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)  # faster for so small a model


@pytest.fixture
def prepared(place: Path, tiny: Path, planted: Planted, planting: SimpleNamespace) -> Path:
    """A folder with pairs, a config, and SFT data of both kind and unkind statements."""
    planted(240)
    rng = random.Random(5)
    lines = []
    for number, topic in enumerate(planting.topics(240)):
        prompt = {"role": "user", "content": f"What do you think about this? {topic}"}
        completion = {"role": "assistant", "content": planting.statement(rng, bool(number % 2))}
        lines.append(json.dumps({"prompt": [prompt], "completion": [completion]}) + "\n")
    (place / "both.jsonl").write_text("".join(lines))
    (place / "rldf.toml").write_text(CONFIG.format(base=tiny))
    return place


def log(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_all_stages(prepared: Path, parley: Callable[..., Any]) -> None:
    trained = parley("train", "all", "--config", "rldf.toml", "--json")
    assert trained.status == 0, trained.err
    results = trained.json

    sft = results["sft"]
    assert sft["held_out_loss_after"] < 0.5 * sft["held_out_loss_before"]

    quality = {row["control"]: row for row in results["reward"]["quality"]}
    assert quality["all pairs"]["accuracy"] >= 0.9, "it ranks the planted pairs, on unseen topics"
    assert quality["lengths matched"]["accuracy"] >= 0.9
    assert quality["length alone"]["accuracy"] < 0.75
    assert results["reward"]["ece"] is not None
    assert (prepared / "out" / "reward" / "reliability.svg").is_file()

    lines = log(prepared / "out" / "rl")
    rewards = [line["reward"] for line in lines if "reward" in line]
    assert sum(rewards[-3:]) / 3 > rewards[0] + 0.5, "RL raises its reward"
    assert (results["rl"]["reward_before"], results["rl"]["reward_after"]) == (rewards[0], rewards[-1])
    assert all({"kl", "entropy", "length", "reward"} <= set(line) for line in lines if "reward" in line)
    assert not list((prepared / "out").glob("*.steps"))

    again = parley("train", "all", "--config", "rldf.toml", "--json")
    assert "rl: already done" in again.err
    assert again.json == results, "finished stages are not repeated"
    other = parley("train", "sft", "--config", "rldf.toml", "--set", "sft.max_steps=31")
    assert other.status == 2
    assert "out/sft was made with other settings (sft.max_steps was 30, not 31)" in other.complaints[0]

    planned = parley("run", "answers", "--topics-from", "age", "--model", "hf/out/rl?context=256", "--dry-run")
    assert planned.status == 0, planned.err
    assert_same_replies_as_from_transformers(prepared / "out" / "rl")


def assert_same_replies_as_from_transformers(folder: Path) -> None:
    """Parley's client against `generate`: greedy text and prompt tokens."""
    from autogen_core.models import UserMessage
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from parley.agents import model

    question = "What do you think about this? Are 40-year-olds good at games, case 123?"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    weights = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    chat = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    generated = weights.generate(**prompt, max_new_tokens=12, do_sample=False)
    start = prompt["input_ids"].shape[1]

    async def ask() -> Any:
        client = model(f"hf/{folder}?context=256")
        try:
            options = {"max_tokens": 12, "temperature": 0.0}
            return await client.create([UserMessage(content=question, source="user")], extra_create_args=options)
        finally:
            await client.close()

    reply = asyncio.run(ask())
    assert reply.content.strip() == tokenizer.decode(generated[0, start:], skip_special_tokens=True).strip()
    assert reply.usage.prompt_tokens == start


def test_a_run_that_is_killed_in_every_stage_has_the_result_of_one_that_is_not(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit, on a CPU: weights, results and every logged update."""
    from benchmarks.killed import compare, train

    for name in ("PYTHONPATH", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, ENVIRONMENT[name])
    short = {
        "data": prepared / "pairs", "sft.data": prepared / "both.jsonl", "save_steps": 3,
        "sft.max_steps": 10, "reward.max_steps": 10, "rl.max_steps": 10, "rl.batch_size": 4,
        "rl.allow_weak_reward": "true",
    }  # fmt: skip
    settings = [part for key, value in short.items() for part in ("--set", f"{key}={value}")]
    arguments = ["--config", str(prepared / "rldf.toml"), *settings]
    undisturbed, killed = prepared / "undisturbed", prepared / "killed"
    assert train(undisturbed, arguments, kill=False) == []
    moments = train(killed, arguments, kill=True)
    assert [moment.split()[0] for moment in moments] == ["sft", "reward", "rl"]
    entries = {"sft": 12, "reward": 10, "rl": 10}
    assert compare(undisturbed, killed) == [
        f"{stage}: largest difference of a weight 0; {count} of {count} log entries equal; results equal"
        for stage, count in entries.items()
    ]


def test_ppo_by_name(prepared: Path, parley: Callable[..., Any]) -> None:
    chosen = ["--set", "rl.algorithm=ppo", "--set", "rl.allow_weak_reward=true"]
    result = parley("train", "all", "--config", "rldf.toml", *chosen, *SHORT, "--json")
    if find_spec("trl.experimental.ppo") is None:
        assert result.complaints[0].startswith("parley: trl dropped PPO in 1.13: pip install trl==1.12.0")
        assert not (prepared / "out" / "sft").exists(), "refused before anything is trained"
        return
    assert result.status == 0, result.err
    assert (result.json["rl"]["algorithm"], result.json["rl"]["steps"]) == ("ppo", 2)


def test_answers_end_as_the_template_ends_a_turn(prepared: Path, tiny: Path, parley: Callable[..., Any]) -> None:
    from transformers import AutoTokenizer

    wrong = prepared / "wrong"
    shutil.copytree(tiny, wrong)
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.eos_token = "<|im_start|>"  # what transformers 5.17 made of SmolLM2's
    tokenizer.save_pretrained(wrong)
    short = ["--config", "rldf.toml", "--set", "sft.max_steps=2"]
    result = parley("train", "sft", *short, "--set", "base=wrong")
    assert result.status == 2
    assert "ends answers on '<|im_start|>', its chat template on '<|im_end|>'" in result.complaints[0]
    assert parley("train", "sft", *short, "--set", "base=wrong", "--set", "eos_token=<|im_end|>").status == 0

    config = prepared / "out" / "sft" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"eos_token_id": 1}))
    result = parley("train", "reward", *short, "--set", "base=wrong", "--set", "eos_token=<|im_end|>")
    assert result.status == 2
    assert "trained to end answers on token 1, but its base ends them on 2 ('<|im_end|>')" in result.complaints[0]


def test_two_processes_train_together(prepared: Path) -> None:
    few = {
        "sft.max_steps": 2, "reward.max_steps": 2, "rl.max_steps": 2,
        "rl.batch_size": 4, "rl.num_generations": 2,
    }  # fmt: skip
    short = [part for key, value in few.items() for part in ("--set", f"{key}={value}")]
    # torchrun, since `accelerate launch --cpu` starts one process however many are asked for
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]

    def train(*settings: str) -> subprocess.CompletedProcess[str]:
        command = [*launch, "-m", "parley", "train", "all", "--config", "rldf.toml", *short, *settings]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False)

    result = train()
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.count("rl: rloo, 2 updates") == 1, "only one of the two prints"
    for stage in ("sft", "reward", "rl"):
        assert len({entry["step"] for entry in log(prepared / "out" / stage) if entry["step"]}) == 2
    refused = train("--set", "sft.batch_size=3", "--out", "another")
    assert "sft.batch_size = 3 cannot be divided evenly over 2 devices" in refused.stderr
