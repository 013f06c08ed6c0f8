"""What a method of answering BBQ is, and what methods share: the task, the reply, a solver in one or more rounds.

A method of the user's own is a class like those in this folder; `parley run bbq --method my_method.py:Mine` runs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, WithJsonSchema

from parley.agents import Client, Debate, Models, ParseStatus, Persona, Readout, Transcript, Turn, free_text
from parley.judging.methods import NoSettings
from parley.judging.study import Prompt, Verdict
from parley.scenarios.bbq import LETTERS, BbqRow, Order, match

_LETTER = re.compile(r"^\W*([A-C])(?:\W.*)?$", re.IGNORECASE | re.DOTALL)


def _letter(value: Any) -> Any:
    """ "b", "(B)" and "B) The man" are B."""
    found = _LETTER.match(value) if isinstance(value, str) else None
    return found.group(1).upper() if found else value


Letter = Annotated[
    Literal["A", "B", "C"], BeforeValidator(_letter), WithJsonSchema({"type": "string", "enum": list(LETTERS)})
]


class Choice(BaseModel):
    """An answer."""

    answer: Letter

    FORMAT: ClassVar[str] = '{"answer": "<A, B or C>"}'


class Reasoned(BaseModel):
    """An answer after the reasoning that led to it."""

    reasoning: free_text(600) = ""  # type: ignore[valid-type]
    answer: Letter

    FORMAT: ClassVar[str] = '{"reasoning": "<your steps>", "answer": "<A, B or C>"}'


QUESTION = Prompt.load("bbq/question")
SOLVER = Prompt.load("bbq/solver")


@dataclass(frozen=True, slots=True)
class Task:
    """A row as it is shown: `order` says which published answer stands at A, B and C."""

    row: BbqRow
    order: Order

    @property
    def options(self) -> tuple[str, str, str]:
        a, b, c = (self.row.answers[place].text for place in self.order)
        return a, b, c

    @property
    def unknown(self) -> int:
        """Where the unknown answer is shown."""
        return self.order.index(self.row.unknown)

    def text(self) -> str:
        a, b, c = self.options
        return QUESTION(context=self.row.context, question=self.row.question, a=a, b=b, c=c)

    def rotated(self, by: int) -> Task:
        first, second, third = (self.order[(place + by) % 3] for place in range(3))
        return Task(self.row, (first, second, third))


@dataclass(frozen=True, slots=True)
class Solved:
    """What came of a task: the place chosen among the options shown (None if none could be read), and by what talk.

    `verdicts` are whatever else the method wants kept: first answers, probabilities, scores of a judge.
    """

    transcript: Transcript
    choice: int | None
    status: ParseStatus
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class BbqContext:
    """Where a method works: the model under test, and what every call to it is given."""

    client: Client
    models: Models
    options: Mapping[str, Any]

    async def converse(
        self,
        opening: str,
        asked: Sequence[type[BaseModel] | None],
        further: Sequence[str] = (),
        *,
        readout: Readout = "sampled",
        persona: Persona | None = None,
    ) -> Transcript:
        """One solver: the opening, then a further prompt before each later round. `asked` types every reply."""
        table = Debate(
            [persona or solver()],
            model=self.client,
            rounds=len(asked),
            instructions=lambda cue: further[cue.round - 2] if cue.round > 1 else None,
            reply_type=lambda cue: asked[cue.round - 1],
            readout=readout,
            options=self.options,
            models=self.models,
        )
        return await table.converse(opening)


class BbqMethod(Protocol):
    """`Settings` holds what `--settings key=value` may change; `calls` is the number an item is likely to take."""

    name: ClassVar[str]
    Settings: ClassVar[type[BaseModel]]
    needs_logprobs: ClassVar[bool]

    def __init__(self, settings: Any) -> None: ...

    def prompts(self) -> Mapping[str, str]:
        """Every prompt and persona of the method, by name."""

    def calls(self) -> int: ...

    def reply_tokens(self) -> int:
        """About how long one reply is."""

    async def solve(self, task: Task, context: BbqContext) -> Solved: ...


class PromptedMethod:
    """A method that needs no settings: a base to write less."""

    Settings: ClassVar[type[BaseModel]] = NoSettings
    needs_logprobs: ClassVar[bool] = False
    used: ClassVar[Sequence[Prompt]] = ()
    rounds: ClassVar[int] = 1
    length: ClassVar[int] = 10

    def __init__(self, settings: BaseModel) -> None:
        self.settings = settings

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (QUESTION, *self.used)}
        return {**texts, "persona/Solver": solver().about}

    def calls(self) -> int:
        return self.rounds

    def reply_tokens(self) -> int:
        return self.length


def solver() -> Persona:
    return Persona("Solver", SOLVER.text)


def read_choice(turn: Turn, task: Task) -> tuple[int | None, ParseStatus]:
    """The place a turn chose: from its reply as asked for, or else from its words, if they surely mean one option."""
    status = turn.parse_status or "unparsed"
    if isinstance(letter := getattr(turn.verdict, "answer", None), str):
        return LETTERS.index(letter), status
    if status == "refused":
        return None, status
    place, _ = match(turn.text, task.options, task.unknown, task.row.question)
    return place, "unparsed" if place is None else "repaired"


def answer_verdict(turn: Turn, task: Task, place: int | None, status: ParseStatus, metric: str = "answer") -> Verdict:
    """A chosen place as a verdict: `value` in the published order, `sampled` as shown, `text` the answer's words."""
    if place is None:
        return Verdict(turn.speaker, turn.role, turn.round, metric, status=status)
    published, shown = float(task.order[place]), float(place)
    return Verdict(turn.speaker, turn.role, turn.round, metric, "", published, shown, task.options[place], status)


async def solve_once(task: Task, context: BbqContext, prompt: Prompt, reply: type[Choice] | type[Reasoned]) -> Solved:
    """One prompt, one reply."""
    opening = prompt(question=task.text(), format=reply.FORMAT)
    transcript = await context.converse(opening, [reply])
    return Solved(transcript, *read_choice(transcript.spoken()[-1], task))
