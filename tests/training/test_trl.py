"""TRL's own trainers take the folders of `parley export`: those that docs/training.md shows, and others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parley.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "training.md"
RUN = "run rldf --no-check --topics 12 --rounds 2 --quiet --model sim/debate?base=4&round=-1 --out a.sqlite"
WHY = "training is tested where the extra training is installed"
# TRL's default is bf16, which took five minutes a step on a CPU without it
ONE_STEP = "max_steps=1, report_to=[], save_strategy='no', use_cpu=True, bf16=False, "


@pytest.fixture
def exported(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(RUN.split()) == 0
    return tmp_path


@pytest.mark.parametrize(("kind", "trainer"), [("kto", "KTO"), ("trl", "Reward")])
def test_a_trainer_takes_a_step(kind: str, trainer: str, tiny: Path, exported: Path) -> None:
    import datasets
    import trl

    assert main(["export", "a.sqlite", "--format", kind, "--to", "out"]) == 0
    rows = datasets.load_dataset("out", cache_dir="cache", split="train")
    assert {"kto": "label", "trl": "margin"}[kind] in rows.column_names
    config = eval(f"trl.{trainer}Config('trained', {ONE_STEP} per_device_train_batch_size=4)")
    result = getattr(trl, f"{trainer}Trainer")(model=str(tiny), args=config, train_dataset=rows).train()
    assert result.global_step == 1
    assert result.training_loss > 0


def test_dpo_and_grpo_take_a_step_as_the_page_says(tiny: Path, exported: Path) -> None:
    """With one step, short answers and the tiny model; its weights with a new head are the reward model."""
    transformers = pytest.importorskip("transformers", reason=WHY)
    assert main(["export", "a.sqlite", "--format", "trl-explicit", "--to", "age-pairs"]) == 0
    (example,) = re.findall(r"```python\n(.*?GRPOTrainer.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    Path("trained").mkdir()
    Path("trained/sft").symlink_to(tiny)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    scorer = transformers.AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=1)
    scorer.config.pad_token_id = tokenizer.pad_token_id
    for part in (scorer, tokenizer):
        part.save_pretrained("trained/reward")
    for name, more in (("DPO", ""), ("GRPO", "max_completion_length=8, ")):
        example, count = re.subn(rf'\b({name}Config\("[^"]+", )', rf"\1{ONE_STEP}{more}", example)
        assert count == 1
    exec(example, {})
