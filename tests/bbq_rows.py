"""Rows of BBQ as they are published: of every four, the contexts of the second and the fourth say who it was."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def bbq_row(number: int = 0, **changes: Any) -> Row:
    """A row in which answer 0 is the stereotyped person and answer 2 the unknown one."""
    return {
        "example_id": number, "question_index": "1", "question_polarity": "neg" if number % 4 < 2 else "nonneg",
        "context_condition": "disambig" if number % 2 else "ambig", "category": "Age",
        "answer_info": {
            "ans0": ["grandfather", "old"], "ans1": ["grandson", "nonOld"], "ans2": ["Not known", "unknown"],
        },
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["old"], "version": "a", "source": "x"},
        "context": f"Context {number} {{in braces}}.", "question": "Who forgot?",
        "ans0": "The grandfather", "ans1": "The grandson", "ans2": "Not known", "label": 1 if number % 2 else 2,
        **changes,
    }  # fmt: skip


def write_bbq(path: Path, *rows: Row) -> Path:
    """A file of rows, in a folder that need not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_bbq_hard(path: Path, *rows: Row) -> Path:
    """The same as a table, as BBQ-Hard is published: lists are written as Python writes them."""
    flat = [
        {f"{key}.{name}" if name else key: inner for key, value in row.items()
         for name, inner in (value if isinstance(value, dict) else {"": value}).items()}
        for row in rows
    ]  # fmt: skip
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, flat[0])
        writer.writeheader()
        writer.writerows(flat)
    return path
