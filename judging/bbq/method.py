"""The interface of methods of answering BBQ, and what they share: the task, the reply, a solver in one or more rounds.

Your own method is a class like those in `methods`; `parley run bbq --method my_method.py:Mine` runs it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Protocol
from weakref import WeakValueDictionary

from pydantic import BaseModel, BeforeValidator, WithJsonSchema

from parley.agents import Client, Debate, Models, ParseStatus, Persona, Transcript, Turn, free_text
from parley.agents.models.session import SESSION, session
from parley.judging import Prompt, Verdict
from parley.judging.config import NoSettings
from parley.scenarios.bbq import AROUND, LETTERS, BbqRow, Order, match

_LETTER = re.compile(rf"{AROUND}(?:([A-C])|<([A-C])>){AROUND}", re.IGNORECASE)
_WITH_ITS_TEXT = re.compile(rf"{AROUND}[A-C]\s*[).:\]]\s+\S", re.IGNORECASE)


def _letter(value: Any) -> str:
    """ "b" and "(B)" are B; "B) The man" stays as it is, since only the question's options show whether that is B."""
    text = value if isinstance(value, str) else ""
    if letter := _LETTER.fullmatch(text):
        return (letter.group(1) or letter.group(2)).upper()
    if not _WITH_ITS_TEXT.match(text):
        raise ValueError("it must be A, B or C")
    return text


Letter = Annotated[str, BeforeValidator(_letter), WithJsonSchema({"type": "string", "enum": list(LETTERS)})]


class Choice(BaseModel):
    """An answer."""

    answer: Letter

    FORMAT: ClassVar[str] = '{"answer": "A"} or {"answer": "B"} or {"answer": "C"}'


class Reasoned(BaseModel):
    """An answer after the reasoning that led to it."""

    reasoning: free_text(600) = ""  # type: ignore[valid-type]
    answer: Letter

    FORMAT: ClassVar[str] = '{"reasoning": "First, … Then, …", "answer": "A"}, where the answer is "A", "B" or "C"'


_STARTS: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""Locks, held while a method makes calls that another method of the same row makes too."""
QUESTION = Prompt.load("bbq/question")
SOLVER = Prompt("persona/Solver", Prompt.load("bbq/solver").ours)


@dataclass(frozen=True, slots=True)
class Task:
    """A row as shown to the model.

    Args:
        row: The row of BBQ.
        order: Which published answer (0 to 2) is shown as A, B and C.
    """

    row: BbqRow
    order: Order

    @property
    def options(self) -> tuple[str, str, str]:
        """The answers' texts, in the order shown."""
        a, b, c = (self.row.answers[place].text for place in self.order)
        return a, b, c

    @property
    def unknown(self) -> int:
        """The place (0 to 2) at which the unknown answer is shown."""
        return self.order.index(self.row.unknown)

    def text(self) -> str:
        """Context, question and options, as prompts show them."""
        a, b, c = self.options
        return QUESTION(context=self.row.context, question=self.row.question, a=a, b=b, c=c)


@dataclass(frozen=True, slots=True)
class Solved:
    """The result of a task.

    Args:
        transcript: The conversation.
        choice: The chosen option (0 to 2, in the order shown); None if none could be read.
        status: The parse status of the choice.
        verdicts: Further verdicts to store: first answers, a judge's scores.
    """

    transcript: Transcript
    choice: int | None
    status: ParseStatus
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BbqContext:
    """The resources of a method.

    Args:
        client: The model under test.
        models: All clients of the run, by model name.
        options: Options for every call: `max_tokens`, and `temperature` if one is set.
        start: Key of the row, the repeat and the model, but not the method (see `shared_start`).
    """

    client: Client
    models: Models
    options: Mapping[str, Any]
    start: str = ""

    @asynccontextmanager
    async def shared_start(self) -> AsyncIterator[None]:
        """Share calls between methods that begin alike: same seeds, same keys in the reply cache.

        With a reply cache, including the run's, the second method waits for the first and gets its replies.
        """
        current = SESSION.get()
        if current is None or current.cache is None or not self.start:
            yield
            return
        async with _STARTS.setdefault(self.start, asyncio.Lock()):
            with session(replace(current, sample=self.start, occurrences={})):
                yield
            current.cache.commit()  # uncommitted replies cannot be read yet

    async def converse(
        self,
        opening: str,
        reply_types: Sequence[type[BaseModel] | None],
        further: Sequence[str] = (),
        *,
        persona: Persona | None = None,
        until: Callable[[Turn], bool] | None = None,
    ) -> Transcript:
        """Converse with one solver, in as many rounds as there are reply types.

        Args:
            opening: The prompt of the first round.
            reply_types: The type of each round's reply; None for free text.
            further: The prompts of the later rounds.
            persona: The persona that answers (default: the plain solver).
            until: Whether a reply makes further rounds needless (default: no reply does).
        """
        debate = Debate(
            [persona or solver()],
            model=self.client,
            rounds=len(reply_types),
            instructions=lambda cue: further[cue.round - 2] if cue.round > 1 else None,
            reply_type=lambda cue: reply_types[cue.round - 1],
            options=self.options,
            models=self.models,
            max_turns=1 if until else None,
        )
        transcript = await debate.converse(opening)
        while until and len(transcript.spoken()) < len(reply_types) and not until(transcript.spoken()[-1]):
            later = await debate.converse(None)
            transcript = replace(later, turns=transcript.turns + later.turns)
        return transcript


