"""The questions of a silent referee: about one text or about two, in several wordings, each with its reverse.

questions = load_questions()
questions.ballot("statement", [text], wording="biased", subject="people's age")
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from parley.agents import SilentBallot
from parley.base.problems import UserFile
from parley.judging.ballots import PREFERRED
from parley.scenarios.templates import fill

BIAS = "bias"
"""The metric of a ballot about one text."""
TextKindName = Literal["statement", "answer", "text"]


class _Table(BaseModel, extra="forbid", frozen=True):
    """A table of the file."""


class RefereeWording(_Table):
    """One way to ask: about one text and about two, and the reverse of both."""

    id: str
    question: str
    reverse: str
    pair: str
    reverse_pair: str


class TextKind(_Table):
    """How texts of one kind are shown, and in which wordings they are asked about."""

    single: str
    pair: str
    prefill_pair: str
    prefill_reverse_pair: str
    wording: tuple[RefereeWording, ...] = Field(min_length=2)


class RefereeQuestions(_Table):
    """The whole file; its comments say what each key is."""

    schema_version: Literal[1] = Field(alias="schema")
    version: str
    low: int
    high: int
    prefill: str
    padding: str
    kind: Mapping[TextKindName, TextKind]

    def digest(self) -> str:
        """The SHA-256 hash of everything in the file."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def prompts(self) -> Iterator[tuple[str, str]]:
        """Every text that prompts are made of, by name."""
        for name, kind in self.kind.items():
            yield f"referee/{name}/single", kind.single
            yield f"referee/{name}/pair", kind.pair
            for wording in kind.wording:
                for key, text in wording.model_dump(exclude={"id"}).items():
                    yield f"referee/{name}/{wording.id}/{key}", text

    def wordings(self, kind: TextKindName) -> tuple[str, ...]:
        """The ids of a kind's wordings."""
        return tuple(wording.id for wording in self.kind[kind].wording)

    def ballot(
        self,
        kind: TextKindName,
        texts: Sequence[str],
        *,
        wording: str,
        subject: str = "",
        context: str = "",
        reverse: bool = False,
        samples: int = 1,
    ) -> SilentBallot:
        """The ballot about one text (how biased is it?) or about two (which is more biased?).

        Args:
            kind: What the texts are.
            texts: One text, or two that are shown as A and B.
            wording: The id of the wording.
            subject: What the bias is about: "people's age".
            context: The question, where the texts are answers.
            reverse: Whether to ask the reverse: how fair is it, or which is fairer?
            samples: How often a model without log-probabilities is asked.
        """
        shown = self.kind[kind]
        words = next(row for row in shown.wording if row.id == wording)
        values = {"subject": subject, "low": str(self.low), "high": str(self.high)}
        if len(texts) == 1:
            question = fill(words.reverse if reverse else words.question, values)
            return SilentBallot(
                question=fill(shown.single, {"text": texts[0], "context": context, "question": question}),
                metric=BIAS,
                low=self.low,
                high=self.high,
                prefill=self.prefill,
                samples=samples,
            )
        question = fill(words.reverse_pair if reverse else words.pair, values)
        first, second = texts
        return SilentBallot(
            question=fill(shown.pair, {"first": first, "second": second, "context": context, "question": question}),
            metric=PREFERRED,
            choices=("A", "B"),
            prefill=shown.prefill_reverse_pair if reverse else shown.prefill_pair,
            samples=samples,
        )


@lru_cache(maxsize=1)
def load_questions() -> RefereeQuestions:
    """The shipped questions."""
    file = UserFile.read(Path(str(files("parley.judging").joinpath("rldf", "questions.toml"))), "file of questions")
    questions = file.validate(RefereeQuestions)
    file.refuse()
    assert questions is not None
    return questions
