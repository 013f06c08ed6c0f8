"""TRL's own trainers take the folders of `parley export` as they are, loaded by `datasets` without a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.cli import main

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
