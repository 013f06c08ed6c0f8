"""What a model thinks before it answers: told apart, kept, never parsed, never heard by the others."""

from __future__ import annotations

import pytest
from autogen_core.models import RequestUsage
from pydantic import BaseModel

from parley.agents import (
    Budget,
    Persona,
    ReplyCache,
    Session,
    ask,
    parse,
    record_calls,
    scale,
    session,
    structured_reply,
)
from parley.agents.models.marks import FORMS
from parley.agents.models.reply import Reply
from parley.agents.models.request import THINK_TOKENS
from parley.agents.models.thoughts import ThoughtSplitter, known_to_think, opened_by_template, read_parts, split_thought
from parley.agents.structured import answer_in
from parley.base.errors import CutShort
from tests.agents.common import ASK, as_logprobs
from tests.vendors.attacks import FORMS_OF_THOUGHT, UNCLOSED

INLINE = '<think>Perhaps {"score": 1} or not.</think>\n\n{"score": 9}'


class Score(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]
    why: str = ""


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


def test_the_mark_with_which_a_template_opens_the_thinking():
    for opening, closing in (form.example for form in FORMS if form.example[0][0] in "<[◁"):
        prompt = f"<|im_start|>assistant\n{opening}\n"
        assert opened_by_template(prompt) == opening.strip()
        said = "it writes </think> and\nstops"  # what is quoted is not the end of a thought that another mark opened
        thought, answer, _ = split_thought(f"{opened_by_template(prompt)}Hm.{closing}{said}")
        assert answer == (said if opening != "<think>" else "and\nstops"), (opening, thought)
    for prompt in ("<|im_start|>assistant\n", "<think>\n\n</think>\n\n", "Say <think> to me.\nassistant:", ""):
        assert opened_by_template(prompt) == ""


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
    server.says(**message, usage={"completion_tokens_details": {"reasoning_tokens": 21}, "completion_tokens": 30})
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
    server.says('Perhaps {"score": 1}, but then', '{"score": 9}', finish="length")
    client = server.client()
    client.thinks = True
    reply = await structured_reply(client, ASK, Score)
    assert (reply.value, reply.status) == (None, "cut")
    assert (await structured_reply(client, ASK, Score)).value == Score(score=9)


# Cut replies, and room to think


@pytest.mark.parametrize("content", [None, "", "<think>Well, "])
@pytest.mark.parametrize("reply_type", [None, Score])
async def test_a_reply_that_was_cut_while_thinking_says_what_to_raise(server, content, reply_type):
    server.says(content=content, reasoning_content="Well", finish="length", usage={"completion_tokens": 30})
    with pytest.raises(
        CutShort, match=r"server/m: a reply was cut off after 30 tokens, while the model was thinking; raise --max"
    ) as e:
        await ask(Persona("Ada", "A."), "Buses?", reply_type, model=server.client(think_tokens=50))
    assert "\n" not in str(e.value)
    assert len(server.asked) == 1, "neither tried nor asked again"


async def test_a_model_that_is_seen_to_think_gets_room(server):
    """And the first reply, which had none, is paid for like every other."""
    server.says(reasoning="Well", finish="length", usage={"completion_tokens": 30})
    server.says("Seven.")
    budget, client = Budget(), server.client(max_tokens=400, price_in=1, price_out=1)
    with session(Session("unit", budget=budget)), record_calls() as calls:
        assert (await client.create(ASK)).content == "Seven."
    assert [body["max_tokens"] for body in server.asked] == [400, 400 + THINK_TOKENS]
    assert (budget.calls, budget.tokens) == (2, 12 + 30 + 12 + 3)
    told = [(call.reply, call.thought, call.cut, call.attempts) for call in calls]
    assert told == [("", "Well", True, 1), ("Seven.", "", False, 1)]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ("max_tokens=400", 400 + THINK_TOKENS),
        ("max_tokens=400&think_tokens=100", 500),
        ("max_tokens=400&think_tokens=0", 400),
        ("max_tokens=400&effort=none", 400),
        ("temperature=1", None),
    ],
)
async def test_the_limit_is_for_the_answer(server, options, limit):
    server.says("Seven.")
    await server.client(f"server/qwen3?{options}").create(ASK)
    assert server.asked[0].get("max_tokens") == limit
    assert "think_tokens" not in server.asked[0]


# Log-probabilities, and speed


@pytest.mark.parametrize(
    "border", [["}</think>\n", '{"points": '], ['}</think>\n{"', 'points": ']], ids=["whole", "across"]
)
async def test_log_probabilities_are_those_of_the_answer(server, border):
    tokens = ["<think>", '{"points": ', "2", *border, ("7", {"7": 0.5, "9": 0.5}), "}"]
    server.says('<think>{"points": 2}</think>\n{"points": 7}', logprobs=as_logprobs(tokens))
    reply = await server.client().create(ASK, extra_create_args={"logprobs": True})
    assert "".join(token.token for token in reply.logprobs) == reply.content == '{"points": 7}'


# Every form of thought

THOUGHT = 'Perhaps {"score": 1}.'


def score_in(text: str) -> tuple[float | None, bool]:
    reply = Reply(finish_reason="stop", content=text, usage=RequestUsage(1, 1), cached=False)
    answer = answer_in(reply, typed=True)
    value, _ = parse(answer.raw, Score)
    return (None if value is None else value.score), answer.cut


@pytest.mark.parametrize("form", FORMS_OF_THOUGHT)
def test_a_score_is_read_after_the_thought(form):
    text = FORMS_OF_THOUGHT[form](THOUGHT, '{"score": 9}')
    assert score_in(text) == (9, False)
    reply = Reply(finish_reason="stop", content=text, usage=RequestUsage(1, 1), cached=False)
    again = Reply.model_validate_json(reply.model_dump_json())  # as from the cache
    assert (again.content, again.thought, again.cut) == (reply.content, reply.thought, False)


@pytest.mark.parametrize("form", UNCLOSED)
def test_a_thought_that_is_never_closed_is_cut(form):
    assert score_in(UNCLOSED[form] + THOUGHT) == (None, True)


def test_thoughts_whose_end_cannot_be_seen_and_what_is_said_before_one_stands_beside_the_answer():
    """Gemma behind a server that removes special tokens: nothing tells an answer from the thought."""
    for text in ('Perhaps {"score": 1}.{"score": 9}', 'Perhaps {"score": 1}.', '{"score": 1}'):
        assert score_in(f"thought\n{text}") == (None, True)
    assert score_in('I must decline. <think>Hm.</think>{"score": 0}') == (None, False)
    assert score_in('Sure. <think>Hm.</think>{"score": 9}') == (9, False)
    assert score_in('I must decline. Here is my response: {"score": 0}') == (None, False)


@pytest.mark.parametrize("form", [form.name for form in FORMS if not form.plain and form.name != "muse"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_shows_no_thought_that_opens_it(form, size):
    text = FORMS_OF_THOUGHT[form]("Perhaps.", "Seven.")
    splitter = ThoughtSplitter()
    shown = [splitter.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*shown, splitter.flush()]).strip() == "Seven."
