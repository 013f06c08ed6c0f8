"""BBQ from the Hugging Face hub, with the `datasets` package: a fixed revision, and every count checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from parley.base.errors import ScenarioError
from parley.scenarios.bbq.load import Bbq, settle
from parley.scenarios.bbq.rows import COUNTS, BbqRow, read_row

REVISION = "5d6faae52070aa5eb71b46d1c0723d3ba7930209"
PLACE = "hf://datasets/heegyu/bbq@{revision}/data"
"""A copy of the authors' JSONL files, one per category."""


def load_hub(
    categories: Iterable[str] | None = None,
    *,
    revision: str = REVISION,
    place: str | None = None,
    cache: str | None = None,
) -> Bbq:
    """The rows of some categories.

    Args:
        categories: The categories (default: all).
        revision: The revision of the dataset.
        place: Another folder or URL with the same files.
        cache: The folder to cache them in (default: that of `datasets`).
    """
    try:
        from datasets import load_dataset
    except ModuleNotFoundError:
        raise ScenarioError(
            "BBQ from the hub needs the package datasets: pip install 'parley-autogen[datasets]', "
            "or give a folder of BBQ's .jsonl files with --data"
        ) from None
    where = (place or PLACE.format(revision=revision)).rstrip("/")
    rows: list[BbqRow] = []
    for category in categories or COUNTS:
        if category not in COUNTS:
            raise ScenarioError(f"unknown category of BBQ '{category}' (known: {', '.join(COUNTS)})")
        file = f"{where}/{category}.jsonl"
        try:
            table: Any = load_dataset("json", data_files=file, split="train", cache_dir=cache)
        except Exception as error:  # the network, the hub and Arrow raise many kinds
            why = " ".join(str(error).split())[:160] or type(error).__name__
            raise ScenarioError(
                f"{file} cannot be downloaded ({why}); offline, give a folder of BBQ's .jsonl files with --data"
            ) from None
        if len(table) != COUNTS[category]:
            raise ScenarioError(f"{file} has {len(table)} rows, expected {COUNTS[category]} of {category}")
        for number, row in enumerate(table, 1):
            try:
                rows.append(read_row(row))
            except ValueError as error:
                raise ScenarioError(f"{file}, row {number}: {error}") from None
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    return settle(rows, {f"hub {revision[:12]}": digest})
