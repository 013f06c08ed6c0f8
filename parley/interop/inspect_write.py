"""A run as a log of Inspect AI's (JSON, format version 2): `inspect view` opens it, `read_eval_log` reads it.

A unit becomes a sample: what was put to the table are user messages, what was said assistant messages with the speaker
in their metadata. A verdict becomes a score named after metric, subject, judge and round. What has no number is no
score there; it is named in the sample's metadata.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from parley import __version__
from parley.agents import ConfigError
from parley.export.write import without_addresses
from parley.interop.conversations import conversations
from parley.runs import RunFile

VERSION = 2


class InspectLog(NamedTuple):
    """A log as JSON, and the file name that Inspect finds it by (`inspect view` lists no other)."""

    name: str
    text: str


def to_inspect(run: Path) -> InspectLog:
    with closing(RunFile.open(run)) as file:
        info, counts = file.info(), file.counts()
        samples = [_sample(one, info) for one in conversations(file)]
    if not samples:
        raise ConfigError(f"{run} has no unit that was held")
    began, ended = (_moment(pick(sample["started_at"] for sample in samples)) for pick in (min, max))
    name = hashlib.sha256(f"{info['study']}{info['plan']}".encode()).hexdigest()[:22]
    usage: dict[str, dict[str, int]] = {}
    for sample in samples:
        for model, used in sample["model_usage"].items():
            total = usage.setdefault(model, dict.fromkeys(used, 0))
            usage[model] = {key: total[key] + value for key, value in used.items()}
        sample["started_at"], sample["completed_at"] = _moment(sample["started_at"]), _moment(sample["completed_at"])
    log = {
        "version": VERSION,
        "status": "success" if counts["planned"] == 0 else "cancelled",
        "eval": {
            "eval_id": name,
            "run_id": name,
            "created": began,
            "task": str(info["study"]),
            "task_id": name,
            "dataset": {"samples": len(samples), "sample_ids": [sample["id"] for sample in samples], "shuffled": False},
            "model": ", ".join(info["models"]),
            "config": {"epochs": 1},
            "packages": {"parley-autogen": __version__},
            "metadata": {"parley_config": info["config"], "parley_sources": info["sources"]},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": sum(counts.values()), "completed_samples": counts["done"], "scores": []},
        "stats": {"started_at": began, "completed_at": ended, "model_usage": usage},
        "samples": samples,
    }
    stamp, task = re.sub(r"\.\d+|\+|:", lambda found: "" if found[0][0] == "." else "-", began), str(info["study"])
    place = f"{stamp}_{re.sub(r'[^A-Za-z0-9-]+', '-', task)}_{name}.json"
    return InspectLog(place, without_addresses(json.dumps(log, ensure_ascii=False, allow_nan=False)))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _sample(one: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    messages = [_message(one["id"], turn, info) for turn in one["turns"]]
    said = [message for message in messages if message["role"] == "assistant"]
    usage: defaultdict[str, dict[str, int]] = defaultdict(
        lambda: {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    )
    for call in (call for turn in one["turns"] for call in turn["calls"]):
        used = usage[call["model"]]
        used["input_tokens"] += call["prompt_tokens"]
        used["output_tokens"] += call["completion_tokens"]
        used["total_tokens"] += call["prompt_tokens"] + call["completion_tokens"]
    unread = [_score_name(v) for v in one["verdicts"] if v["value"] is None and v["text"] is None]
    last = said[-1] if said else None
    sample = {
        "id": one["id"],
        "epoch": 1,
        "input": next((message["content"] for message in messages if message["role"] == "user"), ""),
        "target": "",
        "messages": messages,
        "output": {
            "model": str(last["model"]) if last else "",
            "choices": [{"message": last, "stop_reason": "stop"}] if last else [],
            "completion": str(last["content"]) if last else "",
        },
        "scores": dict(_scores(one["verdicts"])),
        "metadata": {**one["facets"], "stop_reason": one["stop_reason"], "without_score": unread},
        "model_usage": dict(usage),
        "started_at": one["started_at"] or 0.0,
        "completed_at": one["finished_at"] or 0.0,
    }
    if one["error"]:
        sample["error"] = {"message": one["error"], "traceback": "", "traceback_ansi": ""}
    return sample


def _message(unit: str, turn: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    name = hashlib.sha256(f"{unit}\x1f{turn['seq']}".encode()).hexdigest()[:22]
    if turn["role"] == "narrator":
        return {"id": name, "role": "user", "content": turn["text"], "metadata": {"speaker": turn["speaker"]}}
    about = {key: turn[key] for key in ("speaker", "role", "round", "parse_status") if turn[key] is not None}
    model = turn["calls"][-1]["model"] if turn["calls"] else ", ".join(info["models"])
    return {"id": name, "role": "assistant", "content": turn["text"], "model": model, "metadata": about}


def _score_name(verdict: dict[str, Any]) -> str:
    parts = (verdict["metric"], verdict["subject"], verdict["judge"], f"round {verdict['round']}")
    return " · ".join(part for part in parts if part)


def _scores(verdicts: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in verdicts:
        value = one["value"] if one["value"] is not None else one["text"]
        if value is not None:
            yield _score_name(one), {"value": value, "metadata": {"status": one["status"], "sampled": one["sampled"]}}
