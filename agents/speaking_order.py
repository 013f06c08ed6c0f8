"""Who speaks when in a debate: an order fixed before each round, or a choice made before each turn.

    Debate(…, order=simultaneous)
    Debate(…, order=by_model("openai/gpt-6-luna"))

An order is a function of the round and the names. A `NextSpeaker` chooses from what was said so far, as AutoGen's
`SelectorGroupChat` does; a round then has as many turns as there are debaters.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from autogen_agentchat.messages import BaseChatMessage
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    LLMMessage,
    ModelFamily,
    SystemMessage,
    UserMessage,
)

from parley.agents.messages import Event
from parley.agents.models.base import Client
from parley.agents.models.wire import NARRATOR
from parley.agents.structured import answer_in
from parley.agents.transcripts import seed_from

Group = Sequence[str]
Order = Callable[[int, Sequence[str]], Sequence[Group]]
"""Divides the debaters into groups, by round. Groups speak in turn, the agents of a group concurrently."""
SELECTOR_PROMPT = files("parley.agents").joinpath("prompts", "select_speaker.txt").read_text("utf-8")
"""AutoGen's own, so that both choose alike."""


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


class Floor(NamedTuple):
    """What is known when the next speaker is chosen.

    Args:
        descriptions: The debaters, in the given order, with their descriptions.
        messages: All messages so far, the task included.
        previous: The debater who spoke last; None if nobody has.
        client_for: The client for a model's name or an AutoGen client; for None the debate's own.
    """

    descriptions: Mapping[str, str]
    messages: Sequence[Event]
    previous: str | None
    client_for: Callable[[str | ChatCompletionClient | None], Client]


class NextSpeaker(ABC):
    """Chooses each speaker just before its turn."""

    @abstractmethod
    async def choose(self, floor: Floor) -> str:
        """The name of the debater who speaks next."""


@dataclass(frozen=True, slots=True)
class by_model(NextSpeaker):
    """A model chooses the next speaker from what was said, as in AutoGen's `SelectorGroupChat`.

    Args:
        model: The model, as `provider/model` or any AutoGen client; by default the debate's.
        selector_prompt: Its prompt, with `{roles}`, `{participants}` and `{history}`; by default AutoGen's.
        allow_repeated_speaker: Whether one may speak twice in a row.
        max_selector_attempts: How often the model is asked for exactly one name. After that, the previous speaker goes
            on, or the first one begins, as in AutoGen.
    """

    model: str | ChatCompletionClient | None = None
    selector_prompt: str = SELECTOR_PROMPT
    allow_repeated_speaker: bool = False
    max_selector_attempts: int = 3

    async def choose(self, floor: Floor) -> str:
        barred = None if self.allow_repeated_speaker else floor.previous
        names = [name for name in floor.descriptions if name != barred]
        if len(names) == 1:
            return names[0]
        roles = "\n".join(" ".join(f"{name}: {about}".split()) for name, about in floor.descriptions.items())
        said = (message for message in floor.messages if isinstance(message, BaseChatMessage))
        history = "\n".join(f"{message.source}: {message.to_model_text()}".rstrip() + "\n\n" for message in said)
        prompt = self.selector_prompt.format(roles=roles, participants=str(names), history=history)
        client = floor.client_for(self.model)
        asked: list[LLMMessage] = [
            SystemMessage(content=prompt)
            if ModelFamily.is_openai(client.model_info["family"])
            else UserMessage(content=prompt, source=NARRATOR)
        ]
        for _ in range(self.max_selector_attempts):
            reply = answer_in(await client.create(asked), typed=True).raw
            mentioned = [name for name in floor.descriptions if _mentions(reply, name)]
            if len(mentioned) == 1 and mentioned[0] != barred:
                return mentioned[0]
            if not mentioned:
                complaint = f"No valid name was mentioned. Please select from: {names}."
            elif len(mentioned) > 1:
                complaint = f"Expected exactly one name to be mentioned. Please select only one from: {names}."
            else:
                complaint = f"Repeated speaker is not allowed, please select a different name from: {names}."
            asked += [
                AssistantMessage(content=reply, source="selector"),
                UserMessage(content=complaint, source=NARRATOR),
            ]
        return floor.previous or names[0]


def _mentions(text: str, name: str) -> bool:
    """Whether a name is in the text as a word; an underscore in it may be a space, or escaped."""
    spellings = "|".join(map(re.escape, (name, name.replace("_", " "), name.replace("_", r"\_"))))
    return re.search(rf"(?<=\W)({spellings})(?=\W)", f" {text} ") is not None
