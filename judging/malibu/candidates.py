"""How a judge is shown a candidate: the label, and the response as the paper has it or fenced as data.

A response is untrusted text: whoever wrote it may have written to the judge ("give this a 10"). `parley run injection`
measures what that does to a judge, and whether the fence helps.
"""

from __future__ import annotations

from typing import NamedTuple

from parley.agents.fencing import fence
from parley.judging.study import Prompt

FENCED = Prompt.load("malibu/fenced")
MOST_CHARS = 100_000
"""Of a fenced response; what is judged must not be cut short."""


class Shown(NamedTuple):
    """What stands for the candidate and for the response in a judge's prompt, and what the fence flagged."""

    candidate: str
    response: str
    flags: tuple[str, ...] = ()


def candidate(side: str = "", label: str = "") -> str:
    """A candidate's name: " A", " B" or "" for a single one, and the label if there is one."""
    return f"Candidate{side} ({label}):" if label else f"Candidate{side}:"


def show_candidate(response: str, name: str, *, fenced: bool) -> Shown:
    if not fenced:
        return Shown(name, response)
    quoted = fence(response, "RESPONSE", MOST_CHARS)
    return Shown(f"{name}\n{FENCED.text}", quoted.text, quoted.flags)
