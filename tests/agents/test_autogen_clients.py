"""AutoGen's own clients wherever a model is expected: accepted, and recorded, cached and budgeted like ours."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import ANY

import pytest
from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_agentchat.tools import AgentTool
from autogen_core.models import CreateResult, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

from parley.agents import (
    AuthError,
    BadRequest,
    Budget,
    BudgetSpent,
    ConfigError,
    Critique,
    Debate,
    PersonaAgent,
    RateLimited,
    ReplyCache,
    ServerFault,
    Session,
    ask,
    model,
    record_calls,
    session,
    structured_reply,
)
from parley.agents.guests import wrap_clients
from tests.agents.common import ADA, ASK, BEN, KEY, TASK, USAGE, chunk, openai
from tests.vendors.asking import COUNT


class Score(BaseModel):
    score: int


async def test_everywhere_a_model_is_expected(server):
    server.says('{"score": 7, "reason": "fair"}')
    client = openai(server)
    turn = await ask(ADA, TASK, Score, model=client)
    assert (turn.verdict, len(turn.calls)) == (Score(score=7), 1)
    loop = Critique(ADA, {"bias": BEN}, criteria={"bias": "< 20"}, model=client)
    assert {name: spent.calls for name, spent in (await loop.converse(TASK)).usage().items()} == {"Ada": 1, "Ben": 1}
    with record_calls() as calls:
        await PersonaAgent(ADA, client).run(task=TASK)
        await structured_reply(model(client), ASK, Score)
    assert len(calls) == 2
    assert model(client) is model(client)
    assert server.asked[0]["response_format"]["type"] == "json_schema"


async def test_a_client_of_ones_own(server):
    debate = Debate([ADA], model=ReplayChatCompletionClient(["Yes."]), rounds=1)
    (turn,) = (await debate.converse(TASK)).spoken()
    assert [(call.model, call.reply, call.cost) for call in turn.calls] == [
        ("autogen/ReplayChatCompletionClient", "Yes.", None)
    ]
    priced = model(ReplayChatCompletionClient(["Yes."]), name="mine/small", price_in=1, price_out=1)
    (turn,) = (await Debate([ADA], model=priced, rounds=1).converse(TASK)).spoken()
    assert turn.calls[0].model == "mine/small"
    assert turn.calls[0].cost == pytest.approx((turn.calls[0].prompt_tokens + turn.calls[0].completion_tokens) / 1e6)


async def test_its_replies_are_cached_and_its_calls_budgeted(server, tmp_path):
    server.says("Yes.", "No.")
    cache, budget = ReplyCache(tmp_path / "replies.sqlite"), Budget(max_calls=1)
    seen = []
    for _ in range(2):
        with session(Session("unit", cache=cache, budget=budget)):
            seen.append((await Debate([ADA], model=openai(server), rounds=1).converse(TASK)).spoken()[0])
    assert [(turn.text, turn.calls[0].cached) for turn in seen] == [("Yes.", False), ("Yes.", True)]
    other = openai(server, temperature=0.5)
    with session(Session("unit", cache=cache, budget=budget)), pytest.raises(BudgetSpent):
        await Debate([ADA], model=other, rounds=1).converse(TASK)
    assert len(server.asked) == 1
    assert KEY.encode() not in (tmp_path / "replies.sqlite").read_bytes()
    cache.close()


class Mine(ReplayChatCompletionClient):
    """A client that does not save its settings."""

    def _to_config(self) -> Any:
        raise NotImplementedError


async def test_clients_that_cannot_be_told_apart_are_not_cached(tmp_path):
    cache = ReplyCache(tmp_path / "replies.sqlite")

    async def replies(*clients: Any) -> list[Any]:
        said = []
        for client in clients:
            with session(Session("unit", cache=cache)):
                said.append((await client.create(ASK)).content)
            cache.commit()
        return said

    assert await replies(model(Mine(["a"])), model(Mine(["b"]))) == ["a", "b"]
    named = [model(Mine([text]), name=name) for text, name in (("a", "mine/x"), ("b", "mine/x"), ("c", "mine/y"))]
    assert await replies(*named) == ["a", "a", "c"]
    cache.close()


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (401, AuthError, "the key was refused"),
        (404, BadRequest, "no such model"),
        (429, RateLimited, "too many requests"),
        (500, ServerFault, "no such model"),
    ],
)
async def test_its_errors_are_ours(server, status, kind, text):
    server.fails(status, f"no such model, {KEY}")
    client = model(openai(server), retries=0)
    with pytest.raises(kind, match=text) as raised:
        await client.create(ASK)
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("max_retries", "options", "requests"),
    [(2, {}, 3), (0, {}, 1), (0, {"retries": 1}, 2)],
    ids=["its", "none", "ours"],
)
async def test_one_policy_of_retries(server, max_retries, options, requests, monkeypatch):
    for _ in range(30):
        server.sends('{"error": {"message": "busy"}}', 503, {"retry-after-ms": "1"})
    client = model(openai(server, max_retries=max_retries), **options)
    monkeypatch.setattr("parley.agents.models.throttle.backoff", lambda *_: 0.0)
    with pytest.raises(ServerFault):
        await client.create(ASK)
    assert len(server.asked) == requests
    with pytest.raises(ConfigError, match=r"retries=6 would multiply with the client's own \(2\); .*max_retries=0"):
        model(openai(server, max_retries=2), retries=6)


async def test_clients_are_found_wherever_they_are(server):
    clients = [openai(server, name) for name in ("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini")]
    helper = AgentTool(AssistantAgent("Helper", clients[0]))
    inner = RoundRobinGroupChat([AssistantAgent("Xi", clients[1], tools=[helper])], name="inner", max_turns=1)
    society = SocietyOfMindAgent("Society", inner, clients[2])
    team = SelectorGroupChat([society, AssistantAgent("Yu", clients[3])], model_client=clients[3], max_turns=1)
    wrapped = wrap_clients(team)
    assert sorted(client.name for client in wrapped) == [
        "openai/gpt-4.1",
        "openai/gpt-4.1-mini",
        "openai/gpt-4o",
        "openai/gpt-4o-mini",
    ]
    assert set(map(id, wrap_clients(team))) == set(map(id, wrapped))
    saved = json.loads(team.dump_component().model_dump_json())
    assert saved["config"]["model_client"]["provider"] == "autogen_ext.models.openai.OpenAIChatCompletionClient"
    assert KEY not in json.dumps(saved)


class Other(ReplayChatCompletionClient):
    """Another vendor's client. What it is to say may be an error; a stream then breaks off with it."""

    closed = False

    async def create(self, messages: Any, **arguments: Any) -> Any:
        if isinstance(said := self.chat_completions[-1], Exception):
            raise said
        return await super().create(messages, **arguments)

    async def create_stream(self, messages: Any, **arguments: Any) -> Any:
        yield "Ye"
        raise self.chat_completions[-1]

    async def close(self) -> None:
        self.closed = True


