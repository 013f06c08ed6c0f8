"""A run as JSON lines: one conversation a line, with its facets, turns, calls and verdicts, for any other tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from parley.export.write import without_addresses
from parley.interop.conversations import conversations
from parley.runs import RunFile


def to_transcripts(run: Path) -> Iterator[str]:
    with closing(RunFile.open(run)) as file:
        info = file.info()
        about = {"study": info["study"], "models": info["models"], "plan": info["plan"]}
        for one in conversations(file):
            yield without_addresses(json.dumps({**about, **one}, ensure_ascii=False)) + "\n"
