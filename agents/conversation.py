"""What debates and critique loops share: participants, delivery of messages, and AutoGen's `Team` interface.

A conversation is a plain scheduler over `ChatAgent.on_messages`: each agent is given only the messages that it may see
and has not read yet. With everything recorded, that takes a tenth of the time of AutoGen's team runtime (benchmarks/).
AutoGen agents, teams and termination conditions all work, and a conversation can itself join an AutoGen team.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Response, TaskResult, Team, TerminationCondition
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage, ThoughtEvent
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from parley.agents.calls import Call, record_calls
from parley.agents.errors import BudgetSpent, ConfigError, CutShort
from parley.agents.guests import wrap_clients
from parley.agents.models.base import THINK_TOKENS, Client
from parley.agents.models.registry import DEFAULT_MODEL, Models, as_client
from parley.agents.models.thoughts import join_thoughts, split_thought
from parley.agents.models.wire import NARRATOR
from parley.agents.personas import Persona, PersonaAgent, PersonaResponse, Placement
from parley.agents.structured import Readout
from parley.agents.text import plural
from parley.agents.transcripts import Role, Transcript, Turn

Participant = Persona | ChatAgent | Team
"""Who can take part: a persona, any AutoGen agent, or a whole AutoGen team."""
T = TypeVar("T")


class TeamAgent(BaseChatAgent):
    """A whole team as one agent: its members talk among themselves, and the last message is the agent's."""

    def __init__(self, team: Team) -> None:
        super().__init__(team.name, team.description)
        self._team = team

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        result = await self._team.run(task=list(messages) or None, cancellation_token=cancellation_token)
        last = next(m for m in reversed(result.messages) if isinstance(m, BaseChatMessage))
        message = TextMessage(content=last.to_model_text(), source=self.name)
        return Response(chat_message=message, inner_messages=list(result.messages))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        await self._team.reset()

    async def save_state(self) -> Mapping[str, Any]:
        return await self._team.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._team.load_state(state)


TurnMessage = tuple[Turn, BaseChatMessage]
"""A turn for the transcript, and the message that is delivered to the other agents."""


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

    async def speak(self, round: int, token: CancellationToken) -> TurnMessage:
        """One turn on the unread messages, recorded with every call that it takes."""
        unread, self.inbox = self.inbox, []
        with record_calls() as calls:
            response = await self.agent.on_messages(unread, token)
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
        return turn, message


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


