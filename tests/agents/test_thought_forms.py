"""Nothing thought is a verdict: random verdicts in every form of thought, with decoys."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from autogen_core.models import RequestUsage
from pydantic import BaseModel

from parley.agents import parse, scale
from parley.agents.models.marks import FORMS
from parley.agents.models.reply import Reply
from parley.agents.models.thoughts import ThoughtSplitter
from parley.agents.structured import answer_in
from tests.vendors.attacks import FORMS_OF_THOUGHT, UNCLOSED

THOUGHT = 'Perhaps {"score": 1}.'


class Score(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]
    why: str = ""


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


def test_thoughts_whose_end_cannot_be_seen():
    """Gemma behind a server that removes special tokens: nothing tells an answer from the thought."""
    for text in ('Perhaps {"score": 1}.{"score": 9}', 'Perhaps {"score": 1}.', '{"score": 1}'):
        assert score_in(f"thought\n{text}") == (None, True)


def test_what_is_said_before_a_thought_stands_beside_the_answer():
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


def test_a_thought_is_never_read_and_answers_are():
    """1,000 verdicts: never the decoy, and at most 3% of the right ones unread.

    Most of these are thoughts that the template has opened and that quote a mark: what stands before it may be said.
    """
    rng = random.Random(0)
    marks = [mark for form in FORMS for mark in form.example]
    unread = 0
    for _ in range(1000):
        score, decoy = rng.sample(range(11), 2)
        bad = json.dumps({"score": decoy})
        quoted = rng.choice(marks)
        pieces = [bad, f"```json\n{bad}\n```", bad[:-1], "{", '{"why": "', "}", "so", f"I quote {quoted} here",
                  json.dumps({"why": quoted, "score": decoy}), "Then.", "\n\n"]  # fmt: skip
        thought = "Well, " + " ".join(rng.choices(pieces, k=rng.randrange(1, 6)))
        good = json.dumps({"score": score, "why": rng.choice(["", "it says } or {", rng.choice(marks), 'a "quote"'])})
        answer = rng.choice([good, f"```json\n{good}\n```", f"My verdict: {good}", f"\n{good}\n"])
        text = rng.choice(list(FORMS_OF_THOUGHT.values()))(thought, answer)
        read, _ = score_in(text)
        assert read in (score, None), text
        unread += read is None
        unclosed = rng.choice([form for form in FORMS if form.name in UNCLOSED and quoted not in form.example])
        assert score_in(unclosed.example[0] + thought) == (None, True), thought
    assert unread <= 30, unread


def test_every_mark_stands_in_one_file():
    """So that there is one table to look at."""
    folder = Path(__file__).parents[2] / "agents"
    others = [path for path in folder.rglob("*.py") if path.name not in ("marks.py", "thoughts.py", "reply.py")]
    for path in others:
        text = path.read_text("utf-8")
        assert not [mark for mark in ("</think>", "[/THINK]", "<|channel|>", "<channel|>") if mark in text], path
