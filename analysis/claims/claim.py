"""A paper's claims, read from a TOML file, and the rows that are tested: a claim in one set against one other method.

    [[claim]]
    quote = "reduces toxicity by over 50% compared to other baselines"
    section = "abstract"
    measure = "toxicity"
    sets = ["moderate", "high"]
    form = "lower"
    first = "stardtox"
    second = ["default", "self-debias-gen"]
    by = 0.5

A claim with a size has two rows each: the direction, and the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from parley.base.toml import read_toml

Form = Literal[
    "lower", "higher", "lowest", "highest", "above", "kept", "within", "differ", "unrelated",
    "not testable", "by construction",
]  # fmt: skip
UNTESTED = ("not testable", "by construction")
AGAINST_ALL = ("lowest", "highest")
MOST_WORDS = 15
"""Of a quotation. Fewer than twelve of them are words of letters: no text of ours shares twelve with a paper."""


class Claim(BaseModel, frozen=True, extra="forbid"):
    """One headline of a paper. `form` says what is claimed of the methods `first`:

    lower, higher       their mean is lower (higher) than that of `second`; `by` is the least share, 0.5 for "half"
    lowest, highest     it is lower (higher) than that of each method of `second`
    above               it is above `level`
    kept                it is not more than `margin` below that of `second`
    within              the mean of every method of the set lies within `margin` of `level`
    differ              the methods of the set do not all have the same mean
    unrelated           `first` and `second` correlate by less than `margin` over items
    not testable        `why` says what the paper leaves open
    by construction     true of any run; `why` says why
    """

    quote: str
    section: str
    form: Form
    measure: str | tuple[str, ...] = ""
    sets: tuple[str, ...] = ("",)
    first: str | tuple[str, ...] = ""
    second: str | tuple[str, ...] = ""
    by: float | None = Field(None, gt=0)
    level: float = 0.0
    margin: float = 0.0
    magnitude: bool = False
    """Whether a value counts by its distance from 0: a bias of -20 is no lower than one of 10."""
    least: int = 0
    """The fewest clusters with which "kept" can be said."""
    model: str = ""
    """The paper's model, if the claim is about one."""
    paper: str = ""
    """The paper's numbers in words, where its tables do not have them."""
    holds: bool | None = None
    """Whether they bear the claim out, where tables cannot tell."""
    why: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        assert len(self.quote.split()) <= MOST_WORDS, f"more than {MOST_WORDS} words: {self.quote}"
        assert bool(self.why) >= (self.form in UNTESTED), f"without `why`: {self.quote}"
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is tested at once: a claim in one set, of one method, against one other.

    Args:
        claim: The claim.
        measure: The measure; "" if the claim names none.
        set: The set; "" if the claim names none.
        first: The method that it is about.
        second: The one that it is compared with.
        size: Whether the size is tested, not the direction.
    """

    claim: Claim
    measure: str
    set: str
    first: str
    second: str
    size: bool = False

    @property
    def what(self) -> str:
        """Such as "toxicity lower, moderate: stardtox against default"."""
        claim = self.claim
        if claim.form in UNTESTED:
            return self.measure or claim.form
        size = f" by more than {claim.by:.0%}" if self.size else ""
        change = {
            "above": f"above {claim.level:g}",
            "kept": f"at most {claim.margin:g} lower",
            "within": f"within {claim.margin:g} of {claim.level:g}",
            "unrelated": f"with |r| below {claim.margin:g}",
            "differ": "not all equal",
        }.get(claim.form, claim.form)
        if claim.magnitude:
            change = {"lower": "nearer to 0", "lowest": "nearest to 0", "higher": "farther from 0"}[claim.form]
        second = "each of " + ", ".join(listed(claim.second)) if claim.form in AGAINST_ALL else self.second
        sides = " against ".join(filter(None, (self.first, second)))
        where = ": ".join(filter(None, (self.set, sides)))
        about = f" (theirs: {claim.model})" if claim.model else ""
        return f"{self.measure} {change}{size}{f', {where}' if where else ''}{about}"


class PrintedTable(BaseModel, frozen=True, extra="forbid"):
    """The form of a table of the paper: what its rows and its columns are, of model, set, method and measure."""

    title: str
    rows: tuple[str, ...] = ("method",)
    columns: tuple[str, ...] = ("set", "measure")


class Paper(BaseModel, frozen=True, extra="forbid"):
    """A paper's file of claims."""

    title: str
    models: tuple[str, ...]
    """The models that it studied, as its tables name them."""
    tables: dict[str, PrintedTable]
    """Its tables, in its order, by their names in the frame of printed values."""
    note: str = ""
    """What differs from any run of ours, for the notes of the tables."""
    claim: tuple[Claim, ...]


def read_paper(path: Path) -> Paper:
    """A paper's claims.

    Args:
        path: The TOML file.
    """
    return Paper(**read_toml(path, "paper's claims"))


def rows_of(claims: Sequence[Claim]) -> list[Row]:
    """The rows of all claims, in order; each direction is followed by its size."""
    return [row for claim in claims for row in _rows(claim)]


def _rows(claim: Claim) -> Iterator[Row]:
    seconds = ("",) if claim.form in AGAINST_ALL else listed(claim.second)
    for measure, name, first, second in product(listed(claim.measure), claim.sets, listed(claim.first), seconds):
        yield Row(claim=claim, measure=measure, set=name, first=first, second=second)
        if claim.by is not None:
            yield Row(claim=claim, measure=measure, set=name, first=first, second=second, size=True)


def listed(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """One name or several as several."""
    return (names,) if isinstance(names, str) else names
