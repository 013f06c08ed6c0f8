"""The seats of a conversation: an agent, its role, its unread messages, and how one turn of it is taken and recorded.

A single question to a single persona is one turn:

    turn = await ask(Persona("Ada", "You are Ada, an auditor."), "Should buses be free?", model="local/smollm2")
    turn.text, turn.calls
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autogen_agentchat.base import ChatAgent, Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage, TextMessage, ThoughtEvent
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from parley.agents.ballots import SilentBallot
from parley.agents.messages import Emit, Task, as_messages, narrate, narrator_turn
from parley.agents.models.base import Client, UnlinkedToken
from parley.agents.models.registry import Models, as_client
from parley.agents.models.request import DEFAULT_MODEL, THINK_TOKENS
from parley.agents.models.thoughts import join_thoughts, split_thought
from parley.agents.persona_agent import PersonaAgent, Placement, Spoken, persona_of
from parley.agents.personas import Persona
from parley.agents.providers import provider_of
from parley.agents.structured import parse
from parley.agents.transcripts import Call, Role, Turn, record_calls
from parley.base.errors import ConfigError, CutShort
from parley.base.tasks import gather_or_cancel, last_item
from parley.base.text import plural


@dataclass(slots=True)
class Seat:
    """An agent of a conversation, its role, and the messages it has not read yet."""

    agent: ChatAgent
    role: Role
    inbox: list[BaseChatMessage] = field(default_factory=list)
    waiting: list[BaseChatMessage] = field(default_factory=list)
    """Messages of blind rounds, which are delivered when these are over."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.agent.name

    @property
    def shares_prefix(self) -> bool:
        """Whether the agent's prompt shares a prefix with the others', so that their turns should be in the same
        order.
        """
        return isinstance(self.agent, PersonaAgent) and self.agent.placement == "last"

    @property
    def reads_prefix_once(self) -> bool:
        """Whether calls in sequence are cheaper than concurrent ones, because the slot holds the shared prefix."""
        client = self.agent.client if isinstance(self.agent, PersonaAgent) else None
        return self.shares_prefix and isinstance(client, Client) and client.caches_by_slot

    @property
    def persona(self) -> str:
        return persona_of(self.agent)

    async def speak(
        self,
        round: int,
        token: CancellationToken,
        emit: Emit | None = None,
        *,
        reply_type: type[BaseModel] | None = None,
        speaks_again: bool = False,
    ) -> Spoken:
        """Take one turn on the unread messages, recorded with all its calls.

        Args:
            round: The round that the turn is part of.
            token: Cancels the turn.
            emit: Receives the turn's events; None if nobody listens, so that nothing is streamed.
            reply_type: The type that the reply is parsed as; by default a persona's own, and plain text for others.
            speaks_again: Whether the agent is certain to have another turn.
        """
        unread, self.inbox = self.inbox, []
        with record_calls() as calls:
            # A subclass that overrides `on_messages`, as AutoGen's agents are changed, is asked through it.
            if isinstance(self.agent, PersonaAgent) and type(self.agent).on_messages is PersonaAgent.on_messages:
                spoken = await self.agent.speak(unread, token, emit, reply_type=reply_type, speaks_again=speaks_again)
            else:
                spoken = self._as_spoken(await _ask_guest(self.agent, unread, token, emit), calls, reply_type)
        turn = self._recorded(round, spoken, calls)
        if turn.cut and not turn.text.strip() and _may_have_thought(calls):
            raise _nothing_said(self.name, calls)
        return spoken

    async def cast(self, ballot: SilentBallot, token: CancellationToken) -> Spoken:
        """Cast a silent ballot of round 0: nobody hears it, and the agent does not remember it.

        Args:
            ballot: The question.
            token: Cancels the call.
        """
        if not isinstance(self.agent, PersonaAgent):
            raise ConfigError(f"'{self.name}' cannot cast a silent ballot: only personas can")
        with record_calls() as calls:
            spoken = await self.agent.cast(ballot, token)
        self._recorded(0, spoken, calls)
        return spoken

    def _recorded(self, round: int, spoken: Spoken, calls: Sequence[Call]) -> Turn:
        """Complete the turn with the seat's data. The text is the message's, which a subclass may have changed."""
        text = spoken.chat_message.to_model_text()
        spoken.turn = spoken.turn._replace(role=self.role, round=round, text=text, calls=tuple(calls))
        return spoken.turn

    def _as_spoken(self, response: Response, calls: Sequence[Call], reply_type: type[BaseModel] | None) -> Spoken:
        """Convert any AutoGen agent's response: without its thinking, and parsed if a type was requested."""
        if isinstance(response, Spoken):
            spoken, message, turn = response, response.chat_message, response.turn
        else:
            message, thought, closed = _without_thought(response, reply_type is not None)
            cut = not closed or (bool(calls) and calls[-1].cut)
            turn = Turn(self.name, self.role, 0, "", persona=self.persona, thought=thought, cut=cut)
            spoken = Spoken(chat_message=message, inner_messages=response.inner_messages, turn=turn)
        if turn.verdict is None and isinstance(message, StructuredMessage) and isinstance(message.content, BaseModel):
            turn = turn._replace(verdict=message.content, parse_status="ok")
        if reply_type is not None and not isinstance(turn.verdict, reply_type) and turn.parse_status in (None, "ok"):
            # The agent has parsed nothing, or as another type.
            whole = not calls or calls[-1].whole
            value = parse(message.to_model_text(), reply_type)[0] if whole else None
            turn = turn._replace(verdict=value, parse_status="ok" if value else "cut" if turn.cut else "unparsed")
        spoken.turn = turn
        return spoken


