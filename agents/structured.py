"""Replies as pydantic types: ask for one, and learn how well it could be read.

    answer = await ask(client, messages, Verdict)
    answer.status     # ok | repaired | unparsed | refused
    answer.value      # a Verdict, or None
    answer.raw        # what the model said

The provider is held to the schema where it can be; otherwise the text is parsed with care, and one repair is
asked for at most. A reply that cannot be read is never a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from autogen_core import CancellationToken
from autogen_core.models import AssistantMessage, ChatCompletionClient, LLMMessage, UserMessage
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema

from agents.models.base import Reply
from agents.models.wire import NARRATOR
from agents.readout import expected_numbers
from agents.transcripts import ParseStatus

T = TypeVar("T", bound=BaseModel)
Readout = Literal["sampled", "expected"]

_FRACTION = re.compile(r"^\s*(-?\d+(?:\.\d+)?)\s*(?:/\s*(\d+)|out of\s+(\d+))?\s*$")


def _read_number(value: Any) -> Any:
    """ "7/10" is 7 and "8" is 8, on a scale that ends where ours does; anything else is left to be refused."""
    if isinstance(value, bool):
        raise ValueError("a truth value is not a score")
    if isinstance(value, str) and (match := _FRACTION.match(value)):
        top = match.group(2) or match.group(3)
        if top in (None, "10", "100"):
            return float(match.group(1))
    return value


def scale(low: int, high: int) -> Any:
    """A number from `low` to `high`: asked for as an integer, read with tolerance ("7/10", 7.5)."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Annotated[float, BeforeValidator(_read_number), Field(ge=low, le=high), WithJsonSchema(schema)]


def remark(most: int) -> Any:
    """Free text of about `most` characters: a grammar cuts it there, while a longer reply of a freer model is kept."""
    return Annotated[str, WithJsonSchema({"type": "string", "maxLength": most})]


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A reply and what could be made of it. `expected` maps field paths ("A.Accuracy") to expectations."""

    value: T | None
    status: ParseStatus
    raw: str
    expected: Mapping[str, float] = field(default_factory=dict)


_REFUSAL = re.compile(
    r"^\W*(?:i(?:'|’)?m sorry|sorry,|i apologi[sz]e|"
    r"i (?:can(?:'|’)?t|cannot|won(?:'|’)?t|will not|am unable|am not able)"
    r"|as an ai|i(?:'|’)?m (?:unable|not able|not comfortable)|it would(?: not|n(?:'|’)?t) be appropriate)",
    re.IGNORECASE,
)
REPAIR = (
    "Your reply could not be read: {problem}. Send it again as the JSON object that was asked for, and nothing else."
)


def looks_refused(text: str) -> bool:
    return bool(_REFUSAL.match(text))


def parse(text: str, reply_type: type[T]) -> tuple[T | None, str]:
    """The first JSON object in the text that fits the type, and otherwise why none does."""
    problem = "it holds no JSON object"
    for found in _objects(text):
        try:
            return reply_type.model_validate(_match_keys(found, reply_type)), ""
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}"
    return None, problem


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that stands in the text by itself, outermost first; a trailing comma is forgiven."""
    decoder = json.JSONDecoder()
    text = re.sub(r",(\s*[}\]])", r"\1", text)
    at = text.find("{")
    while at != -1:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(found, dict):
                yield found
        at = text.find("{", end)


def _match_keys(found: dict[str, Any], reply_type: type[BaseModel]) -> dict[str, Any]:
    """Keys in whatever case the model wrote them ("accuracy", "ACCURACY")."""
    names = {name.lower(): (name, info) for name, info in reply_type.model_fields.items()}
    matched: dict[str, Any] = {}
    for key, value in found.items():
        name, info = names.get(str(key).strip().lower(), (key, None))
        inner = info.annotation if info else None
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, BaseModel):
            value = _match_keys(value, inner)
        matched[name] = value
    return matched


async def ask(
    client: ChatCompletionClient,
    messages: Sequence[LLMMessage],
    reply_type: type[T],
    *,
    readout: Readout = "sampled",
    options: Mapping[str, Any] | None = None,
    cancellation_token: CancellationToken | None = None,
) -> Structured[T]:
    info = client.model_info
    hold = reply_type if info.get("structured_output") else bool(info.get("json_output")) or None
    extra = dict(options or {})
    if readout == "expected":
        extra["logprobs"] = True

    async def once(conversation: Sequence[LLMMessage]) -> tuple[str, Any, bool]:
        reply = await client.create(
            conversation, json_output=hold, extra_create_args=extra, cancellation_token=cancellation_token
        )
        text = reply.content if isinstance(reply.content, str) else ""
        return text, reply, isinstance(reply, Reply) and reply.refused

    raw, reply, refused = await once(messages)
    value, problem = parse(raw, reply_type)
    status: ParseStatus = "ok"
    asked = messages
    if value is None and not refused and not looks_refused(raw):
        problem_line = UserMessage(content=REPAIR.format(problem=problem), source=NARRATOR)
        asked = [*messages, AssistantMessage(content=raw, source="self"), problem_line]
        again, reply, refused = await once(asked)
        value, _ = parse(again, reply_type)
        if value is not None:
            raw, status = again, "repaired"
    if value is None:
        status = "refused" if refused or looks_refused(raw) else "unparsed"
        return Structured(None, status, raw)
    expected: Mapping[str, float] = {}
    if readout == "expected" and reply.logprobs:
        expected = await expected_numbers(client, asked, raw, reply.logprobs, extra)
    return Structured(value, status, raw, expected)
