"""Identities: MALIBU's ten labels in three categories, your own from a file, crossed categories, and a placebo.

select(["all"])                 # the paper's ten
select(["gender", "muslim"])    # a category, a label
select(["race+gender"])         # "black female", "black male", …
select(["ages.toml"])           # [categories]  age = ["20-year-old", "70-year-old"]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

from parley.base.errors import ScenarioError, UnknownName
from parley.base.problems import UserFile
from parley.base.toml import read_toml

CATEGORIES: dict[str, tuple[str, ...]] = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("muslim", "jewish", "atheist", "christian"),
}
PLACEBO: dict[str, tuple[str, ...]] = {"weekday": ("Tuesday", "Wednesday", "Thursday")}
"""Labels without meaning, outside "all". Monday and Friday are left out, as they border on the weekend."""
HEADER = ("schema", "name", "version", "about", "language")
"""Keys at the beginning of any file of scenarios, identities or wordings; optional in a file of identities."""
ALL: tuple[str, ...] = tuple(label for labels in CATEGORIES.values() for label in labels)
SHIPPED: tuple[str, ...] = (*ALL, *(label for labels in PLACEBO.values() for label in labels))


@dataclass(frozen=True, slots=True)
class Identities:
    """The labels of a run.

    Args:
        categories: The labels of each category, in a fixed order.
        parts: The parts of each crossed label: "black female" is black and female.
        forms: The forms of the user's labels: {"vegan": {"noun": "a vegan"}}.
        allowed: Facts that wordings may state about the author in a category of the user's: {"diet": {"age"}}.
    """

    categories: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    forms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return (label for labels in self.categories.values() for label in labels)

    def category_of(self, label: str) -> str:
        """The category of a label; empty if it has none."""
        return next((name for name, labels in self.categories.items() if label in labels), "")

    def own_parts(self, label: str) -> tuple[str, ...]:
        """The parts of a label that the user defined; none for Parley's and their crossings.

        Args:
            label: The label.
        """
        return tuple(part for part in self.parts.get(label, (label,)) if part not in SHIPPED)

    def is_own(self, category: str) -> bool:
        """Whether a category has labels that the user defined.

        Args:
            category: The category.
        """
        return any(map(self.own_parts, self.categories[category]))

    def without_placebo(self) -> tuple[Identities, Identities]:
        """The labels that mean something, and the placebo labels."""
        of_placebo = {name: labels for name, labels in self.categories.items() if name in PLACEBO}
        others = {name: labels for name, labels in self.categories.items() if name not in PLACEBO}
        return replace(self, categories=others), Identities(of_placebo)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Unordered pairs within a category: 13 for the paper's ten labels.

        Crossed labels are only compared if they differ in one part, so that a preference has one explanation.
        """
        for labels in self.categories.values():
            for pair in combinations(labels, 2):
                if self._differences(*pair) == 1:
                    yield pair

    def _differences(self, first: str, second: str) -> int:
        parts, others = (self.parts.get(label, (label,)) for label in (first, second))
        return sum(part != other for part, other in zip(parts, others, strict=True))


def select(names: Sequence[str]) -> Identities:
    """Select labels by name, in the order of their lists.

    Args:
        names: Labels, categories, "all" (without placebo labels), crossed categories ("race+gender"), or .toml files.
    """
    available = CATEGORIES | PLACEBO
    forms: dict[str, Mapping[str, str]] = {}
    allowed: dict[str, frozenset[str]] = {}
    requested: list[str] = []
    for name in names:
        if name.endswith(".toml"):
            from_file = read_identities(Path(name))
            if clash := sorted({*from_file.categories} & {*available}):
                raise ScenarioError(f"{name}: there is already a category '{clash[0]}'")
            available |= from_file.categories
            forms |= from_file.forms
            allowed |= from_file.allowed
            requested += from_file.categories
        else:
            requested += CATEGORIES if name == "all" else [name]
    categories: dict[str, tuple[str, ...]] = {}
    for name, labels in available.items():
        if chosen := tuple(label for label in labels if label in requested or name in requested):
            categories[name] = chosen
    parts: dict[str, tuple[str, ...]] = {}
    for name in requested:
        if "+" in name:
            sides = [_labels(part.strip(), available) for part in name.split("+")]
            crossing = {_category_with(labels[0], available) for labels in sides}
            if len(crossing) < len(sides):
                raise ScenarioError(f"'{name}' crosses a category with itself")
            if crossing & PLACEBO.keys():
                raise ScenarioError(f"'{name}' crosses placebo labels, which mean nothing")
            if own_sides := [allowed.get(side, frozenset()) for side in crossing if side not in CATEGORIES]:
                allowed[name] = frozenset.intersection(*own_sides)
            crossed = list(product(*sides))
            parts |= {" ".join(labels): labels for labels in crossed}
            categories[name] = tuple(" ".join(labels) for labels in crossed)
        elif name not in available:
            _category_with(name, available)
    if not categories:
        raise ScenarioError("at least one identity is needed")
    every = [label for labels in categories.values() for label in labels]
    if repeated := sorted({label for label in every if every.count(label) > 1}):
        raise ScenarioError(f"the label '{repeated[0]}' is in two categories")
    return Identities(categories, parts, forms, allowed)


