"""Identities: MALIBU's ten in their three categories, your own from a file, and crossed categories.

select(["all"])                 # the paper's ten
select(["gender", "muslim"])    # a category, a label
select(["race+gender"])         # "black female", "black male", …
select(["ages.toml"])           # [categories]  age = ["20-year-old", "70-year-old"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path

from parley.base.errors import ScenarioError, UnknownName
from parley.base.problems import UserFile

CATEGORIES: dict[str, tuple[str, ...]] = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("muslim", "jewish", "atheist", "christian"),
}
ALL: tuple[str, ...] = tuple(label for labels in CATEGORIES.values() for label in labels)


@dataclass(frozen=True, slots=True)
class Identities:
    """The labels of a run.

    Args:
        categories: The labels of each category, in a fixed order.
        parts: The parts of each crossed label: "black female" is black and female.
    """

    categories: Mapping[str, tuple[str, ...]]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return (label for labels in self.categories.values() for label in labels)

    def category_of(self, label: str) -> str:
        """The category of a label; empty if it has none."""
        return next((name for name, labels in self.categories.items() if label in labels), "")

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
    """The labels that names stand for, in the order of their lists.

    Args:
        names: Labels, categories, "all", crossed categories ("race+gender"), or .toml files.
    """
    known = dict(CATEGORIES)
    requested: list[str] = []
    for name in names:
        if name.endswith(".toml"):
            own = read_identities(Path(name))
            if clash := sorted({*own} & {*known}):
                raise ScenarioError(f"{name}: there is already a category '{clash[0]}'")
            known |= own
            requested += own
        else:
            requested += CATEGORIES if name == "all" else [name]
    categories: dict[str, tuple[str, ...]] = {}
    for name, labels in known.items():
        if chosen := tuple(label for label in labels if label in requested or name in requested):
            categories[name] = chosen
    parts: dict[str, tuple[str, ...]] = {}
    for name in requested:
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
    if repeated := sorted({label for label in every if every.count(label) > 1}):
        raise ScenarioError(f"the label '{repeated[0]}' is in two categories")
    return Identities(categories, parts)


def _labels(name: str, known: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return known[name] if name in known else (name,) if _category_with(name, known) else ()


def _category_with(label: str, known: Mapping[str, tuple[str, ...]]) -> str:
    for category, labels in known.items():
        if label in labels:
            return category
    listed = ", ".join(("all", *known, *(label for labels in known.values() for label in labels)))
    raise UnknownName(f"unknown identity '{label}' (known: {listed}; crossed, as race+gender; or a .toml file)")


def read_identities(path: Path) -> dict[str, tuple[str, ...]]:
    """The categories of a .toml file: a table `[categories]`, each a list of two or more labels."""
    file = UserFile.read(path, "list of labels")
    table = file.table.get("categories")
    if not isinstance(table, dict) or not table:
        raise ScenarioError(f"{path}: expected a table [categories] with lists of labels")
    categories: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for category, labels in table.items():
        loc = ("categories", category)
        if not isinstance(labels, list) or len(labels) < 2 or not all(isinstance(label, str) for label in labels):
            file.add(loc, "must be a list of at least two labels")
            continue
        for label in labels:
            # A label appears in the prompt as "Candidate A (label):", and in unit ids.
            if not label.strip() or any(sign in label for sign in "()/\n+"):
                file.add(loc, f"'{label}' cannot be a label: expected words without ( ) / + and line breaks")
            elif label in (*ALL, "none"):
                file.add(loc, f"'{label}' cannot be a label: Parley has it already")
            elif label in seen:
                file.add(loc, f"the label '{label}' occurs twice")
            seen.add(label)
        categories[category] = tuple(labels)
    file.refuse()
    return categories
