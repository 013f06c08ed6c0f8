"""`parley replicate rldf` from the debates to the evaluation: a simulated model debates, a tiny one is trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from parley.scenarios.bbq.rows import COUNTS
from parley.training.config import PAPERS_CATEGORIES
from tests.bbq_rows import bbq_row, write_bbq

SHORT = {
    "rl.allow_weak_reward": "true", "max_length": "256", "evaluate.max_tokens": "16", "evaluate.bbq_limit": "12",
    "rl.max_completion_length": "8", **{f"{stage}.max_steps": "2" for stage in ("sft", "reward", "rl")},
}  # fmt: skip


def test_the_whole_chain_is_one_command(parley: Callable[..., Any], place: Path, tiny: Path) -> None:
    assert set(PAPERS_CATEGORIES) <= set(COUNTS)
    for category in PAPERS_CATEGORIES:
        rows = (bbq_row(number, category=category) for number in range(4))
        write_bbq(place / "data" / "bbq" / f"{category}.jsonl", *rows)
    settings = [f"policy.{key}={value}" for key, value in {"base": str(tiny), **SHORT}.items()]
    typed = ["replicate", "rldf", "--model", "sim/any?base=6&round=-1&noise=1", "--scale", "0.01", "--out", "runs"]
    typed += [part for setting in [*settings, "topics=4", "rounds=3"] for part in ("--set", setting)]
    planned = parley(*typed, "--dry-run")
    assert "policy: sft, reward, rl, rlaif, evaluate of" in planned.out
    replicated = parley(*typed, "--quiet")
    assert "results" not in replicated.err
    assert "RLAIF is not measured: " in replicated.err, "a simulated labeller finds no answer of this model better"
    assert replicated.status == 1
    claims = (place / "runs/report/tables/claims.csv").read_text("utf-8")
    assert "RLDF against Default" in claims
    assert not (place / "runs/table1.sqlite").exists(), "the evaluation has the baselines, of the model that is trained"
    report = (place / "runs/policy/evaluate/report/report.html").read_text("utf-8")
    assert all(system in report for system in ("SFT", "RLDF", "CoT", "FairThinking"))
