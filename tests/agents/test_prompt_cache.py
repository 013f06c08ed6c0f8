"""Vendors' prompt caches: shared prefixes are marked, and cached tokens are recorded and priced."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import Call, Debate, Persona, Session, model, record_calls, session
from parley.agents.models.openai import OpenAIClient
from parley.agents.models.servers import DeepSeekClient
from tests.agents.common import ASK

# The SDK warns about models near their end of life; which ones depends on its version.
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

TASK = "A very long task about buses, and who should pay for them. " * 60
PANEL = [Persona(name, f"You are {name}, a councillor.") for name in ("Ada", "Ben", "Cy")]
LOOKBACK = 20


class Claude:
    """Caches prefixes as the vendor's documentation says: whole blocks up to a mark, searched for up to 20 blocks back.

    A token is four characters; there is no minimum length, so that short conversations can be tested.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.cached: set[str] = set()

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        prefixes, marked = [json.dumps([body.get("tools"), body.get("system")])], []
        for message in body["messages"]:
            blocks = message["content"]
            for block in [{"text": blocks}] if isinstance(blocks, str) else blocks:
                prefixes.append(prefixes[-1] + message["role"] + block["text"])
                if "cache_control" in block:
                    marked.append(len(prefixes) - 1)
        candidates = [prefix for end in marked for prefix in prefixes[max(0, end - LOOKBACK) : end + 1]]
        read = max((len(prefix) for prefix in candidates if prefix in self.cached), default=0)
        written = max([len(prefixes[end]) for end in marked] + [read]) - read
        self.cached |= {prefixes[end] for end in marked}
        usage = {
            "input_tokens": (len(prefixes[-1]) - read - written) // 4,
            "cache_read_input_tokens": read // 4,
            "cache_creation_input_tokens": written // 4,
            "output_tokens": 10,
        }
        text = {"type": "text", "text": f"I am speaker number {len(self.asked)}."}
        return web.json_response(
            {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [text]}
            | {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        )


@pytest.fixture
async def claude(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    claude = Claude()
    app = web.Application()
    app.router.add_post("/v1/messages", claude.answer)
    server = TestServer(app)
    await server.start_server()
    claude.url = str(server.make_url("")).rstrip("/")
    yield claude
    await server.close()


async def debate(claude: Claude, *, task: str = TASK, rounds: int = 2, **how: Any) -> list[Call]:
    client = model("anthropic/claude-sonnet-4-5", base_url=claude.url, price_in=3, price_out=15, price_cached=0.3)
    instructions = {"instructions": lambda cue: "Answer the others." if cue.round > 1 else None}
    try:
        transcript = await Debate(PANEL, model=client, rounds=rounds, **instructions, **how).converse(task)
    finally:
        await client.close()
    return [call for turn in transcript.spoken() for call in turn.calls]


async def test_personas_last_share_everything_with_the_call_before(claude):
    calls = await debate(claude, placement="last")
    opening = len(TASK) // 4
    assert calls[0].cached_tokens == 0
    assert calls[0].written_tokens >= opening
    for call in calls[1:]:
        assert call.cached_tokens is not None
        assert call.cached_tokens >= opening
        # What is new is a reply, an instruction and a persona.
        assert call.prompt_tokens - call.cached_tokens < 80
    assert calls[-1].cached_tokens > calls[1].cached_tokens  # type: ignore[operator]


async def test_cache_writes_and_cache_reads_have_their_own_prices(claude):
    call = (await debate(claude))[0]
    plain = call.prompt_tokens - call.written_tokens
    # $3 per million prompt tokens, a quarter more if they are cached, $15 per million reply tokens
    assert call.cost == pytest.approx((plain * 3 + call.written_tokens * 3.75 + call.completion_tokens * 15) / 1e6)
    again = (await debate(claude))[-1]
    assert again.cached_tokens
    assert again.cost == pytest.approx(
        ((again.prompt_tokens - again.cached_tokens) * 3 + again.cached_tokens * 0.3 + again.completion_tokens * 15)
        / 1e6
    )


async def test_nothing_is_marked_in_a_short_conversation_or_a_single_round(claude):
    await debate(claude, task="Buses?", placement="last")
    await debate(claude, rounds=1)
    assert "cache_control" not in json.dumps(claude.asked)
    assert all(isinstance(message["content"], str) for body in claude.asked for message in body["messages"])


async def test_marks_change_neither_the_text_nor_the_record(claude):
    calls = await debate(claude, placement="last")
    sent = claude.asked[1]["messages"]
    assert [message["role"] for message in sent] == ["user"]
    text = "".join(block["text"] for block in sent[0]["content"])
    assert text == f"{TASK}\n\nAda: I am speaker number 1.\n\nYou are Ben, a councillor."
    assert "parley_shared" not in json.dumps(claude.asked)
    assert [message.text for message in calls[1].prompt] == [
        TASK,
        "I am speaker number 1.",
        "You are Ben, a councillor.",
    ]


async def test_openai_gets_one_cache_key_per_unit(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    server.says("Seven.")
    for options in ({"cache_key": True}, {}):
        client = model("openai/gpt-4o-mini", base_url=server.url, **options)
        for unit in ("0/a", "0/a", "0/b"):
            with session(Session(unit)):
                await client.create(ASK)
        await client.create(ASK)
        await client.close()
    keys = [body.get("prompt_cache_key") for body in server.asked]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0] is not None
    assert keys[3:] == [None] * 5, "no key outside a unit, nor to a server that is not OpenAI's unless it is requested"
    assert all("0/a" not in str(key) for key in keys)


IMPOSSIBLE = [
    {"cached_tokens": -1},
    {"cached_tokens": 99},
    {"cached_tokens": "5"},
    {"cached_tokens": None},
    [],
    "many",
    {},
]


@pytest.mark.parametrize("details", IMPOSSIBLE)
async def test_an_impossible_count_is_recorded_as_unknown(server, details):
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": details}
    choice = {"finish_reason": "stop", "message": {"content": "Seven."}}
    server.sends(json.dumps({"choices": [choice], "usage": usage}))
    with record_calls() as calls:
        await server.client(price_in=1, price_out=10, price_cached=0).create(ASK)
    assert (calls[0].cached_tokens, calls[0].cost) == (None, pytest.approx(42e-6))


@given(st.integers(0, 10_000))
def test_what_vendors_bill_as_cached(shared):
    """OpenAI: from 1,024 tokens on, in steps of 128. DeepSeek: in blocks of 64."""
    openai, deepseek = OpenAIClient.billed_as_cached(shared), DeepSeekClient.billed_as_cached(shared)
    assert openai in range(0, shared + 1, 128)
    assert (openai == 0) == (shared < 1024)
    assert 0 <= shared - deepseek < 64
