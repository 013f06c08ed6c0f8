"""Replies parsed as pydantic types.

    reply = await structured_reply(client, messages, Opinion)
    reply.status     # ok | repaired | unparsed | refused | cut
    reply.value      # an Opinion, or None
    reply.raw        # the model's text

Decoding is constrained to the schema where the provider supports it. Otherwise the text is parsed tolerantly, and a
reply that cannot be parsed is requested once more. It never becomes a number. A `TextReply` is a type for a plain text
format instead of JSON.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, NamedTuple, Self, TypeVar

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
from parley.agents.models.thoughts import join_thoughts, split_thought
from parley.agents.models.wire import NARRATOR, strict_schema
from parley.agents.readout import SCALE_MAX, expected_choices, expected_numbers
from parley.agents.transcripts import ParseStatus

T = TypeVar("T", bound=BaseModel)
Readout = Literal["sampled", "expected"]

# With possessive quantifiers, so that a reply is read in linear time. A limit on its length would be simpler, but would
# make long, valid replies unparsed.
_NUMBER = re.compile(r"\s*+(-?\d++(?:\.\d++)?)\s*+(?:(?:/|out of)\s*+(\d++)\s*+)?")

_LONE_SURROGATE = re.compile(
    r"\\ud[89ab][\da-f]{2}(?!\\ud[c-f][\da-f]{2})|(?<!\\ud[89ab][\da-f]{2})\\ud[c-f][\da-f]{2}|[\ud800-\udfff]",
    re.IGNORECASE,
)
"""Half a surrogate pair, as a character or escaped: it cannot be encoded as UTF-8. It is replaced and the reply kept:
refusing it would lose a score because of a tokenizer's error. Its replacement has the same length, so that positions in
the text stay valid."""
_DECODER = json.JSONDecoder()
_OBJECT_START = re.compile(r'\{(?=\s*+["}])')
MAX_WASTED_CHARS = 200_000
"""Characters of failed attempts at an object before a reply is given up, beyond four times its length."""
NESTING_COST = 10_000
"""What an attempt costs that fails because of brackets nested too deeply, or a number too long to convert."""


def scale(low: int, high: int) -> Any:
    """The type of a score: requested as an integer, parsed tolerantly (7, 7.5, "7"; "7/10" if `high` is 10).

    Args:
        low: The lowest score.
        high: The highest score. A number outside the scale is an error and never clipped.
    """

    def as_number(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("a truth value is not a score")  # sent to the model with the request for a repair
        if isinstance(value, str) and (match := _NUMBER.fullmatch(value)) and match.group(2) in (None, str(high)):
            return float(match.group(1))
        return value

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Annotated[float, BeforeValidator(as_number), Field(ge=low, le=high), WithJsonSchema(schema)]


def free_text(max_chars: int) -> Any:
    """The type of a text of limited length.

    Args:
        max_chars: The limit in the JSON schema. Constrained decoding stops there; a longer text from a model whose
            decoding is not constrained is accepted whole, since it can still be read.
    """
    return Annotated[str, WithJsonSchema({"type": "string", "maxLength": max_chars})]


class TextReply(BaseModel):
    """Base of reply types with a text format of their own, which they parse themselves; no schema is sent.

    For agents that answer in lines ("Bias: 3: reason"): a request for JSON would change what is measured.
    """

    @classmethod
    @abstractmethod
    def read(cls, text: str) -> tuple[Self | None, str]:
        """Parse a reply: the value, and what is wrong with the text ("" if nothing is).

        A faulty reply may still give the value of the part that could be parsed (a judge that writes "Bias: 0" and
        "Relevancy: 10" has given a relevancy); its status is `unparsed` nonetheless.
        """


@dataclass(frozen=True, slots=True)
class StructuredReply(Generic[T]):
    """A reply, its text, and the value that was parsed from it."""

    value: T | None
    status: ParseStatus | None
    """None where no type was requested: the reply is plain text."""
    raw: str
    usage: RequestUsage = field(default_factory=lambda: RequestUsage(0, 0))
    expected: Mapping[str, float] = field(default_factory=dict)
    """With `readout="expected"`: expected scores by field path ("A.Accuracy"), and for fields with a few choices the
    probability of each ("answer=B")."""
    thought: str = ""
    """What the model thought before it wrote `raw`; never parsed."""
    cut: bool = False
    """Whether `raw` ends where it reached its limit of tokens."""


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


CUT_PROBLEM = "it was too long and was cut off"


class Answer(NamedTuple):
    """What a model said, what it thought before, and whether its words were cut off."""

    text: str
    thought: str
    cut: bool


def answer_in(reply: CreateResult) -> Answer:
    """The answer in any client's reply. Not every AutoGen client tells the thinking from the answer."""
    text = reply.content if isinstance(reply.content, str) else ""
    thought = reply.thought or ""
    if not isinstance(reply, Reply):  # which has done so already
        inner, text = split_thought(text)
        thought = join_thoughts([thought, inner])
    return Answer(text, thought, reply.finish_reason == "length")


