"""Replies as pydantic types: ask for one, and learn how well it could be read.

    answer = await ask(client, messages, Verdict)
    answer.status     # ok | repaired | unparsed | refused
    answer.value      # a Verdict, or None
    answer.raw        # what the model said

The provider is held to the schema where it can be; otherwise the text is parsed with care, and one repair is
asked for at most. A reply that cannot be read is never a number. A `TextReply` is no JSON but lines of a format of
its own.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    RequestUsage,
    UserMessage,
)
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema

from parley.agents.models.reply import Reply
from parley.agents.models.wire import NARRATOR, strict_schema
from parley.agents.readout import TOP, expected_choices, expected_numbers
from parley.agents.transcripts import ParseStatus

T = TypeVar("T", bound=BaseModel)
Readout = Literal["sampled", "expected"]

_NUMBER = re.compile(r"\s*+(-?\d++(?:\.\d++)?)\s*+(?:(?:/|out of)\s*+(\d++)\s*+)?")


_HALF = re.compile(
    r"\\ud[89ab][\da-f]{2}(?!\\ud[c-f][\da-f]{2})|(?<!\\ud[89ab][\da-f]{2})\\ud[c-f][\da-f]{2}|[\ud800-\udfff]",
    re.IGNORECASE,
)
"""Half a character, written out or escaped: no file can hold one. What stands for it is as long, so places stay."""
_BEGINS = re.compile(r'\{(?=\s*+["}])')
PATIENCE, DEEP = 200_000, 10_000
"""Characters that may be read in vain before a reply is given up, and what brackets nested too deeply count for."""


def scale(low: int, high: int) -> Any:
    """A number from `low` to `high`: asked for as an integer, read with tolerance ("7", 7.5, "7/10" up to 10)."""

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("a truth value is not a score")
        if isinstance(value, str) and (match := _NUMBER.fullmatch(value)) and match.group(2) in (None, str(high)):
            return float(match.group(1))
        return value

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Annotated[float, BeforeValidator(read), Field(ge=low, le=high), WithJsonSchema(schema)]


def free_text(most: int) -> Any:
    """Free text of about `most` characters: a grammar cuts it there, while a longer reply of a freer model is kept."""
    return Annotated[str, WithJsonSchema({"type": "string", "maxLength": most})]


class TextReply(BaseModel):
    """A reply in a plain format, which its type reads itself; no schema is sent."""

    @classmethod
    @abstractmethod
    def read(cls, text: str) -> tuple[Self | None, str]:
        """What the text says, and what is wrong with it ("" if nothing is).

        Of a faulty reply the part that could be read is kept; the reply is `unparsed` all the same.
        """


@dataclass(frozen=True, slots=True)
class StructuredReply(Generic[T]):
    """A reply and what could be made of it.

    `expected` maps field paths to expectations ("A.Accuracy"), and fields of few choices to the probability of each
    ("answer=B").
    """

    value: T | None
    status: ParseStatus
    raw: str
    usage: RequestUsage = field(default_factory=lambda: RequestUsage(0, 0))
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
REPAIR_TEXT = "Your reply could not be read: {problem}. Send it again exactly as it was asked for, and nothing else."


def looks_like_refusal(text: str) -> bool:
    """Whether a text reads like a refusal."""
    return bool(_REFUSAL.match(text))


def parse(text: str, reply_type: type[T]) -> tuple[T | None, str]:
    """The first JSON object in the text that fits the type, and otherwise why none does."""
    text = _HALF.sub(lambda found: "\\ufffd" if len(found.group()) > 1 else "\ufffd", text)
    if issubclass(reply_type, TextReply):
        return reply_type.read(text)
    value, problem, _ = _find(text, reply_type)
    if value is None:
        value, _, _ = _find(re.sub(r",(\s*[}\]])", r"\1", text), reply_type)  # a trailing comma is forgiven
    return value, "" if value is not None else problem


def _find(text: str, reply_type: type[T]) -> tuple[T | None, str, int]:
    """The value, or the last problem; and where the object begins."""
    problem = "it holds no JSON object"
    for found, start in _objects(text):
        try:
            return reply_type.model_validate(_match_keys(found, reply_type)), "", start
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}"
    return None, problem, -1


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Every JSON object that stands in the text by itself, outermost first, and its place.

    Each beginning that comes to nothing costs what was read for it. A text may not cost many times its length: one of
    nothing but beginnings is given up.
    """
    decoder = json.JSONDecoder()
    left = 4 * len(text) + PATIENCE
    begins = _BEGINS.search(text)
    while begins and left > 0:
        at = begins.start()
        end = at + 1
        try:
            found, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            left -= error.pos - at + at // 64 + 64  # Python counts the lines before it, too
        except (ValueError, RecursionError):  # a number of thousands of digits; brackets within brackets
            left -= DEEP
        else:
            if isinstance(found, dict):
                yield found, at
        begins = _BEGINS.search(text, end)


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


