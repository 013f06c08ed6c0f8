"""A debate: personas take turns at a table, for some rounds, perhaps before a referee, perhaps with a chair.

    table = Debate([Persona("Ada", "…"), Persona("Ben", "…")], model="local/smollm2", rounds=2)
    async for turn in table.stream("Should buses be free?"):
        print(turn.speaker, turn.text)

Who speaks when is a policy (`order`), and so is who hears whom (`sees`); with `fence`, others' words are quoted.
An AutoGen `Team`, so `run` and `run_stream` work too, and it can sit at another table.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from autogen_agentchat.base import TerminationCondition
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from pydantic import BaseModel

from parley.agents.calls import seed_from
from parley.agents.conversation import Conversation, Participant, Seat, Spoken, gather_or_cancel, narrate
from parley.agents.errors import ConfigError
from parley.agents.fencing import fence as fenced
from parley.agents.models.base import Client
from parley.agents.models.registry import Models
from parley.agents.personas import Placement
from parley.agents.structured import Readout
from parley.agents.transcripts import Role, Turn


class Cue(NamedTuple):
    """Whose turn it is."""

    speaker: str
    role: Role
    round: int


Group = Sequence[str]
Order = Callable[[int, Sequence[str]], Sequence[Group]]
"""From the round and the names to groups that speak one after the other; within a group all speak at once."""
Sees = Callable[[Cue, Turn], bool]
"""Whether this listener may hear that turn."""
Instructions = Callable[[Cue], str | None]
"""What the narrator tells an agent just before it speaks."""
ReplyType = Callable[[Cue], type[BaseModel] | None]
"""What an agent's reply is read as."""


def round_robin(round: int, names: Sequence[str]) -> Sequence[Group]:
    """Everyone in the order of the table, each hearing those before."""
    return [[name] for name in names]


def simultaneous(round: int, names: Sequence[str]) -> Sequence[Group]:
    """All at once: nobody hears the others of the same round."""
    return [list(names)]


def shuffled(seed: int) -> Order:
    """Another order every round, the same for the same seed."""

    def order(round: int, names: Sequence[str]) -> Sequence[Group]:
        mixed = list(names)
        random.Random(seed_from(seed, round)).shuffle(mixed)
        return [[name] for name in mixed]

    return order


def everyone(listener: Cue, turn: Turn) -> bool:
    """Everyone hears everything."""
    return True


class Debate(Conversation):
    """People around a table, round by round; a referee after every round and a chair at the end, where wanted."""

    component_type = "team"

    def __init__(
        self,
        participants: Sequence[Participant],
        *,
        model: str | Client | None = None,
        rounds: int = 2,
        order: Order = round_robin,
        sees: Sees = everyone,
        referee: Participant | None = None,
        chair: Participant | None = None,
        instructions: Instructions | None = None,
        reply_type: ReplyType | type[BaseModel] | None = None,
        readout: Readout = "sampled",
        options: Mapping[str, Any] | None = None,
        models: Models | None = None,
        placement: Placement = "system",
        fence: bool = False,
        termination: TerminationCondition | None = None,
        name: str = "debate",
        description: str = "Personas who debate in turns.",
    ) -> None:
        super().__init__(
            name,
            description,
            model_name=model,
            models=models,
            readout=readout,
            options=options,
            termination=termination,
            placement=placement,
        )
        if not participants:
            raise ConfigError("a debate needs someone at the table")
        if rounds < 1:
            raise ConfigError("a debate has at least one round")
        self.rounds = rounds
        self._order, self._sees, self._instructions = order, sees, instructions
        self._fence = fence
        self._reply_type: ReplyType = (lambda cue: None) if reply_type is None else _as_policy(reply_type)
        self._debaters = {seat.name: seat for seat in (self._seat(p, "debater") for p in participants)}
        self._referee = self._seat(referee, "referee") if referee else None
        self._chair = self._seat(chair, "chair") if chair else None

    async def _talk(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        self._stop_reason = f"{self.rounds} rounds held"
        for message in task:
            for seat in self._seats:
                seat.inbox.append(message)
            yield Turn(message.source, "narrator", 0, message.to_model_text()), message
        told: set[tuple[int, str]] = set()
        for round in range(1, self.rounds + 1):
            groups = self._order(round, list(self._debaters))
            if self._referee is not None:
                groups = [*groups, [self._referee.name]]
            if self._chair is not None and round == self.rounds:
                groups = [*groups, [self._chair.name]]
            for group in groups:
                seats = [self._find(name) for name in group]
                for seat in seats:
                    instruction = self._instruct(seat, round)
                    if instruction and (round, instruction) not in told:
                        told.add((round, instruction))
                        yield Turn("user", "narrator", round, instruction), seat.inbox[-1]
                if len(seats) == 1:
                    spoken = [await self._turn(seats[0], round, token)]
                else:
                    spoken = await gather_or_cancel(self._turn(seat, round, token) for seat in seats)
                over = False
                for turn, message in spoken:
                    self._deliver(turn, message)
                    yield turn, message
                    over = over or await self._is_over(message)
                if over:
                    return

    def _find(self, name: str) -> Seat:
        for seat in (self._referee, self._chair):
            if seat is not None and seat.name == name:
                return seat
        try:
            return self._debaters[name]
        except KeyError:
            raise ConfigError(f"the speaking order names '{name}', who is not at the table") from None

    def _instruct(self, seat: Seat, round: int) -> str | None:
        text = self._instructions(Cue(seat.name, seat.role, round)) if self._instructions else None
        if text:
            seat.inbox.append(narrate(text))
        return text

    async def _turn(self, seat: Seat, round: int, token: CancellationToken) -> Spoken:
        again = round < self.rounds and seat.role != "chair"
        return await self._speak(seat, round, token, self._reply_type(Cue(seat.name, seat.role, round)), again)

    def _deliver(self, turn: Turn, message: BaseChatMessage) -> None:
        open_to_all = self._sees is everyone
        if self._fence:  # others are shown what was said as data; the transcript keeps it as it was said
            quoted = fenced(turn.text, f"WORDS OF {turn.speaker}").text
            message = TextMessage(content=quoted, source=message.source)
        for seat in self._seats:
            if seat.agent.name != turn.speaker and (
                open_to_all or self._sees(Cue(seat.name, seat.role, turn.round), turn)
            ):
                seat.inbox.append(message)


def _as_policy(reply_type: ReplyType | type[BaseModel]) -> ReplyType:
    if isinstance(reply_type, type):
        fixed = reply_type
        return lambda cue: fixed
    return reply_type
