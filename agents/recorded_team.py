"""Records the conversations of any AutoGen team or agent: turns with their calls, tokens and verdicts.

    transcript = await RecordedTeam(team).converse("Should buses be free?")

The clients of the team are wrapped, so that cache and budget apply to it; `parley.record` writes it to a run file.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from autogen_agentchat.base import ChatAgent, Response, TaskResult, Team
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage, ThoughtEvent
from autogen_core import CancellationToken
from pydantic import BaseModel

from parley.agents.conversation import Conversation
from parley.agents.guests import containers, wrap_clients
from parley.agents.messages import Task, as_messages, narrator_turn
from parley.agents.models.registry import Models
from parley.agents.models.session import SESSION
from parley.agents.models.thoughts import join_thoughts
from parley.agents.models.wire import NARRATOR
from parley.agents.persona_agent import PersonaAgent, persona_of
from parley.agents.transcripts import Call, Transcript, Turn, number_rounds, record_calls
from parley.base.errors import ConfigError


class RecordedTeam:
    """A team whose conversations are recorded.

    Args:
        team: Any AutoGen team or agent, or one of Parley's conversations. Its clients are wrapped in place.
        models: Clients that Parley's conversations share across teams. By default each conversation opens its own.
    """

    def __init__(self, team: Team | ChatAgent, models: Models | None = None) -> None:
        if not isinstance(team, Team | ChatAgent):
            raise ConfigError(
                f"{team!r} cannot be recorded: give an AutoGen team or agent, or a function that makes one"
            )
        self.team = team
        self.name = team.name
        self._lent: list[tuple[Any, str, Any]] = []
        if models is not None:
            self._lend(models)
        self.clients = wrap_clients(team)
        self._calls: dict[str, list[Call]] = {}
        if not isinstance(team, Conversation):
            for agent in [inner for inner in containers(team) if isinstance(inner, ChatAgent)]:
                # An agent that was recorded before has its own method under `_unrecorded`; only that is wrapped.
                method = vars(agent).setdefault("_unrecorded", agent.on_messages_stream)
                agent.on_messages_stream = self._noting_calls(method)  # type: ignore[method-assign]

    def describe(self) -> str:
        """The team as JSON, as AutoGen dumps it but without secrets; a changed team cannot resume a run.

        A team with agents that cannot be dumped, such as personas, is described by the names, texts and models of its
        agents and by the whole numbers of its settings.
        """
        try:
            return self.team.dump_component().model_dump_json()
        except (NotImplementedError, AttributeError, TypeError, ValueError, OSError):  # a tool may have no source
            parts = [_described(part) for part in containers(self.team) if isinstance(part, Team | ChatAgent)]
            return json.dumps([*parts, sorted(client.identity for client in self.clients)])

    def _lend(self, models: Models) -> None:
        for conversation in containers(self.team):
            if isinstance(conversation, Conversation) and conversation._owns_models:
                for container in containers(conversation):
                    for attribute, client in list(vars(container).items()):
                        name = conversation._models.name_of(client)
                        if name is not None:
                            self._replace(container, attribute, models[name])
                self._replace(conversation, "_models", models)

    def _replace(self, container: Any, attribute: str, value: Any) -> None:
        self._lent.append((container, attribute, getattr(container, attribute)))
        setattr(container, attribute, value)

    def return_models(self) -> None:
        """Restore each conversation's own clients, in place of those of `models`."""
        for container, attribute, client in reversed(self._lent):
            setattr(container, attribute, client)
        self._lent.clear()

    def _noting_calls(self, stream: Callable[..., AsyncGenerator[Any, None]]) -> Callable[..., Any]:
        """Wrap an agent's stream to record the calls of its message."""
        # The order of the team's messages does not show it: the runtime runs ahead of the reader of its stream.

        async def on_messages_stream(messages: Any, token: CancellationToken) -> AsyncGenerator[Any, None]:
            async with aclosing(stream(messages, token)) as items:
                with record_calls() as calls:
                    async for item in items:
                        if isinstance(item, Response):
                            self._calls[item.chat_message.id] = calls
                        yield item

        return on_messages_stream

    async def converse(self, task: Task) -> Transcript:
        """Run the team on a task, from the beginning, and return the transcript.

        A model's error is raised as it is; AutoGen's runtime would turn it into a `RuntimeError`.
        """
        await (self.team.reset() if isinstance(self.team, Team) else self.team.on_reset(CancellationToken()))
        if isinstance(self.team, Conversation):
            return await self.team.converse(task)
        self._calls.clear()
        try:
            with record_calls() as calls:
                turns, stop = await self._turns(task)
        except RuntimeError:
            current = SESSION.get()
            if current is not None and current.failure is not None:
                raise current.failure from None
            raise
        attributed = {id(call) for turn in turns for call in turn.calls}
        team_calls = tuple(call for call in calls if id(call) not in attributed)
        if team_calls:  # calls of the team itself, such as a model that chooses the speakers
            turns.append(Turn(speaker=self.name, role="narrator", round=0, text="", calls=team_calls))
        return Transcript(tuple(number_rounds(turns)), stop)

    async def _turns(self, task: Task) -> tuple[list[Turn], str]:
        messages = as_messages(task)
        turns = [narrator_turn(message) for message in messages]
        personas = {part.name: persona_of(part) for part in containers(self.team) if isinstance(part, ChatAgent)}
        thoughts: list[str] = []
        attributed: set[int] = set()
        stop = ""
        async for item in self.team.run_stream(task=messages, output_task_messages=False):
            if isinstance(item, TaskResult):
                stop = item.stop_reason or ""
            if isinstance(item, ThoughtEvent):
                thoughts.append(item.content)
            if not isinstance(item, BaseChatMessage):
                continue
            # The calls of an inner team are those of its own messages, which came before.
            calls = [call for call in self._calls.get(item.id, ()) if id(call) not in attributed]
            attributed.update(map(id, calls))
            typed = isinstance(item, StructuredMessage) and isinstance(item.content, BaseModel)
            turns.append(
                Turn(
                    speaker=item.source,
                    role="narrator" if item.source == NARRATOR else "debater",
                    round=1,
                    text=item.to_model_text(),
                    persona=personas.get(item.source, ""),
                    verdict=item.content if typed else None,  # type: ignore[attr-defined]
                    parse_status="ok" if typed else None,
                    calls=tuple(calls),
                    thought=join_thoughts(thoughts),
                    cut=bool(calls) and calls[-1].cut,
                )
            )
            thoughts.clear()
        return turns, stop


_PROGRESS = ("_round", "_step")
"""Numbers in a debate's state that say where it stopped; they are not settings."""


def _described(part: Team | ChatAgent) -> list[Any]:
    if isinstance(part, PersonaAgent):
        return [part.name, part.persona.about]
    if isinstance(part, ChatAgent):
        return [part.name, part.description]
    numbers = {name: value for name, value in vars(part).items() if type(value) is int and name not in _PROGRESS}
    return [type(part).__name__, part.name, numbers, str(getattr(part, "criteria", ""))]
