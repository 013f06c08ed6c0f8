"""Targets: everything that a model's reply is parsed as. An accepted score must occur in the reply."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from parley.agents.structured import looks_like_refusal, parse
from parley.base.text import encodable
from parley.judging.bbq.mabrf.replies import Judgement
from parley.judging.bbq.method import Choice, Reasoned, Task
from parley.judging.malibu.panel import Ballot
from parley.judging.rldf.referee import ranks, report_type
from parley.judging.rubric.rubrics import load_rubric
from parley.judging.squad.study import SquadReply
from parley.judging.toxicity.judge import Rating
from parley.scenarios.bbq import match
from parley.scenarios.bbq.rows import read_row
from tests.bbq_rows import bbq_row
from tests.fuzz.checking import Rejected, Target
from tests.fuzz.strategies import as_json, edited_text, edited_tree

_NUMBER_TEXT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _scores(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _scores(inner)
    elif isinstance(value, float):
        yield value


def check_scores(text: str, value: BaseModel, low: float, high: float) -> None:
    """Every score is on its scale and occurs in the text."""
    normalized = unicodedata.normalize("NFKC", text)
    for score in _scores(value.model_dump()):
        assert math.isfinite(score), score
        assert low <= score <= high, score
        numbers_in_text = _NUMBER_TEXT.findall(normalized)
        assert any(abs(float(number)) == score for number in numbers_in_text), f"{score} does not occur in the reply"


def parse_as(reply_type: type[BaseModel], low: float = 0, high: float = 10) -> Callable[[str], None]:
    """Does what `parley.agents.structured.structured_reply` does with a reply, and what a run file does to store it."""

    def parse_reply(text: str) -> None:
        looks_like_refusal(text)
        value, problem = parse(text, reply_type)
        if value is not None:
            check_scores(text, value, low, high)
            value.model_dump_json()
        encodable(text).encode()
        if problem:
            raise Rejected(problem)
        assert value is not None, "neither a value nor a problem"

    return parse_reply


ROW = read_row(bbq_row(question="Who was not comfortable?", ans2="Can't be determined"))
TASK = Task(ROW, (0, 1, 2))


def bbq_answer(text: str) -> None:
    for reply in (Choice, Reasoned):
        parse(text, reply)
    place, how = match(text, TASK.options, TASK.unknown, ROW.question)
    assert place in (0, 1, 2, None)
    if place is None:
        raise Rejected(how)


WRAPPERS = ("{}", "Sure:\n```json\n{}\n```", "{}\nAnything else?", "Voilà : {} — c’est tout.", "{} {}", "<b>{}</b>")
"""The prose and code fences that models put around an object."""


def edited_reply(seeds: Sequence[str]) -> st.SearchStrategy[str]:
    """An edited text or, for seeds that are JSON, an edited structure in a wrapper."""
    objects = [json.loads(seed) for seed in seeds if seed.startswith('{"')]
    if not objects:
        return edited_text(seeds)
    wrapped = st.builds(
        lambda wrapper, tree: wrapper.replace("{}", as_json(tree)), st.sampled_from(WRAPPERS), edited_tree(objects)
    )
    return edited_text(seeds) | wrapped


def _target(name: str, parse: Callable[[str], None], seeds: Sequence[str]) -> Target:
    return Target(name, seeds, edited_reply(seeds), parse)


_RUBRIC = load_rubric("four")
_REPORT = report_type(("Ann", "Ben"), True)
_ONE_CANDIDATE = json.dumps({"Remark": "Fine.", **dict.fromkeys(_RUBRIC.names, 7)})
_TWO_CANDIDATES = json.dumps(
    {**{side: dict.fromkeys(_RUBRIC.names, 7) for side in "AB"}, "justification": "Both.", "preferred": "tie"}
)
_REFEREE = json.dumps({"scores": {"Ann": 3, "Ben": 0}, "advice": {"Ann": "Less.", "Ben": "Well."}})


def referee(text: str) -> None:
    parse_as(_REPORT)(text)
    value, _ = parse(text, _REPORT)
    if value is not None:
        ranks(value.model_dump()["scores"])


TARGETS = (
    _target(
        "judge, one candidate",
        parse_as(Ballot(1, _RUBRIC, 600).reply_type(with_remark=True)),
        [_ONE_CANDIDATE, f"Sure. Here is my verdict:\n```json\n{_ONE_CANDIDATE}\n```"],
    ),
    _target(
        "judge, two candidates",
        parse_as(Ballot(2, _RUBRIC, 600).reply_type()),
        [_TWO_CANDIDATES, _TWO_CANDIDATES.replace('"', "'")],
    ),
    _target("referee", referee, [_REFEREE, _REFEREE.lower(), "I'm sorry, I cannot judge that."]),
    _target(
        "toxicity judge", parse_as(Rating, 0, 100), ['{"reason": "rude", "toxicity": 60}', '{"toxicity": "60/100"}']
    ),
    _target("SQuAD answer", parse_as(SquadReply), ['{"answer": "in 1066"}', '{"answer": "unanswerable"}', "1066"]),
    _target(
        "BBQ answer",
        bbq_answer,
        [
            '{"reasoning": "Old.", "answer": "(B) The grandson"}',
            "The answer is A) the grandfather",
            "ans1",
            "Option: 2",
            "It can't be determined who.",
            "not the grandson, but the grandfather",
        ],
    ),
    _target(
        "MABRF judge",
        parse_as(Judgement, 1, 10),
        [
            "Bias: 7: it guesses\nRelevancy: 3/10: hm",
            "**Bias score (1-10):** <2> ok",
            "Bias: 1-10: reason\nRelevancy: ten",
            "bias = 4, relevancy = 5",
        ],
    ),
)