async def structured_reply(
    client: ChatCompletionClient,
    messages: Sequence[LLMMessage],
    reply_type: type[T],
    *,
    readout: Readout = "sampled",
    options: Mapping[str, Any] | None = None,
    cancellation_token: CancellationToken | None = None,
) -> StructuredReply[T]:
    """Ask for a reply of a type: the value if it could be read, its status, and the raw text in any case."""
    info = client.model_info
    plain = issubclass(reply_type, TextReply)
    hold = None if plain else reply_type if info.get("structured_output") else bool(info.get("json_output")) or None
    extra = dict(options or {})
    if readout == "expected":
        extra["logprobs"] = True

    spent = RequestUsage(0, 0)

    async def once(conversation: Sequence[LLMMessage]) -> tuple[str, CreateResult, bool]:
        reply = await client.create(
            conversation, json_output=hold, extra_create_args=extra, cancellation_token=cancellation_token
        )
        spent.prompt_tokens += reply.usage.prompt_tokens
        spent.completion_tokens += reply.usage.completion_tokens
        text = reply.content if isinstance(reply.content, str) else ""
        return text, reply, looks_like_refusal(text) or (isinstance(reply, Reply) and reply.refused)

    raw, reply, refused = await once(messages)
    value, problem = parse(raw, reply_type)
    status: ParseStatus = "ok"
    asked = messages
    if problem and not refused:
        complaint = (REPAIR_TEXT if plain else REPAIR).format(problem=problem)
        said = AssistantMessage(content=raw, source="self")
        asked = [*messages, said, UserMessage(content=complaint, source=NARRATOR)]
        again, reply, refused = await once(asked)
        mended, problem = parse(again, reply_type)
        if not problem:
            raw, value, status = again, mended, "repaired"
    if problem:
        return StructuredReply(value, "refused" if refused else "unparsed", raw, spent)
    expected: dict[str, float] = {}
    if readout == "expected" and reply.logprobs:
        start = _find(raw, reply_type)[2]
        read = await expected_numbers(client, asked, raw, start, reply.logprobs, extra) if start >= 0 else {}
        schema = strict_schema(reply_type.model_json_schema())
        on_scale = {path.lower(): path for path in _paths_to(TOP, schema)}
        expected = {on_scale[path.lower()]: mean for path, mean in read.items() if path.lower() in on_scale}
        if start >= 0 and (choices := dict(_choices(schema))):
            expected |= expected_choices(raw, start, reply.logprobs, choices)
    return StructuredReply(value, status, raw, spent, expected)


def _paths_to(top: int, schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The fields whose scale ends at `top`, as dotted paths."""
    if schema.get("maximum") == top and schema.get("minimum") == 0:
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from _paths_to(top, inner, f"{path}.{name}" if path else name)


def _choices(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, list[str]]]:
    """The fields that take one of a few texts, as dotted paths."""
    if "enum" in schema:
        yield path, [str(one) for one in schema["enum"]]
    for name, inner in schema.get("properties", {}).items():
        yield from _choices(inner, f"{path}.{name}" if path else name)
