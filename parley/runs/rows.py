"""A finished unit as table rows: plain values, which a worker can send to the run's process.

Reply types are created while a study runs and cannot be pickled; rows can. The progress of a run is counted from them.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.agents import Call, Turn
from parley.agents.transcripts import PromptMessage
from parley.base.text import encodable
from parley.judging import Outcome, Unit, Verdict

Row = tuple[Any, ...]
UNWRITABLE = (
    TypeError,
    ValueError,
    OverflowError,
    sqlite3.ProgrammingError,
    sqlite3.IntegrityError,
    sqlite3.DataError,  # longer than SQLite stores
)
"""Errors caused by a value, not by the disk."""
AddText = Callable[[str], int]
"""Stores a text once and returns its id."""
_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclass(slots=True)
class Tally:
    """Sums over model calls. Tokens and cost leave out replies from the cache."""

    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Calls with unknown price."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A finished unit: its outcome, or the error that it failed with."""

    unit: Unit
    started_at: float = 0.0
    """Seconds since 1970; 0 if unknown, as in other tools' logs."""
    finished_at: float = 0.0
    outcome: Outcome | None = None
    error: str | None = None


READABLE = ("ok", "repaired", "copied", "empty")
"""The statuses of turns that could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A finished unit, ready to be written."""

    id: str
    unit: Row
    """Status, error, stop reason, start, end, id: as `parley.runs.schema.FINISH_UNIT` takes them."""
    messages: list[Row]
    calls: list[Row]
    verdicts: list[Row]
    texts: Mapping[str, int]
    tally: Tally
    statuses: Mapping[str, int]
    """Number of turns by parse status."""
    cut: int = 0
    """Number of turns cut off at their token limit."""
    error: str | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None

    def as_failed(self, error: str) -> Rows:
        """The same unit as a failed one, without its messages, calls and verdicts."""
        error = encodable(error)
        return Rows(
            id=self.id,
            unit=("failed", error, None, *self.unit[3:]),
            messages=[],
            calls=[],
            verdicts=[],
            texts={},
            tally=Tally(),
            statuses={},
            error=error,
        )


def to_rows(record: Record) -> Rows:
    """The rows of a finished unit; a text that appears several times is stored once."""
    texts: dict[str, int] = {}

    def add_text(text: str) -> int:
        number = texts.get(text)
        if number is None:
            text = encodable(text)
            number = texts[text] = text_id(text)
        return number

    pieces: dict[PromptMessage, str] = {}

    def add_piece(message: PromptMessage) -> str:
        """A message of a prompt as a reference: [role, source, text id]. Prompts repeat most of the previous one."""
        piece = pieces.get(message)
        if piece is None:
            role, source, text = message
            piece = pieces[message] = _ENCODE((role, source, add_text(text)))
        return piece

    name, outcome = record.unit.id, record.outcome
    error = None if outcome else encodable(record.error or "no outcome")
    stop = outcome.transcript.stop_reason if outcome else None
    unit = ("failed" if error else "done", error, stop, record.started_at, record.finished_at, name)
    messages: list[Row] = []
    calls: list[Row] = []
    verdicts: list[Row] = []
    tally, statuses = Tally(), Counter[str]()
    if outcome is not None:
        for seq, turn in enumerate(outcome.transcript.turns):
            messages.append(_message_row(name, seq, turn, add_text))
            statuses[turn.parse_status or ""] += 1
            for nth, call in enumerate(turn.calls):
                calls.append(_call_row(name, seq, nth, call, add_text, add_piece))
                tally.count(call)
        turns = outcome.transcript.turns
        verdicts.extend(_verdict_row(name, nth, verdict, turns) for nth, verdict in enumerate(outcome.verdicts))
    return Rows(
        id=name,
        unit=unit,
        messages=messages,
        calls=calls,
        verdicts=verdicts,
        texts=texts,
        tally=tally,
        statuses=dict(statuses),
        cut=sum(_is_cut(turn) for turn in outcome.transcript.turns) if outcome is not None else 0,
        error=error,
    )


def unwritable_message(error: BaseException) -> str:
    return f"its outcome cannot be written: {error}"


def text_id(text: str) -> int:
    """A text's id: 63 bits of its hash, so that it fits SQLite's signed integers."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _is_cut(turn: Turn) -> bool:
    """Whether a turn lost its end to the token limit. A draft's length may be part of the protocol."""
    return turn.cut and (turn.role != "generator" or turn.parse_status not in (None, "copied", "empty"))


def _message_row(unit: str, seq: int, turn: Turn, add_text: AddText) -> Row:
    return (
        unit,
        seq,
        turn.round,
        turn.speaker,
        turn.role,
        add_text(turn.persona) if turn.persona else None,
        add_text(turn.text),
        turn.parse_status,
        turn.verdict.model_dump_json() if turn.verdict is not None else None,
        json.dumps(expected) if (expected := finite(turn.expected)) else None,
        add_text(turn.thought) if turn.thought else None,
        int(turn.cut),
    )