BLOCKED = CreateResult(finish_reason="content_filter", content="", usage=RequestUsage(1, 0), cached=False)


class Ollama(Other):
    __module__ = "autogen_ext.models.ollama.mine"


@pytest.mark.parametrize(
    ("make", "sent"),
    [
        (openai, {"logprobs": True, "top_logprobs": 20, "max_tokens": 9, "reasoning_effort": "low"}),
        (lambda url: openai(url, "o3-mini"), {"max_completion_tokens": 9 + 16_384, "reasoning_effort": "low"}),
        (lambda url: Other(["Yes.", BLOCKED]), {"max_tokens": 9}),
        (lambda url: Ollama(["Yes.", "No."]), {"num_predict": 9, "seed": 3}),
    ],
)
async def test_options_are_in_its_own_words(server, make, sent):
    server.says("Yes.")
    inner = make(server)
    client, options = model(inner), {"logprobs": "top_logprobs" in sent, "effort": "low", "max_tokens": 9, "seed": 3}
    await client.create(ASK, tools=[COUNT], extra_create_args=options)
    if isinstance(inner, Other):
        (asked,) = inner.create_calls
        assert (asked["tools"], asked["json_output"], asked["extra_create_args"]) == ((COUNT,), None, sent)
        assert (client.count_tokens(ASK), client.remaining_tokens(ASK)) == (2, 9_997)
        with pytest.raises(ConfigError, match="effort= works with OpenAI's client only"):
            model(inner, effort="low")
        await client.close()
        assert (inner.closed, (await client.create(ASK)).refused) == (True, sent == {"max_tokens": 9})
    else:
        (body,) = server.asked
        assert (body.pop("tools")[0]["function"]["name"], body.pop("tool_choice")) == ("count", "auto")
        assert body == {"model": inner._create_args["model"], "messages": ANY, "stream": False, "seed": 3, **sent}


async def test_a_streamed_reply(server):
    server.streams(chunk("Ye"), chunk("s."), chunk(finish="stop"), USAGE)
    with record_calls() as calls:
        *chunks, reply = [part async for part in model(openai(server)).create_stream(ASK)]
    assert (chunks, reply.content, reply.finish_reason) == (["Ye", "s."], "Yes.", "stop")
    assert [(call.reply, call.prompt_tokens, call.completion_tokens) for call in calls] == [("Yes.", 12, 3)]
    assert server.asked[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (OSError("gone"), ServerFault, "autogen/Other: gone"),
        (type("ReadTimeout", (Exception,), {})(), ServerFault, "autogen/Other: ReadTimeout"),
        (ValueError("a\nb"), BadRequest, "autogen/Other: a b"),
        (RateLimited("slow down"), RateLimited, "slow down"),
    ],
)
async def test_errors_of_any_library_and_what_arrived_before_them(raised, kind, said):
    client = model(Other(["", raised]))
    with pytest.raises(kind) as caught:
        await client.create(ASK)
    with record_calls() as calls, pytest.raises(kind) as broken:
        _ = [part async for part in client.create_stream(ASK)]
    assert (str(caught.value), str(broken.value)) == (said, said)
    assert [(call.reply, call.cached, call.cut) for call in calls] == [("Ye", False, False)]
