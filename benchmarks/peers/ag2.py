"""AG2: a `workflow` channel of its network for each conversation, with agents on its OpenAI config.

As its documentation sets it up (docs.ag2.ai, "Network", "Migrating from Group Chat", "Closing Channels"): a hub that
keeps its log in memory, a transition graph that goes round and ends after `max_turns`, and a participant without a
model who asks the question and waits for the channel to close. Three things are made easier for it: each conversation
has a hub of its own (on a shared one an agent answers one channel after the other), all share one HTTP client, and the
tools that the network adds to every agent are left out, since every call would carry them. What an agent is shown is
its default view; requests of a second round are a tenth smaller than the others' (the page gives bytes a request).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ag2 import Agent
from ag2.config import LLMClient, ModelConfig, ModelProvider, OpenAIConfig
from ag2.events import ModelMessage, ModelResponse
from ag2.knowledge import MemoryKnowledgeStore
from ag2.network import (
    EV_CHANNEL_CLOSED,
    AgentTarget,
    FromSpeaker,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from openai import DefaultAsyncHttpxClient

from benchmarks.peers.common import Case, Instant, main
from benchmarks.workload import ABOUT, NAMES, TASK


class InstantClient(LLMClient):
    """Answers at once."""

    def __init__(self, instant: Instant) -> None:
        self.instant = instant

    async def __call__(self, messages: Sequence[Any], context: Any, **settings: Any) -> ModelResponse:
        await asyncio.sleep(0)
        message = ModelMessage(self.instant.reply())
        await context.send(message)
        return ModelResponse(message)


class InstantConfig(ModelConfig):
    provider, model = ModelProvider.OPENAI, "instant"  # type: ignore[assignment]

    def __init__(self, instant: Instant) -> None:
        self.instant = instant

    def copy(self, **_: Any) -> InstantConfig:
        return self

    def create(self) -> InstantClient:
        return InstantClient(self.instant)


def turns(asker: str, speakers: Sequence[str], messages: int) -> TransitionGraph:
    """The asker, then round and round."""
    following = zip([asker, *speakers], [*speakers, speakers[0]], strict=False)
    ways = [Transition(when=FromSpeaker(one), then=AgentTarget(other)) for one, other in following]
    ways.append(Transition(when=FromSpeaker(speakers[-1]), then=AgentTarget(speakers[0])))
    return TransitionGraph(asker, ways, default_target=TerminateTarget(reason="done"), max_turns=messages + 1)


async def one(config: ModelConfig, messages: int) -> None:
    hub = await Hub.open(MemoryKnowledgeStore(), ttl_sweep_interval=0)
    speakers = [
        await hub.register(Agent(name, prompt=ABOUT[name], config=config), attach_plugin=False) for name in NAMES
    ]
    client = HubClient(LocalLink(hub), hub=hub)
    asker = await client.register_human(Passport(name="user", kind="human"))
    ids = [speaker.agent_id for speaker in speakers]
    graph = turns(asker.agent_id, ids, messages).to_dict()
    channel = await asker.open(type="workflow", target=ids, knobs={"graph": graph})
    await channel.send(TASK)
    await asker.next_envelope(predicate=lambda found: found.event_type == EV_CHANNEL_CLOSED, timeout=600)
    await client.close()
    await hub.close()


async def hold(case: Case) -> None:
    web = DefaultAsyncHttpxClient()
    config = (
        OpenAIConfig(model="bench", base_url=case.url, api_key="none", http_client=web)
        if case.url
        else InstantConfig(case.instant)
    )
    await asyncio.gather(*(one(config, case.messages) for _ in range(case.conversations)))
    await web.aclose()


if __name__ == "__main__":
    main(hold, ["ag2", "openai"])