def looks_like_refusal(text: str) -> bool:
    """Whether a text begins like a refusal."""
    return bool(_REFUSAL.match(text))


def parse(text: str, reply_type: type[T]) -> tuple[T | None, str]:
    """The first JSON object in the text that fits the type, or None and why none fits."""
    if not text.isascii() or "\\u" in text:
        text = _LONE_SURROGATE.sub(lambda match: "\\ufffd" if len(match.group()) > 1 else "\ufffd", text)
    if issubclass(reply_type, TextReply):
        return reply_type.read(text)
    value, problem, _ = _find_object(text, reply_type)
    if value is None:  # trailing commas are accepted, but only if the text cannot be parsed with them
        value, _, _ = _find_object(re.sub(r",(\s*[}\]])", r"\1", text), reply_type)
    return value, "" if value is not None else problem


def _find_object(text: str, reply_type: type[T]) -> tuple[T | None, str, int]:
    """The value and where its object begins; or None, the last problem and -1."""
    problem = "it holds no JSON object"  # the model is sent this, so its words are part of the prompt
    for candidate, start in _objects(text):
        try:
            return reply_type.model_validate(_match_keys(candidate, reply_type)), "", start
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}"
    return None, problem, -1


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Every outermost JSON object in the text, and where it begins.

    Each failed attempt costs the characters that were read for it, and the total is limited: otherwise a text of
    nothing but opening braces would take quadratic time.
    """
    budget = 4 * len(text) + MAX_WASTED_CHARS
    opening = _OBJECT_START.search(text)
    while opening and budget > 0:
        start = opening.start()
        end = start + 1
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # The exception counts the lines before its position, which takes time as well: hence start // 64.
            budget -= error.pos - start + start // 64 + 64
        except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested too deeply
            budget -= NESTING_COST
        else:
            if isinstance(value, dict):
                yield value, start
        opening = _OBJECT_START.search(text, end)


def _match_keys(candidate: dict[str, Any], reply_type: type[BaseModel]) -> dict[str, Any]:
    """The object with the type's spelling of its keys, whatever their case ("accuracy", "ACCURACY")."""
    names = _field_names(reply_type)
    matched: dict[str, Any] = {}
    for key, value in candidate.items():
        name, inner = names.get(key.strip().lower(), (key, None))
        matched[name] = _match_keys(value, inner) if inner is not None and isinstance(value, dict) else value
    return matched


@lru_cache(maxsize=256)
def _field_names(reply_type: type[BaseModel]) -> dict[str, tuple[str, type[BaseModel] | None]]:
    """By its name in lower case: each field's name, and its type if that has fields of its own."""
    names: dict[str, tuple[str, type[BaseModel] | None]] = {}
    for name, info in reply_type.model_fields.items():
        inner = info.annotation
        names[name.lower()] = (name, inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None)
    return names


OnText = Callable[[str], None]


async def create(
    client: ChatCompletionClient, messages: Sequence[LLMMessage], on_text: OnText | None, **arguments: Any
) -> CreateResult:
    """The client's reply; streamed if `on_text` wants its chunks."""
    if on_text is None:
        return await client.create(messages, **arguments)
    reply = None
    async for part in client.create_stream(messages, **arguments):
        if isinstance(part, CreateResult):
            reply = part
        else:
            on_text(part)
    assert reply is not None, "a stream ends with the whole reply"
    return reply


