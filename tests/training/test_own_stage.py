"""A stage of one's own: its table, resuming and results come from a function.

One is as docs/training-stages.md shows it; the other, of benchmarks/positive, trains nothing but makes the pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main

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


# TRL's own trainers take the folders of parley export

RUN = "run rldf --no-check --topics 12 --rounds 2 --quiet --model sim/debate?base=4&round=-1 --out a.sqlite"


@pytest.mark.parametrize(("kind", "trainer"), [("kto", "KTO"), ("trl", "Reward")])
def test_a_trainer_takes_a_step(
    kind: str, trainer: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets
    import trl

    monkeypatch.chdir(tmp_path)
    assert main(RUN.split()) == 0
    assert main(["export", "a.sqlite", "--format", kind, "--to", "out"]) == 0
    rows = datasets.load_dataset("out", cache_dir="cache", split="train")
    assert {"kto": "label", "trl": "margin"}[kind] in rows.column_names
    # TRL's default is bf16, which took five minutes a step on a CPU without it
    on_cpu = {"use_cpu": True, "bf16": False}
    config = getattr(trl, f"{trainer}Config")(
        output_dir="trained", max_steps=1, per_device_train_batch_size=4, report_to=[], save_strategy="no", **on_cpu
    )
    result = getattr(trl, f"{trainer}Trainer")(model=str(tiny), args=config, train_dataset=rows).train()
    assert result.global_step == 1
    assert result.training_loss > 0
