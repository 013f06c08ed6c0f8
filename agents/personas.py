"""Personas, and the lean AutoGen agent that speaks as one.

    ada = Persona("Ada", "You are Ada, an auditor. You trust what can be checked.")

A `PersonaAgent` is an AutoGen `BaseChatAgent`: it can sit in any AutoGen team, and keeps one conversation.
"""

from __future__ import annotations

import random
import tomllib
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
from parley.agents.models.base import SHARED, Client
from parley.agents.models.wire import NARRATOR
from parley.agents.structured import Readout, StructuredReply, structured_reply
from parley.agents.transcripts import ParseStatus


class Persona(BaseModel):
    """Who speaks: a name (a Python identifier, as AutoGen wants it), what the model is told, and which model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str
    model: str | None = None

    def __init__(self, name: str, about: str, model: str | None = None) -> None:
        super().__init__(name=name, about=about, model=model)
        if not name.isidentifier():
            raise ConfigError(f"a persona's name must be a plain word without spaces, not '{name}'")


def load_personas(path: Path) -> list[Persona]:
    """Personas from a TOML file: a list of tables `[[persona]]` with name and about, and model if it differs."""
    try:
        rows = tomllib.loads(path.read_text("utf-8"))["persona"]
        found = [Persona(**row) for row in rows]
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except KeyError:
        raise ConfigError(f"{path}: no [[persona]] in it") from None
    except (ValueError, TypeError) as error:  # not TOML, not UTF-8, or not a persona
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply for a list of personas") from None
    if not found:
        raise ConfigError(f"{path}: no [[persona]] in it")
    return found


@dataclass(kw_only=True)
class PersonaResponse(Response):
    """AutoGen's response, and how the reply was read."""

    verdict: BaseModel | None = None
    expected: Mapping[str, float] = field(default_factory=dict)
    parse_status: ParseStatus | None = None


Placement = Literal["system", "last"]
"""Where a persona stands in the prompt. `system`: as the system message, with the persona's own words as the
assistant's. `last`: at the end, after a record of all that was said under everyone's name, so that all at the table
share the prompt's beginning: an embedded model then reads it once, and vendors' prompt caches bill it once."""

_IDS = random.Random()
_MESSAGES = TypeAdapter(list[LLMMessage])


class PersonaAgent(BaseChatAgent):
    """One persona on one model. Each turn is one call (two if a reply had to be repaired)."""

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
        self.client = client
        self.reply_type = reply_type
        self.readout: Readout = readout
        self.options = dict(options or {})
        self._placement = placement
        self._introduction: SystemMessage | UserMessage = (
            UserMessage(content=persona.about, source=NARRATOR)
            if placement == "last"
            else SystemMessage(content=persona.about)
        )
        self._history: list[LLMMessage] = []
        self.speaks_again = False
        """Whether a later call of this agent will begin with this one's prompt (told by the conversation)."""
        self._kept = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        history = self._history
        history.extend(message.to_model_message() for message in messages)
        if self._placement == "last":
            prompt: list[LLMMessage] = [*history, self._introduction]
        else:
            # Somebody of whom nothing is told has no system message: what the model's own template says then holds.
            prompt = [self._introduction, *history] if self.persona.about else list(history)
        options = self._options_for(prompt)
        if self.reply_type is None:
            reply = await self.client.create(prompt, extra_create_args=options, cancellation_token=cancellation_token)
            text = reply.content if isinstance(reply.content, str) else str(reply.content)
            response = PersonaResponse(chat_message=self._says(text, reply.usage))
        else:
            answer: StructuredReply[BaseModel] = await structured_reply(
                self.client,
                prompt,
                self.reply_type,
                readout=self.readout,
                options=options,
                cancellation_token=cancellation_token,
            )
            text = answer.raw
            response = PersonaResponse(
                chat_message=self._says(text, answer.usage),
                verdict=answer.value,
                expected=answer.expected,
                parse_status=answer.status,
            )
        own = UserMessage if self._placement == "last" else AssistantMessage
        history.append(own(content=text, source=self.name))
        return response

    def _options_for(self, prompt: Sequence[LLMMessage]) -> Mapping[str, Any]:
        """With the places up to which other calls of the conversation begin as this one does, for prompt caches."""
        if not isinstance(self.client, Client):
            return self.options
        if self._placement == "last":
            said = len(self._history)
            while said > 1 and getattr(self._history[said - 1], "source", "") == NARRATOR:
                said -= 1  # instructions of a round come at each one's turn, so that no two have them at one place
            shared: tuple[int, ...] = (said,)
        else:
            shared = tuple(filter(None, (self._kept, len(prompt) if self.speaks_again else 0)))
            self._kept = shared[-1] if shared else 0
        return {**self.options, SHARED: shared} if shared else self.options

    def _says(self, text: str, usage: RequestUsage) -> TextMessage:
        # An id of our own: AutoGen's default, uuid4, costs as much as all the rest of the message.
        made_up = f"{_IDS.getrandbits(128):032x}"
        return TextMessage(id=made_up, content=text, source=self._name, models_usage=usage, metadata={})

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self._history = []
        self._kept = 0

    async def save_state(self) -> Mapping[str, Any]:
        return {"history": _MESSAGES.dump_python(self._history)}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self._history = _MESSAGES.validate_python(state["history"])