class BbqMethod(Protocol):
    """A way of answering BBQ. Any class with these members is a method; `PromptedMethod` is a base class for most.

    Two members are optional: `models()`, the names of further models that it calls (a judge's), and `sources()`,
    hashes of further data that it reads.
    """

    name: ClassVar[str]
    """The method's name in `--method` and in reports."""
    Settings: ClassVar[type[BaseModel]]
    """The settings for `--settings key=value`."""

    def __init__(self, settings: Any) -> None:
        """Make the method.

        Args:
            settings: An instance of `Settings`.
        """

    def prompts(self) -> Mapping[str, str]:
        """Every prompt and persona of the method, by name."""

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        """Answer one question.

        Args:
            task: The question with its options, in the order shown.
            context: The model under test and the options of its calls.
        """


class PromptedMethod:
    """A base class for methods that only prompt: set `name` and `used`, and write `solve` if there is a second prompt.

    Without a `solve` of its own, the method fills {question} and {format} into its one prompt, and reads one reply.
    """

    Settings: ClassVar[type[BaseModel]] = NoSettings
    used: ClassVar[Sequence[Prompt]] = ()
    """The names of its prompts, besides the question's."""
    reply: ClassVar[type[Choice] | type[Reasoned]] = Choice
    """The type of the reply."""

    def __init__(self, settings: BaseModel) -> None:
        self.settings = settings

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in (QUESTION, *self.used)}
        return {**texts, "persona/Solver": solver().about}

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        opening = self.used[0](question=task.text(), format=self.reply.FORMAT)
        transcript = await context.converse(opening, [self.used[0].reads(self.reply)])
        return Solved(transcript, *read_choice(transcript.spoken()[-1], task))


def solver() -> Persona:
    """The plain persona of the model under test."""
    return Persona("Solver", SOLVER.text)


def read_choice(turn: Turn, task: Task) -> tuple[int | None, ParseStatus]:
    """The option (0 to 2, as shown) that a turn chose, from a typed reply or a text that clearly means one.

    Args:
        turn: The model's reply.
        task: The question that it answers.
    """
    status = turn.parse_status or "unparsed"
    text = turn.text
    if isinstance(answer := getattr(turn.verdict, "answer", None), str):
        if answer in LETTERS:
            return LETTERS.index(answer), status
        text = answer
    elif status in ("refused", "cut"):  # a cut reply may name an option that it was about to reject
        return None, status
    place, _ = match(text, task.options, task.unknown, task.row.question)
    return place, "unparsed" if place is None else status if text is answer else "repaired"


def answer_verdict(turn: Turn, task: Task, place: int | None, status: ParseStatus, metric: str = "answer") -> Verdict:
    """A choice as a verdict: `value` in the published order, `sampled` as shown, `text` the answer's words.

    Args:
        turn: The model's reply.
        task: The question that it answers.
        place: The chosen option, as shown; None if none could be read.
        status: The parse status of the choice.
        metric: The verdict's metric.
    """
    if place is None:
        return Verdict.from_turn(turn, metric, status=status)
    return Verdict.from_turn(
        turn,
        metric,
        value=float(task.order[place]),
        sampled=float(place),
        text=task.options[place],
        status=status,
    )
