"""A debate: agents take turns for a number of rounds, optionally with a referee and a chair.

    debate = Debate([Persona("Ada", "…"), Persona("Ben", "…")], model="local/smollm2", rounds=2)
    async for turn in debate.stream("Should buses be free?"):
        print(turn.speaker, turn.text)

Who speaks when is a policy (`order`), and so is who reads which turn (`sees`). In blind rounds debaters do not hear
each other: each states its opinion before the discussion. A debate is an AutoGen `Team`: `run` and `run_stream` work
too, and it can take part in another conversation.

An order is a function of the round and the names, and is fixed before each round: `Debate(…, order=simultaneous)`.

From a debate to a model call: `Debate._turns` is the loop over rounds and speakers; `Seat.speak` takes one turn and
records it; `PersonaAgent.speak` makes the prompt and asks the model's client.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from autogen_agentchat.base import TerminationCondition
from autogen_agentchat.messages import BaseChatMessage
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from parley.agents.ballots import SilentBallot
from parley.agents.conversation import Conversation, Participant
from parley.agents.fencing import JUDGED_CHARS, MAX_CHARS
from parley.agents.fencing import fence as fenced
from parley.agents.messages import narrate, narrator_turn
from parley.agents.models.registry import Models
from parley.agents.persona_agent import PersonaAgent, Placement, Spoken
from parley.agents.seats import Seat, cast, together
from parley.agents.transcripts import Role, Turn, seed_from, text_of
from parley.base.errors import ConfigError
from parley.base.text import plural

Group = Sequence[str]
Order = Callable[[int, Sequence[str]], Sequence[Group]]
"""Divides the debaters into groups, by round. Groups speak in turn; the agents of a group speak concurrently."""


def round_robin(round: int, names: Sequence[str]) -> Sequence[Group]:
    """One after the other in the given order; each reads the turns before its own."""
    return [[name] for name in names]


def simultaneous(round: int, names: Sequence[str]) -> Sequence[Group]:
    """All concurrently: no agent reads the others' turns of the same round."""
    return [list(names)]


@dataclass(frozen=True, slots=True)
class shuffled:
    """A random order for each round, reproducible by the seed."""

    seed: int

    def __call__(self, round: int, names: Sequence[str]) -> Sequence[Group]:
        permuted = list(names)
        random.Random(seed_from(self.seed, round)).shuffle(permuted)
        return [[name] for name in permuted]


class Cue(NamedTuple):
    """An agent's position in a debate: who it is, in which role and round."""

    speaker: str
    role: Role
    round: int


Sees = Callable[[Cue, Turn], bool]
"""Whether this agent reads that turn."""
Instructions = Callable[[Cue], str | None]
"""Text that the narrator gives an agent just before its turn, or None."""
ReplyType = Callable[[Cue], type[BaseModel] | None]
"""The type that an agent's reply is parsed as; None for plain text."""


_POSITION = "speaking order"
"""Key of a saved state for where the debate stopped. It has a space, which no agent's name has."""


def everyone(reader: Cue, turn: Turn) -> bool:
    """Every agent reads every turn."""
    return True