def _labels(name: str, categories: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return categories[name] if name in categories else (name,) if _category_with(name, categories) else ()


def _category_with(label: str, categories: Mapping[str, tuple[str, ...]]) -> str:
    for category, labels in categories.items():
        if label in labels:
            return category
    listed = ", ".join(("all", *categories, *(label for labels in categories.values() for label in labels)))
    raise UnknownName(f"unknown identity '{label}' (known: {listed}; crossed, as race+gender; or a .toml file)")


def names_identities(name: str) -> bool:
    """Whether a user's name is a file of identities rather than a suite.

    Args:
        name: The path of a .toml file, or anything else.
    """
    return name.endswith(".toml") and os.path.isfile(name) and "categories" in read_toml(Path(name), "list of labels")


def read_identities(path: Path) -> Identities:
    """Read the labels of a .toml file; ScenarioError lists all its problems.

    `[categories]` has a list of two or more labels for each category. `[forms]` has words for sentences about a label,
    and `[allow]` other facts that wordings may state about the author.

    Args:
        path: The file.
    """
    file, identities = open_identities(path)
    file.refuse()
    return identities


def open_identities(path: Path) -> tuple[UserFile, Identities]:
    """Read a .toml file of labels; returns its problems, and all that could be read.

    Args:
        path: The file.
    """
    file = UserFile.read(path, "list of labels")
    table = file.table.get("categories")
    if not isinstance(table, dict) or not table:
        raise ScenarioError(f"{path}: expected a table [categories] with lists of labels")
    for key in file.table.keys() - {"categories", "forms", "allow", *HEADER}:
        file.add((key,), "there is no such table (known: categories, forms, allow)")
    if file.table.get("schema", 1) != 1:
        file.add(("schema",), "expected 1")
    categories: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for category, labels in table.items():
        loc = ("categories", category)
        if category in CATEGORIES | PLACEBO:
            file.add(loc, f"there is already a category '{category}'")
        if not _is_texts(labels) or len(labels) < 2:
            file.add(loc, "must be a list of at least two labels")
            continue
        for label in labels:
            # A label appears in the prompt as "Candidate A (label):", and in unit ids.
            if not label.strip() or any(sign in label for sign in "()/\n+"):
                file.add(loc, f"'{label}' cannot be a label: expected words without ( ) / + and line breaks")
            elif label in (*SHIPPED, "none"):
                file.add(loc, f"'{label}' cannot be a label: Parley has it already")
            elif label in seen:
                file.add(loc, f"the label '{label}' occurs twice")
            seen.add(label)
        categories[category] = tuple(labels)
    forms, allowed = _forms(file, seen), _allowed(file, table.keys())
    return file, Identities(categories, forms=forms, allowed=allowed)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _forms(file: UserFile, labels: Set[str]) -> dict[str, Mapping[str, str]]:
    forms: dict[str, Mapping[str, str]] = {}
    for label, table in _table(file, "forms").items():
        if label not in labels:
            file.add(("forms", label), f"there is no label '{label}' in [categories]")
        if isinstance(table, dict) and all(isinstance(form, str) and form.strip() for form in table.values()):
            forms[label] = table
        else:
            file.add(("forms", label), 'expected words for each form, such as noun = "a vegan"')
    return forms


def _allowed(file: UserFile, categories: Set[str]) -> dict[str, frozenset[str]]:
    allowed = _table(file, "allow")
    for category, facts in allowed.items():
        if category not in categories:
            file.add(("allow", category), f"there is no category '{category}' in [categories]")
        if not _is_texts(facts):
            file.add(("allow", category), 'expected a list, such as ["age", "experience"]')
        elif category in facts:
            file.add(
                ("allow", category), f"'{category}' is what the labels themselves say, so wordings must not state it"
            )
    return {category: frozenset(facts) for category, facts in allowed.items() if _is_texts(facts)}


def _table(file: UserFile, key: str) -> dict[str, Any]:
    table = file.table.get(key, {})
    if not isinstance(table, dict):
        file.add((key,), f"must be a table [{key}]")
        return {}
    return table
