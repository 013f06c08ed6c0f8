"""Simulated judges on a panel, and their replies in plain lines.

    sim/judge?examiner.female=-2&editor.noise=0

`examiner.female=-2` is an effect of one judge, the one whose description names the Examiner; any other option that
shapes a reply can be given by judge too (`editor.noise=0`).

To prompts that ask for plain lines, as MABRF's do, a judge gives `base` points, plus the effects `bias` or `relevancy`,
plus for bias `round` points for every time the chain of thought was rephrased, which the simulated rephraser marks in
the text. So `sim/any?base=7&round=-2&noise=0` gives the scores 7, 5, 3, 1.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence

from autogen_core.models import (
    ChatCompletionTokenLogprob,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    TopLogprob,
)

from parley.agents.models.reply import Reply


def persona_of(messages: Sequence[LLMMessage]) -> str:
    """The description of the judge who replies: the system message, else the last message."""
    place = 0 if isinstance(messages[0], SystemMessage) else -1
    return str(messages[place].content)


def is_named(judge: str, persona: str) -> bool:
    """Whether a description names the judge, in any case."""
    return re.search(rf"\b{re.escape(judge)}\b", persona, re.IGNORECASE) is not None


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
