"""What MALIBU varies: an answer or two, under labels, as judges are shown them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from parley.judging.grid import compared, repeats, varies

SILENT, TALK = "silent", "talk"
"""Stages of a unit: silent ballots alone, or silent ballots and then the debate."""
GRADED = 3
"""The phase in which graded responses are read, without labels; 1 is single responses, 2 pairs."""
BLIND = 1
"""The round of talking units that is their primary ballot: reasons are given, and nobody has been heard."""
NUMBERED = {"1": "text 1", "2": "text 2"}


@dataclass(frozen=True, kw_only=True)
class MalibuCell:
    """One conversation: on a response, on two, or on a graded one. What it does not have is None."""

    base: str = varies("text", "{}")
    scenario: str = varies("text", "{}")
    identity: str = varies("identity", "{}", default="")
    other: str | None = varies("identity", label="other identity", default=None)
    identity_a: str | None = varies("identity", "A {}", default=None)
    identity_b: str | None = varies("identity", "B {}", default=None)
    flaw: str | None = varies(title="{} flaw", words={"": "no"}, default=None)
    dose: int | None = varies(title="dose {}", silent="0", default=None)
    order: int | None = varies("order", "order {}", silent="0", words={"0": "as planned", "1": "swapped"}, default=None)
    assignment: int | None = varies(
        "technical", "answers {}", silent="0", words={"0": "as written", "1": "exchanged"}, default=None
    )
    stage: str | None = varies(title="{}", silent=SILENT, words={TALK: "debate"}, default=None)
    control: str = varies(title="control: {}", default="")
    repeat: int = repeats()
    phase: int = varies("part", words={"1": "single answers", "2": "pairs", "3": "graded answers"})
    wording: str | None = varies("varied", default=None)
    model: str = compared()
    question: str | None = varies("technical", label="question wording", default=None)
    response_a: int | None = varies("technical", label="text of A", words=NUMBERED, default=None)
    response_b: int | None = varies("technical", label="text of B", words=NUMBERED, default=None)
    category: str = ""
    scale: str | None = None
    heard: str | None = varies(title="hearing ballots on {}", label="heard ballots on", default=None)

    @property
    def id(self) -> str:
        """The id of its unit, but for the model."""
        design = {SILENT: "s", TALK: "t"}.get(self.stage or "", "p")
        if self.flaw is not None:
            return f"{design}{GRADED}/{self.base}/" + (f"{self.flaw}-{self.dose}" if self.flaw else "good")
        labels = self.identity or "none"
        if self.other is not None:
            labels += f"-{self.other or 'none'}/a{self.assignment}o{self.order}"
        name = f"{design}{self.phase}/{self.scenario}/{labels}" + f"/r{self.repeat}" * (self.stage != SILENT)
        return name + "/heard" * (self.heard not in (None, "", self.identity))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they are shown."""
        return (self.identity,) if self.other is None else (self.identity_a or "", self.identity_b or "")

    @property
    def responses(self) -> tuple[int, ...]:
        """The numbers of the responses, in the order in which they are shown."""
        return tuple(number for number in (self.response_a, self.response_b) if number) or (1,)


def sides(x: str, y: str, assignment: int, order: int) -> dict[str, Any]:
    """What a pair's cell says of its sides: who is shown where, with which response.

    Args:
        x: The first identity's label.
        y: The second's.
        assignment: 0 gives response 1 to x, 1 gives it to y.
        order: 0 shows x first, 1 shows y first.
    """
    first, second = (x, 1 + assignment), (y, 2 - assignment)
    (label_a, response_a), (label_b, response_b) = (second, first) if order else (first, second)
    return {
        "identity": x,
        "other": y,
        "identity_a": label_a,
        "identity_b": label_b,
        "response_a": response_a,
        "response_b": response_b,
        "assignment": assignment,
        "order": order,
    }
