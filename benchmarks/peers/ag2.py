"""AG2: a `workflow` channel of its network for each conversation, with agents on its OpenAI config.

Set up as in its documentation (docs.ag2.ai, "Network", "Migrating from Group Chat", "Closing Channels"): a hub with
its log in memory, a transition graph that cycles and ends after `max_turns`, and a participant without a model who
asks the question and waits for the channel to close. Three things make it faster: each conversation has its own hub
(on a shared one, an agent answers one channel after another), all share one HTTP client, and the tools that the network
adds to every agent are left out, since every call would carry them. Agents get their default view of the conversation;
requests of a second round are a tenth smaller than those of the others (the page gives bytes per request).
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
    """Answers immediately."""

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
    """The asker first, then the speakers in turn, again and again."""
    following = zip([asker, *speakers], [*speakers, speakers[0]], strict=False)
    transitions = [Transition(when=FromSpeaker(name), then=AgentTarget(after)) for name, after in following]
    transitions.append(Transition(when=FromSpeaker(speakers[-1]), then=AgentTarget(speakers[0])))
    return TransitionGraph(asker, transitions, default_target=TerminateTarget(reason="done"), max_turns=messages + 1)


async def converse(config: ModelConfig, messages: int) -> None:
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
    await asker.next_envelope(predicate=lambda envelope: envelope.event_type == EV_CHANNEL_CLOSED, timeout=600)
    await client.close()
    await hub.close()


async def run_case(case: Case) -> None:
    web = DefaultAsyncHttpxClient()
    config = (
        OpenAIConfig(model="bench", base_url=case.url, api_key="none", http_client=web)
        if case.url
        else InstantConfig(case.instant)
    )
    await asyncio.gather(*(converse(config, case.messages) for _ in range(case.conversations)))
    await web.aclose()


if __name__ == "__main__":
    main(run_case, ["ag2", "openai"])
