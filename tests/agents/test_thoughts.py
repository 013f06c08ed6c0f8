"""What a model thinks before it answers: told apart, kept, never parsed, never heard by the others."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import CreateResult, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

from parley.agents import (
    Budget,
    Debate,
    Persona,
    ReplyCache,
    Session,
    ask,
    model,
    record_calls,
    session,
    structured_reply,
)
from parley.agents.models.marks import FORMS
from parley.agents.models.reply import Reply
from parley.agents.models.request import THINK_TOKENS
from parley.agents.models.thoughts import (
    ThoughtSplitter,
    known_to_think,
    opened_by_template,
    read_parts,
    split_thought,
)
from parley.base.errors import CutShort
from tests.agents.common import ASK

INLINE = '<think>Perhaps {"score": 1} or not.</think>\n\n{"score": 9}'


class Score(BaseModel):
    score: int


def completion(message: dict[str, Any], finish: str = "stop", **usage: Any) -> str:
    counts = {"prompt_tokens": 12, "completion_tokens": 30, **usage}
    return json.dumps({"choices": [{"finish_reason": finish, "message": message}], "usage": counts})


SPLIT = [
    ("Seven.", "", "Seven."),
    (INLINE, 'Perhaps {"score": 1} or not.', '{"score": 9}'),
    ("\n <think>\na\n</think>b", "a", "b"),
    ("<think>a</think>\n<think>b</think> c", "a\n\nb", "c"),
    ("<think>never closed", "never closed", ""),
    ("<think></think>Seven.", "", "Seven."),
    ("the template opened it\n</think>\n\nSeven.", "the template opened it", "Seven."),
    ('{"why": "it says </think> here"}', "", '{"why": "it says </think> here"}'),
    ("The tag <think> opens\n</think>\nand closes.", "", "The tag <think> opens\n</think>\nand closes."),
    ("<think>\na\n</think>\n<answer>\nSeven.\n</answer>\n", "a", "Seven."),
    ("A debater may say </think> here.", "", "A debater may say </think> here."),
    ("[THINK]It says </think>.[/THINK]The tag </think> closes.", "It says </think>.", "The tag </think> closes."),
    ("", "", ""),
]


@pytest.mark.parametrize(("text", "thought", "answer"), SPLIT)
def test_thinking_in_front_of_an_answer(text, thought, answer):
    assert split_thought(text)[:2] == (thought, answer)


@pytest.mark.parametrize(
    ("text", "closed"), [("<think>a", False), ("Sure. <think>a", False), ("<think>a</think>", True), ("a", True)]
)
def test_whether_a_thought_has_ended(text, closed):
    reply = Reply(finish_reason="stop", content=text, usage=RequestUsage(1, 2), cached=False)
    assert (split_thought(text).closed, reply.cut) == (closed, not closed)


def test_the_mark_with_which_a_template_opens_the_thinking():
    for opening, closing in (form.example for form in FORMS if form.example[0][0] in "<[◁"):
        prompt = f"<|im_start|>assistant\n{opening}\n"
        assert opened_by_template(prompt) == opening.strip()
        said = "it writes </think> and\nstops"  # what is quoted is not the end of a thought that another mark opened
        thought, answer, _ = split_thought(f"{opened_by_template(prompt)}Hm.{closing}{said}")
        assert answer == (said if opening != "<think>" else "and\nstops"), (opening, thought)
    for prompt in ("<|im_start|>assistant\n", "<think>\n\n</think>\n\n", "Say <think> to me.\nassistant:", ""):
        assert opened_by_template(prompt) == ""


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    ("text", "answer"),
    [(text, answer) for text, _, answer in SPLIT if "template" not in text and "<answer>" not in text],
)
def test_thinking_in_a_stream(text, answer, size):
    splitter = ThoughtSplitter()
    pieces = [splitter.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*pieces, splitter.flush()]).strip() == answer


def test_content_in_parts():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}, {"type": "text", "text": "Six?"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "No."}]},
        {"type": "text", "text": "Sev"},
        {"type": "output_text", "text": "en."},
        {"type": "redacted_thinking", "data": "b64"},
    ]
    assert read_parts(parts) == ("Hm. Six?\n\nNo.", "Seven.")
    with pytest.raises(TypeError):
        read_parts([7])


@pytest.mark.parametrize(
    ("name", "thinks"),
    [
        ("o3", True), ("o4-mini", True), ("gpt-5-mini", True), ("gpt-5-chat-latest", False), ("gpt-4o", False),
        ("openai/gpt-oss-120b", True), ("Qwen/Qwen3-4B", True), ("Qwen/Qwen3-4B-Instruct-2507", False),
        ("Qwen/Qwen3-4B-Thinking-2507", True), ("qwen3-coder", False), ("deepseek-reasoner", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", True), ("QwQ-32B", True), ("llama3.2", False), ("m", False),
    ],
)  # fmt: skip
def test_models_that_are_known_to_think(name, thinks):
    assert known_to_think(name) is thinks


MESSAGES = [
    {"content": "Seven.", "reasoning_content": "Six? No."},
    {"content": "Seven.", "reasoning": "Six? No."},
    {"content": "<think>Six? No.</think>Seven."},
    {"content": [{"type": "thinking", "thinking": "Six? No."}, {"type": "text", "text": "Seven."}]},
]


@pytest.mark.parametrize("message", MESSAGES, ids=["reasoning_content", "reasoning", "inline", "parts"])
async def test_a_reply_has_its_thought_apart(server, message, tmp_path):
    server.sends(completion(message, completion_tokens_details={"reasoning_tokens": 21}))
    cache = ReplyCache(tmp_path / "cache.sqlite")
    for _ in range(2):  # the second from the cache
        with session(Session("unit", cache=cache)), record_calls() as calls:
            reply = await server.client().create(ASK)
        assert (reply.content, reply.thought, reply.thought_tokens) == ("Seven.", "Six? No.", 21)
        assert (calls[0].reply, calls[0].thought, calls[0].thought_tokens) == ("Seven.", "Six? No.", 21)
    assert len(server.asked) == 1
    cache.close()


async def test_a_cut_reply_of_a_model_that_thinks_may_be_a_thought(server):
    """Where the template opens the thinking and the limit comes before its end, no mark tells."""
    for text in ('Perhaps {"score": 1}, but then', '{"score": 9}'):
        server.sends(completion({"content": text}, "length"))
    client = server.client()
    client.thinks = True
    reply = await structured_reply(client, ASK, Score)
    assert (reply.value, reply.status) == (None, "cut")
    assert (await structured_reply(client, ASK, Score)).value == Score(score=9)


async def test_nobody_hears_a_thought(server):
    server.says("<think>Ben is a fool.</think>Good point.", "<think>So is Ada.</think>Thanks.")
    debate = Debate([Persona("Ada", "A."), Persona("Ben", "B.")], model=server.client(), rounds=2)
    turns = (await debate.converse("Buses?")).spoken()
    assert [turn.text for turn in turns] == ["Good point.", "Thanks.", "Thanks.", "Thanks."]
    assert [turn.thought for turn in turns] == ["Ben is a fool.", "So is Ada.", "So is Ada.", "So is Ada."]
    heard = json.dumps(server.asked)
    assert ("fool" in heard, "So is" in heard) == (False, False)


async def test_the_thoughts_of_any_autogen_client_are_kept():
    def result(content: str, thought: str | None) -> CreateResult:
        return CreateResult(
            finish_reason="stop", content=content, usage=RequestUsage(1, 1), cached=False, thought=thought
        )

    replies = [result("Yes.", "I doubt it."), result("<think>Hm.</think>No.", None)]
    agent = AssistantAgent("Ada", ReplayChatCompletionClient(replies), description="Ada")
    turns = (await Debate([agent], rounds=2).converse("Buses?")).spoken()
    assert [(turn.text, turn.thought) for turn in turns] == [("Yes.", "I doubt it."), ("No.", "Hm.")]


# Cut replies, and room to think


async def test_a_cut_reply_that_cannot_be_read(server):
    server.sends(completion({"content": '{"sco'}, "length"))
    reply = await structured_reply(server.client(), ASK, Score)
    assert (reply.value, reply.status, reply.raw, reply.cut) == (None, "cut", '{"sco', True)
    assert "too long and was cut off" in server.asked[1]["messages"][-1]["content"]


async def test_a_statement_that_was_cut_is_kept_and_marked(server):
    server.sends(completion({"content": "Buses are"}, "length"))
    turn = await ask(Persona("Ada", "A."), "Buses?", model=server.client())
    assert (turn.text, turn.cut, turn.parse_status) == ("Buses are", True, None)


@pytest.mark.parametrize("content", [None, "", "<think>Well, "])
@pytest.mark.parametrize("reply_type", [None, Score])
async def test_a_reply_that_was_cut_while_thinking_says_what_to_raise(server, content, reply_type):
    server.sends(completion({"content": content, "reasoning_content": "Well"}, "length"))
    with pytest.raises(
        CutShort,
        match=r"server/m: a reply was cut off after 30 tokens, while the model was thinking; raise --max",
    ) as e:
        await ask(Persona("Ada", "A."), "Buses?", reply_type, model=server.client(think_tokens=50))
    assert "\n" not in str(e.value)
    assert len(server.asked) == 1, "neither tried nor asked again"


async def test_a_model_that_is_seen_to_think_gets_room(server):
    """And the first reply, which had none, is paid for like every other."""
    server.sends(completion({"content": None, "reasoning": "Well"}, "length"))
    server.says("Seven.")
    budget, client = Budget(), server.client(max_tokens=400, price_in=1, price_out=1)
    with session(Session("unit", budget=budget)), record_calls() as calls:
        assert (await client.create(ASK)).content == "Seven."
    assert [body["max_tokens"] for body in server.asked] == [400, 400 + THINK_TOKENS]
    assert (budget.calls, budget.tokens) == (2, 12 + 30 + 12 + 3)
    assert [(call.reply, call.thought, call.cut) for call in calls] == [("", "Well", True), ("Seven.", "", False)]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ("max_tokens=400", 400 + THINK_TOKENS),
        ("max_tokens=400&think_tokens=100", 500),
        ("max_tokens=400&think_tokens=0", 400),
        ("max_tokens=400&effort=none", 400),
        ("", None),
    ],
)
async def test_the_limit_is_for_the_answer(server, options, limit):
    server.says("Seven.")
    client = model(f"server/qwen3?base_url={server.url}&{options}")
    await client.create(ASK)
    await client.close()
    assert server.asked[0].get("max_tokens") == limit
    assert "think_tokens" not in server.asked[0]


# Billing


@pytest.mark.parametrize(
    "body",
    [
        completion({"content": None}, "length"),
        completion({"content": [{"type": "text", "text": "Seven."}]}),
        completion({"content": None}, "stop"),
    ],
)
async def test_an_answered_call_is_not_tried_again(server, body):
    server.sends(body)
    budget = Budget(max_calls=5)
    with session(Session("unit", budget=budget)):
        await server.client(retries=6).create(ASK)
    assert (len(server.asked), budget.calls, budget.tokens) == (1, 1, 42)


# Log-probabilities, and speed


@pytest.mark.parametrize(
    "border", [["}</think>\n", '{"points": '], ['}</think>\n{"', 'points": ']], ids=["whole", "across"]
)
async def test_expected_scores_are_those_of_the_answer(server, border):
    class Point(BaseModel):
        points: int = 0
        model_config = {"json_schema_extra": {"properties": {"points": {"minimum": 0, "maximum": 10}}}}

    def token(text: str, *others: tuple[str, float]) -> dict[str, Any]:
        tops = [{"token": other, "logprob": logprob} for other, logprob in others]
        return {"token": text, "logprob": -0.1, "top_logprobs": tops}

    thinking = [token("<think>"), token('{"points": '), token("2", ("2", 0.0)), *map(token, border)]
    answer = [token("7", ("7", math.log(0.5)), ("9", math.log(0.5))), token("}")]
    server.says('<think>{"points": 2}</think>\n{"points": 7}', logprobs=[*thinking, *answer])
    reply = await structured_reply(server.client(), ASK, Point, readout="expected")
    assert reply.expected == {"points": pytest.approx(8.0)}


def test_splitting_a_stream_takes_linear_time():
    def seconds(count: int) -> float:
        def once() -> float:
            splitter = ThoughtSplitter()
            splitter.feed("<think>")
            started = time.process_time()
            for _ in range(count):
                splitter.feed("sooo")
            return time.process_time() - started

        return min(once() for _ in range(5))

    assert seconds(16_000) < 8 * seconds(4_000)
