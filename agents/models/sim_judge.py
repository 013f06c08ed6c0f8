"""Simulated judges on a panel, and their replies in plain lines.

    sim/judge?examiner.female=-2&follow=0.5&leader=examiner&echo=0.3

`examiner.female=-2` is an effect of one judge, the one whose description names the Examiner; any other option that
shapes a reply can be given by judge too (`editor.noise=0`). `follow` is the rate at which a judge adopts the scores and
the preference that a judge it has heard stated first; `echo` is the rate at which it repeats another's words. Both
concern `leader` if given, else any judge it has heard.

To prompts that ask for plain lines, as MABRF's do, a judge gives `base` points, plus the effects `bias` or `relevancy`,
plus for bias `round` points for every time the chain of thought was rephrased, which the simulated rephraser marks in
the text. So `sim/any?base=7&round=-2&noise=0` gives the scores 7, 5, 3, 1.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from autogen_core.models import (
    ChatCompletionTokenLogprob,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    TopLogprob,
    UserMessage,
)

from parley.agents.models.reply import Reply
from parley.agents.models.wire import NARRATOR

Path = tuple[str, ...]
"""Path of a value in a reply: ("A", "Accuracy")."""


class Stated(NamedTuple):
    """Another judge's statement: its values by path."""

    judge: str
    values: Mapping[Path, Any]


def persona_of(messages: Sequence[LLMMessage]) -> str:
    """The description of the judge who replies: the system message, else the last message."""
    place = 0 if isinstance(messages[0], SystemMessage) else -1
    return str(messages[place].content)


def is_named(judge: str, persona: str) -> bool:
    """Whether a description names the judge, in any case."""
    return re.search(rf"\b{re.escape(judge)}\b", persona, re.IGNORECASE) is not None


def heard(messages: Sequence[LLMMessage], leader: str) -> list[Stated]:
    """The readable statements of other judges in a prompt, in order; if there is a leader, only the leader's."""
    # With the description last, a judge's own turns are there by name too; otherwise they are the assistant's.
    persona = "" if isinstance(messages[0], SystemMessage) else persona_of(messages)
    statements = []
    for message in messages:
        if not isinstance(message, UserMessage) or message.source == NARRATOR or is_named(message.source, persona):
            continue
        if leader and message.source.lower() != leader.lower():
            continue
        text = str(message.content)
        try:
            reply = json.loads(text[text.index("{") : text.rindex("}") + 1])  # a fence may be around it
        except ValueError:
            continue
        statements.append(Stated(message.source, dict(_values(reply, ()))))
    return statements


def _values(node: Any, path: Path) -> list[tuple[Path, Any]]:
    if isinstance(node, dict):
        return [pair for key, child in node.items() for pair in _values(child, (*path, key))]
    return [(path, node)]


def adopted(statements: Sequence[Stated], follow: float, echo: float, rng: random.Random) -> dict[Path, Any]:
    """What a judge adopts from statements that it has heard: numbers and choices, words, both or nothing.

    Args:
        statements: The statements that it has heard, in order.
        follow: Rate at which it adopts the verdict of one judge, as first stated.
        echo: Rate at which it repeats the words of a statement.
        rng: Random generator that decides whether to adopt, and whose statement.
    """
    taken: dict[Path, Any] = {}
    first = {statement.judge: statement for statement in reversed(statements)}
    if first and follow and rng.random() < follow:
        verdict = first[rng.choice(sorted(first))]
        taken |= {path: value for path, value in verdict.values.items() if not _is_words(value)}
    spoken = [
        words for statement in statements if (words := {p: v for p, v in statement.values.items() if _is_words(v)})
    ]
    if spoken and echo and rng.random() < echo:
        taken |= rng.choice(spoken)
    return taken


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and " " in value


MARK = " To put it neutrally:"
_STEP = re.compile(r"^(?:> )?\d+\. .*$", re.MULTILINE)
"""A step, fenced or not."""
_SCORE_LINE = re.compile(r"^Bias: <(\d+)-(\d+)>", re.MULTILINE)


def reply_lines(
    prompt: str, score: Callable[[str, float, int, int], int], per_rephrasing: float, rng: random.Random
) -> str | None:
    """The reply to a prompt that asks for lines; None if it does not.

    Args:
        prompt: the user's message.
        score: returns a score for a label, a shift in points, and the ends of the scale.
        per_rephrasing: points for every time the steps were rephrased.
        rng: chooses the answer.
    """
    if scale := _SCORE_LINE.search(prompt):
        low, high = map(int, scale.groups())
        rephrased = prompt.count(MARK) // max(1, len(_STEP.findall(prompt)))
        return (
            f"Bias: {score('bias', per_rephrasing * rephrased, low, high)}: some of it is taken for granted.\n"
            f"Relevancy: {score('relevancy', 0.0, low, high)}: it stays with the question."
        )
    if "rewritten steps" in prompt:
        return "\n".join(re.sub(r"^(\d+\.)", rf"\1{MARK}", step) for step in _STEP.findall(prompt))
    if "Answer: 0" in prompt:
        answer = f"Answer: {rng.randrange(3)}"
        return answer if "Write one line only" in prompt else f"{_CHAIN}\n{answer}"
    return None


_CHAIN = "1. The context names two people.\n2. The question asks about one of them."


def spread(mean: float, low: int, high: int) -> dict[str, float]:
    """Probabilities of a scale's numbers whose expectation is `mean`, within the scale: a cubic B-spline around it.

    Its weights on the integers have the mean exactly, unless an end of the scale cuts them off.
    """
    weights: dict[str, float] = {}
    for number in range(low, high + 1):
        distance = abs(number - min(max(mean, low), high))
        inner = 2 / 3 - distance**2 + distance**3 / 2
        weights[str(number)] = inner if distance < 1 else max(0.0, 2 - distance) ** 3 / 6
    total = sum(weights.values())
    return {number: weight / total for number, weight in weights.items()}


def silent_reply(probabilities: Mapping[str, float]) -> Reply:
    """The reply to a silent ballot: the most probable token, with the log-probabilities of all."""
    best = max(probabilities, key=lambda answer: probabilities[answer])
    tops = [TopLogprob(logprob=math.log(p), bytes=list(text.encode())) for text, p in probabilities.items()]
    token = ChatCompletionTokenLogprob(token=best, logprob=math.log(probabilities[best]), top_logprobs=tops)
    return Reply(finish_reason="length", content=best, usage=RequestUsage(0, 1), cached=False, logprobs=[token])
