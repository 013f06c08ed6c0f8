"""Transcripts of AutoGen teams, as AutoGen dumps them: saved team states, task results, lists of messages; as JSON, or
as JSON lines with one of these on each line.

One conversation is one unit. Only what AutoGen wrote down is there: tokens where a message has its usage, no prompts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from parley.agents import Call, ConfigError, Transcript, Turn
from parley.interop.imported import Imported, facets_of, read_json, read_text, seconds
from parley.judging import Outcome, Unit
from parley.runs import Record

UNKNOWN = "autogen/unknown"
"""Messages of AutoGen's do not say which model spoke."""
Json = Mapping[str, Any]


def read_autogen(path: Path, model: str = UNKNOWN) -> Imported:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")

    def records() -> Iterator[Record]:
        for number, dumped in enumerate(_dumps(path), 1):
            where = f"{path}, conversation {number}"
            try:
                yield _record(f"{path.stem}/{number}", dumped, model, where)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{where} cannot be read ({error!r})") from None

    return Imported("autogen", [model], path, records)


def _dumps(path: Path) -> list[Any]:
    text = read_text(path)
    if path.suffix == ".jsonl":
        return [read_json(path, line) for line in text.split("\n") if line.strip()]
    return [read_json(path, text)]


def _record(name: str, dumped: Any, model: str, where: str) -> Record:
    messages, stop, kind = _messages(dumped, where)
    turns = [_turn(message, at, model) for at, message in enumerate(messages)]
    times = [seconds(message.get("created_at")) for message in messages] or [0.0]
    first = messages[0].get("metadata") if messages else None
    unit = Unit(name, {**facets_of(first), "kind": kind, "messages": len(messages), "model": model})
    return Record(unit, min(times), max(times), Outcome(Transcript(tuple(_rounds(turns)), stop)))


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
    raise ConfigError(f"{where} is no list of messages, no task result and no state of a team as AutoGen dumps them")


def _turn(message: Json, at: int, model: str) -> Turn:
    text, usage = _text(message.get("content")), message.get("models_usage")
    speaker = str(message["source"])
    if speaker == "user" and not usage:
        return Turn(speaker, "narrator", 0, text)
    spent = (int(usage["prompt_tokens"]), int(usage["completion_tokens"])) if usage else None
    calls = (Call(model, (), text, *spent, 0.0, None, False, 1),) if spent else ()
    return Turn(speaker, "debater", 1, text, calls=calls)


def _rounds(turns: list[Turn]) -> Iterator[Turn]:
    """A round ends when somebody speaks again who has spoken in it."""
    number, spoken = 1, set[str]()
    before = ""
    for turn in turns:
        if turn.role == "narrator":
            yield turn._replace(round=0 if not spoken else number)
            continue
        if turn.speaker in spoken and turn.speaker != before:
            number, spoken = number + 1, set()
        spoken.add(turn.speaker)
        before = turn.speaker
        yield turn._replace(round=number)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(one if isinstance(one, str) else _call(one) for one in content)
    return json.dumps(content, ensure_ascii=False)


def _call(one: Any) -> str:
    if isinstance(one, dict) and "arguments" in one:
        return f"[calls {one.get('name')}({one['arguments']})]"
    if isinstance(one, dict) and "call_id" in one:
        return f"[result {one.get('name') or one['call_id']}: {one.get('content')}]"
    return "[image]" if isinstance(one, dict) and "data" in one else json.dumps(one, ensure_ascii=False)
