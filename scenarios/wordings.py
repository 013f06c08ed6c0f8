"""Wordings of a label: as it is ("female"), a noun phrase ("a woman"), a first name, or pronouns ("she/her").

    load_wordings().choices("name", "black", select(["black", "white"]))    # {"female": ("Aisha", …), "male": (…)}

The words are in `data/labels/wordings-1.toml`, names with the publication that their list is from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from parley.base.errors import ScenarioError
from parley.base.toml import read_toml
from parley.scenarios.identities import Identities

LabelStyle = Literal["plain", "noun", "name", "pronoun"]

_AN = re.compile(
    r"""
    (?:hour|honest|honou?r|heir)                # the h is silent
    | 8 | 1[18](?!\d) | 1[18](?=,?\d{3}(?!\d))   # eight, eleven, eighteen, eleven thousand
    | (?-i:[AEFHILMNORSX](?:[A-Z]+\b|-|$))       # letters that are read out: an LGBT person, an F
    | (?!eu|ewe|one\b|once\b|u(?:ni(?!n|m)|biq|s[eu]|top|kr|rug|ga)|(?-i:U[A-Z]*\b))[aeiouàáâäåæèéêëìíîïòóôöøœùúûü]
    """,
    re.IGNORECASE | re.VERBOSE,
)


def article(phrase: str) -> str:
    """The English indefinite article by the sound that a phrase begins with: "an atheist", "an 18-year-old", "a user".

    Args:
        phrase: What follows the article; quotation marks at its beginning do not count.
    """
    return "an" if _AN.match(phrase.lstrip("“”\"'‘’([ ")) else "a"


PLACEHOLDER = re.compile(r"\{(\w+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders filled in; `{a}` and `{A}` become the article of what follows.

    `{Noun}` is the value of `noun` with a capital letter. Braces in values stay as they are: an answer may contain
    them. Raises KeyError for a placeholder without a value.

    Args:
        template: The text.
        values: The value of each placeholder.
    """
    pieces = PLACEHOLDER.split(template)  # text, key, text, key, …, text
    text = pieces[-1]
    for literal, key in zip(pieces[-3::-2], pieces[-2::-2], strict=True):  # from the end: an article needs what follows
        if key in values:
            value = values[key]
        elif key in ("a", "A"):
            value = article(text)
            value = value.capitalize() if key == "A" else value
        else:
            value = values[form_key(key)]
            value = value[:1].upper() + value[1:]
        text = f"{literal}{value}{text}"
    return text


def form_key(key: str) -> str:
    """The value's name that a placeholder stands for: "noun" for {Noun}."""
    return key[:1].lower() + key[1:]


class NameList(BaseModel, extra="forbid", frozen=True):
    """First names that are associated with an identity.

    Args:
        of: The identity; several where a name signals several at once.
        source: Key of the publication.
        list: The names.
    """

    of: tuple[str, ...]
    source: str
    list: tuple[str, ...]


class LabelWordings(BaseModel, extra="forbid", frozen=True):
    """The words for labels.

    Args:
        schema_version: Of the file.
        name: Of the file.
        version: Of its contents.
        sources: Publications by key.
        nouns: What someone of an identity is: "woman".
        adjectives: What stands before the noun: "Black".
        pronouns: How someone of an identity is referred to.
        names: Lists of first names.
    """

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    sources: Mapping[str, str]
    nouns: Mapping[str, str]
    adjectives: Mapping[str, str]
    pronouns: Mapping[str, str]
    names: tuple[NameList, ...]

    def digest(self) -> str:
        """A hash of everything that may be shown."""
        return hashlib.sha256(self.model_dump_json(exclude={"sources"}).encode()).hexdigest()

    def choices(self, style: LabelStyle, label: str, identities: Identities) -> Mapping[str, tuple[str, ...]]:
        """What may be shown in place of a label; nothing if there are no such words for it.

        The words are by what else they signal: black people's names by gender. Only what the words for all identities
        of the category have is there, so that two identities can be compared with all else alike.

        Args:
            style: How labels are worded.
            label: The identity's label.
            identities: The labels of the run.
        """
        if style == "plain":
            return {"": (label,)}
        parts = identities.parts.get(label, (label,))
        if style == "name":
            return self._names(label, identities)
        words = self._noun(parts) if style == "noun" else self.pronouns.get(label, "")
        return {"": (words,)} if words else {}

    def without(self, style: LabelStyle, identities: Identities) -> list[str]:
        """The labels that a style has no words for."""
        return [label for label in identities if not self.choices(style, label, identities)]

    def _noun(self, parts: tuple[str, ...]) -> str:
        nouns = [self.nouns[part] for part in parts if part in self.nouns]
        adjectives = [self.adjectives[part] for part in parts if part in self.adjectives]
        if len(nouns) + len(adjectives) < len(parts) or len(nouns) > 1:
            return ""
        phrase = " ".join([*adjectives, *(nouns or ["person"])])
        return f"{article(phrase)} {phrase}"

    def _names(self, label: str, identities: Identities) -> dict[str, tuple[str, ...]]:
        category = identities.categories[identities.category_of(label)]
        known = {other: self._lists(identities.parts.get(other, (other,))) for other in category}
        covered = [lists for lists in known.values() if lists]
        shared = {rest for rest in known[label] if all(rest in lists for lists in covered)}
        # A list of exactly this identity needs no second one; "" is what nothing else is signalled by.
        return {rest: known[label][rest] for rest in (sorted(shared) if "" not in shared else [""])}

    def _lists(self, parts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """The lists of an identity by what else their names signal."""
        return {
            " ".join(part for part in names.of if part not in parts): names.list
            for names in self.names
            if set(parts) <= set(names.of)
        }


@cache
def load_wordings() -> LabelWordings:
    """The shipped words."""
    path = files("parley.scenarios").joinpath("data", "labels", "wordings-1.toml")
    return LabelWordings.model_validate(read_toml(Path(str(path)), "list of wordings"))


def check_wordings(style: LabelStyle, identities: Identities) -> None:
    """Refuse a style that has no words for some label, naming which.

    Args:
        style: How labels are worded.
        identities: The labels of the run.
    """
    wordings = load_wordings()
    if not (unknown := wordings.without(style, identities)):
        return
    known = [label for label in identities if label not in unknown]
    there = f" (of this run's labels only for {', '.join(known)})" if known else ""
    raise ScenarioError(
        f"--label-style {style} has no words for {', '.join(unknown)}{there}: "
        "choose other --identities or another style"
    )