class Conversation(Team):
    """Base of `Debate` and `Critique`."""

    def __init__(
        self,
        name: str,
        description: str,
        *,
        model: str | ChatCompletionClient | None,
        models: Models | None,
        readout: Readout,
        options: Mapping[str, Any] | None,
        termination: TerminationCondition | None,
        placement: Placement = "system",
    ) -> None:
        self._name, self._description = name, description
        self._default_model = model
        self._readout: Readout = readout
        self._options = dict(options or {})
        self._termination = termination
        self._placement: Placement = placement
        self._models = Models() if models is None else models
        self._owns_models = models is None
        self._not_paused = asyncio.Event()
        self._not_paused.set()
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
                choose_client(participant, self._default_model, self._models),
                readout=self._readout,
                options=self._options,
                placement=self._placement,
            )
        elif isinstance(participant, ChatAgent):
            agent = participant
        elif isinstance(participant, Team):
            agent = TeamAgent(participant)
        else:
            raise ConfigError(f"{participant!r} cannot take part: give a Persona, an AutoGen agent or an AutoGen team")
        if not isinstance(participant, Persona):
            wrap_clients(participant)
        if agent.name == NARRATOR:
            raise ConfigError(f"no participant may be called '{NARRATOR}': that is the narrator's name")
        if any(agent.name == seat.name for seat in self._seats):
            raise ConfigError(f"two participants are called '{agent.name}'; names must differ")
        seat = Seat(agent, role)
        self._seats.append(seat)
        return seat

    async def _speak(
        self,
        seat: Seat,
        round: int,
        token: CancellationToken,
        reply_type: type[BaseModel] | None,
        speaks_again: bool = False,
    ) -> TurnMessage:
        """One turn of one agent; `speaks_again` if it is certain to have another."""
        await self._not_paused.wait()
        if isinstance(seat.agent, PersonaAgent):
            seat.agent.reply_type, seat.agent.speaks_again = reply_type, speaks_again
        return await seat.speak(round, token)

    @abstractmethod
    def _turns(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[TurnMessage, None]:
        """The conversation itself, turn by turn."""

    async def _turns_and_reset(
        self, task: Sequence[BaseChatMessage], token: CancellationToken | None
    ) -> AsyncGenerator[TurnMessage, None]:
        """The conversation; however it ends, its termination condition is reset for the next one."""
        try:
            async for turn_message in self._turns(task, token or CancellationToken()):
                yield turn_message
        finally:
            if self._termination is not None:
                await self._termination.reset()

    async def stream(
        self, task: str, cancellation_token: CancellationToken | None = None
    ) -> AsyncGenerator[Turn, None]:
        """Converse about the task, and yield each turn as it ends.

        Args:
            task: What the conversation is about; the narrator says it first.
            cancellation_token: Cancels the conversation, and the calls in flight.
        """
        async for turn, _ in self._turns_and_reset(_as_messages(task), cancellation_token):
            yield turn

    async def converse(self, task: str, cancellation_token: CancellationToken | None = None) -> Transcript:
        """Converse about the task, and return the whole transcript.

        Args:
            task: What the conversation is about; the narrator says it first.
            cancellation_token: Cancels the conversation, and the calls in flight.
        """
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
        messages: list[BaseAgentEvent | BaseChatMessage] = []
        async for turn, message in self._turns_and_reset(opening, cancellation_token):
            from_task = any(message is given for given in opening)
            if turn.role == "narrator" and not (from_task and output_task_messages):
                continue
            messages.append(message)
            yield message
        yield TaskResult(messages=messages, stop_reason=self._stop_reason)

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
        raise AssertionError("run_stream always ends with a TaskResult")

    async def reset(self) -> None:
        for seat in self._seats:
            seat.inbox.clear()
            seat.waiting.clear()
            await seat.agent.on_reset(CancellationToken())
        if self._termination is not None:
            await self._termination.reset()

    async def pause(self) -> None:
        self._not_paused.clear()

    async def resume(self) -> None:
        self._not_paused.set()

    async def save_state(self) -> Mapping[str, Any]:
        return {
            seat.name: {
                "agent": await seat.agent.save_state(),
                "inbox": [{"source": message.source, "content": message.to_model_text()} for message in unread],
            }
            for seat, unread in ((seat, [*seat.inbox, *seat.waiting]) for seat in self._seats)
        }

    async def load_state(self, state: Mapping[str, Any]) -> None:
        for seat in self._seats:
            saved = state[seat.name]
            await seat.agent.load_state(saved["agent"])
            seat.inbox = [TextMessage(**unread) for unread in saved["inbox"]]

    async def close(self) -> None:
        """Close the clients that this conversation opened itself."""
        if self._owns_models:
            await self._models.close()


def narrate(text: str, source: str = NARRATOR) -> TextMessage:
    """A message from the narrator, or from `source`."""
    return TextMessage(content=text, source=source)


def narrator_turn(message: BaseChatMessage, round: int = 0) -> Turn:
    """A message that no agent said, as a turn of the transcript."""
    return Turn(speaker=message.source, role="narrator", round=round, text=message.to_model_text())


def choose_client(persona: Persona, default: str | ChatCompletionClient | None, models: Models) -> Client:
    """The client for a persona: of its own model, else of the default, else of `DEFAULT_MODEL`."""
    chosen = persona.model or default or DEFAULT_MODEL
    return models[chosen] if isinstance(chosen, str) else as_client(chosen)


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently; if one fails, cancel the others before the exception is raised.

    If one had no budget left, or was cut before it said anything, the others are awaited: their calls are paid for, and
    their replies will be in the cache.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return await asyncio.gather(*tasks)
    except (BudgetSpent, CutShort):
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
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
