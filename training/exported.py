"""Reads a folder of `parley export`: its pairs, as a frame, and its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.base.errors import ConfigError
from parley.base.files import MANIFEST

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


def read_export(folder: Path) -> tuple[pd.DataFrame, Row]:
    """The pairs of an export, one row each (`parley.judging.rldf.preferences.audit`), and its manifest.

    Args:
        folder: A folder in a format that has pairs as JSON lines.
    """
    import pandas as pd

    from parley.training.pairs import read_splits  # imported late: it loads AutoGen, which commands on runs do not need

    splits = read_splits(folder / "pairs" if (folder / "pairs").is_dir() else folder)
    rows = [
        {"topic": pair.topic, "split": split, "chosen": pair.chosen.text, "rejected": pair.rejected.text, **pair.meta}
        for split, pairs in splits.items()
        for pair in pairs
    ]
    if not rows:
        raise ConfigError(f"{folder} has no pairs")
    return pd.DataFrame(rows), manifest_of(folder)


def manifest_of(folder: Path) -> Row:
    """The manifest of an export; empty if there is none."""
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    except (OSError, ValueError):
        raise ConfigError(f"{file}: not a manifest of `parley export`") from None
    return manifest if isinstance(manifest, dict) else {}


def referee_checks(manifest: Row) -> list[str]:
    """The results of the referee checks behind an export's debates."""
    runs: Any = manifest.get("runs")
    checks = [run.get("check") for run in runs.values() if isinstance(run, dict)] if isinstance(runs, dict) else []
    sentences = [check.get("sentence") for check in checks if isinstance(check, dict)]
    return list(dict.fromkeys(sentence for sentence in sentences if isinstance(sentence, str)))