def _call_row(
    unit: str, seq: int, nth: int, call: Call, add_text: AddText, add_piece: Callable[[PromptMessage], str]
) -> Row:
    return (
        unit,
        seq,
        nth,
        call.model,
        f"[{','.join(map(add_piece, call.prompt))}]",
        add_text(call.reply),
        call.prompt_tokens,
        call.completion_tokens,
        call.latency,
        call.cost,
        int(call.cached),
        call.attempts,
        call.cached_tokens,
        call.written_tokens,
        add_text(call.thought) if call.thought else None,
        call.thought_tokens,
    )


def _verdict_row(unit: str, nth: int, verdict: Verdict, turns: Sequence[Turn]) -> Row:
    lost = isinstance(verdict.value, float) and not math.isfinite(verdict.value)  # checks of other types come later
    return (
        unit,
        nth,
        verdict.judge,
        verdict.role,
        verdict.round,
        verdict.subject,
        verdict.metric,
        None if lost else verdict.value,
        verdict.sampled,
        None if verdict.text is None else encodable(verdict.text),
        "unparsed" if lost else verdict.status,
        turns.index(verdict.turn) if verdict.turn in turns else None,
    )


def finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without NaN and infinity, which JSON does not have and SQLite cannot read."""
    return {name: value for name, value in values.items() if not isinstance(value, float) or math.isfinite(value)}


FIRST_CALLS, FEW_CALLS = 3, 30
"""Number of calls before a rate is known: an embedded model's first call reads a shared prefix. After a few, a kind
without calls gets the mean rate."""


@dataclass(slots=True)
class Pace:
    """How long calls of one kind take: `calls` of them, `sent` without those from the cache."""

    calls: int = 0
    sent: int = 0
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        return self.seconds / self.sent

    def add(self, call: Call) -> None:
        self.calls += 1
        if not call.cached:
            self.sent += 1
            self.seconds += call.latency


@dataclass(slots=True, kw_only=True)
class Progress(Tally):
    """The progress of a run. `done` counts units on disk; the inherited tally counts calls as they are made."""

    total: int
    done: int = 0
    failed: int = 0
    expected_calls: float = 0.0
    """0 if not known."""
    expected_reads: float = 0.0
    """The expected calls for one token."""
    before: int = 0
    """Units done before this run began, if it resumed."""
    reads: Pace = field(default_factory=Pace)
    """Calls for one token, among those in the tally."""
    seconds: float = 0.0
    """Total time of all calls."""
    read: int = 0
    """Replies that could be parsed."""
    unparsed: int = 0
    refused: int = 0
    cut: int = 0
    unscored: int = 0
    in_flight: int = 0
    """Calls that this process waits for."""
    waiting: str = ""
    """What the run waits for besides replies: a free CPU, a model that is loading."""
    remarks: list[str] = field(default_factory=list)
    """Remarks for the user: fewer workers than requested, statements of a debate."""
    stored: Tally = field(default_factory=Tally)
    """The calls of the units on disk."""
    started: float = field(default_factory=time.monotonic)

    def add(self, rows: Rows) -> None:
        """Count a unit that has been written."""
        if rows.failed:
            self.failed += 1
            return
        self.done += 1
        self.read += sum(rows.statuses.get(status, 0) for status in READABLE)
        self.unparsed += rows.statuses.get("unparsed", 0)
        self.refused += rows.statuses.get("refused", 0)
        self.cut += rows.cut
        self.unscored += rows.statuses.get("unscored", 0)
        self.stored.merge(rows.tally)

    def add_call(self, call: Call) -> None:
        """Count a call when it is made, even if its unit is never finished."""
        self.count(call)
        if not call.cached:
            self.seconds += call.latency
        if call.completion_tokens <= 1:
            self.reads.add(call)

    @property
    def cost_known(self) -> bool:
        return self.unpriced == 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end, at the rate of calls so far; None before the first few calls and when all is done.

        A debate's statement may take fifty times as long as a silent ballot, so one-token replies and others have
        separate rates, and both must be known. Replies from the cache take no time and are not counted in the rate, or
        a resumed run would always seem nearly done. Repairs make units longer than planned: once the expected calls are
        made, each unfinished unit counts as half of a finished one. Without expected calls, it counts as a whole one.
        """
        unfinished, sent = self.total - self.done - self.failed, self.calls - self.cached
        if sent < FIRST_CALLS or unfinished <= 0:
            return None
        reads = self.reads
        writes = Pace(self.calls - reads.calls, sent - reads.sent, self.seconds - reads.seconds)
        planned = [
            (pace, max(expected - pace.calls, 0.0))
            for pace, expected in ((reads, self.expected_reads), (writes, self.expected_calls - self.expected_reads))
        ]
        if sent < FEW_CALLS and any(pace.sent < min(FIRST_CALLS, left) for pace, left in planned):
            return None
        mean = self.seconds / sent
        done_now = self.done - self.before
        share = 0.5 if self.expected_calls else 1.0
        under_way = share * unfinished * self.stored.calls / done_now if done_now else 0.0
        # In calls of the mean duration so far.
        calls_left = sum(left * (pace.mean / mean if pace.sent and mean else 1) for pace, left in planned)
        return self.elapsed / sent * max(calls_left, under_way, 1.0)
