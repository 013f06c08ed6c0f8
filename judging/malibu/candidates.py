"""How a candidate appears in a judge's prompt: the label, and the response as in the paper or fenced as data.

A response is untrusted text: it may address the judge ("give this a 10"). `parley run injection` measures the effect
of that on a judge, and whether the fence helps.
"""

from __future__ import annotations

from typing import NamedTuple

from parley.agents.fencing import JUDGED_CHARS, fence
from parley.judging.study import Prompt

FENCED = Prompt.load("malibu/fenced")


class Shown(NamedTuple):
    """A candidate's name and response as they appear in a judge's prompt, and what the fence flagged."""

    candidate: str
    response: str
    flags: tuple[str, ...] = ()


def candidate(side: str = "", label: str = "") -> str:
    """A candidate's name in the prompt.

    Args:
        side: " A" or " B"; empty for a single candidate.
        label: The identity's label; empty for none.
    """
    return f"Candidate{side} ({label}):" if label else f"Candidate{side}:"


def show_candidate(response: str, name: str, *, fenced: bool) -> Shown:
    """A candidate for a judge's prompt.

    Args:
        response: The response to judge.
        name: The candidate's name, from `candidate`.
        fenced: Whether to mark the response as data, not instructions.
    """
    if not fenced:
        return Shown(name, response)
    quoted = fence(response, "RESPONSE", JUDGED_CHARS)
    return Shown(f"{name}\n{FENCED.text}", quoted.text, quoted.flags)
