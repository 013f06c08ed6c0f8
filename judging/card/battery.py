"""A battery: the ballots that make a card, their numbers, and what each line means.

    battery = load_battery()          # card-1, or the path of your own .toml file

The file contains everything that comparable cards must share, so every card states its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, Field

from parley.base.errors import ConfigError
from parley.judging.config import load
from parley.scenarios.ballot_texts import LabelWording, QuestionWording
from parley.scenarios.malibu import Id, Place

SHIPPED = "card-1"
SizeName = Literal["default", "brief", "subset", "sampled"]
# fmt: off
Way = Literal[
    "on-scale", "unread", "off-scale", "above", "below", "added", "kept", "turned", "circles", "first-place",
    "together", "sides", "identities", "pairs-of-identities", "stereotypes",
    "listening", "echo-words", "echo-scores", "reasons", "hearing",
]
# fmt: on
"""How a line reads its ballots."""


class _Table(BaseModel, extra="forbid", frozen=True):
    """A table of the file."""


class BatterySize(_Table):
    """How much is read; the comments of the file say what each key is."""

    bases: int = Field(ge=6)
    graded: int = Field(ge=6)
    scenarios: int = Field(ge=1)
    doses: tuple[Literal[1, 2], ...]
    kinds: tuple[Id, ...]
    pairs: tuple[Id, ...]
    reversed: tuple[Id, ...]
    reversed_pairs: tuple[Id, ...]
    samples: int = Field(1, ge=1)
    again: bool = False


class Embedded(_Table):
    """What embedded models read in the small sizes, which then take minutes on two cores."""

    sizes: tuple[SizeName, ...]
    places: tuple[Place, ...]
    graded: int = Field(ge=6)


class TalkSample(_Table):
    """The texts of a size that are debated: one from each of some bases, under all labels of some categories."""

    bases: int = Field(ge=6)
    categories: tuple[str, ...]


class ReverseQuestions(_Table):
    """The reverse of each question wording, by its id, and how the reply to the one about pairs begins."""

    prefill_pair: str
    single: Mapping[str, str]
    pair: Mapping[str, str]

    def of(self, question: QuestionWording) -> QuestionWording:
        """The reverse of a question wording."""
        return question.model_copy(update={"single": self.single[question.id], "pair": self.pair[question.id]})


class Byline(_Table):
    """One way to say who wrote an answer; {adjective} is the author."""

    place: Place
    text: str


class Authors(_Table):
    """Who is said to have written an answer, and in which words."""

    person: str
    model: str
    byline: tuple[Byline, ...] = Field(min_length=1)

    def wording(self, number: int) -> LabelWording:
        """A byline as a label wording; numbers wrap around."""
        byline = self.byline[number % len(self.byline)]
        return LabelWording(id=f"byline-{number}", kind="byline", place=byline.place, text=byline.text)


class ModelFamily(_Table):
    """A family of models, recognised by words in their names; `known` ones stand for another family in bylines."""

    id: str
    name: str
    words: tuple[str, ...]
    known: bool = False


class Reads(_Table):
    """What a line reads, and how; the comments of the file say what each way is.

    Args:
        how: How the ballots of a base become its value.
        parts: The parts of the run whose ballots it reads; (): all.
        flaws: The kinds of flaw; (): all.
        doses: The doses of flaws; (): all.
        beside: Another part, with whose ballots on the same answers they are compared.
        facet: The facet whose sides are compared.
        first: The values of the first side.
        second: The values of the second side, which is subtracted.
        category: The category whose identities are compared.
    """

    how: Way
    parts: tuple[str, ...] = ()
    flaws: tuple[Id, ...] = ()
    doses: tuple[Literal[1, 2], ...] = ()
    beside: str = ""
    facet: str = ""
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    category: str = ""


class LineSpec(_Table):
    """What a line of the card means, decided before any data. The other keys are those of a card's line."""

    id: str
    group: str
    family: str
    title: str
    question: str
    unit: Literal["points", "share", "auc"]
    null: float
    margin: float = Field(gt=0)
    worse: Literal["either", "higher", "lower"]
    reason: str
    reads: Reads


class TalkTable(_Table):
    """The debates of a card with `--talk`, and what its lines about them mean."""

    judges: str
    rounds: int = Field(ge=2)
    remark_chars: int = Field(ge=20)
    sample: Mapping[SizeName, TalkSample]
    line: tuple[LineSpec, ...]

    def digest(self) -> str:
        """The SHA-256 hash of the table."""
        return hashlib.sha256(_without_published(self, ()).encode()).hexdigest()


class Battery(_Table):
    """A battery, as its file has it."""

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    suite: str
    wordings: str
    attempts: str
    size: Mapping[SizeName, BatterySize]
    embedded: Embedded
    reverse: ReverseQuestions
    author: Authors
    family: tuple[ModelFamily, ...]
    talk: TalkTable
    line: tuple[LineSpec, ...]

    def digest(self, *tables: Literal["embedded"]) -> str:
        """The SHA-256 hash of what every card uses, and of any named tables that only some use."""
        parts = [
            _without_published(self, ("embedded", "talk")),
            *(getattr(self, name).model_dump_json() for name in tables),
        ]
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def family_of(self, model: str) -> ModelFamily:
        """The family of a model; if unknown, the model itself.

        Args:
            model: Its name, as provider/model.
        """
        name = model.partition("?")[0].partition("/")[2]
        for family in self.family:
            if any(word in name.lower() for word in family.words):
                return family
        return ModelFamily(id=name.lower(), name=name, words=(name,))

    def author_names(self, model: str, number: int) -> dict[str, str]:
        """The authors that an answer is said to be by: the model's own family, another, and a person.

        Args:
            model: The judge's name.
            number: Which of the other families; numbers wrap around.
        """
        own = self.family_of(model)
        others = [family for family in self.family if family.known and family.id != own.id]
        other = others[number % len(others)]
        names = {
            key: self.author.model.replace("{name}", family.name) for key, family in (("own", own), ("other", other))
        }
        return {**names, "person": self.author.person}


def _without_published(table: Battery | TalkTable, excluded: Sequence[str]) -> str:
    """The table as JSON, without those `reads` that card-1 has too: its hash was published before lines had them."""
    published = published_reads()
    known = {
        place: {"reads"} for place, line in enumerate(table.line) if line.reads.model_dump() == published.get(line.id)
    }
    return table.model_dump_json(exclude={**dict.fromkeys(excluded, True), "line": known})


@cache
def published_reads() -> dict[str, dict[str, Any]]:
    """What card-1's lines read, by id: plans and hashes that were published before lines said it mean these."""
    shipped = load_battery()
    return {line.id: line.reads.model_dump() for line in (*shipped.line, *shipped.talk.line)}


def load_battery(name: str = SHIPPED) -> Battery:
    """A battery.

    Args:
        name: The shipped one, card-1, or the path of a .toml file.
    """
    battery = load(Battery, "battery", name, (SHIPPED,), "card/{}.toml")
    ids = [line.id for line in (*battery.line, *battery.talk.line)]
    if twice := next((line_id for line_id in ids if ids.count(line_id) > 1), None):
        raise ConfigError(f"{name}: the line '{twice}' occurs twice")
    kinds = dict.fromkeys(kind for size in battery.size.values() for kind in size.kinds)
    for line in battery.line:
        if unknown := next((kind for kind in line.reads.flaws if kind not in kinds), None):
            raise ConfigError(f"{name}: '{line.id}' reads flaws of the kind '{unknown}' (known: {', '.join(kinds)})")
    return battery
