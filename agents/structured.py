"""Replies parsed as pydantic types.

    reply = await structured_reply(client, messages, Opinion)
    reply.status     # ok | repaired | unparsed | refused | cut
    reply.value      # an Opinion, or None
    reply.raw        # the model's text

Decoding is constrained to the schema where the provider supports it. The reply must be the object and nothing else,
since other text could change its meaning ("{…} no, 6"; "the format is {…}"). Any other reply, including a refusal, is
requested once more, and then counts as unread. A `TextReply` is a type for a plain text format instead of JSON.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, NamedTuple, Self, TypeVar, get_origin

from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    RequestUsage,
    UserMessage,
)
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema

from parley.agents.models.base import Client
from parley.agents.models.objects import JsonObject, decoded
from parley.agents.models.registry import as_client
from parley.agents.models.reply import ENDED, Reply
from parley.agents.models.request import TYPED
from parley.agents.models.streaming import OnText
from parley.agents.models.thoughts import is_preface, join_thoughts, split_thought
from parley.agents.models.wire import NARRATOR, UNREAD
from parley.agents.transcripts import ParseStatus, seed_from

T = TypeVar("T", bound=BaseModel)

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
_SENTENCE_END = re.compile(r"(?<=\w)[.!?。！？]+[\"'”’)]*(?=\s|$)")
_FENCE = re.compile(r"```\w*\Z")
_STARTS_WITH_JSON = re.compile(r"\s*(?:```\w*\s*)?\{")
NO_OBJECT = "it holds no JSON object"
NOT_ALONE = "it says more than the JSON object"
NOT_A_NUMBER = "a number is needed, in plain digits"


def scale(low: int, high: int) -> Any:
    """The type of a score: requested as an integer, parsed tolerantly (7, 7.5, "7"; "7/10" if `high` is 10).

    Args:
        low: The lowest score.
        high: The highest score. A number outside the scale is an error and never clipped.
    """

    def as_number(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("a truth value is not a score")  # sent to the model with the request for a repair
        if isinstance(value, str):
            match = _NUMBER.fullmatch(value)
            if match is None or match.group(2) not in (None, str(high)):
                raise ValueError(NOT_A_NUMBER)  # pydantic would read "1_0" as ten
            return float(match.group(1))
        return value

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Annotated[float, BeforeValidator(as_number), Field(ge=low, le=high), WithJsonSchema(schema)]


def free_text(max_chars: int) -> Any:
    """The type of a text of limited length.

    Args:
        max_chars: The limit in the JSON schema. Constrained decoding stops there, perhaps within a sentence, whose
            beginning is then left out; a longer text from a model whose decoding is not constrained is accepted whole,
            since it can still be read.
    """

    def whole_sentences(text: str) -> str:
        if len(text) != max_chars or not (ends := list(_SENTENCE_END.finditer(text))):
            return text
        return text[: ends[-1].end()]

    return Annotated[str, AfterValidator(whole_sentences), WithJsonSchema({"type": "string", "maxLength": max_chars})]


class TextReply(BaseModel):
    """Base of reply types that parse their own text format; no schema is sent.

    For agents that answer in lines ("Bias: 3: reason"): a request for JSON would change what is measured.
    """

    @classmethod
    @abstractmethod
    def read(cls, text: str) -> tuple[Self | None, str]:
        """Parse a reply: the value, and what is wrong with the text ("" if nothing is).

        A faulty reply may still give the value of the part that could be parsed (a judge that writes "Bias: 0" and
        "Relevancy: 10" has given a relevancy); its status is `unparsed` nonetheless.
        """


class StructuredReply(NamedTuple, Generic[T]):
    """A reply, its text, and the value that was parsed from it."""

    value: T | None
    status: ParseStatus | None
    """None if no type was requested: the reply is plain text."""
    raw: str
    usage: RequestUsage
    expected: Mapping[str, float] = MappingProxyType({})
    """Of a silent ballot: the expected score by metric, or the probability of each choice ("preferred=B")."""
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
REPAIR = UNREAD + ": {problem}. Send it again as the JSON object that was asked for, and nothing else."
REPAIR_TEXT = UNREAD + ": {problem}. Send it again exactly as it was asked for, and nothing else."


# Told "it was too long and was cut off", a real judge of answers scored that ("the answer was cut off": 0) in 35 of 143
# second replies.
CUT_PROBLEM = "it broke off before its end, which says nothing about the task. Do the same task again, and write less"


def answer_in(reply: CreateResult, *, typed: bool = False) -> StructuredReply[Any]:
    """The unparsed answer in a client's reply. Not every AutoGen client separates thinking from the answer.

    Args:
        reply: The reply.
        typed: Whether a reply of a type was requested, in which every mark of a thought counts.
    """
    text = reply.content if isinstance(reply.content, str) else "" if typed else str(reply.content)
    thought, cut = reply.thought or "", reply.finish_reason == "length"
    if isinstance(reply, Reply):
        cut = reply.cut
    if typed or not isinstance(reply, Reply):  # which has done so already, as for a text that is heard
        inner, text, closed = split_thought(text, typed=typed, cut=cut)
        thought = join_thoughts([thought, inner])
        cut = cut or not closed
    status: ParseStatus | None = "refused" if refused_by_vendor(reply) else None
    return StructuredReply(None, status, text, reply.usage, thought=thought, cut=cut)


def asked_again(
    messages: Sequence[LLMMessage], reply: str, problem: str, request: str = REPAIR_TEXT
) -> list[LLMMessage]:
    """The prompt that requests an unreadable reply once more.

    Args:
        messages: The prompt that was answered.
        reply: The unreadable reply.
        problem: What is wrong with it.
        request: The text of the request, with a placeholder for the problem.
    """
    complaint = UserMessage(content=request.format(problem=problem), source=NARRATOR)
    return [*messages, AssistantMessage(content=reply, source="self"), complaint]


def refused_by_vendor(reply: CreateResult) -> bool:
    """Whether the vendor says that the model refused, or that a filter blocked the reply."""
    return reply.finish_reason == "content_filter" or (isinstance(reply, Reply) and reply.refused)


def looks_like_refusal(text: str) -> bool:
    """Whether a text begins like a common English refusal. It only labels replies that are unread anyway, and changes
    no score.
    """
    return bool(_REFUSAL.match(text))


def parse(text: str, reply_type: type[T]) -> tuple[T | None, str]:
    """Parse a text that is a JSON object, alone, fenced or after a preface; returns the value, or None and the
    problem.
    """
    if not text.isascii() or "\\u" in text:
        text = _LONE_SURROGATE.sub(lambda match: "\\ufffd" if len(match.group()) > 1 else "\ufffd", text)
    if issubclass(reply_type, TextReply):
        return reply_type.read(text)
    try:
        return reply_type.model_validate(_match_keys(_object_alone(text), reply_type)), ""
    except ValidationError as error:
        first = error.errors()[0]
        return None, f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}"
    except _Unclear as error:
        return None, str(error)


def _object_alone(text: str) -> JsonObject:
    """The JSON object that is the whole text."""
    start = text.find("{")
    if start < 0:
        raise _Unclear(NO_OBJECT)
    if not is_preface(_FENCE.sub("", text[:start].rstrip())):
        raise _Unclear(NOT_ALONE)
    try:
        value, end = decoded(text, start)
    except (ValueError, RecursionError):
        # Trailing commas are accepted, but only if the text cannot be parsed with them.
        text = re.sub(r",(\s*[}\]])", r"\1", text)
        try:
            value, end = decoded(text, start)
        except (ValueError, RecursionError):
            raise _Unclear(NO_OBJECT) from None
    if text[end:].strip() not in ("", "```"):
        raise _Unclear(NOT_ALONE)
    return value


class _Unclear(Exception):
    """A reply without an object of its own, or an object with two keys for one field, with a text for a number, or with
    a number that was not asked for."""


def _match_keys(candidate: dict[str, Any], reply_type: type[BaseModel]) -> dict[str, Any]:
    """The object with its keys spelled as in the type, whatever their case ("accuracy", "ACCURACY")."""
    names, open_ended = _field_names(reply_type), reply_type.model_config.get("extra") == "allow"
    scored = any(field.scored for field in names.values()) and not any(field.choice for field in names.values())
    for key in getattr(candidate, "repeated", ()):
        if key in names:
            raise _Unclear(f"{names[key].name}: it is given twice")
    matched: dict[str, Any] = {}
    for key, value in candidate.items():
        field = names.get(key.strip().lower())
        if field is None:
            # A text beside a number may be an unrequested reason; any other could be the verdict.
            reason = scored and key.strip().lower() in REASONS and isinstance(value, str)
            if not open_ended and (not reason or _NUMBER.fullmatch(value)):
                raise _Unclear(f"{key[:40]}: it was not asked for")
            matched[key] = value
            continue
        if field.number and (isinstance(value, bool) or (isinstance(value, str) and not _DECIMAL.fullmatch(value))):
            raise _Unclear(f"{field.name}: {NOT_A_NUMBER}")
        inner = field.inner
        matched[field.name] = _match_keys(value, inner) if inner is not None and isinstance(value, dict) else value
    return matched


REASONS = frozenset(
    ("reason", "reasons", "reasoning", "rationale", "justification", "explanation", "comment", "comments")
)
"""Keys of texts that are accepted beside a number, although not requested."""
_DECIMAL = re.compile(r"\s*+-?\d++(?:\.\d++)?\s*+")


class _Field(NamedTuple):
    """A field: its name, and its type if that has fields."""

    name: str
    inner: type[BaseModel] | None
    number: bool
    """Whether pydantic reads it as a number."""
    scored: bool
    """Whether it is a number, or holds some."""
    choice: bool
    """Whether it is one of a few texts."""


@lru_cache(maxsize=256)
def _field_names(reply_type: type[BaseModel]) -> dict[str, _Field]:
    """The fields by their names and aliases in lower case."""
    names: dict[str, _Field] = {}
    for name, info in reply_type.model_fields.items():
        kind = info.annotation
        inner = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        own_reader = any(isinstance(part, BeforeValidator) for part in info.metadata)  # as of a scale
        for spelling in (name, info.alias or name):
            scored = kind in (int, float) or inner is not None
            names[spelling.lower()] = _Field(
                spelling, inner, kind in (int, float) and not own_reader, scored, get_origin(kind) is Literal
            )
    return names


def _typed_answer(client: Client, reply: Reply) -> StructuredReply[Any]:
    """The answer in a typed reply. A reply that was cut may be only an unfinished thought that the template opened."""
    answer = answer_in(reply, typed=True)
    told_apart = answer.thought or reply.thinks
    if answer.cut and client.thinks and not told_apart and not _STARTS_WITH_JSON.match(answer.raw):
        return answer._replace(raw="", thought=join_thoughts([answer.thought, answer.raw]))
    return answer


async def structured_reply(
    client: ChatCompletionClient,
    messages: Sequence[LLMMessage],
    reply_type: type[T] | None,
    *,
    options: Mapping[str, Any] | None = None,
    cancellation_token: CancellationToken | None = None,
    on_text: OnText | None = None,
) -> StructuredReply[T]:
    """Request a reply of a type, and once more if it cannot be parsed.

    Args:
        client: The model client, one of Parley's or any AutoGen client.
        messages: The prompt. It must describe the format itself: not every provider sends the schema to the model.
        reply_type: The pydantic type, or a `TextReply`; None for plain text, which is requested once.
        options: Passed with every call, such as `{"max_tokens": 200}`; by default the client's own apply.
        cancellation_token: Cancels the calls.
        on_text: Gets the reply as it arrives, chunk by chunk; by default it is not streamed.

    Returns:
        The value if it could be parsed, its status, and the model's text in any case.
    """
    client = as_client(client)
    plain_text = reply_type is None or issubclass(reply_type, TextReply)
    json_output: type[BaseModel] | bool | None = None
    if not plain_text:
        info = client.model_info
        json_output = reply_type if info.get("structured_output") else bool(info.get("json_output")) or None
    extra = dict(options or {})
    usage = RequestUsage(0, 0)
    prompt, first = messages, None
    while True:
        reply = await client.create(
            prompt,
            json_output=json_output,
            extra_create_args={**extra, TYPED: first is None and reply_type is not None},
            cancellation_token=cancellation_token,
            on_text=on_text,
        )
        if reply_type is None:
            return answer_in(reply)
        usage.prompt_tokens += reply.usage.prompt_tokens
        usage.completion_tokens += reply.usage.completion_tokens
        answer = _typed_answer(client, reply)
        refused = refused_by_vendor(reply)
        ended = reply.finish_reason in ENDED
        if refused or not ended:
            value, problem = None, "it was refused" if refused else "it may not be complete"
        else:
            value, problem = parse(answer.raw, reply_type)
        answer = answer._replace(value=value, usage=usage)
        # A reply that the vendor marks as a refusal is one. Other refusals are treated like any reply in the wrong
        # format: they cannot be recognised in every language, and asking only some models again would change their
        # scores. A reply that was cut before it said anything would be cut again.
        if first is not None or not problem or refused or (answer.cut and not answer.raw.strip()):
            break
        first = answer
        problem = CUT_PROBLEM if answer.cut else problem
        if "seed" in extra:  # the same noise again would repeat the reply
            extra["seed"] = seed_from(extra["seed"], problem)
        prompt = asked_again(messages, answer.raw, problem, REPAIR_TEXT if plain_text else REPAIR)
    if problem:
        kept = first or answer
        refused = refused or looks_like_refusal(kept.raw)
        return kept._replace(status="refused" if refused else "cut" if kept.cut or not ended else "unparsed")
    return answer._replace(status="repaired" if first else "ok")
