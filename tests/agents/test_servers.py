"""DeepSeek, OpenRouter, and servers that users run themselves: vLLM, llama.cpp's server and Ollama.

All but one are simulated on loopback, in the formats of their documentation; llama.cpp's server is the real one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from autogen_core.models import AssistantMessage, UserMessage
from pydantic import BaseModel, Field

from parley.agents import AuthError, BadRequest, ConfigError, record_calls
from tests.agents.common import ASK, KEY, tool_call
from tests.vendors.asking import result_of


class Score(BaseModel):
    points: int = Field(ge=0, le=9)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("VLLM_BASE_URL", "VLLM_API_KEY", "OLLAMA_BASE_URL", "LLAMACPP_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("DEEPSEEK_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, KEY)


async def recorded_call(server: Any, name: str) -> Any:
    """What a run does: prepare the client, make a call; returns its record."""
    client = server.client(name, retries=0)
    await client.prepare()
    with record_calls() as calls:
        await client.create(ASK)
    return calls[0]


@pytest.mark.parametrize(
    ("names", "details", "cached"),
    [
        (["vllm/Qwen/Qwen3-4B"], {"prompt_tokens_details": {"cached_tokens": 784}}, 784),
        (["vllm/Qwen/Qwen3-4B"], {"prompt_tokens_details": None}, None),  # without --enable-prompt-tokens-details
        (["ollama/llama3.2", "ollama/llama3.2:latest", "ollama/qwen3:4b"], {}, None),
        (["deepseek/deepseek-flash"], {"prompt_cache_hit_tokens": 784, "prompt_cache_miss_tokens": 28}, 784),
    ],
)
async def test_cached_tokens_are_counted_where_the_server_says_so_and_tags_are_optional(server, names, details, cached):
    server.serves("Qwen/Qwen3-4B", "llama3.2:latest", "qwen3:4b")
    server.says("Seven.", usage={"prompt_tokens": 812, "total_tokens": 830, "completion_tokens": 18, **details})
    for name in names:
        call = await recorded_call(server, name)
        assert (call.prompt_tokens, call.cached_tokens) == (812, cached)
    assert [body["model"] for body in server.asked] == [name.partition("/")[2] for name in names]


TEMPLATE = ("enable_thinking", "thinking")
SWITCHES = ("thinking", "reasoning", "reasoning_effort", "chat_template_kwargs")


@pytest.mark.parametrize(
    ("name", "effort", "sent"),
    [
        ("deepseek/deepseek-flash", "none", {"thinking": {"type": "disabled"}}),
        ("deepseek/deepseek-flash", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("deepseek/deepseek-flash", "medium", None),
        ("openrouter/z-ai/glm-5", "xhigh", {"reasoning": {"effort": "xhigh"}}),
        ("openrouter/z-ai/glm-5", "max", None),
        ("ollama/qwen3:4b", "high", {"reasoning_effort": "high"}),
        ("ollama/qwen3:4b", "xhigh", None),
        *(
            ("llamacpp/m", effort, {"reasoning_effort": effort, "chat_template_kwargs": dict.fromkeys(TEMPLATE, on)})
            for effort, on in (("none", False), ("max", True))
        ),
    ],
)
async def test_an_effort_is_sent_in_the_servers_words_or_refused_before_any_call(server, name, effort, sent):
    server.says("Seven.")
    if sent is None:
        with pytest.raises(ConfigError, match=f"effort={effort} is not supported"):
            server.client(f"{name}?effort={effort}")
    else:
        await server.client(f"{name}?effort={effort}").create(ASK)
        assert {key: value for key, value in server.asked[0].items() if key in SWITCHES} == sent


async def test_deepseek_gets_its_thinking_back_with_a_tools_result_and_neither_seed_nor_temperature(server):
    server.says(reasoning_content="Hm.", tool_calls=tool_call("count", what="cats"))
    server.says("Four.")
    client = server.client("deepseek/deepseek-flash")
    sampling = {"seed": 3, "temperature": 0.5}
    reply = await client.create(ASK, extra_create_args=sampling)
    await client.create(result_of(reply.content[0], thought=reply.thought))
    assert not {*sampling} & {*server.asked[0]}
    assert server.asked[1]["messages"][1]["reasoning_content"] == "Hm."


@pytest.mark.parametrize("provider", ["vllm", "llamacpp"])
async def test_a_reply_that_has_begun_is_continued_by_one_token(server, provider):
    server.serves("m")
    server.says("Score: 7" if provider == "llamacpp" else "7")  # llama.cpp repeats what it was given
    client = server.client(f"{provider}/m?effort=high")
    begun = [*ASK, AssistantMessage(content="Score: ", source="self")]
    options = {"max_tokens": 1, "think_tokens": 0, "logprobs": True, "temperature": 0.0}
    reply = await client.create(begun, extra_create_args=options)
    await client.create(begun, extra_create_args={"max_tokens": 30, "think_tokens": 0})
    assert reply.content == "7"
    one, more = server.asked
    assert one["messages"][-1] == {"role": "assistant", "content": "Score: "}
    assert (one["max_tokens"], one["logprobs"], one["top_logprobs"], one["temperature"]) == (1, True, 20, 0.0)
    assert one["chat_template_kwargs"]["enable_thinking"] is False, "a reply that has begun is past its thinking"
    switches = {"continue_final_message": True, "add_generation_prompt": False} if provider == "vllm" else {}
    assert {key: one[key] for key in ("continue_final_message", "add_generation_prompt") if key in one} == switches
    assert "continue_final_message" not in more


async def test_vllm_gets_a_schema_that_allows_no_run_of_blanks_and_an_older_one_the_plain_schema(server):
    """xgrammar 0.2.8 itself allows at most one blank with this tag, and any number with a schema."""
    server.says("{}", "{}")
    server.fails(400, "Invalid response_format structural_tag specification.")
    server.says("{}")
    client = server.client("vllm/m")
    await client.create(ASK, json_output=Score)
    schema = {"type": "object", "properties": {"points": {"type": "integer", "minimum": 0, "maximum": 9}}}
    closed = {**schema, "required": ["points"], "additionalProperties": False}
    content = {"type": "json_schema", "json_schema": closed, "max_whitespace_cnt": 1}
    assert server.asked[0]["response_format"] == {"type": "structural_tag", "format": content}
    await client.create([*ASK, UserMessage(content="JSON", source="user")], json_output=True)
    assert server.asked[1]["response_format"] == {"type": "json_object"}
    for _ in range(2):
        await client.create(ASK, json_output=Score)
    assert [body["response_format"]["type"] for body in server.asked[2:]] == [
        "structural_tag", "json_schema", "json_schema",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "models", "listed"),
    [
        ("vllm/qwen", ["Qwen/Qwen3-4B"], "Qwen/Qwen3-4B"),
        ("ollama/llama3.3", ["llama3.2:latest", "qwen3:4b"], "llama3.2:latest, qwen3:4b"),
        ("ollama/qwen3", ["qwen3:4b"], "qwen3:4b"),
    ],
)
async def test_a_model_that_is_not_served_is_named_before_any_call(server, name, models, listed):
    server.serves(*models)
    with pytest.raises(ConfigError) as caught:
        await recorded_call(server, name)
    model_name = name.partition("/")[2]
    assert str(caught.value) == f"{name}: {server.url} does not serve '{model_name}' (it has: {listed})"
    assert server.asked == []


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "The model `m` does not exist.", "type": "NotFoundError", "param": "model", "code": 404}},
        {"object": "error", "message": "The model `m` does not exist.", "type": "NotFoundError", "code": 404},
        {"error": "The model `m` does not exist."},
    ],
    ids=["vllm, ollama", "an older vllm", "ollama's own api"],
)
async def test_a_server_without_a_list_reports_the_missing_model_itself(server, body):
    server.sends(json.dumps(body), 404)
    with pytest.raises(BadRequest) as caught:
        await recorded_call(server, "vllm/m")
    assert str(caught.value) == f"vllm/m: {server.url} answered 404: The model `m` does not exist."


async def test_a_key_that_the_server_refuses(server, monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "token-that-must-not-show")
    server.listing = 401, {}
    with pytest.raises(AuthError, match=r"the key was refused; check VLLM_API_KEY$") as caught:
        await recorded_call(server, "vllm/m")
    assert "token-that" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "start"), [("vllm", "vllm serve"), ("ollama", "ollama serve"), ("llamacpp", "llama-server -m")]
)
async def test_no_server_at_all_says_how_to_start_one(server, provider, start):
    server.url = f"http://127.0.0.1:{unused_port()}/v1"
    with pytest.raises(ConfigError) as caught:
        await recorded_call(server, f"{provider}/m")
    assert str(caught.value).startswith(f"{provider}/m: no server at {server.url}; start one: ")
    assert start in str(caught.value)


@pytest.fixture(scope="module")
def llama_server(tiny_model):
    """llama.cpp's own server, on its own port."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(tiny_model)
    params.n_parallel, params.n_ctx, params.warmup, params.verbosity = 2, 4096, False, -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


async def test_llama_cpps_own_server(server, llama_server):
    """Any model name works; replies are constrained to a schema; the second call shares the first one's prefix."""
    server.url = llama_server
    client = server.client("llamacpp/any", max_tokens=90, retries=0)
    long = UserMessage(content="Count the cats in this very long sentence about cats. " * 20, source="user")
    await client.prepare()
    with record_calls() as calls:
        replies = [
            await client.create([long, UserMessage(content=f"{question}?", source="user")], json_output=Score)
            for question in ("Well", "And")
        ]
    assert all(0 <= Score.model_validate_json(str(reply.content)).points <= 9 for reply in replies)
    assert calls[0].cached_tokens == 0
    # All but the final question and what the template appends.
    assert 0 < calls[1].prompt_tokens - (calls[1].cached_tokens or 0) < 60 < calls[1].prompt_tokens

    # The context of a slot, and that the tiny model's template knows no effort.
    assert client.context_tokens == 2048
    with pytest.raises(ConfigError, match="effort=high is not supported"):
        await server.client("llamacpp/any?effort=high").prepare()
    quiet = server.client("llamacpp/any?effort=none", max_tokens=5)
    await quiet.prepare()
    assert (await quiet.create(ASK)).usage.completion_tokens <= 5
