"""The seats of a conversation: an agent, its role, its unread messages, and how a turn of it is recorded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Response, TaskResult, Team
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage, TextMessage, ThoughtEvent
from autogen_core import CancellationToken, Component, ComponentModel
from pydantic import BaseModel

from parley.agents.calls import Call, record_calls
from parley.agents.components import load, save
from parley.agents.events import Emit, Event, new_message_id
from parley.agents.models.base import Client
from parley.agents.models.options import THINK_TOKENS
from parley.agents.models.thoughts import join_thoughts, split_thought
from parley.agents.models.wire import NARRATOR
from parley.agents.persona_agent import PersonaAgent, PersonaResponse
from parley.agents.transcripts import Role, Turn
from parley.base.errors import ConfigError, CutShort
from parley.base.text import plural


class TeamAgentConfig(BaseModel):
    """What is saved of a `TeamAgent`."""

    team: ComponentModel
    name: str
    description: str


class TeamAgent(BaseChatAgent, Component[TeamAgentConfig]):
    """A whole team as one agent: its members talk among themselves, and the last message is the agent's.

    So a team, or a conversation of Parley's, can be a node of a `GraphFlow` or a member of a `SelectorGroupChat`.

    Args:
        team: Any AutoGen team. It keeps what was said before: resetting the agent resets it.
        name: The agent's name; by default the team's.
        description: What other agents and a selector read of it; by default the team's.
    """

    component_type = "agent"
    component_config_schema = TeamAgentConfig
    component_provider_override = "parley.agents.TeamAgent"

    def __init__(self, team: Team, name: str | None = None, description: str | None = None) -> None:
        super().__init__(name or team.name, description or team.description)
        self._team = team

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        async for item in self.on_messages_stream(messages, cancellation_token):
            if isinstance(item, Response):
                return item
        raise AssertionError("on_messages_stream always ends with a Response")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Event | Response, None]:
        result = None
        async for item in self._team.run_stream(
            task=list(messages) or None, cancellation_token=cancellation_token, output_task_messages=False
        ):
            if isinstance(item, TaskResult):
                result = item
            else:
                yield item
        assert result is not None, "a team's stream ends with a TaskResult"
        said = [message for message in result.messages if isinstance(message, BaseChatMessage)]
        if not said:
            raise ConfigError(f"the team '{self._team.name}' said nothing ({result.stop_reason})")
        message = TextMessage(content=said[-1].to_model_text(), source=self.name)
        yield Response(chat_message=message, inner_messages=list(result.messages))

    def _to_config(self) -> TeamAgentConfig:
        team = save(self._team, f"the team '{self._team.name}'")
        return TeamAgentConfig(team=team, name=self.name, description=self.description)

    @classmethod
    def _from_config(cls, config: TeamAgentConfig) -> Self:
        return cls(load(config.team), config.name, config.description)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        await self._team.reset()

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        await self._team.pause()

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        await self._team.resume()

    async def save_state(self) -> Mapping[str, Any]:
        return await self._team.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._team.load_state(state)


class Spoken(NamedTuple):
    """A turn for the transcript, the message that is delivered to the other agents, and what preceded it."""

    turn: Turn
    message: BaseChatMessage
    inner: Sequence[Event] = ()
    """Tool calls, messages of an inner team and the like, which termination conditions get too."""


@dataclass(slots=True)
class Seat:
    """An agent of a conversation, its role, and the messages it has not read yet."""

    agent: ChatAgent
    role: Role
    inbox: list[BaseChatMessage] = field(default_factory=list)
    waiting: list[BaseChatMessage] = field(default_factory=list)
    """Messages of blind rounds, which are delivered when these are over."""

    def deliver_waiting(self) -> None:
        """Deliver the messages of blind rounds."""
        self.inbox += self.waiting
        self.waiting = []

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def shares_prefix(self) -> bool:
        """Whether the agent's prompt begins like the others', so that their order of turns should be the same."""
        return isinstance(self.agent, PersonaAgent) and self.agent.placement == "last"

    @property
    def reads_prefix_once(self) -> bool:
        """Whether a call after the others' is cheaper than one at the same time: the shared prefix is in its slot."""
        client = self.agent.client if isinstance(self.agent, PersonaAgent) else None
        return self.shares_prefix and isinstance(client, Client) and client.caches_by_slot

    @property
    def persona(self) -> str:
        return self.agent.persona.about if isinstance(self.agent, PersonaAgent) else self.agent.description

    async def speak(self, round: int, token: CancellationToken, emit: Emit | None = None) -> Spoken:
        """One turn on the unread messages, recorded with every call that it takes.

        Args:
            round: The round that the turn is part of.
            token: Cancels the turn.
            emit: Gets what happens within the turn; None if nobody listens, which saves the streaming.
        """
        unread, self.inbox = self.inbox, []
        with record_calls() as calls:
            if emit is None:
                response = await self.agent.on_messages(unread, token)
            else:
                response = await self._stream(unread, token, emit)
        message = response.chat_message
        parsed = response if isinstance(response, PersonaResponse) else None
        if parsed is not None:
            text, thought, cut = message.to_model_text(), parsed.thought, parsed.cut
        else:
            message, thought = _without_thought(response)
            text, cut = message.to_model_text(), bool(calls) and calls[-1].cut
        if cut and not text.strip() and _may_have_thought(calls):
            raise _nothing_said(self.name, calls)
        turn = Turn(
            speaker=self.name,
            role=self.role,
            round=round,
            text=text,
            persona=self.persona,
            verdict=parsed.verdict if parsed else None,
            expected=parsed.expected if parsed else {},
            parse_status=parsed.parse_status if parsed else None,
            calls=tuple(calls),
            thought=thought,
            cut=cut,
        )
        if isinstance(message, StructuredMessage) and isinstance(message.content, BaseModel):
            turn = turn._replace(verdict=message.content, parse_status="ok")
        return Spoken(turn, message, response.inner_messages or ())

    async def _stream(self, unread: Sequence[BaseChatMessage], token: CancellationToken, emit: Emit) -> Response:
        if isinstance(self.agent, PersonaAgent):
            return await self.agent.speak(unread, token, emit)
        response = None
        async for item in self.agent.on_messages_stream(unread, token):
            if isinstance(item, Response):
                response = item
            else:
                emit(item)
        assert response is not None, "an agent's stream ends with a Response"
        return response