async def structured_reply(
    client: ChatCompletionClient,
    messages: Sequence[LLMMessage],
    reply_type: type[T],
    *,
    readout: Readout = "sampled",
    options: Mapping[str, Any] | None = None,
    cancellation_token: CancellationToken | None = None,
    on_text: OnText | None = None,
) -> StructuredReply[T]:
    """Request a reply of a type, and once more if it cannot be parsed.

    Args:
        client: The model client, one of Parley's or any AutoGen client.
        messages: The prompt. It must describe the format itself: not every provider sends the schema to the model.
        reply_type: The pydantic type, or a `TextReply`.
        readout: `sampled` takes scores as written. `expected` also requests log-probabilities and fills `expected`;
            it is not the default because not every provider has them.
        options: Passed with every call, such as `{"max_tokens": 200}`; by default the client's own apply.
        cancellation_token: Cancels the calls.
        on_text: Gets the reply as it arrives, chunk by chunk; by default it is not streamed.

    Returns:
        The value if it could be parsed, its status, and the model's text in any case.
    """
    info = client.model_info
    plain_text = issubclass(reply_type, TextReply)
    json_output: type[BaseModel] | bool | None = None
    if not plain_text:
        json_output = reply_type if info.get("structured_output") else bool(info.get("json_output")) or None
    extra = dict(options or {})
    if readout == "expected":
        extra["logprobs"] = True

    usage = RequestUsage(0, 0)

    async def request(conversation: Sequence[LLMMessage]) -> tuple[Answer, CreateResult, bool]:
        reply = await create(
            client,
            conversation,
            on_text,
            json_output=json_output,
            extra_create_args=extra,
            cancellation_token=cancellation_token,
        )
        usage.prompt_tokens += reply.usage.prompt_tokens
        usage.completion_tokens += reply.usage.completion_tokens
        answer = answer_in(reply)
        return answer, reply, looks_like_refusal(answer.text) or (isinstance(reply, Reply) and reply.refused)

    answer, reply, refused = await request(messages)
    value, problem = parse(answer.text, reply_type)
    status: ParseStatus = "ok"
    prompt = messages
    # A refusal is an answer: asking again would press the model to change it. A reply that was cut before it said
    # anything would be cut again.
    if problem and not refused and not (answer.cut and not answer.text.strip()):
        complaint = (REPAIR_TEXT if plain_text else REPAIR).format(problem=CUT_PROBLEM if answer.cut else problem)
        failed = AssistantMessage(content=answer.text, source="self")
        prompt = [*messages, failed, UserMessage(content=complaint, source=NARRATOR)]
        second, reply, refused = await request(prompt)
        repaired, problem = parse(second.text, reply_type)
        if not problem:
            answer, value, status = second, repaired, "repaired"
    kept: dict[str, Any] = {"raw": answer.text, "usage": usage, "thought": answer.thought, "cut": answer.cut}
    if problem:
        return StructuredReply(
            value=value, status="refused" if refused else "cut" if answer.cut else "unparsed", **kept
        )
    raw = answer.text
    expected: dict[str, float] = {}
    start = _find_object(raw, reply_type)[2] if readout == "expected" and reply.logprobs else -1
    if start >= 0:
        means = await expected_numbers(client, prompt, raw, start, reply.logprobs or [], extra)
        schema = strict_schema(reply_type.model_json_schema())
        on_scale = {path.lower(): path for path in _paths_to(SCALE_MAX, schema)}
        expected = {on_scale[path.lower()]: mean for path, mean in means.items() if path.lower() in on_scale}
        if choices := dict(_choices(schema)):
            expected |= expected_choices(raw, start, reply.logprobs or [], choices)
    return StructuredReply(value=value, status=status, expected=expected, **kept)


def _paths_to(high: int, schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The fields with a scale from 0 to `high`, as dotted paths."""
    if schema.get("maximum") == high and schema.get("minimum") == 0:
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from _paths_to(high, inner, f"{path}.{name}" if path else name)


def _choices(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, list[str]]]:
    """The fields with a list of allowed texts, as dotted paths, and the texts."""
    if "enum" in schema:
        yield path, [str(choice) for choice in schema["enum"]]
    for name, inner in schema.get("properties", {}).items():
        yield from _choices(inner, f"{path}.{name}" if path else name)
