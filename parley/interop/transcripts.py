"""A run as JSON lines: one conversation per line, with its facets, turns, calls and verdicts, for other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from parley.base.redaction import HiddenAddresses
from parley.base.text import without_surrogates
from parley.interop.conversations import conversations
from parley.runs import RunFile, explain_damage


def to_transcripts(run: Path) -> Iterator[str]:
    """Convert a run to lines of JSON.

    Args:
        run: The run file.
    """
    with explain_damage(run), RunFile.open(run) as file:
        info = file.info()
        header = {"study": info["study"], "models": info["models"], "plan": info["plan"]}
        addresses = HiddenAddresses(info)
        for unit in conversations(file):
            yield json.dumps(addresses.hide(without_surrogates({**header, **unit})), ensure_ascii=False) + "\n"
