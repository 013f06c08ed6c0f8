"""The licences of all that is installed for Parley, read from the packages themselves."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from email.message import Message
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "licences.md"
ACCEPTED = frozenset(
    (
        "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
        "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
    )
)  # fmt: skip
"""All let an MIT-licensed program use and ship with them; MPL-2.0 asks that changes to its own files stay open."""
OWN_TERMS = ("nvidia-", "cuda-")
"""CUDA's libraries, which torch brings on x86-64: under NVIDIA's own terms. We ship none of them."""
SPELLINGS = {
    "apache 2.0": "Apache-2.0", "apache license, version 2.0": "Apache-2.0", "apache software license": "Apache-2.0",
    "apache-2.0 license": "Apache-2.0", "apache": "Apache-2.0", "apache license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0", "apache 2.0 license": "Apache-2.0",
    "mit license": "MIT", "bsd license": "BSD", "bsd": "BSD", "2-clause bsd": "BSD-2-Clause",
    "3-clause bsd license": "BSD-3-Clause", "bsd 3-clause license": "BSD-3-Clause", "new bsd": "BSD-3-Clause",
    "isc license": "ISC", "isc license (iscl)": "ISC", "python software foundation license": "PSF-2.0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}  # fmt: skip


class Package(NamedTuple):
    """A package, which parts of Parley want it, and its licence as SPDX writes it ("" where it names none)."""

    name: str
    version: str
    licence: str
    wanted: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Of licences joined by AND all must be acceptable, by OR one."""
        if self.name.startswith(OWN_TERMS):
            return True
        parts = [re.split(r"\s+AND\s+", choice) for choice in re.split(r"\s+OR\s+", self.licence)]
        return any(all(one.strip("() ") in ACCEPTED for one in part) for part in parts)


def licence_of(metadata: Message) -> str:
    """From the expression, else the classifiers, else the field, of which only a short one is a name."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    stated = str(metadata.get("License") or "").strip()
    said = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or [] if line.startswith("License")]
    first = next((line.strip() for line in stated.splitlines() if line.strip()), "")
    for one in (stated if "\n" not in stated else "", *said, first):
        plain = SPELLINGS.get(one.lower(), one)
        if plain and all(part in ACCEPTED for part in re.split(r" AND | OR ", plain)):
            return plain
    return said[0] if said else first[:60]


def groups() -> dict[str, list[Requirement]]:
    """What is asked for without an extra ("core") and by each; extras of ours within extras are followed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]

    def flat(lines: Iterable[str]) -> Iterator[Requirement]:
        for requirement in map(Requirement, lines):
            if requirement.name == "parley-autogen":
                for extra in requirement.extras:
                    yield from flat(extras[extra])
            else:
                yield requirement

    return {"core": list(flat(project["dependencies"]))} | {name: list(flat(lines)) for name, lines in extras.items()}


@lru_cache(maxsize=1)
def packages() -> tuple[list[Package], list[str]]:
    """Everything installed that any part asks for, directly or not; and what is asked for and not installed."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    missing: set[str] = set()
    for group, requirements in groups().items():
        seen: set[tuple[str, frozenset[str]]] = set()
        waiting = [(one.name, frozenset(one.extras)) for one in requirements]
        while waiting:
            name, extras = waiting.pop()
            if (canonicalize_name(name), extras) in seen:
                continue
            seen.add((canonicalize_name(name), extras))
            try:
                there = distribution(name)
            except PackageNotFoundError:
                missing.add(canonicalize_name(name))
                continue
            wanted = found.setdefault(canonicalize_name(name), (there, []))[1]
            if group not in wanted:
                wanted.append(group)
            for one in map(Requirement, there.requires or ()):
                if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                    waiting.append((one.name, frozenset(one.extras)))
    listed = [
        Package(name, there.version, licence_of(there.metadata), tuple(wanted))  # type: ignore[arg-type]
        for name, (there, wanted) in sorted(found.items())
    ]
    return listed, sorted(missing)


def page(listed: Iterable[Package]) -> str:
    rows = [f"| {one.name} | {one.licence} | {', '.join(one.wanted)} |" for one in listed]
    return "\n".join(
        (
            "# Licences of Parley's dependencies",
            "",
            "Parley itself is under the MIT licence. This list is read from the metadata of the installed",
            "packages by `python -m tests.dependencies licences --write`, and a test checks every installed",
            "package against the licences that are accepted (`tests/dependencies/licences.py`). Versions are in",
            "constraints.txt. Model weights have their own licences ([models](models.md)), and so have BBQ, SQuAD",
            "v2 and RealToxicityPrompts, none of which is shipped. On x86-64, torch may bring NVIDIA's CUDA",
            "libraries (nvidia-…, cuda-…), which are under NVIDIA's own terms and not part of Parley.",
            "",
            "| package | licence | required by |",
            "|---|---|---|",
            *rows,
            "",
        )
    )


def read_page() -> dict[str, tuple[str, str]]:
    """Licence and wanting parts by package, as the page has them."""
    rows = (line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| "))
    return {
        name.strip(): (licence.strip(), wanted.strip()) for name, licence, wanted in rows if name.strip() != "package"
    }
