"""Recorded data: model calls, turns with their calls, and transcripts. Independent of AutoGen.

Every reply makes a `Call`. `record_calls` collects the calls made inside it, whichever agent makes them, so that any
AutoGen agent with a Parley client is recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from pydantic import BaseModel

ParseStatus = Literal["ok", "repaired", "unparsed", "refused", "cut", "unscored", "copied", "empty"]
"""How well a reply could be parsed. `cut`: it reached its token limit and could not be parsed; `unscored`: an evaluator
gave no score (it was down, or had nothing to judge); `copied`: a revised text that equals the draft before it;
`empty`: a draft without words of its own."""
Role = Literal["narrator", "debater", "referee", "chair", "generator", "evaluator", "coordinator"]
ON_SCALE = "on scale"
"""Key of `Turn.expected`, after a silent ballot's metric: the probability of all answers that the ballot allows."""
READ = "read"
"""Key of `Turn.expected`, after a silent ballot's metric: the share of its sampled replies that could be read."""
# Below a half, the model would more probably have said something else, and the score would come from the tail of a
# refusal, a space or "<think>". Models whose reply is begun for them are above it: the lowest of 6,155 ballots of
# Qwen2.5-Coder-1.5B has 0.989, the lowest of 90 of SmolLM2 0.71, and the lowest mean of a base of TinyLlama (2
# bits) 0.77. Where the server does not continue a text, SmolLM2 has 0.11 and TinyLlama 0.05: nothing lies between.
LEAST_ON_SCALE = 0.5
"""Minimum share of a silent ballot's probability, or of its sampled replies, on allowed answers; below it the ballot is
unread.
"""


class PromptMessage(NamedTuple):
    """One message of a prompt, as the model received it."""

    role: str
    source: str
    text: str


class Call(NamedTuple):
    """One model call: the model, its prompt and reply, and the cost."""

    # Named tuples, here and for turns: with frozen dataclasses a message takes 14 µs more.

    model: str
    prompt: tuple[PromptMessage, ...]
    reply: str
    prompt_tokens: int
    completion_tokens: int
    latency: float
    cost: float | None
    cached: bool
    """Whether the whole reply came from Parley's reply cache."""
    attempts: int
    cached_tokens: int | None = None
    """Prompt tokens that were in the server's prompt cache; None where the server does not say."""
    written_tokens: int = 0
    """Prompt tokens that were written to a vendor's prompt cache, which has its own price."""
    thought: str = ""
    """The model's thinking, where the server gives it."""
    thought_tokens: int | None = None
    """Completion tokens spent on thinking; None where the server does not say."""
    cut: bool = False
    """Whether the reply ended because it reached its limit of tokens."""
    whole: bool = True
    """Whether the provider says how the reply ended and withheld nothing."""


class ToolCall(Protocol):
    """The recorded fields of a tool call; AutoGen's `FunctionCall` has them."""

    name: str
    arguments: str


def text_of(turn: Turn) -> str:
    """A turn as it is read by default."""
    return turn.text


def tool_calls_as_text(calls: Iterable[ToolCall]) -> str:
    """Tool calls as text, for `Call.reply`."""
    return json.dumps([{"tool": call.name, "arguments": call.arguments} for call in calls], ensure_ascii=False)


def tool_calls_in(reply: str) -> list[tuple[str, str]]:
    """Names and arguments of the tools that a recorded reply calls; empty if it calls none."""
    if not reply.startswith('[{"tool": '):
        return []
    try:
        return [(str(call["tool"]), str(call["arguments"])) for call in json.loads(reply)]
    except (ValueError, KeyError, TypeError):  # speech that only begins like it
        return []


# A context variable, not wrapped clients, so that a user's `AssistantAgent` with one of our clients is also recorded.
_RECORDED: ContextVar[list[Call] | None] = ContextVar("parley_recorded", default=None)


class record_calls:
    """Collect the calls made inside; an enclosing `record_calls` gets them too."""

    # A class with slots: `contextmanager` takes up to 10 µs more, at every turn.
    __slots__ = ("_calls", "_outer", "_token")

    def __enter__(self) -> list[Call]:
        self._calls: list[Call] = []
        self._outer = _RECORDED.get()
        self._token = _RECORDED.set(self._calls)
        return self._calls

    def __exit__(self, *error: object) -> None:
        with suppress(ValueError):  # an abandoned generator is closed in another context
            _RECORDED.reset(self._token)
        if self._outer is not None:
            self._outer.extend(self._calls)


def record_call(call: Call) -> None:
    """Add a call to the innermost `record_calls`, if there is one."""
    calls = _RECORDED.get()
    if calls is not None:
        calls.append(call)


class Turn(NamedTuple):
    """What one agent said in one round, and the calls it took."""

    speaker: str
    role: Role
    round: int
    text: str
    persona: str = ""
    """The speaker's description, as its model was given it."""
    verdict: BaseModel | None = None
    """The reply parsed as the requested type; None if no type was requested or parsing failed."""
    expected: Mapping[str, float] = MappingProxyType({})
    """Of a silent ballot: the expected score by metric, or the probability of each choice."""
    parse_status: ParseStatus | None = None
    """None if no type was requested."""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    """The model's thinking before it spoke: recorded, but never parsed or heard by the others."""
    cut: bool = False
    """Whether the text ends where it reached its limit of tokens."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls, tokens and cost in US dollars; `cost` is None if the price of any call is unknown."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0

    def plus(self, call: Call) -> Usage:
        """The sum of this usage and one more call."""
        return Usage(
            calls=self.calls + 1,
            prompt_tokens=self.prompt_tokens + call.prompt_tokens,
            completion_tokens=self.completion_tokens + call.completion_tokens,
            cost=None if self.cost is None or call.cost is None else self.cost + call.cost,
        )


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole conversation, and why it ended."""

    turns: tuple[Turn, ...]
    stop_reason: str = ""

    def spoken(self, role: Role | None = None, round: int | None = None) -> list[Turn]:
        """The agents' turns (not the narrator's), optionally of one role or round only."""
        return [
            turn
            for turn in self.turns
            if turn.role != "narrator"
            and (role is None or turn.role == role)
            and (round is None or turn.round == round)
        ]

    def usage(self) -> dict[str, Usage]:
        """Usage by speaker."""
        spent: dict[str, Usage] = defaultdict(Usage)
        for turn in self.turns:
            for call in turn.calls:
                spent[turn.speaker] = spent[turn.speaker].plus(call)
        return dict(spent)

    def __str__(self) -> str:
        return "\n\n".join(f"[{turn.round}] {turn.speaker}: {turn.text}" for turn in self.turns)


def number_rounds(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Number the rounds: a new one begins when an agent speaks again after another agent has spoken."""
    number, speakers, previous = 1, set[str](), ""
    for turn in turns:
        if turn.role == "narrator":
            yield turn._replace(round=number if speakers else 0)
            continue
        if turn.speaker in speakers and turn.speaker != previous:
            number, speakers = number + 1, set()
        speakers.add(turn.speaker)
        previous = turn.speaker
        yield turn._replace(round=number)


def seed_from(*parts: object) -> int:
    """A 31-bit seed that depends on all parts, the same on every machine."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF
