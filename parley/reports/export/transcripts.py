"""A whole run as JSON lines, one conversation per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parley.base.redaction import HiddenAddresses
from parley.base.text import without_surrogates
from parley.runs import RunFile, explain_damage

TURN = "seq, round, speaker, role, text, parse_status, parsed"
VERDICT = "judge, role, round, subject, metric, value, sampled, text, status"
CALL = "seq, model, prompt_tokens, completion_tokens, latency, cost, cached, attempts"


def to_transcripts(run: Path) -> Iterator[str]:
    """Convert a run to lines of JSON.

    Args:
        run: The run file.
    """
    with explain_damage(run), RunFile.open(run) as file:
        info = file.info()
        header = {"study": info["study"], "models": info["models"], "plan": info["plan"]}
        addresses = HiddenAddresses(info)
        for unit in _conversations(file):
            yield json.dumps(addresses.hide(without_surrogates({**header, **unit})), ensure_ascii=False) + "\n"


def _conversations(file: RunFile) -> Iterator[dict[str, Any]]:
    """Every unit that is done or failed, with its turns, calls and verdicts."""
    units = "id, status, facets, error, stop_reason, started_at, finished_at"
    for unit in _dicts(file, f"SELECT {units} FROM units WHERE status != 'planned' ORDER BY position"):
        file.check_unit(unit["id"])
        unit_id = (unit["id"],)
        turns = _dicts(file, f"SELECT {TURN} FROM transcript WHERE unit = ? ORDER BY seq", unit_id)
        calls = _dicts(file, f"SELECT {CALL} FROM calls WHERE unit = ? ORDER BY seq, nth", unit_id)
        for turn in turns:
            turn["parsed"] = json.loads(turn["parsed"]) if turn["parsed"] else None
            turn["calls"] = [call for call in calls if call["seq"] == turn["seq"]]
        for call in calls:
            del call["seq"]
        verdicts = _dicts(file, f"SELECT {VERDICT} FROM verdicts WHERE unit = ? ORDER BY nth", unit_id)
        yield {**unit, "facets": json.loads(unit["facets"]), "turns": turns, "verdicts": verdicts}


def _dicts(file: RunFile, sql: str, values: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    columns, rows = file.rows(sql, values)
    return [dict(zip(columns, row, strict=True)) for row in rows]
