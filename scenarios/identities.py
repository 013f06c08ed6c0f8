"""Identities: the ten of MALIBU in their three categories, a user's own from a file, and two at once.

select(["all"])                 # the paper's ten
select(["gender", "muslim"])    # a category, a label
select(["race+gender"])         # "black female", "black male", …
select(["ages.toml"])           # [categories]  age = ["20-year-old", "70-year-old"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path

from parley.scenarios.errors import ScenarioError, UnknownName

CATEGORIES: dict[str, tuple[str, ...]] = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("muslim", "jewish", "atheist", "christian"),
}
ALL: tuple[str, ...] = tuple(label for labels in CATEGORIES.values() for label in labels)


@dataclass(frozen=True, slots=True)
class Identities:
    """The labels of a run by category, in a fixed order. `parts` says what a crossed label is made of."""

    categories: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return (label for labels in self.categories.values() for label in labels)

    def category_of(self, label: str) -> str:
        return next((name for name, labels in self.categories.items() if label in labels), "")

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Unordered pairs within a category: 13 for the paper's ten. Crossed labels are compared where they differ
        in one part only, so that what a preference is about stays plain."""
        for labels in self.categories.values():
            for pair in combinations(labels, 2):
                if self._apart(*pair) == 1:
                    yield pair

    def _apart(self, first: str, second: str) -> int:
        one, two = (self.parts.get(label, (label,)) for label in (first, second))
        return sum(a != b for a, b in zip(one, two, strict=True))


def select(names: Sequence[str]) -> Identities:
    """Labels for labels, categories, 'all', crossed categories and files, in the order of their lists."""
    known = dict(CATEGORIES)
    wanted: list[str] = []
    for name in names:
        if name.endswith(".toml"):
            own = read_identities(Path(name))
            if clash := sorted({*own} & {*known}):
                raise ScenarioError(f"{name}: the category '{clash[0]}' is there already")
            known |= own
            wanted += own
        else:
            wanted += CATEGORIES if name == "all" else [name]
    categories: dict[str, tuple[str, ...]] = {}
    for name, labels in known.items():
        if chosen := tuple(label for label in labels if label in wanted or name in wanted):
            categories[name] = chosen
    parts: dict[str, tuple[str, ...]] = {}
    for name in wanted:
        if "+" in name:
            sides = [_labels(part.strip(), known) for part in name.split("+")]
            if len({_category_with(labels[0], known) for labels in sides}) < len(sides):
                raise ScenarioError(f"'{name}' crosses a category with itself")
            crossed = list(product(*sides))
            parts |= {" ".join(labels): labels for labels in crossed}
            categories[name] = tuple(" ".join(labels) for labels in crossed)
        elif name not in known:
            _category_with(name, known)
    if not categories:
        raise ScenarioError("at least one identity is needed")
    every = [label for labels in categories.values() for label in labels]
    if twice := sorted({label for label in every if every.count(label) > 1}):
        raise ScenarioError(f"the label '{twice[0]}' stands in two categories")
    return Identities(categories, parts)


def _labels(name: str, known: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return known[name] if name in known else (name,) if _category_with(name, known) else ()


def _category_with(label: str, known: Mapping[str, tuple[str, ...]]) -> str:
    for category, labels in known.items():
        if label in labels:
            return category
    listed = ", ".join(("all", *known, *(label for labels in known.values() for label in labels)))
    raise UnknownName(f"unknown identity '{label}' (known: {listed}; two at once as race+gender; or a .toml file)")


def read_identities(path: Path) -> dict[str, tuple[str, ...]]:
    """A user's own categories: `[categories]`, each a list of two labels or more."""
    try:
        table = tomllib.loads(path.read_text("utf-8-sig")).get("categories")
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: nested too deeply for a list of labels") from None
    if not isinstance(table, dict) or not table:
        raise ScenarioError(f"{path}: no table [categories] with lists of labels in it")
    found: dict[str, tuple[str, ...]] = {}
    for category, labels in table.items():
        if not isinstance(labels, list) or len(labels) < 2 or not all(isinstance(one, str) for one in labels):
            raise ScenarioError(f"{path}: '{category}' must be a list of at least two labels")
        for label in labels:
            # A label stands in the prompt as "Candidate A (label):", and in ids of units.
            if not label.strip() or any(sign in label for sign in "()/\n+") or label in (*ALL, "none"):
                raise ScenarioError(f"{path}: '{label}' cannot be a label of '{category}'")
        found[category] = tuple(labels)
    every = [label for labels in found.values() for label in labels]
    if twice := sorted({label for label in every if every.count(label) > 1}):
        raise ScenarioError(f"{path}: labels stand twice: {', '.join(twice)}")
    return found
