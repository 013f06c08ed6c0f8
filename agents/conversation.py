"""Shared by debates and critique loops: participants, delivery of messages, and AutoGen's `Team` interface.

A conversation is a plain scheduler over `ChatAgent.on_messages`: each agent is given only the messages that it may see
and has not read yet. Even with everything recorded, this takes a tenth of the time of AutoGen's team runtime
(benchmarks/). AutoGen agents, teams and termination conditions all work, and a conversation can itself join an AutoGen
team.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Self, TypeVar

from autogen_agentchat.base import ChatAgent, TaskResult, Team, TerminationCondition
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    MessageFactory,
    ModelClientStreamingChunkEvent,
    UserInputRequestedEvent,
)
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from parley.agents.guests import TeamAgent, wrap_clients
from parley.agents.messages import (
    Emit,
    Event,
    Task,
    as_messages,
    load_messages,
    narrator_turn,
    save_messages,
    typed_message,
)
from parley.agents.models.base import UnlinkedToken
from parley.agents.models.registry import Models
from parley.agents.models.wire import NARRATOR
from parley.agents.persona_agent import PersonaAgent, Placement, Spoken
from parley.agents.personas import Persona
from parley.agents.seats import Seat, choose_client
from parley.agents.transcripts import Role, Transcript, Turn
from parley.base.errors import ConfigError
from parley.base.tasks import last_item, streamed

Participant = Persona | ChatAgent | Team
"""A participant: a persona, any AutoGen agent, or a whole AutoGen team."""
T = TypeVar("T")


class Conversation(Team):
    """Base of `Debate` and `Critique`."""

    # It has the interface of AutoGen's teams, but schedules the agents itself: a message costs about 2 ms of CPU in the
    # teams' own runtime, and a tenth of that here.

    def __init__(
        self,
        name: str,
        *,
        model: str | ChatCompletionClient | None,
        models: Models | None,
        options: Mapping[str, Any] | None,
        termination_condition: TerminationCondition | None,
        placement: Placement = "system",
        model_client_stream: bool = False,
    ) -> None:
        self._name = name
        self._model_client_stream = model_client_stream
        self._default_model = model
        self._options = dict(options or {})
        self._termination = termination_condition
        self._placement: Placement = placement
        self._models = Models() if models is None else models
        self._owns_models = models is None
        self._not_paused = asyncio.Event()
        self._not_paused.set()
        self._seats: list[Seat] = []
        self._running = False
        self._turns_so_far: list[Turn] = []
        self._stop_reason = ""
        self._emit: Emit | None = None
        self._typed_replies: tuple[type[BaseModel], ...] = ()

    @property
    def name(self) -> str:
        return self._name

    def _seat(self, participant: Participant, role: Role, *, keeps_seed: bool = False) -> Seat:
        if isinstance(participant, Persona):
            agent: ChatAgent = PersonaAgent(
                participant,
                choose_client(participant.model, self._default_model, self._models),
                options=self._options,
                keeps_seed=keeps_seed,
                placement=self._placement,
                model_client_stream=self._model_client_stream,
            )
        elif isinstance(participant, ChatAgent):
            agent = participant
        elif isinstance(participant, Team):
            agent = TeamAgent(participant)
        else:
            raise ConfigError(f"{participant!r} cannot take part: give a Persona, or an AutoGen agent or team")
        if not isinstance(participant, Persona):
            wrap_clients(participant)
        if agent.name == NARRATOR:
            raise ConfigError(f"no participant may be called '{NARRATOR}': that is the narrator's name")
        if any(agent.name == seat.name for seat in self._seats):
            raise ConfigError(f"two participants are called '{agent.name}'; names must differ")
        seat = Seat(agent, role)
        self._seats.append(seat)
        return seat

    def _message_types(self) -> MessageFactory:
        """The types of messages that a saved state keeps; messages of other types are saved as text."""
        factory = MessageFactory()
        produced = (kind for seat in self._seats for kind in seat.agent.produced_message_types)
        for kind in (*map(typed_message, self._typed_replies), *produced):
            if not factory.is_registered(kind):
                factory.register(kind)
        return factory

    async def converse(self, task: Task, cancellation_token: CancellationToken | None = None) -> Transcript:
        """Converse about the task, and return the whole transcript.

        Args:
            task: What the conversation is about; the narrator says it first. Or earlier messages, as pairs of
                source and text. None to continue, or if there are only silent ballots, which have their own questions.
            cancellation_token: Cancels the conversation, and the calls in flight.
        """
        # Without `emit`: nobody listens within a turn, so a study does not pay for the queue of `run_stream`.
        async with aclosing(self._converse(as_messages(task), cancellation_token)) as conversation:
            async for _ in conversation:
                pass
        return self.transcript

    async def stream(
        self, task: Task, cancellation_token: CancellationToken | None = None
    ) -> AsyncGenerator[Turn, None]:
        """Converse about the task, and yield each turn as it ends.

        Args:
            task: What the conversation is about, as for `converse`.
            cancellation_token: Cancels the conversation, and the calls in flight.
        """
        async with aclosing(self._converse(as_messages(task), cancellation_token)) as conversation:
            async for spoken in conversation:
                yield spoken.turn

    async def _converse(
        self, task: Sequence[BaseChatMessage], token: CancellationToken | None, emit: Emit | None = None
    ) -> AsyncGenerator[Spoken, None]:
        """Run the conversation, and reset its termination condition however it ends."""
        if self._running:
            raise ConfigError(f"'{self.name}' is running already; wait until it has ended, or make a second one")
        self._running, self._emit, self._turns_so_far = True, emit, []
        try:
            self._begin(task)
            for message in task:
                spoken = Spoken(turn=narrator_turn(message), chat_message=message)
                self._turns_so_far.append(spoken.turn)
                yield spoken
            if self._termination is not None and self._termination.terminated:
                self._stop_reason = "its termination condition was met before it began"
                return
            # The task counts, as in every AutoGen team: `MaxMessageTermination(3)` leaves room for two turns.
            if task and await self._is_over(task):
                return
            async with aclosing(self._turns(task, token or UnlinkedToken())) as turns:
                async for spoken in turns:
                    self._turns_so_far.append(spoken.turn)
                    yield spoken
        finally:
            self._running, self._emit = False, None
            if self._termination is not None:
                await self._termination.reset()

    @abstractmethod
    def _begin(self, task: Sequence[BaseChatMessage]) -> None:
        """Deliver the task to those who read it."""

    @abstractmethod
    def _turns(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        """The conversation itself, turn by turn, after the task."""

    async def _speak(
        self,
        seat: Seat,
        round: int,
        token: CancellationToken,
        reply_type: type[BaseModel] | None,
        speaks_again: bool = False,
        buffer: bool = False,
    ) -> Spoken:
        """One turn of one agent, as soon as the conversation is not paused.

        Args:
            seat: The agent.
            round: The round that the turn is part of.
            token: Cancels the turn.
            reply_type: The type that the reply is parsed as.
            speaks_again: Whether the agent is certain to have another turn.
            buffer: Whether the turn's events wait for its message, because another agent is shown at the same time:
                AutoGen's `Console` would mix the chunks of both.
        """
        if not self._not_paused.is_set():
            await self._not_paused.wait()
        if token.is_cancelled():
            raise asyncio.CancelledError
        emit, buffered = self._emit, list[Event]()
        if buffer and emit is not None:
            at_once = emit

            def emit(event: Event) -> None:
                # Somebody waits for the input: without this event, the turn would never end.
                (at_once if isinstance(event, UserInputRequestedEvent) else buffered.append)(event)

        spoken = await seat.speak(round, token, emit, reply_type=reply_type, speaks_again=speaks_again)
        spoken.buffered = buffered
        return spoken

    async def _is_over(self, messages: Sequence[Event]) -> bool:
        """Whether the termination condition ends the conversation after these messages."""
        if self._termination is None:
            return False
        stop = await self._termination(messages)
        if stop is not None:
            self._stop_reason = stop.content
        return stop is not None

    @property
    def transcript(self) -> Transcript:
        """The turns of the current conversation so far, or of the last one: with calls and verdicts, which AutoGen's
        messages do not have."""
        return Transcript(tuple(self._turns_so_far), self._stop_reason)

    async def run_stream(
        self,
        *,
        task: str | BaseChatMessage | Sequence[BaseChatMessage] | None = None,
        cancellation_token: CancellationToken | None = None,
        output_task_messages: bool = True,
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | TaskResult, None]:
        """AutoGen's interface: yields events and messages as they happen, then a `TaskResult`."""
        opening = as_messages(task)

        async def run(emit: Emit) -> TaskResult:
            messages: list[Event] = []

            def emit_and_keep(event: Event) -> None:
                if not isinstance(event, ModelClientStreamingChunkEvent):
                    messages.append(event)
                emit(event)

            async for spoken in self._converse(opening, cancellation_token, emit_and_keep):
                from_task = any(spoken.chat_message is given for given in opening)
                if spoken.turn.role == "narrator" and not (from_task and output_task_messages):
                    continue
                for event in (*spoken.buffered, spoken.chat_message):
                    emit_and_keep(event)
            return TaskResult(messages=messages, stop_reason=self._stop_reason)

        async with aclosing(streamed(run, cancellation_token.link_future if cancellation_token else None)) as items:
            async for item in items:
                yield item

    async def run(
        self,
        *,
        task: str | BaseChatMessage | Sequence[BaseChatMessage] | None = None,
        cancellation_token: CancellationToken | None = None,
        output_task_messages: bool = True,
    ) -> TaskResult:
        stream = self.run_stream(
            task=task, cancellation_token=cancellation_token, output_task_messages=output_task_messages
        )
        return await last_item(stream, TaskResult)

    def as_agent(self, name: str | None = None, description: str | None = None) -> TeamAgent:
        """The conversation as one agent, for a `GraphFlow`, a `SelectorGroupChat` or any other AutoGen team.

        Args:
            name: The agent's name; by default the conversation's.
            description: The description that a selector reads; by default the conversation's.
        """
        return TeamAgent(self, name, description)

    async def reset(self) -> None:
        if self._running:
            raise ConfigError(f"'{self.name}' is running; it can be reset when it has ended")
        for seat in self._seats:
            seat.inbox.clear()
            seat.waiting.clear()
            await seat.agent.on_reset(CancellationToken())
        if self._termination is not None:
            await self._termination.reset()

    async def pause(self) -> None:
        self._not_paused.clear()
        for seat in self._seats:
            await seat.agent.on_pause(CancellationToken())

    async def resume(self) -> None:
        for seat in self._seats:
            await seat.agent.on_resume(CancellationToken())
        self._not_paused.set()

    async def save_state(self) -> Mapping[str, Any]:
        factory = self._message_types()
        return {
            seat.name: {
                "agent": await seat.agent.save_state(),
                "inbox": save_messages(seat.inbox, factory),
                "waiting": save_messages(seat.waiting, factory),
            }
            for seat in self._seats
        }

    async def load_state(self, state: Mapping[str, Any]) -> None:
        names = [seat.name for seat in self._seats]
        if set(state) != set(names):
            raise ConfigError(
                f"the saved state belongs to {', '.join(map(str, state)) or 'nobody'}, but '{self.name}' has "
                f"{', '.join(names)}; load it into a conversation with the same participants"
            )
        if self._running:
            raise ConfigError(f"'{self.name}' is running; a state can be loaded when it has ended")
        factory = self._message_types()
        for seat in self._seats:
            saved = state[seat.name]
            await seat.agent.load_state(saved["agent"])
            seat.inbox = load_messages(saved["inbox"], factory)
            seat.waiting = load_messages(saved["waiting"], factory)

    async def close(self) -> None:
        """Close the clients that this conversation opened itself."""
        if self._owns_models:
            await self._models.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
