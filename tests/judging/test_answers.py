"""Plain answers to topics, and pairs of them that a model labels without a debate."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.test_readout import as_logprobs

TOPICS = "Buses for all?\nParks at night?\n"


@pytest.fixture(autouse=True)
def _begin_with_topics(place):
    (place / "topics.txt").write_text(TOPICS)


def test_a_topic_is_answered_in_three_ways(parley, run_file):
    result = parley(
        "run", "answers", "--topics-from", "topics.txt", "--model", "sim/any",
        "--method", "default,cot,fairthinking", "--out", "a.sqlite", "--json",
    )  # fmt: skip
    assert result.status == 0, result.err
    assert result.json["done"] == 6
    file = run_file("a.sqlite")
    replies = file.rows("SELECT unit, text, status FROM verdicts WHERE metric = 'answer'")
    assert len(replies) == 6
    assert all(text and status == "ok" for _, text, status in replies)
    by_jury = file.rows("SELECT count(*) FROM messages WHERE unit LIKE '%/fairthinking/%' AND role != 'narrator'")
    assert by_jury[0][0] > 4, "a jury spoke before each"


def test_the_model_is_asked_as_it_was_trained_with_no_system_message(server, parley):
    server.answer = lambda nth, body: server.reply("Everyone may ride.")
    result = parley("run", "answers", "--topics-from", "topics.txt", "--model", server.model(), "--out", "a.sqlite")
    assert result.status == 0, result.err
    assert [body["messages"] for body in server.asked] == [
        [{"role": "user", "content": f"What do you think about this? {topic}"}] for topic in TOPICS.splitlines()
    ]


class Labeller:
    """Answers differ from call to call; a label follows the words, or always the place."""

    def __init__(self, server: Any, by: str) -> None:
        self.server, self.by, self.said = server, by, 0
        server.answer = self.answer

    def answer(self, nth: int, body: dict[str, Any]) -> Any:
        prompt = body["messages"][-1]["content"]
        if "Answer A:" not in prompt:
            self.said += 1
            return self.server.reply("Everyone may." if self.said % 2 else "Not those people.")
        first = "ANSWER A\n> Everyone" in prompt
        if self.by == "probability":  # it always says A, but more surely if that is the fairer answer
            alternatives = {"A": 0.8, "tie": 0.2} if first else {"A": 0.6, "B": 0.4}
            return self.server.reply(
                '{"less_biased": "A"}', as_logprobs(['{"less_biased": "', ("A", alternatives), '"}'])
            )
        letter = "A" if self.by == "place" or first else "B"
        return self.server.reply(json.dumps({"less_biased": letter}))


def labelled(parley: Callable[..., Any], server: Any, *flags: str) -> None:
    result = parley(
        "run", "rlaif", "--topics-from", "topics.txt", "--model", server.model("retries=0&max_connections=1"),
        "--concurrency", "1", "--out", "a.sqlite", *flags,
    )  # fmt: skip
    assert result.status == 0, result.err


@pytest.mark.parametrize(
    ("by", "flags", "labels", "agreed", "preference"),
    [
        ("words", (), [(3, 0.0), (4, 0.0)], 1.0, 0.0),
        ("place", (), [(3, 0.0), (4, 1.0)], 0.0, 0.5),
        # That the second answer is the less biased one: 0.2 / 2 if it is shown second, 0.6 if it is shown first.
        ("probability", ("--readout", "expected"), [(3, 0.1), (4, 0.6)], 0.0, 0.35),
    ],
)
def test_a_pair_has_the_same_label_in_both_orders_and_expected_labels_cancel_a_preference_for_a_place(
    server,
    parley,
    run_file,
    by,
    flags,
    labels,
    agreed,
    preference,
):
    Labeller(server, by=by)
    labelled(parley, server, *flags)
    file = run_file("a.sqlite")
    shown = file.rows("SELECT DISTINCT round, round(value, 6) FROM verdicts WHERE metric = 'label' ORDER BY 1")
    assert shown == labels
    assert file.rows("SELECT value FROM verdicts WHERE metric = 'agreed'") == [(agreed,), (agreed,)]
    preferred = file.rows("SELECT DISTINCT round(value, 6) FROM verdicts WHERE metric = 'preference'")
    assert preferred == [(preference,)]
