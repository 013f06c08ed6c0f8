"""`parley report DATASET`: what a reward model could learn from an export's pairs instead of their content."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.base.home import say
from parley.training.exported import MANIFEST, read_export, referee_checks

if TYPE_CHECKING:
    from parley.analysis.stats.results import Line


def is_dataset(path: Path) -> bool:
    """Whether this is a folder of `parley export`, and not a run."""
    return (path / MANIFEST).is_file()


def dataset_report(folder: Path, seed: int = 0) -> Any:
    """The report on an export's preference pairs.

    Args:
        folder: The folder.
        seed: Seed of the folds, sign flips and bootstrap.
    """
    from parley.judging.rldf.preferences.report import preference_report

    pairs, manifest = read_export(folder)
    for line in referee_checks(manifest):
        say(line)
    instructions = manifest.get("instructions")
    return preference_report(
        pairs,
        instructions=instructions if isinstance(instructions, str) else "",
        title=f"Audit of {folder.name}",
        seed=seed,
        blind=_blind(manifest),
    )


def _blind(manifest: dict[str, Any]) -> Line | None:
    """The blind referee's line of the audit that the export made: also over the pairs that it contradicted."""
    from parley.judging.rldf.preferences.audit import stored_agreement

    try:
        row = next(row for row in manifest["audit"]["shortcuts"] if "blind" in row["predictor"] and row["n"])
        stored = {name: row[name] for name in ("estimate", "low", "high", "p")}
        numbers = {name: math.nan if value is None else float(value) for name, value in stored.items()}
        return stored_agreement({**numbers, "n": int(row["n"]), "clusters": int(row["clusters"])})
    except (KeyError, TypeError, ValueError, StopIteration):
        return None
