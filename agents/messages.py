"""AutoGen's messages and events: made, saved, and streamed as they happen.

Events happen within a turn: chunks of text, tool calls, requests for input, messages of inner teams. Work that reports
its events takes a function `emit`. `parley.base.tasks.streamed` turns such work into an async generator, which is what
AutoGen's interfaces return.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, MessageFactory, StructuredMessage, TextMessage
from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents.models.wire import NARRATOR
from parley.agents.transcripts import Turn

Event = BaseAgentEvent | BaseChatMessage
Emit = Callable[[Event], None]
"""Called with each event as it happens."""
T = TypeVar("T")
_IDS = random.Random()


def new_message_id() -> str:
    """A message id. AutoGen's default, uuid4, takes as long to make as the rest of the message."""
    return f"{_IDS.getrandbits(128):032x}"


def narrate(text: str, source: str = NARRATOR) -> TextMessage:
    """A message from the narrator, or from `source`."""
    return TextMessage(id=new_message_id(), content=text, source=source)


@lru_cache(maxsize=64)
def typed_message(content: type[BaseModel]) -> type[StructuredMessage[Any]]:
    """AutoGen's message type for a type of content. Cached: pydantic takes milliseconds to make one."""
    return StructuredMessage[content]  # type: ignore[valid-type]


def as_read(message: BaseChatMessage) -> UserMessage:
    """A message as personas read it: a typed reply as the model wrote it, not as AutoGen's JSON."""
    if type(message) is TextMessage:  # first, since `isinstance` with a class of pydantic's runs Python code
        return UserMessage(content=message.content, source=message.source)
    if isinstance(message, StructuredMessage) and message.format_string is not None:
        return UserMessage(content=message.to_model_text(), source=message.source)
    return message.to_model_message()


def narrator_turn(message: BaseChatMessage, round: int = 0) -> Turn:
    """A message from no agent, as a turn of the transcript."""
    return Turn(speaker=message.source, role="narrator", round=round, text=message.to_model_text())


Task = str | BaseChatMessage | Sequence[BaseChatMessage | Sequence[str]] | None
"""The task of a conversation: a text, AutoGen messages, or earlier messages as pairs of source and text."""


def as_messages(task: Task) -> list[BaseChatMessage]:
    """A task as messages; a plain text comes from the narrator."""
    if task is None:
        return []
    if isinstance(task, str):
        return [narrate(task)]
    if isinstance(task, BaseChatMessage):
        return [task]
    return [part if isinstance(part, BaseChatMessage) else narrate(part[1], part[0]) for part in task]


def save_messages(messages: Iterable[BaseChatMessage], factory: MessageFactory) -> list[Mapping[str, Any]]:
    """Messages as JSON; messages of unknown types become plain text."""
    return [
        {**message.dump(), "type": type(message).__name__}
        if factory.is_registered(type(message)) and not isinstance(message, TextMessage)
        else {"source": message.source, "content": message.to_model_text()}
        for message in messages
    ]


def load_messages(saved: Iterable[Mapping[str, Any]], factory: MessageFactory) -> list[BaseChatMessage]:
    """Load saved messages."""
    loaded = [factory.create(message) if "type" in message else TextMessage(**message) for message in saved]
    return [message for message in loaded if isinstance(message, BaseChatMessage)]
