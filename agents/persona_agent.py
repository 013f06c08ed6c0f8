"""The AutoGen agent that speaks as a persona: it can join any AutoGen team, and remembers one conversation.

`SelfDebiasAgent` continues a text away from a bias. It needs a model with next-token probabilities:

    writer = SelfDebiasAgent("Writer", model("local/smollm2"), against="The following text is rude:\n\n{text}")

No chat template is applied there: the model continues the text itself. `parley.agents.models.local` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
)
from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from pydantic import BaseModel, TypeAdapter

from parley.agents.ballots import SilentBallot, ask_ballot
from parley.agents.messages import Emit, as_read, new_message_id, typed_message
from parley.agents.models.base import Client
from parley.agents.models.registry import as_client, client_class
from parley.agents.models.request import SHARED, split_name
from parley.agents.models.streaming import OnText
from parley.agents.models.wire import NARRATOR
from parley.agents.personas import Persona
from parley.agents.structured import (
    StructuredReply,
    structured_reply,
)
from parley.agents.transcripts import Turn, seed_from
from parley.base.errors import ConfigError
from parley.base.tasks import streamed


@dataclass(kw_only=True)
class Spoken(Response):
    """A turn: AutoGen's response, which the other agents hear, and the turn for the transcript."""

    turn: Turn
    buffered: Sequence[BaseAgentEvent | BaseChatMessage] = ()
    """Events that a stream must still show before the message, because another agent was being shown."""

    @property
    def messages(self) -> list[BaseAgentEvent | BaseChatMessage]:
        """All messages for termination conditions: tool calls, messages of an inner team and the like, then the
        message.
        """
        return [*(self.inner_messages or ()), self.chat_message]


Placement = Literal["system", "last"]
"""Where a persona's description is in the prompt. `system`: in the system message, with the persona's own turns as
the assistant's. `last`: at the end, after everyone's turns by name, so that all agents share the same prompt prefix:
an embedded model then processes it once, and vendors' prompt caches bill it once."""


_MESSAGES = TypeAdapter(list[LLMMessage])


def persona_of(agent: ChatAgent) -> str:
    """The description that an agent plays: its system message, or what other agents read if it has none."""
    if isinstance(agent, PersonaAgent):
        return agent.persona.about
    return "\n".join(str(message.content) for message in getattr(agent, "_system_messages", ())) or agent.description