async def cast(ballot: SilentBallot, seats: Sequence[Seat], token: CancellationToken) -> list[Spoken]:
    """A silent ballot of round 0: the narrator's question, then every seat's answer."""
    question = narrate(ballot.question)
    answers = await together((seat.cast(ballot, token) for seat in seats), seats)
    return [Spoken(turn=narrator_turn(question), chat_message=question), *answers]


async def together(turns: Iterable[Coroutine[Any, Any, Spoken]], seats: Sequence[Seat]) -> list[Spoken]:
    """Take the turns of several agents concurrently; or one after the other, if that is cheaper because the model's
    slot then holds the shared prefix."""
    if len(seats) == 1 or all(seat.reads_prefix_once for seat in seats):
        return [await turn for turn in turns]
    return await gather_or_cancel(turns)


async def ask_silently(
    personas: Sequence[Persona],
    ballots: Sequence[SilentBallot],
    *,
    model: str | ChatCompletionClient | None,
    models: Models,
    options: Mapping[str, Any],
    placement: Placement = "system",
) -> list[list[Turn]]:
    """Ask each persona every ballot, as before a debate; returns the turns of each ballot, its question first.

    Args:
        personas: Who answers.
        ballots: The questions; nobody hears or remembers any but the one that is being answered.
        model: The model of personas that have none of their own.
        models: The clients of the run.
        options: Passed with every call.
        placement: Where a persona's description stands in the prompt.
    """
    clients = [choose_client(persona.model, model, models) for persona in personas]
    agents = [
        PersonaAgent(persona, client, options=options, placement=placement)
        for persona, client in zip(personas, clients, strict=True)
    ]
    seats = [Seat(agent, "debater") for agent in agents]
    return [[spoken.turn for spoken in await cast(ballot, seats, UnlinkedToken())] for ballot in ballots]


async def _ask_guest(
    agent: ChatAgent, unread: Sequence[BaseChatMessage], token: CancellationToken, emit: Emit | None
) -> Response:
    """Ask any AutoGen agent; the response is streamed only if somebody listens."""
    if emit is None:
        return await agent.on_messages(unread, token)
    return await last_item(agent.on_messages_stream(unread, token), Response, emit)


def _without_thought(response: Response, typed: bool) -> tuple[BaseChatMessage, str, bool]:
    """An AutoGen agent's message as the others hear it, its thinking, and whether the thinking ended."""
    message = response.chat_message
    thoughts = [event.content for event in response.inner_messages or () if isinstance(event, ThoughtEvent)]
    closed = True
    if isinstance(message, TextMessage):
        thought, answer, closed = split_thought(message.content, typed=typed)
        if thought or len(answer) < len(message.content):
            message, thoughts = message.model_copy(update={"content": answer}), [*thoughts, thought]
    return message, join_thoughts(thoughts), closed


def _may_have_thought(calls: Sequence[Call]) -> bool:
    """Whether a reply without text may come from a model that was still thinking.

    A model in this process hides no thoughts: if it writes only blanks, its reply is empty.
    """
    last = calls[-1] if calls else None
    embedded = last is not None and provider_of(last.model).embedded
    return not embedded or bool(last and last.thought)


def _nothing_said(speaker: str, calls: Sequence[Call]) -> CutShort:
    """The error for a reply that was cut off before it had any text."""
    model, spent = (calls[-1].model, calls[-1].completion_tokens) if calls else (speaker, 0)
    after = f" after {plural(spent, 'token')}" if spent else ""
    thinks = calls and (calls[-1].thought or calls[-1].thought_tokens)
    when = "while the model was thinking" if thinks else "before its first word"
    return CutShort(
        f"{model}: a reply was cut off{after}, {when}; raise --max-tokens, or give the model more room to think: "
        f"{model}?think_tokens={2 * THINK_TOKENS}"
    )


def choose_client(
    preferred: str | ChatCompletionClient | None, default: str | ChatCompletionClient | None, models: Models
) -> Client:
    """The client of a model: the agent's own, else the default, else `DEFAULT_MODEL`."""
    chosen = preferred or default or DEFAULT_MODEL
    return models[chosen] if isinstance(chosen, str) else as_client(chosen)


async def ask(
    persona: Persona,
    prompt: Task,
    reply_type: type[BaseModel] | None = None,
    *,
    model: str | ChatCompletionClient | None = None,
    models: Models | None = None,
    options: Mapping[str, Any] | None = None,
    cancellation_token: CancellationToken | None = None,
) -> Turn:
    """Ask one persona one question; the turn is recorded like the only turn of a debate of one.

    Args:
        persona: Who answers.
        prompt: The question; or a conversation that ends with it, as pairs of source and text.
        reply_type: A pydantic type that the reply is parsed as, into `turn.verdict`; by default it is plain text.
        model: The model, as `provider/model` or any AutoGen client. A persona's own model comes first; without
            either it is the embedded default.
        models: The clients to use, in a study those of the run. By default a client is opened for this question and
            closed after it.
        options: Passed with the call, such as `{"max_tokens": 200}`; by default the client's own apply.
        cancellation_token: Cancels the call.
    """
    clients = Models() if models is None else models
    try:
        client = choose_client(persona.model, model, clients)
        agent = PersonaAgent(persona, client, reply_type=reply_type, options=options)
        seat = Seat(agent, "debater", inbox=as_messages(prompt))
        spoken = await seat.speak(round=1, token=cancellation_token or CancellationToken())
        return spoken.turn
    finally:
        if models is None:
            await clients.close()
