"""A simulated model's replies to prompts that ask for plain lines, as MABRF does: scores, steps, an answer.

The planted effect: a judge gives `base` points, plus the effects `bias` or `relevancy`, plus for bias `round` points
for every time the chain of thought was rephrased, which the simulated rephraser marks in the text. So
`sim/any?base=7&round=-2&noise=0` gives the scores 7, 5, 3, 1.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

MARK = " To put it neutrally:"
_STEP = re.compile(r"^(?:> )?\d+\. .*$", re.MULTILINE)
"""A step, quoted or not: the judge reads them between fences."""
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
    if "Rewrite the steps" in prompt or "rewritten" in prompt:
        return "\n".join(re.sub(r"^(\d+\.)", rf"\1{MARK}", step) for step in _STEP.findall(prompt))
    if "Answer: 0" in prompt:
        answer = f"Answer: {rng.randrange(3)}"
        return answer if "only output exactly one line" in prompt else f"{_CHAIN}\n{answer}"
    return None


_CHAIN = "1. The context names two people.\n2. The question asks about one of them."
