"""Transcripts of AutoGen teams, as AutoGen dumps them: saved team states, task results, lists of messages; as JSON, or
as JSON lines with one of these per line.

One conversation is one unit. It has only what AutoGen stored: tokens if a message has its usage, and no prompts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from parley.agents import Call, ConfigError, Transcript, Turn
from parley.agents.transcripts import number_rounds
from parley.imports.imported import UNREADABLE, Imported, facets_of, read_json, read_log, seconds, whole_number
from parley.judging import Outcome, Unit
from parley.runs import Record

UNKNOWN = "autogen/unknown"
"""The model's name if none is given: AutoGen's messages do not contain it."""
Json = Mapping[str, Any]


def read_autogen(path: Path, model: str = UNKNOWN) -> Imported:
    """Read a dump of AutoGen's.

    Args:
        path: A .json file, or a .jsonl file with one dump per line.
        model: The model that spoke, which AutoGen's messages do not contain.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")

    def records() -> Iterator[Record]:
        for number, dumped in enumerate(_dumps(path), 1):
            where = f"{path}, conversation {number}"
            try:
                yield _record(f"{path.stem}/{number}", dumped, model, where)
            except UNREADABLE as error:
                raise ConfigError(f"{where} cannot be read ({error!r})") from None

    return Imported(study="autogen", models=[model], source=path, records=records)


def _dumps(path: Path) -> list[Any]:
    text = read_log(path)
    if path.suffix == ".jsonl":
        return [read_json(path, line) for line in text.split("\n") if line.strip()]
    return [read_json(path, text)]


def _record(name: str, dumped: Any, model: str, where: str) -> Record:
    messages, stop, kind = _messages(dumped, where)
    turns = [_turn(message, model) for message in messages]
    times = [seconds(message.get("created_at")) for message in messages] or [0.0]
    first = messages[0].get("metadata") if messages else None
    unit = Unit(name, {**facets_of(first), "kind": kind, "messages": len(messages), "model": model})
    outcome = Outcome(Transcript(tuple(number_rounds(turns)), stop))
    return Record(unit=unit, started_at=min(times), finished_at=max(times), outcome=outcome)


def _messages(dumped: Any, where: str) -> tuple[list[Json], str, str]:
    """The messages of a dump, why the conversation ended, and what kind of dump it is."""
    if isinstance(dumped, list):
        return dumped, "", "messages"
    if isinstance(dumped, dict) and isinstance(dumped.get("messages"), list):
        return dumped["messages"], str(dumped.get("stop_reason") or ""), "task result"
    states = dumped.get("agent_states") if isinstance(dumped, dict) else None
    if isinstance(states, dict):
        threads = [state["message_thread"] for state in states.values() if "message_thread" in state]
        if len(threads) == 1:
            return threads[0], "", "team state"
    raise ConfigError(f"{where}: expected a list of messages, a task result or a team's state, as AutoGen dumps them")


def _turn(message: Json, model: str) -> Turn:
    text, usage = _text(message.get("content")), message.get("models_usage")
    speaker = str(message["source"])
    if speaker == "user" and not usage:
        return Turn(speaker, "narrator", 0, text)
    if not usage:
        return Turn(speaker, "debater", 1, text)
    call = Call(
        model=model,
        prompt=(),
        reply=text,
        prompt_tokens=whole_number(usage["prompt_tokens"]),
        completion_tokens=whole_number(usage["completion_tokens"]),
        latency=0.0,
        cost=None,
        cached=False,
        attempts=1,
    )
    return Turn(speaker, "debater", 1, text, calls=(call,))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else _part(part) for part in content)
    return json.dumps(content, ensure_ascii=False)


def _part(part: Any) -> str:
    """A part of a message that is not text: a tool call, its result, an image."""
    if isinstance(part, dict) and "arguments" in part:
        return f"[calls {part.get('name')}({part['arguments']})]"
    if isinstance(part, dict) and "call_id" in part:
        return f"[result {part.get('name') or part['call_id']}: {part.get('content')}]"
    return "[image]" if isinstance(part, dict) and "data" in part else json.dumps(part, ensure_ascii=False)