class PersonaAgent(BaseChatAgent):
    """One persona on one model. Each turn is one call, or two if a reply had to be repaired.

    Args:
        persona: Who the agent is.
        client: The model client, one of Parley's or any AutoGen client.
        reply_type: A pydantic type that replies are parsed as; by default they are plain text.
        options: Passed with every call, such as `{"max_tokens": 200}`; by default the client's own apply. Each call's
            seed derives from their `seed` and the prompt.
        keeps_seed: Whether the first call has the `seed` of the options itself, as first drafts that are compared do.
        placement: Where the persona's description stands in the prompt (see `Placement`).
        model_client_stream: Whether streams of this agent have its replies as they arrive, chunk by chunk.
    """

    def __init__(
        self,
        persona: Persona,
        client: ChatCompletionClient,
        *,
        reply_type: type[BaseModel] | None = None,
        options: Mapping[str, Any] | None = None,
        keeps_seed: bool = False,
        placement: Placement = "system",
        model_client_stream: bool = False,
    ) -> None:
        # AutoGen's own __init__ opens a tracing span (16 µs) to set these two; `Persona` has checked the name.
        self._name = persona.name
        self._description = persona.about[:200]
        self.persona = persona
        self.client = as_client(client)
        self.reply_type = reply_type
        self.options = dict(options or {})
        self.keeps_seed = keeps_seed
        self.placement: Placement = placement
        self.model_client_stream = model_client_stream
        self._introduction: SystemMessage | UserMessage = (
            UserMessage(content=persona.about, source=NARRATOR)
            if placement == "last"
            else SystemMessage(content=persona.about)
        )
        self._history: list[LLMMessage] = []
        self._prefix_length = 0
        self._turns = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        typed = (typed_message(self.reply_type),) if self.reply_type is not None else ()
        return (*typed, TextMessage)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        return await self.speak(messages, cancellation_token)

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        async with aclosing(streamed(lambda emit: self.speak(messages, cancellation_token, emit))) as items:
            async for item in items:
                yield item

    async def speak(
        self,
        messages: Sequence[BaseChatMessage],
        token: CancellationToken,
        emit: Emit | None = None,
        *,
        reply_type: type[BaseModel] | None = None,
        speaks_again: bool = False,
    ) -> Spoken:
        """Take one turn: read the messages, make the prompt, ask the model, remember its answer.

        Args:
            messages: What the agent has not read yet.
            token: Cancels the turn.
            emit: Receives the turn's events: chunks and thoughts.
            reply_type: The type of this reply; by default the agent's own.
            speaks_again: Whether a later prompt of this agent is certain to begin with this turn's.
        """
        if self.placement == "last" and any(map(self._is_own_last_turn, messages)):
            self._history.pop()  # it is delivered again, in order among the other turns of a blind round
        for message in messages:
            self._history += message.context if isinstance(message, HandoffMessage) else ()
            self._history.append(as_read(message))
        message_id = new_message_id()
        on_text: OnText | None = None
        if emit is not None and self.model_client_stream:

            def on_text(text: str) -> None:
                emit(ModelClientStreamingChunkEvent(content=text, source=self._name, full_message_id=message_id))

        prompt = self._prompt(self._history)
        reply = await structured_reply(
            self.client,
            prompt,
            reply_type or self.reply_type,
            options=self._options_for(prompt, speaks_again),
            cancellation_token=token,
            on_text=on_text,
        )
        inner = [ThoughtEvent(content=reply.thought, source=self._name)] if reply.thought else []
        if inner and emit is not None:
            emit(inner[0])
        own_message = UserMessage if self.placement == "last" else AssistantMessage
        self._history.append(own_message(content=reply.raw, source=self._name))
        return self._spoken(self._message(reply, message_id), reply, inner)

    def remember(self, text: str) -> None:
        """Replace its own last turn, in its memory, by what others were given of it.

        Args:
            text: What they were given.
        """
        if self._history and getattr(self._history[-1], "source", "") == self._name:
            self._history[-1] = self._history[-1].model_copy(update={"content": text})

    def _spoken(
        self, message: BaseChatMessage, reply: StructuredReply[Any], inner: Sequence[ThoughtEvent] = ()
    ) -> Spoken:
        """The response with its turn; a seat adds role, round and calls."""
        turn = Turn(
            speaker=self._name,
            role="debater",
            round=0,
            text=reply.raw,
            persona=self.persona.about,
            verdict=reply.value,
            expected=reply.expected,
            parse_status=reply.status,
            thought=reply.thought,
            cut=reply.cut,
        )
        return Spoken(chat_message=message, inner_messages=inner, turn=turn)

    def _message(self, reply: StructuredReply[BaseModel], message_id: str) -> BaseChatMessage:
        """The reply as an AutoGen message: a `StructuredMessage` if it was parsed as a type."""
        header: dict[str, Any] = {
            "id": message_id,
            "source": self._name,
            "models_usage": reply.usage,
            "metadata": {},
        }
        if reply.value is None:
            return TextMessage(content=reply.raw, **header)
        # The others read the reply as it was written: its format string is the text itself, with nothing to fill in.
        written = reply.raw.replace("{", "{{").replace("}", "}}")
        return typed_message(type(reply.value))(content=reply.value, format_string=written, **header)

    async def cast(self, ballot: SilentBallot, token: CancellationToken) -> Spoken:
        """Cast a silent ballot on the question alone: it neither uses nor changes the agent's memory.

        Args:
            ballot: The question.
            token: Cancels the call.
        """
        prompt = self._prompt([UserMessage(content=ballot.question, source=NARRATOR)])
        reply = await ask_ballot(ballot, self.client, prompt, self.options, token)
        message = TextMessage(
            id=new_message_id(), content=reply.raw, source=self._name, models_usage=reply.usage, metadata={}
        )
        return self._spoken(message, reply)

    def _prompt(self, history: Sequence[LLMMessage]) -> list[LLMMessage]:
        if self.placement == "last":
            return [*history, self._introduction]
        # Without a description there is no system message, so that the default of the model's template applies.
        return [self._introduction, *history] if self.persona.about else list(history)

    def _is_own_last_turn(self, message: BaseChatMessage) -> bool:
        if not self._history or message.source != self.name:
            return False
        last = self._history[-1]
        return isinstance(last, UserMessage) and (last.source, last.content) == (self.name, message.to_model_text())

    def _options_for(self, prompt: Sequence[LLMMessage], speaks_again: bool) -> Mapping[str, Any]:
        """Call options, with the lengths of prefixes that other prompts share, for prompt caches."""
        if self.placement == "last":
            length = len(self._history)
            while length > 1 and getattr(self._history[length - 1], "source", "") == NARRATOR:
                length -= 1  # each agent gets the round's instructions at its own turn, so their position differs
            shared: tuple[int, ...] = (length,)
        else:
            # A write to a vendor's prompt cache costs a quarter more than the tokens alone, so an agent that will not
            # speak again marks only what it has sent before.
            shared = tuple(filter(None, (self._prefix_length, len(prompt) if speaks_again else 0)))
            self._prefix_length = shared[-1] if shared else 0
        options = {**self.options, SHARED: shared} if shared else self.options
        earlier, self._turns = self._turns, self._turns + 1
        if "seed" not in options or (self.keeps_seed and not earlier):
            return options
        # Under one seed a server may draw the same noise for every reply, and a revision comes out as its draft again.
        return {**options, "seed": seed_from(options["seed"], self._name, earlier, *(m.content for m in prompt))}

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self._history = []
        self._prefix_length = 0

    async def save_state(self) -> Mapping[str, Any]:
        return {"history": _MESSAGES.dump_python(self._history, mode="json")}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self._history = _MESSAGES.validate_python(state["history"])


