"""A stage of one's own: its table, resuming and results come from a function.

One is as docs/training-stages.md shows it; the other, of benchmarks/positive, trains nothing but makes the pairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parley.base.errors import ConfigError
from parley.training.pairs import read_rows
from parley.training.stage_registry import config_class

DOCS = Path(__file__).parents[2] / "docs" / "training-stages.md"
SHORT = ["data=pairs", "min_pairs=4", "max_length=96", "sft.max_steps=2"]


def flags(*settings: str) -> list[str]:
    return [part for setting in (*SHORT, *settings) for part in ("--set", setting)]


@pytest.fixture
def kto(place: Path) -> Path:
    """The page's example, as a file."""
    (example,) = re.findall(r"```python\n(.*?train_kto.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    path = place / "kto.py"
    path.write_text(example, "utf-8")
    return path


def test_its_settings_are_a_table_of_the_config(kto: Path, parley: Callable[..., Any]) -> None:
    wrong = parley("train", "kto.py:train_kto", *flags("kto.bta=0.2"))
    assert wrong.status == 2
    assert wrong.complaints == ["parley: unknown key 'kto.bta' (did you mean 'kto.beta'?)"]
    wrong = parley("train", "kto.py:train_kto", *flags("kto.beta=-1"))
    assert "kto.beta" in wrong.complaints[0]
    assert "unknown key 'kto.beta'" in parley("train", "sft", *flags("kto.beta=0.2")).complaints[0]
    missing = parley("train", "kto.py:train_it", *flags())
    assert missing.complaints == [
        "parley: kto.py:train_it is not a training stage: train_it does not exist (see training/stages.py)"
    ]


def test_it_trains_from_sft_resumes_and_is_merged(
    kto: Path, tiny: Path, planted: Callable[..., Path], parley: Callable[..., Any]
) -> None:
    planted(80)
    own = flags(f"base={tiny}", "kto.max_steps=2", "use_peft=true")
    early = parley("train", "kto.py:train_kto", *own)
    assert "there is no finished sft stage at trained/sft: run `parley train sft` first" in early.complaints[0]
    assert parley("train", "sft", *flags(f"base={tiny}", "use_peft=true")).status == 0
    result = parley("train", "kto.py:train_kto", *own, "--json")
    assert result.status == 0, result.err
    assert result.json["kto"]["settings"]["kto.beta"] == 0.1
    assert result.json["kto"]["settings"]["sft.max_steps"] == 2, "it depends on SFT's settings too"
    assert result.json["kto"]["steps"] == 2
    again = parley("train", "kto.py:train_kto", *own)
    assert "kto: already done" in again.err
    assert "kto: 120 statements, 2 updates" in again.out
    other = parley("train", "kto.py:train_kto", *own, "--set", "kto.beta=0.3")
    assert "trained/kto was made with other settings (kto.beta was 0.1, not 0.3)" in other.complaints[0]
    merged = parley("train", "merge", *flags(f"base={tiny}", "use_peft=true"))
    assert "merged: local/trained/kto/merged" in merged.out, merged.err


PAIRS = "benchmarks.positive.completions:pairs"


def toxic_prompts(path: Path, count: int) -> str:
    """Rows as in RealToxicityPrompts, each of its own document."""
    rows = [
        {"filename": f"document-{n}.txt", "prompt": {"text": f"Those buses here are number {n}", "toxicity": 0.8}}
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def test_a_config_with_its_table_works_for_every_stage_if_it_names_the_stage(
    kto: Path, parley: Callable[..., Any]
) -> None:
    (kto.parent / "rldf.toml").write_text('data = "nowhere"\n[kto]\nbeta = 0.2\n', "utf-8")
    unnamed = parley("train", "sft", "--config", "rldf.toml")
    assert "unknown key 'kto.beta'" in unnamed.complaints[0]
    named = ("train", "sft", "--config", "rldf.toml", "--set", 'stages=["sft", "kto.py:train_kto"]')
    assert parley(*named).complaints == ["parley: there is no dataset at nowhere"]
    assert "kto.beta must be at least 0" in parley(*named, "--set", "kto.beta=-1").complaints[0]
    assert parley("train", "sft", "--set", "stages=sft", *flags()).complaints == [
        "parley: stages must be a valid list, got 'sft'"
    ]


def test_a_stage_that_makes_pairs_and_brings_its_own_evaluation(tiny: Path, place: Path) -> None:
    """The stage of benchmarks/positive, from prompts to a table."""
    from benchmarks.positive.completions import COMPLETIONS, read_splits
    from parley.jobs.training import run_training

    settings = config_class([PAIRS]).model_validate(
        {
            "base": str(tiny),
            "data": "pairs",
            "stages": [PAIRS, "sft", "reward", "rl"],
            "max_length": 96,
            "min_pairs": 2,
            "use_peft": True,
            "gguf": False,
            "completions": {
                "prompts": toxic_prompts(place / "prompts.jsonl", 60),
                "num_generations": 4,
                "margin": 0.01,
                "measures": [],
                "samples": 2,
                "best_of": 2,
            },
            "sft": {"max_steps": 1},
            "reward": {"max_steps": 1},
            "rl": {"max_steps": 1, "max_completion_length": 6, "probe_prompts": 2, "allow_weak_reward": True},
        }
    )
    results = run_training("all", settings)
    assert results["completions"]["completions"] == 240
    assert run_training(PAIRS, settings)["completions"] == results["completions"], "made once"
    frame = pd.DataFrame(read_rows(place / "trained" / "evaluate" / COMPLETIONS))
    assert set(frame["system"]) == {"Default", "Best of 2", "SFT", "RLDF"}
    assert set(frame["prompt"]) == set(read_splits(settings)["test"])
    assert frame[frame["system"] == "Default"]["kl"].abs().max() == 0
    assert frame["tokens"].max() <= 6
    assert {row["measure"] for row in results["evaluate"]["completions"]} > {"ngrams", "KL from base, nats"}
    with pytest.raises(ConfigError, match="other settings"):
        run_training(PAIRS, settings.model_copy(update={"seed": 5}))


def test_log_probabilities_are_those_of_single_passes_without_padding(tiny: Path) -> None:
    torch = pytest.importorskip("torch")
    from benchmarks.positive.evaluation import log_probabilities
    from parley.judging.rldf.answers import CONTINUE
    from parley.training.base_model import load_model, load_tokenizer
    from parley.training.config import TrainConfig
    from parley.training.tokenization import ChatTokenizer

    tokenizer = load_tokenizer(str(tiny), TrainConfig(data="x", base=str(tiny)))
    chat = ChatTokenizer(tokenizer, 64)
    model = load_model(str(tiny), tokenizer).eval()
    prompts = ["buses", "gardens by the sea", "songs"]
    completions = [chat.answer("I say anyone"), chat.answer("well")[:-1], chat.answer("that lot can use it")]
    for prompt, ids, found in zip(
        prompts, completions, log_probabilities(model, chat, prompts, completions), strict=True
    ):
        begin = chat.prompt(CONTINUE(topic=prompt))
        with torch.no_grad():
            logits = model(torch.tensor([[*begin, *ids]])).logits[0].log_softmax(-1)
        each = [float(logits[len(begin) - 1 + at, token]) for at, token in enumerate(ids)]
        assert found.whole == pytest.approx(sum(each), abs=1e-3)
        ended = ids[-1] == tokenizer.eos_token_id
        assert found.text == pytest.approx(sum(each[:-1] if ended else each), abs=1e-3)
