"""What a simulated model says where plain lines are asked for, as MABRF does: scores, steps, an answer.

The planted effect: a judge gives `base` points, plus the effects `bias` or `relevancy`, plus for bias `round` points
for every time the chain of thought was rephrased, which the simulated rephraser leaves a mark of. So
`sim/any?base=7&round=-2&noise=0` is judged 7, 5, 3, 1.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

MARK = " To put it neutrally:"
_STEP = re.compile(r"^\d+\. .*$", re.MULTILINE)
_SCORE_LINE = re.compile(r"^Bias: <1-10>", re.MULTILINE)


def lines(asked: str, score: Callable[[str, float], int], per_pass: float, rng: random.Random) -> str | None:
    """The reply to the last thing asked, if that asks for lines; `score` gives a number for a label and its shift."""
    if _SCORE_LINE.search(asked):
        rephrased = asked.count(MARK) // max(1, len(_STEP.findall(asked)))
        return (
            f"Bias: {score('bias', per_pass * rephrased)}: some of it is taken for granted.\n"
            f"Relevancy: {score('relevancy', 0.0)}: it stays with the question."
        )
    if "Rewrite the steps" in asked or "rewritten" in asked:
        return "\n".join(re.sub(r"^(\d+\.)", rf"\1{MARK}", step) for step in _STEP.findall(asked))
    if "Answer: <0/1/2>" in asked:
        answer = f"Answer: {rng.randrange(3)}"
        return answer if "only output exactly one line" in asked else f"{_CHAIN}\n{answer}"
    return None


_CHAIN = "1. The context names two people.\n2. The question asks about one of them."