def require_next_token_probabilities(name: str, what: str) -> None:
    """ConfigError if the named model has no next-token probabilities; needs no key and loads nothing.

    Args:
        name: The model, as `provider/model`.
        what: The feature that needs them, for the message ("decoding against a bias").
    """
    if not client_class(split_name(name)[0]).next_tokens:
        raise ConfigError(
            f"{what} needs the log-probabilities of every next token, but {name.partition('?')[0]} does not give them "
            "(local/ and hf/ models do)"
        )


KEPT = 1000
"""Number of most probable tokens considered at each step."""


class SelfDebiasAgent(BaseChatAgent):
    """Continues the last message it was sent.

    Args:
        name: The agent's name.
        client: A model with next-token probabilities (`local/` or `hf/`).
        against: The prompt that calls for the bias, with `{text}`; tokens that it makes more probable are suppressed.
        decay: λ, the strength of the suppression: 0 is plain decoding, 50 the default of the method's authors.
        options: Passed with every call, such as `{"max_tokens": 40}`.
    """

    def __init__(
        self,
        name: str,
        client: Client,
        *,
        against: str,
        decay: float = 50.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, "Continues a text, away from a bias.")
        if not client.next_tokens:
            require_next_token_probabilities(client.name, "decoding against a bias")
        self._client, self._against = client, against
        self._options = {**(options or {}), "contrast_decay": decay, "contrast_keep": KEPT}

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        text = messages[-1].to_model_text()
        reply = await self._client.create(
            [SystemMessage(content=self._against.format(text=text)), UserMessage(content=text, source=NARRATOR)],
            extra_create_args=self._options,
            cancellation_token=cancellation_token,
        )
        message = TextMessage(content=str(reply.content), source=self.name, models_usage=reply.usage)
        return Response(chat_message=message)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Nothing to reset: the agent has no memory."""