class Debate(Conversation):
    """Agents that speak in rounds; optionally a referee speaks after every round and a chair at the end.

    Args:
        participants: The debaters: personas, AutoGen agents or AutoGen teams, in speaking order.
        model: The model of all personas without their own, as `provider/model` or any AutoGen client; by default the
            embedded one.
        rounds: Number of turns per debater. The default is two, a statement and an answer to the others; with
            `max_turns`, as many as it allows.
        blind_rounds: Number of blind rounds at the beginning: debaters speak concurrently, and see only the task and
            their instructions. After these rounds everyone gets the others' turns, in speaking order, and the
            referee's. The referee hears the debaters at once. The default is none.
        order: Who speaks when: `round_robin`, `simultaneous`, `shuffled(seed)` or your own function of round and names.
        sees: Which turns an agent reads; by default all of them.
        reads: What is read of a turn: by the others and, if it is free text, by its own speaker later; by default its
            text.
        referee: Speaks after every round.
        chair: Speaks last, after the final round.
        instructions: A function from the `Cue` to a text for the agent just before its turn; by default there is none.
        reply_type: The pydantic type that replies are parsed as, or a function from the `Cue` to one; by default
            the agent's own `reply_type`, and plain text if it has none.
        ballots: Silent ballots that every debater casts before round 1, each on its own question: turns of round 0,
            which no agent hears or remembers. With `rounds=0` there are only ballots.
        options: Passed with every call of a persona, such as `{"max_tokens": 200}`; by default the client's own apply.
        models: The clients to use, in a study those of the run. By default the debate opens its own; `close()` closes
            them.
        placement: Where a persona's description stands in the prompt (see `Placement`); `last` lets all agents share
            the prompt's prefix.
        fence: Whether agents read the others' turns as quoted data; "referee" for the referee only. The
            transcript is not quoted. Off by default, as in the published debates.
        termination_condition: An AutoGen condition that ends the debate early. As in AutoGen's teams, it gets the
            task too.
        max_turns: Maximum number of turns per run, as in AutoGen's teams; the next run continues from there. Agents
            that speak concurrently take one turn together. By default only `rounds` limits them.
        model_client_stream: Whether `run_stream` yields the personas' replies as they arrive, chunk by chunk.
        name: The debate's name as an AutoGen team, unique where it takes part in another conversation.
    """

    description = "Personas who debate in turns."

    def __init__(
        self,
        participants: Sequence[Participant],
        *,
        model: str | ChatCompletionClient | None = None,
        rounds: int | None = None,
        blind_rounds: int = 0,
        order: Order = round_robin,
        sees: Sees = everyone,
        reads: Callable[[Turn], str] = text_of,
        referee: Participant | None = None,
        chair: Participant | None = None,
        instructions: Instructions | None = None,
        reply_type: ReplyType | type[BaseModel] | None = None,
        ballots: Sequence[SilentBallot] = (),
        options: Mapping[str, Any] | None = None,
        models: Models | None = None,
        placement: Placement = "system",
        fence: bool | Literal["referee"] = False,
        termination_condition: TerminationCondition | None = None,
        max_turns: int | None = None,
        model_client_stream: bool = False,
        name: str = "debate",
    ) -> None:
        super().__init__(
            name,
            model=model,
            models=models,
            options=options,
            termination_condition=termination_condition,
            placement=placement,
            model_client_stream=model_client_stream,
        )
        if max_turns is not None and max_turns < 1:
            raise ConfigError(f"max_turns must be at least 1, got {max_turns}")
        if rounds is None:
            rounds = max_turns or 2
        if not participants:
            raise ConfigError("a debate needs at least one participant")
        if rounds < (0 if ballots else 1):
            raise ConfigError(f"a debate needs at least one round, got {rounds}")
        if not 0 <= blind_rounds <= rounds:
            raise ConfigError(f"blind_rounds must be from 0 to {rounds}, the number of rounds; got {blind_rounds}")
        self.rounds, self.blind_rounds = rounds, blind_rounds
        self._order, self._sees, self._reads, self._instructions = order, sees, reads, instructions
        self._fence, self._max_turns = fence, max_turns
        self._ballots = tuple(ballots)
        self._round, self._step = 1, 0  # where it continues: a round, and how many of its groups have spoken
        self._instructed: set[str] = set()
        self._reply_type: ReplyType = (lambda cue: None) if reply_type is None else _as_policy(reply_type)
        self._debaters = {seat.name: seat for seat in (self._seat(p, "debater") for p in participants)}
        self._referee = self._seat(referee, "referee") if referee else None
        self._chair = self._seat(chair, "chair") if chair else None
        self._typed_replies = (reply_type,) if isinstance(reply_type, type) else ()

    def _begin(self, task: Sequence[BaseChatMessage]) -> None:
        self._stop_reason = f"{plural(self.rounds, 'round')} completed"
        if self._step and self._step >= len(self._schedule()):
            self._end_round()
        if self._round > self.rounds:
            self._round = 1
        for seat in self._seats:
            seat.inbox += task

    async def _turns(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        """All turns from where the last conversation stopped, to the end of the rounds."""
        if (self._round, self._step) == (1, 0):
            async for spoken in self._silent_turns(token):
                yield spoken
        narrated: set[tuple[int, str]] = set()
        turns = 0
        while self._round <= self.rounds:
            for names in self._schedule()[self._step :]:
                seats = [self._find(name) for name in names]
                for seat in seats:
                    instruction = self._instruct(seat)
                    # Agents that get the same instruction share one narrator turn in the transcript.
                    if instruction and (self._round, instruction) not in narrated:
                        narrated.add((self._round, instruction))
                        told = seat.inbox[-1]
                        yield Spoken(turn=narrator_turn(told, self._round), chat_message=told)
                if len(seats) == 1:
                    group = [await self._turn(seats[0], token, buffer=False)]
                else:
                    turns_now = (self._turn(seat, token, buffer=seat is not seats[0]) for seat in seats)
                    group = await together(turns_now, seats)
                # Before any of the turns is shown: a caller who stops listening there continues after them.
                self._step += 1
                self._instructed.clear()
                for spoken in group:
                    self._deliver(spoken.turn, spoken.chat_message)
                over = False
                for spoken in group:
                    yield spoken
                    over = over or await self._is_over(spoken.messages)
                turns += 1
                if not over and turns == self._max_turns:
                    over, self._stop_reason = True, f"Maximum number of turns {turns} reached."
                if over:
                    return
            self._end_round()

    def _end_round(self) -> None:
        if self._round == self.blind_rounds:
            for seat in self._seats:
                seat.inbox, seat.waiting = seat.inbox + seat.waiting, []
        self._round, self._step = self._round + 1, 0

    async def _silent_turns(self, token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        """The ballots of round 0, each after the narrator's question."""
        for ballot in self._ballots:
            for spoken in await cast(ballot, list(self._debaters.values()), token):
                yield spoken

    def _schedule(self) -> list[Group]:
        """The speakers of a round: groups speak one after the other, the agents of a group concurrently."""
        groups = list(self._order(self._round, list(self._debaters)))
        if self._round <= self.blind_rounds:
            groups = [list(dict.fromkeys(name for group in groups for name in group))]
        if self._referee is not None:
            groups.append([self._referee.name])
        if self._chair is not None and self._round == self.rounds:
            groups.append([self._chair.name])
        return groups

    def _find(self, name: str) -> Seat:
        for seat in (self._referee, self._chair):
            if seat is not None and seat.name == name:
                return seat
        try:
            return self._debaters[name]
        except KeyError:
            raise ConfigError(f"the speaking order names '{name}', who does not take part") from None

    def _instruct(self, seat: Seat) -> str | None:
        # An agent whose turn was cancelled has read its instruction already.
        if self._instructions is None or seat.name in self._instructed:
            return None
        text = self._instructions(Cue(seat.name, seat.role, self._round))
        self._instructed.add(seat.name)
        if text:
            seat.inbox.append(narrate(text))
        return text

    def _turn(self, seat: Seat, token: CancellationToken, buffer: bool) -> Coroutine[Any, Any, Spoken]:
        """Take one turn, with the reply type that this debate asks for."""
        round = self._round
        speaks_again = round < self.rounds and seat.role != "chair"
        reply_type = self._reply_type(Cue(seat.name, seat.role, round))
        return self._speak(seat, round, token, reply_type, speaks_again, buffer)

    def _deliver(self, turn: Turn, message: BaseChatMessage) -> None:
        open_to_all = self._sees is everyone  # saves a call per turn and reader
        blind = turn.round <= self.blind_rounds
        if (text := self._reads(turn)) != turn.text:
            message = narrate(text, source=message.source)
            if turn.verdict is None and isinstance(agent := self._find(turn.speaker).agent, PersonaAgent):
                agent.remember(text)
        quoted = message
        # Only in what the others read: the transcript has the turn as it was spoken. A referee does not read itself.
        if self._fence is True or (self._fence and turn.role != self._fence):
            longest = JUDGED_CHARS if self._fence == "referee" else MAX_CHARS
            words = fenced(text, f"WORDS OF {turn.speaker}", longest)
            quoted = narrate(words, source=message.source)
        for seat in self._seats:
            inbox = seat.waiting if blind and seat.role == "debater" else seat.inbox
            if seat.name == turn.speaker:
                # All read the last blind round in the same order, their own turn included: a shared prefix.
                if turn.round == self.blind_rounds and seat.shares_prefix:
                    inbox.append(message)
            elif open_to_all or self._sees(Cue(seat.name, seat.role, turn.round), turn):
                inbox.append(quoted if self._fence is True or seat.role == self._fence else message)

    async def reset(self) -> None:
        await super().reset()
        self._round, self._step = 1, 0
        self._instructed.clear()

    async def save_state(self) -> Mapping[str, Any]:
        position = {"round": self._round, "step": self._step, "instructed": sorted(self._instructed)}
        return {**await super().save_state(), _POSITION: position}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await super().load_state({name: saved for name, saved in state.items() if name != _POSITION})
        position = state.get(_POSITION, {})
        self._round, self._step = position.get("round", 1), position.get("step", 0)
        self._instructed = set(position.get("instructed", ()))


def _as_policy(reply_type: ReplyType | type[BaseModel]) -> ReplyType:
    if isinstance(reply_type, type):
        fixed = reply_type  # its own name, so that mypy keeps the narrowed type inside the lambda
        return lambda cue: fixed
    return reply_type
