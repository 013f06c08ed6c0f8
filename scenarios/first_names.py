"""First names that are associated with identities.

    load_first_names().of("black", select(["black", "white"]))    # {"female": ("Aisha", …), "male": (…)}

The names are in `data/labels/names-1.toml`, with the publication that each list is from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from parley.base.toml import read_toml
from parley.scenarios.identities import Identities


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


class FirstNames(BaseModel, extra="forbid", frozen=True):
    """Lists of first names.

    Args:
        schema_version: Version of the format.
        name: Name of the file.
        version: Version of its contents.
        sources: Publications by key.
        names: The lists.
    """

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    sources: Mapping[str, str]
    names: tuple[NameList, ...]

    def of(self, label: str, identities: Identities) -> Mapping[str, tuple[str, ...]]:
        """The names of an identity by what else they signal: black people's names by gender; empty if there are none.

        It has only what names of all identities of the category signal, so that two identities can be compared with all
        else equal.

        Args:
            label: The identity's label.
            identities: The labels of the run.
        """
        category = identities.categories[identities.category_of(label)]
        known = {other: self._lists(identities.parts.get(other, (other,))) for other in category}
        covered = [lists for lists in known.values() if lists]
        shared = {rest for rest in known[label] if all(rest in lists for lists in covered)}
        # A list of exactly this identity needs no second one; "" means that names signal nothing else.
        return {rest: known[label][rest] for rest in (sorted(shared) if "" not in shared else [""])}

    def _lists(self, parts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """The lists of an identity by what else their names signal."""
        return {
            " ".join(part for part in names.of if part not in parts): names.list
            for names in self.names
            if set(parts) <= set(names.of)
        }


@cache
def load_first_names() -> FirstNames:
    """The shipped lists."""
    path = files("parley.scenarios").joinpath("data", "labels", "names-1.toml")
    return FirstNames.model_validate(read_toml(Path(str(path)), "list of first names"))
