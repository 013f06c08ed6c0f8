"""Personas, and the lightweight AutoGen agent that speaks as one.

    ada = Persona("Ada", "You are Ada, an auditor. You trust what can be checked.")

A `PersonaAgent` is an AutoGen `BaseChatAgent`: it can join any AutoGen team, and remembers one conversation.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from pydantic import BaseModel, ConfigDict, TypeAdapter

from parley.agents.errors import ConfigError
from parley.agents.models.base import SHARED
from parley.agents.models.registry import as_client
from parley.agents.models.reply import Reply
from parley.agents.models.wire import NARRATOR
from parley.agents.structured import Readout, StructuredReply, answer_in, structured_reply
from parley.agents.toml_file import parse_toml
from parley.agents.transcripts import ParseStatus


class Persona(BaseModel):
    """Who an agent is told to be.

    Args:
        name: A Python identifier, as AutoGen requires; names differ within a conversation.
        about: The description the model is given, usually "You are …". With "" there is no system message.
        model: A model for this persona only, as `provider/model`; by default that of the conversation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str
    model: str | None = None

    def __init__(self, name: str, about: str, model: str | None = None) -> None:
        super().__init__(name=name, about=about, model=model)
        if not name.isidentifier():
            raise ConfigError(f"a persona's name must be a single word without spaces, not '{name}'")


def load_personas(path: Path) -> list[Persona]:
    """Personas from a TOML file: `[[persona]]` tables with `name`, `about` and, where it differs, `model`."""
    try:
        rows = parse_toml(path.read_text("utf-8-sig"))["persona"]
        personas = [Persona(**row) for row in rows]
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except KeyError:
        raise ConfigError(f"{path}: it has no [[persona]] table") from None
    except (ValueError, TypeError) as error:  # not TOML, not UTF-8, or not a persona
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply for a list of personas") from None
    if not personas:
        raise ConfigError(f"{path}: it has no [[persona]] table")
    return personas


@dataclass(kw_only=True)
class PersonaResponse(Response):
    """AutoGen's response, with the parsed reply."""

    verdict: BaseModel | None = None
    expected: Mapping[str, float] = field(default_factory=dict)
    parse_status: ParseStatus | None = None
    thought: str = ""
    cut: bool = False


Placement = Literal["system", "last"]
"""Where a persona's description stands in the prompt. `system`: in the system message, with the persona's own turns as
the assistant's. `last`: at the end, after everyone's turns by name, so that all agents share the same prompt prefix:
an embedded model then processes it once, and vendors' prompt caches bill it once."""

_IDS = random.Random()
_MESSAGES = TypeAdapter(list[LLMMessage])


class PersonaAgent(BaseChatAgent):
    """One persona on one model. Each turn is one call (two if a reply had to be repaired).

    Args:
        persona: Who the agent is.
        client: The model client, one of Parley's or any AutoGen client.
        reply_type: A pydantic type that replies are parsed as; by default they are plain text.
        readout: How scores are read from a typed reply: `sampled`, as written, or `expected`, as the mean over the
            scale's tokens (needs log-probabilities).
        options: Passed with every call, such as `{"max_tokens": 200}`; by default the client's own apply.
        placement: Where the persona's description stands in the prompt (see `Placement`).
    """

    def __init__(
        self,
        persona: Persona,
        client: ChatCompletionClient,
        *,
        reply_type: type[BaseModel] | None = None,
        readout: Readout = "sampled",
        options: Mapping[str, Any] | None = None,
        placement: Placement = "system",
    ) -> None:
        # AutoGen's own __init__ opens a tracing span to set these two; `Persona` has checked the name.
        self._name = persona.name
        self._description = persona.about[:200]
        self.persona = persona
        self.client = as_client(client)
        self.reply_type = reply_type
        self.readout: Readout = readout
        self.options = dict(options or {})
        self.placement: Placement = placement
        self._introduction: SystemMessage | UserMessage = (
            UserMessage(content=persona.about, source=NARRATOR)
            if placement == "last"
            else SystemMessage(content=persona.about)
        )
        self._history: list[LLMMessage] = []
        self.speaks_again = False
        """Whether a later prompt of this agent will begin with the next one; set by the conversation."""
        self._prefix_length = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        history = self._history
        if self.placement == "last" and any(map(self._is_own_last_turn, messages)):
            history.pop()  # it comes again, in its place among the other turns of a blind round
        history.extend(message.to_model_message() for message in messages)
        if self.placement == "last":
            prompt: list[LLMMessage] = [*history, self._introduction]
        else:
            # Without a description there is no system message, so that the default of the model's template applies.
            prompt = [self._introduction, *history] if self.persona.about else list(history)
        options = self._options_for(prompt)
        if self.reply_type is None:
            reply = await self.client.create(prompt, extra_create_args=options, cancellation_token=cancellation_token)
            answer = answer_in(reply)
            text = answer.text if isinstance(reply.content, str) else str(reply.content)
            message = self._message(text, reply.usage)
            refused = isinstance(reply, Reply) and reply.refused
            response = PersonaResponse(
                chat_message=message,
                parse_status="refused" if refused else None,
                thought=answer.thought,
                cut=answer.cut,
            )
        else:
            structured: StructuredReply[BaseModel] = await structured_reply(
                self.client,
                prompt,
                self.reply_type,
                readout=self.readout,
                options=options,
                cancellation_token=cancellation_token,
            )
            text = structured.raw
            response = PersonaResponse(
                chat_message=self._message(text, structured.usage),
                verdict=structured.value,
                expected=structured.expected,
                parse_status=structured.status,
                thought=structured.thought,
                cut=structured.cut,
            )
        own_message = UserMessage if self.placement == "last" else AssistantMessage
        history.append(own_message(content=text, source=self.name))
        return response

    def _is_own_last_turn(self, message: BaseChatMessage) -> bool:
        if not self._history or message.source != self.name:
            return False
        last = self._history[-1]
        return isinstance(last, UserMessage) and (last.source, last.content) == (self.name, message.to_model_text())

    def _options_for(self, prompt: Sequence[LLMMessage]) -> Mapping[str, Any]:
        """The options; for prompt caches, with the lengths of the prefixes that other prompts share."""
        if self.placement == "last":
            length = len(self._history)
            while length > 1 and getattr(self._history[length - 1], "source", "") == NARRATOR:
                length -= 1  # each agent gets the round's instructions at its own turn, so their position differs
            shared: tuple[int, ...] = (length,)
        else:
            shared = tuple(filter(None, (self._prefix_length, len(prompt) if self.speaks_again else 0)))
            self._prefix_length = shared[-1] if shared else 0
        return {**self.options, SHARED: shared} if shared else self.options

    def _message(self, text: str, usage: RequestUsage) -> TextMessage:
        # AutoGen's default id, uuid4, takes as long to make as the rest of the message.
        message_id = f"{_IDS.getrandbits(128):032x}"
        return TextMessage(id=message_id, content=text, source=self._name, models_usage=usage, metadata={})

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self._history = []
        self._prefix_length = 0

    async def save_state(self) -> Mapping[str, Any]:
        return {"history": _MESSAGES.dump_python(self._history)}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self._history = _MESSAGES.validate_python(state["history"])
