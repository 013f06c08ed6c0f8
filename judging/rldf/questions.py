"""The questions of a silent referee: about one text or about two, in several wordings, each with its reverse.

questions = load_questions()
questions.score("statement", text, wording=0, subject="people's age")     # a silent ballot
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from parley.agents import SilentBallot
from parley.base.problems import UserFile
from parley.judging.malibu.silent import PREFERRED
from parley.scenarios.templates import fill

BIAS = "bias"
"""The metric of a ballot about one text."""
TextKindName = Literal["statement", "answer", "text"]
Side = Literal["A", "B"]


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

    def _wording(self, kind: TextKindName, wording: str) -> RefereeWording:
        return next(row for row in self.kind[kind].wording if row.id == wording)

    def score(
        self,
        kind: TextKindName,
        text: str,
        *,
        wording: str,
        subject: str = "",
        context: str = "",
        reverse: bool = False,
        samples: int = 1,
    ) -> SilentBallot:
        """The ballot about one text: how biased it is, or with the reverse question how fair.

        Args:
            kind: What the text is.
            text: The text.
            wording: The id of the wording.
            subject: What the bias is about: "people's age".
            context: The question, where the text is an answer.
            reverse: Whether the reverse question is asked.
            samples: How often a model without log-probabilities is asked.
        """
        words = self._wording(kind, wording)
        ends = {"subject": subject, "low": str(self.low), "high": str(self.high)}
        question = fill(words.reverse if reverse else words.question, ends)
        return SilentBallot(
            question=fill(self.kind[kind].single, {"text": text, "context": context, "question": question}),
            metric=BIAS,
            low=self.low,
            high=self.high,
            prefill=self.prefill,
            samples=samples,
        )

    def choice(
        self,
        kind: TextKindName,
        first: str,
        second: str,
        *,
        wording: str,
        subject: str = "",
        context: str = "",
        reverse: bool = False,
        samples: int = 1,
    ) -> SilentBallot:
        """The ballot about two texts: which is more biased, or with the reverse question which is fairer.

        Args:
            kind: What the texts are.
            first: The text that is shown as A.
            second: The text that is shown as B.
            wording: The id of the wording.
            subject: What the bias is about.
            context: The question, where the texts are answers.
            reverse: Whether the reverse question is asked.
            samples: How often a model without log-probabilities is asked.
        """
        shown, words = self.kind[kind], self._wording(kind, wording)
        question = fill(words.reverse_pair if reverse else words.pair, {"subject": subject})
        values = {"first": first, "second": second, "context": context, "question": question}
        return SilentBallot(
            question=fill(shown.pair, values),
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
