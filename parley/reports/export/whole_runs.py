"""A whole run for other tools: as an Inspect AI log, or as JSON lines with one conversation per line.

The Inspect log is JSON of format version 2: `inspect view` opens it, `read_eval_log` reads it. A unit becomes a sample:
the narrator's turns become user messages, the agents' turns assistant messages with the speaker in their metadata. A
verdict becomes a score named after metric, subject, judge and round. Inspect has no score without a value: such
verdicts are listed in the sample's metadata.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from parley import __version__
from parley.agents import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.base.text import without_surrogates
from parley.runs import RunFile, explain_damage

TURN = "seq, round, speaker, role, text, parse_status, parsed"
VERDICT = "judge, role, round, subject, metric, value, sampled, text, status"
CALL = "seq, model, prompt_tokens, completion_tokens, latency, cost, cached, attempts"
VERSION = 2


class InspectLog(NamedTuple):
    """A log as JSON, and its file name (`inspect view` lists only files with names of this form)."""

    name: str
    text: str


def to_inspect(run: Path) -> InspectLog:
    """Convert a run to an Inspect log.

    Args:
        run: The run file.
    """
    with explain_damage(run):
        return _to_inspect(run)


def _to_inspect(run: Path) -> InspectLog:
    with RunFile.open(run) as file:
        addresses, counts = HiddenAddresses(file.info()), file.counts()
        info = addresses.hide(file.info())
        samples = [_sample(addresses.hide(unit), info) for unit in conversations(file)]
    if not samples:
        raise ConfigError(f"{run} has no finished unit yet")
    started, ended = (_timestamp(pick(sample["started_at"] for sample in samples)) for pick in (min, max))
    log_id = hashlib.sha256(f"{info['study']}{info['plan']}".encode()).hexdigest()[:22]
    usage: dict[str, dict[str, int]] = {}
    for sample in samples:
        for model, used in sample["model_usage"].items():
            total = usage.setdefault(model, dict.fromkeys(used, 0))
            usage[model] = {key: total[key] + value for key, value in used.items()}
        for key in ("started_at", "completed_at"):
            sample[key] = _timestamp(sample[key])
    log = {
        "version": VERSION,
        "status": "success" if counts["planned"] == 0 else "cancelled",
        "eval": {
            "eval_id": log_id,
            "run_id": log_id,
            "created": started,
            "task": str(info["study"]),
            "task_id": log_id,
            "dataset": {"samples": len(samples), "sample_ids": [sample["id"] for sample in samples], "shuffled": False},
            "model": ", ".join(info["models"]),
            "config": {"epochs": 1},
            "packages": {"parley-autogen": __version__},
            "metadata": {"parley_config": info["config"], "parley_sources": info["sources"]},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": sum(counts.values()), "completed_samples": counts["done"], "scores": []},
        "stats": {"started_at": started, "completed_at": ended, "model_usage": usage},
        "samples": samples,
    }
    stamp = re.sub(r"\.\d+|\+|:", lambda match: "" if match[0][0] == "." else "-", started)
    task = re.sub(r"[^A-Za-z0-9-]+", "-", str(info["study"]))
    return InspectLog(
        f"{stamp}_{task}_{log_id}.json", json.dumps(without_surrogates(log), ensure_ascii=False, allow_nan=False)
    )


def _timestamp(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(f"a unit started or ended at {seconds:g} seconds since 1970, which is not a date") from None


def _sample(unit: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    messages = [_message(unit["id"], turn, info) for turn in unit["turns"]]
    replies = [message for message in messages if message["role"] == "assistant"]
    usage: defaultdict[str, dict[str, int]] = defaultdict(
        lambda: {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    )
    for call in (call for turn in unit["turns"] for call in turn["calls"]):
        used = usage[call["model"]]
        used["input_tokens"] += call["prompt_tokens"]
        used["output_tokens"] += call["completion_tokens"]
        used["total_tokens"] += call["prompt_tokens"] + call["completion_tokens"]
    unread = [_score_name(v) for v in unit["verdicts"] if v["value"] is None and v["text"] is None]
    last = replies[-1] if replies else None
    sample = {
        "id": unit["id"],
        "epoch": 1,
        "input": next((message["content"] for message in messages if message["role"] == "user"), ""),
        "target": "",
        "messages": messages,
        "output": {
            "model": str(last["model"]) if last else "",
            "choices": [{"message": last, "stop_reason": "stop"}] if last else [],
            "completion": str(last["content"]) if last else "",
        },
        "scores": dict(_scores(unit["verdicts"])),
        "metadata": {**unit["facets"], "stop_reason": unit["stop_reason"], "without_score": unread},
        "model_usage": dict(usage),
        "started_at": unit["started_at"] or 0.0,
        "completed_at": unit["finished_at"] or 0.0,
    }
    if unit["error"]:
        sample["error"] = {"message": unit["error"], "traceback": "", "traceback_ansi": ""}
    return sample


def _message(unit: str, turn: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    message_id = hashlib.sha256(f"{unit}\x1f{turn['seq']}".encode()).hexdigest()[:22]
    if turn["role"] == "narrator":
        return {"id": message_id, "role": "user", "content": turn["text"], "metadata": {"speaker": turn["speaker"]}}
    metadata = {key: turn[key] for key in ("speaker", "role", "round", "parse_status") if turn[key] is not None}
    model = turn["calls"][-1]["model"] if turn["calls"] else ", ".join(info["models"])
    return {"id": message_id, "role": "assistant", "content": turn["text"], "model": model, "metadata": metadata}


def _score_name(verdict: dict[str, Any]) -> str:
    parts = (verdict["metric"], verdict["subject"], verdict["judge"], f"round {verdict['round']}")
    return " · ".join(part for part in parts if part)


def _scores(verdicts: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for verdict in verdicts:
        value = verdict["value"] if verdict["value"] is not None else verdict["text"]
        if value is not None:
            metadata = {"status": verdict["status"], "sampled": verdict["sampled"]}
            yield _score_name(verdict), {"value": value, "metadata": metadata}


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


def conversations(file: RunFile) -> Iterator[dict[str, Any]]:
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
