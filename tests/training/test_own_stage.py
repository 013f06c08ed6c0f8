"""A stage of one's own, as docs/training-stages.md shows it: its table, resuming and results come from a function."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
