"""What is peculiar to vLLM and llama.cpp; the real llama.cpp server is in tests/agents/test_servers.py."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_core.models import UserMessage

from parley.agents import BadRequest, model
from tests.vendors.vllm import CONTEXT
from tests.vendors.vllm import Standin as VLLM


@pytest.mark.parametrize("characters", [100, 30_000, 61_000])
async def test_room_to_think_never_exceeds_vllms_context(characters: int) -> None:
    with VLLM("thinking") as server:
        client = model(server.name())
        await client.prepare()
        assert client.context_tokens == CONTEXT
        message = UserMessage(content="x" * characters, source="user")
        await client.create([message], extra_create_args={"max_tokens": 400})
        await client.close()
    assert server.rejected == []


async def test_a_prompt_of_more_tokens_than_were_estimated_gets_the_room_that_is_left() -> None:
    """As in languages with fewer than four characters per token; only a prompt that is too long itself is rejected."""

    class Dense(VLLM):
        def turns(self, body: Any) -> Any:
            return [(role, text * 3) for role, text in super().turns(body)]

    with Dense("thinking") as server:
        client = model(server.name())
        await client.prepare()
        message = UserMessage(content="x" * 16_000, source="user")
        await client.create([message], extra_create_args={"max_tokens": 400})
        assert len(server.rejected) == 1
        assert server.requests[-1].body["max_tokens"] == CONTEXT - 12_004
        with pytest.raises(BadRequest, match="maximum context length is 16384"):
            await client.create([UserMessage(content="x" * 30_000, source="user")])
        await client.close()