def _without_thought(response: Response) -> tuple[BaseChatMessage, str]:
    """The message of an AutoGen agent as the others hear it, and what its model thought before."""
    message = response.chat_message
    thoughts = [event.content for event in response.inner_messages or () if isinstance(event, ThoughtEvent)]
    if isinstance(message, TextMessage):
        thought, answer = split_thought(message.content)
        if thought or len(answer) < len(message.content):
            message, thoughts = message.model_copy(update={"content": answer}), [*thoughts, thought]
    return message, join_thoughts(thoughts)


def _may_have_thought(calls: Sequence[Call]) -> bool:
    """Whether a reply without text may be that of a model that was still thinking.

    A model in this process hides no thoughts: one that wrote nothing but blanks said nothing, and that is its reply.
    """
    last = calls[-1] if calls else None
    embedded = last is not None and last.model.startswith(("local/", "hf/"))
    return not embedded or bool(last and last.thought)


def _nothing_said(speaker: str, calls: Sequence[Call]) -> CutShort:
    """The error of a reply that was cut before it had any text."""
    model, spent = (calls[-1].model, calls[-1].completion_tokens) if calls else (speaker, 0)
    after = f" after {plural(spent, 'token')}" if spent else ""
    thought = "thinking" if calls and (calls[-1].thought or calls[-1].thought_tokens) else "its first word"
    return CutShort(
        f"{model}: a reply was cut off{after}, at {thought}, and says nothing; raise --max-tokens, or give the model "
        f"more room to think: {model}?think_tokens={2 * THINK_TOKENS}"
    )


def narrate(text: str, source: str = NARRATOR) -> TextMessage:
    """A message from the narrator, or from `source`."""
    return TextMessage(id=new_message_id(), content=text, source=source)


def narrator_turn(message: BaseChatMessage, round: int = 0) -> Turn:
    """A message that no agent said, as a turn of the transcript."""
    return Turn(speaker=message.source, role="narrator", round=round, text=message.to_model_text())
