"""Published data that some nightly tests compare with: `PARLEY_TEST_DATA=FOLDER python -m tests.nightly`.

    FOLDER/bbq/*.jsonl, templates/*      BBQ's data and templates (github.com/nyu-mll/BBQ)
    FOLDER/bbq_predictions/*.jsonl.gz    UnifiedQA's answers to it (the same repository, results/)
    FOLDER/mabrf/judge_replies.json      51 replies of real judges with what they mean, from MABRF's notebooks
    FOLDER/rtp/rtp_quark_val_5000.jsonl  rows of RealToxicityPrompts with Perspective's scores, as Quark publishes them
    FOLDER/papers/*.txt                  the text of the four papers

Where something is missing, its test is skipped with its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("PARLEY_TEST_DATA", "no-published-data"))


def needs(*names: str) -> Callable[[Any], Any]:
    """Marks a nightly test that needs these files or folders of the data."""
    lacking = [name for name in names if not (FOLDER / name).exists()]
    skip = pytest.mark.skipif(bool(lacking), reason=f"needs PARLEY_TEST_DATA/{', '.join(lacking)}: tests/published.py")
    return lambda test: pytest.mark.nightly(skip(test))
