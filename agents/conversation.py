"""What debate and critique share: seats, delivery of messages, and the face of an AutoGen `Team`.

A conversation is a plain scheduler over `ChatAgent.on_messages`: each agent is handed only what it may see and
has not yet seen. With everything recorded that costs a tenth of AutoGen's team runtime (benchmarks/). Every AutoGen
agent, team and termination condition can still take part; the conversation itself can sit in an AutoGen team in turn.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Response, TaskResult, Team, TerminationCondition
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from pydantic import BaseModel

from parley.agents.calls import record_calls
from parley.agents.errors import ConfigError
from parley.agents.models.base import Client
from parley.agents.models.registry import DEFAULT_MODEL, Models
from parley.agents.models.wire import NARRATOR
from parley.agents.personas import Persona, PersonaAgent, PersonaResponse, Placement
from parley.agents.structured import Readout
from parley.agents.transcripts import Role, Transcript, Turn

Participant = Persona | ChatAgent | Team
T = TypeVar("T")


class TeamAgent(BaseChatAgent):
    """A whole team on one seat: it talks among itself, and its last message is what the table hears."""

    def __init__(self, team: Team) -> None:
        super().__init__(team.name, team.description)
        self._team = team

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        result = await self._team.run(task=list(messages) or None, cancellation_token=cancellation_token)
        last = next(m for m in reversed(result.messages) if isinstance(m, BaseChatMessage))
        said = TextMessage(content=last.to_model_text(), source=self.name)
        return Response(chat_message=said, inner_messages=list(result.messages))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        await self._team.reset()

    async def save_state(self) -> Mapping[str, Any]:
        return await self._team.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._team.load_state(state)


@dataclass(slots=True)
class Seat:
    """An agent at the table and what it has not yet read."""

    agent: ChatAgent
    role: Role
    inbox: list[BaseChatMessage] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def persona(self) -> str:
        return self.agent.persona.about if isinstance(self.agent, PersonaAgent) else self.agent.description


Spoken = tuple[Turn, BaseChatMessage]


class Conversation(Team):
    """Base of `Debate` and `Critique`."""

    def __init__(
        self,
        name: str,
        description: str,
        *,
        model_name: str | Client | None,
        models: Models | None,
        readout: Readout,
        options: Mapping[str, Any] | None,
        termination: TerminationCondition | None,
        placement: Placement = "system",
    ) -> None:
        self._name, self._description = name, description
        self._default_model = model_name
        self._readout: Readout = readout
        self._options = dict(options or {})
        self._termination = termination
        self._placement: Placement = placement
        self._models = Models() if models is None else models
        self._own_models = models is None
        self._going = asyncio.Event()
        self._going.set()
        self._seats: list[Seat] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return self._description

    def _seat(self, participant: Participant, role: Role) -> Seat:
        if isinstance(participant, Persona):
            agent: ChatAgent = PersonaAgent(
                participant,
                self._client(participant.model),
                readout=self._readout,
                options=self._options,
                placement=self._placement,
            )
        elif isinstance(participant, ChatAgent):
            agent = participant
        elif isinstance(participant, Team):
            agent = TeamAgent(participant)
        else:
            raise ConfigError(f"{participant!r} cannot sit at the table: give a Persona, an AutoGen agent or a team")
        if any(agent.name == seat.name for seat in self._seats) or agent.name == NARRATOR:
            raise ConfigError(f"two at the table are called '{agent.name}'; names must differ")
        seat = Seat(agent, role)
        self._seats.append(seat)
        return seat

    def _client(self, name: str | None) -> Client:
        chosen = name or self._default_model or DEFAULT_MODEL
        return chosen if isinstance(chosen, Client) else self._models[chosen]

    async def _speak(
        self, seat: Seat, round: int, token: CancellationToken, asked: type[BaseModel] | None, again: bool = False
    ) -> Spoken:
        """One turn of one agent, with every call it made; `again` if it is sure to speak once more."""
        await self._going.wait()
        unread, seat.inbox = seat.inbox, []
        agent = seat.agent
        if isinstance(agent, PersonaAgent):
            agent.reply_type, agent.speaks_again = asked, again
        with record_calls() as calls:
            response = await agent.on_messages(unread, token)
        message = response.chat_message
        read = response if isinstance(response, PersonaResponse) else None
        turn = Turn(
            speaker=seat.name,
            role=seat.role,
            round=round,
            text=message.to_model_text(),
            persona=seat.persona,
            verdict=read.verdict if read else None,
            expected=read.expected if read else {},
            parse_status=read.parse_status if read else None,
            calls=tuple(calls),
        )
        return turn, message

    @abstractmethod
    def _talk(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        """The conversation itself, message by message."""

    async def _whole(
        self, task: Sequence[BaseChatMessage], token: CancellationToken | None
    ) -> AsyncGenerator[Spoken, None]:
        """The conversation, and a fresh start for its termination condition, however it ended."""
        try:
            async for spoken in self._talk(task, token or CancellationToken()):
                yield spoken
        finally:
            if self._termination is not None:
                await self._termination.reset()

    async def stream(
        self, task: str, cancellation_token: CancellationToken | None = None
    ) -> AsyncGenerator[Turn, None]:
        """Turns as they are spoken."""
        async for turn, _ in self._whole(_as_messages(task), cancellation_token):
            yield turn

    async def converse(self, task: str, cancellation_token: CancellationToken | None = None) -> Transcript:
        """The whole conversation."""
        turns = [turn async for turn in self.stream(task, cancellation_token)]
        return Transcript(tuple(turns), self._stop_reason)

    _stop_reason = ""

    async def _is_over(self, message: BaseChatMessage) -> bool:
        if self._termination is None:
            return False
        stop = await self._termination([message])
        if stop is not None:
            self._stop_reason = stop.content
        return stop is not None

    async def run_stream(
        self,
        *,
        task: str | BaseChatMessage | Sequence[BaseChatMessage] | None = None,
        cancellation_token: CancellationToken | None = None,
        output_task_messages: bool = True,
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | TaskResult, None]:
        """AutoGen's interface: messages, then a `TaskResult`."""
        opening = _as_messages(task)
        spoken: list[BaseAgentEvent | BaseChatMessage] = []
        async for turn, message in self._whole(opening, cancellation_token):
            from_task = any(message is given for given in opening)
            if turn.role == "narrator" and not (from_task and output_task_messages):
                continue
            spoken.append(message)
            yield message
        yield TaskResult(messages=spoken, stop_reason=self._stop_reason)

    async def run(
        self,
        *,
        task: str | BaseChatMessage | Sequence[BaseChatMessage] | None = None,
        cancellation_token: CancellationToken | None = None,
        output_task_messages: bool = True,
    ) -> TaskResult:
        async for item in self.run_stream(
            task=task, cancellation_token=cancellation_token, output_task_messages=output_task_messages
        ):
            if isinstance(item, TaskResult):
                return item
        raise AssertionError("a conversation always ends with its result")

    async def reset(self) -> None:
        for seat in self._seats:
            seat.inbox.clear()
            await seat.agent.on_reset(CancellationToken())
        if self._termination is not None:
            await self._termination.reset()

    async def pause(self) -> None:
        self._going.clear()

    async def resume(self) -> None:
        self._going.set()

    async def save_state(self) -> Mapping[str, Any]:
        return {
            seat.name: {
                "agent": await seat.agent.save_state(),
                "inbox": [{"source": message.source, "content": message.to_model_text()} for message in seat.inbox],
            }
            for seat in self._seats
        }

    async def load_state(self, state: Mapping[str, Any]) -> None:
        for seat in self._seats:
            kept = state[seat.name]
            await seat.agent.load_state(kept["agent"])
            seat.inbox = [TextMessage(**unread) for unread in kept["inbox"]]

    async def close(self) -> None:
        """Let go of the clients this conversation opened itself."""
        if self._own_models:
            await self._models.close()


def narrate(text: str, source: str = NARRATOR) -> TextMessage:
    return TextMessage(content=text, source=source)


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; if one fails, the others are stopped before the failure is passed on."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _as_messages(task: str | BaseChatMessage | Sequence[BaseChatMessage] | None) -> list[BaseChatMessage]:
    if task is None:
        return []
    if isinstance(task, str):
        return [narrate(task)]
    return [task] if isinstance(task, BaseChatMessage) else list(task)
