"""`parley report DATASET`: what a reward model could learn from preference pairs instead of their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError
from parley.base.home import say
from parley.imports.preferences import read_preferences, referee_checks

ENDINGS = (".parquet", ".jsonl", ".json", ".arrow")


def is_dataset(path: Path) -> bool:
    """Whether this is a dataset of preference pairs, or a folder of one, and not a run."""
    return path.suffix in ENDINGS or (path.is_dir() and any(file.suffix in ENDINGS for file in path.rglob("*")))


def dataset_report(path: Path, instructions: Path | None = None, seed: int = 0) -> Any:
    """The report on a dataset of preference pairs.

    Args:
        path: A folder or file of pairs in TRL's format.
        instructions: A text file with the writers' instructions (default: those in the export's manifest).
        seed: Seed of the folds, sign flips and bootstrap.
    """
    from parley.analysis.preferences.report import preference_report

    dataset = read_preferences(path)
    told = dataset.instructions
    if instructions is not None:
        try:
            told = instructions.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise ConfigError(f"{instructions}: {reason}") from None
    for line in referee_checks(path):
        say(line)
    title = f"Audit of {path.name}"
    return preference_report(dataset.pairs, instructions=told, title=title, seed=seed, blind=dataset.blind)
