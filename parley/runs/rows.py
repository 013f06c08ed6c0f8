"""A finished unit as the rows it becomes: plain values, so that whoever held it can send it to whoever writes.

Types of replies are made while a study runs and cannot travel between processes; rows can.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from parley.agents import Call, Turn
from parley.judging import Outcome, Unit

Row = tuple[Any, ...]
UNWRITABLE = (TypeError, ValueError, OverflowError, sqlite3.ProgrammingError, sqlite3.IntegrityError)
"""What is wrong with a value, and not with the disk."""
Keep = Callable[[str], int]
_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclass(slots=True)
class Tally:
    """What calls came to. Tokens and dollars are those of calls that were made, not of replies from the cache."""

    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def count(self, call: Call) -> None:
        self.calls += 1
        self.cached += call.cached
        if not call.cached:
            self.tokens += call.prompt_tokens + call.completion_tokens
            self.cost += call.cost or 0.0
            self.unpriced += call.cost is None

    def merge(self, other: Tally) -> None:
        self.calls += other.calls
        self.cached += other.cached
        self.tokens += other.tokens
        self.cost += other.cost
        self.unpriced += other.unpriced


@dataclass(frozen=True, slots=True)
class Record:
    """A finished unit: an outcome, or why there is none."""

    unit: Unit
    started_at: float
    finished_at: float
    outcome: Outcome | None = None
    error: str | None = None


class Rows(NamedTuple):
    """A finished unit, ready to be written."""

    id: str
    unit: Row
    messages: list[Row]
    calls: list[Row]
    verdicts: list[Row]
    texts: Mapping[str, int]
    tally: Tally
    statuses: Mapping[str, int]
    """How many of its turns could be read, were refused, …"""
    error: str | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None

    def failed_by(self, why: str) -> Rows:
        """The same unit, without what it holds."""
        unit = ("failed", storable(why), None, *self.unit[3:])
        return Rows(self.id, unit, [], [], [], {}, Tally(), {}, storable(why))


def rows_of(record: Record) -> Rows:
    """The rows a finished unit becomes, each text once."""
    texts: dict[str, int] = {}

    def keep(text: str) -> int:
        text = storable(text)
        address = texts.get(text)
        if address is None:
            address = texts[text] = text_id(text)
        return address

    name, outcome = record.unit.id, record.outcome
    error = None if outcome else storable(record.error or "no outcome")
    stop = outcome.transcript.stop_reason if outcome else None
    unit = ("failed" if error else "done", error, stop, record.started_at, record.finished_at, name)
    messages: list[Row] = []
    calls: list[Row] = []
    verdicts: list[Row] = []
    tally, statuses = Tally(), Counter[str]()
    if outcome is not None:
        for seq, turn in enumerate(outcome.transcript.turns):
            messages.append(_message_row(name, seq, turn, keep))
            statuses[turn.parse_status or ""] += 1
            for nth, call in enumerate(turn.calls):
                calls.append(_call_row(name, seq, nth, call, keep))
                tally.count(call)
        verdicts.extend(
            (name, n, v.judge, v.role, v.round, v.subject, v.metric, v.value, v.sampled, _word(v.text), v.status)
            for n, v in enumerate(outcome.verdicts)
        )
    return Rows(name, unit, messages, calls, verdicts, texts, tally, dict(statuses), error)


def unwritable(error: BaseException) -> str:
    return f"its outcome cannot be written: {error}"


def text_id(text: str) -> int:
    """A text's address: 63 bits of its hash."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def storable(text: str) -> str:
    """The text as a database can hold it: half a surrogate pair, which no encoding has, becomes its escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _word(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _message_row(unit: str, seq: int, turn: Turn, keep: Keep) -> tuple[Any, ...]:
    return (
        unit,
        seq,
        turn.round,
        turn.speaker,
        turn.role,
        keep(turn.persona) if turn.persona else None,
        keep(turn.text),
        turn.parse_status,
        turn.verdict.model_dump_json() if turn.verdict is not None else None,
        json.dumps(dict(turn.expected)) if turn.expected else None,
    )


def _call_row(unit: str, seq: int, nth: int, call: Call, keep: Keep) -> tuple[Any, ...]:
    """The prompt is kept as references: [[role, source, text id], …]."""
    pieces = [(role, source, keep(text)) for role, source, text in call.prompt]
    return (
        unit,
        seq,
        nth,
        call.model,
        _ENCODE(pieces),
        keep(call.reply),
        call.prompt_tokens,
        call.completion_tokens,
        call.latency,
        call.cost,
        call.cached,
        call.attempts,
        call.cached_tokens,
        call.written_tokens,
    )
