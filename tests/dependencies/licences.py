"""The licences of all installed dependencies, read from the packages' metadata.

`python -m tests.dependencies.licences` prints them, and with `--write` writes the page beside this
file. Status 1: one is not accepted.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from email.message import Message
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).parent / "LICENCES.md"
ACCEPTED = frozenset(
    (
        "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
        "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
    )
)  # fmt: skip
"""Each allows an MIT-licensed program to use the package; MPL-2.0 requires that changes to its own files stay open."""
OWN_TERMS = ("nvidia-", "cuda-")
"""CUDA's libraries, which torch depends on for x86-64, under NVIDIA's own terms. Parley does not ship them."""
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
    """A package, its licence as an SPDX expression ("" if it states none), and the extras that need it."""

    name: str
    version: str
    licence: str
    extras: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Of licences joined by AND all must be accepted, of those joined by OR one."""
        if self.name.startswith(OWN_TERMS):
            return True
        parts = [re.split(r"\s+AND\s+", choice) for choice in re.split(r"\s+OR\s+", self.licence)]
        return any(all(licence.strip("() ") in ACCEPTED for licence in part) for part in parts)


def licence_of(metadata: Message) -> str:
    """From the licence expression, else the classifiers, else the first line of the licence field."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    stated = str(metadata.get("License") or "").strip()
    classifiers = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License")]
    classified = [line.rpartition(" :: ")[2] for line in classifiers]
    first = next((line.strip() for line in stated.splitlines() if line.strip()), "")
    for text in (stated if "\n" not in stated else "", *classified, first):
        licence = SPELLINGS.get(text.lower(), text)
        if licence and all(part in ACCEPTED for part in re.split(r" AND | OR ", licence)):
            return licence
    return classified[0] if classified else first[:60]


def requirements_by_extra() -> dict[str, list[Requirement]]:
    """The requirements of the core ("core") and of each extra, including those of extras it contains."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]

    def expand(lines: Iterable[str]) -> Iterator[Requirement]:
        for requirement in map(Requirement, lines):
            if requirement.name == project["name"]:
                for extra in requirement.extras:
                    yield from expand(extras[extra])
            else:
                yield requirement

    groups = {"core": project["dependencies"], **extras}
    return {name: list(expand(lines)) for name, lines in groups.items()}


@lru_cache(maxsize=1)
def installed_packages() -> tuple[list[Package], list[str]]:
    """All installed packages that the core or an extra needs, directly or not; and the names of missing ones."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    missing: set[str] = set()
    for extra_name, requirements in requirements_by_extra().items():
        seen: set[tuple[str, frozenset[str]]] = set()
        pending = [(requirement.name, frozenset(requirement.extras)) for requirement in requirements]
        while pending:
            name, extras = pending.pop()
            if (canonicalize_name(name), extras) in seen:
                continue
            seen.add((canonicalize_name(name), extras))
            try:
                installed = distribution(name)
            except PackageNotFoundError:
                missing.add(canonicalize_name(name))
                continue
            needed_by = found.setdefault(canonicalize_name(name), (installed, []))[1]
            if extra_name not in needed_by:
                needed_by.append(extra_name)
            for requirement in map(Requirement, installed.requires or ()):
                marker = requirement.marker
                if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                    pending.append((requirement.name, frozenset(requirement.extras)))
    packages = [
        Package(name, installed.version, licence_of(installed.metadata), tuple(needed_by))  # type: ignore[arg-type]
        for name, (installed, needed_by) in sorted(found.items())
    ]
    return packages, sorted(missing)


PAGE_HEAD = """\
# Licences of Parley's dependencies

Read from the packages' metadata by `python -m tests.dependencies.licences --write`; without this flag it prints which
extra needs a package. A test checks every installed package. Versions are in constraints.txt. Parley
itself is MIT. Model weights have their own licences ([models](../../docs/models.md)), and so have BBQ, SQuAD v2 and
RealToxicityPrompts, none of which is shipped; the weights of the scorer `ngrams` were trained on RealToxicityPrompts
(Apache-2.0), and contain none of its text. On x86-64, torch
depends on NVIDIA's CUDA libraries (nvidia-…, cuda-…), which are under NVIDIA's own terms and not part of Parley.

| licence | packages |
|---|---|
"""


def render_page(licences: Mapping[str, str]) -> str:
    """The page, with the packages of each licence, from the licence of each package."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, licence in sorted(licences.items()):
        names[licence].append(name)
    return PAGE_HEAD + "".join(f"| {licence} | {', '.join(names[licence])} |\n" for licence in sorted(names))


def read_page() -> dict[str, str]:
    """The licence of each package, as listed on the page."""
    rows = (line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| "))
    return {name: licence for licence, names in rows if licence != "licence" for name in names.split(", ")}


def main(words: list[str]) -> int:
    packages, missing = installed_packages()
    refused = [package for package in packages if not package.accepted]
    for package in packages:
        print(f"{package.name:<28.28} {package.licence:<26.26} {', '.join(package.extras)[:24]}")
    print(f"{len(packages)} packages, {len(refused)} with a licence that is not accepted")
    print(f"not installed, so not checked: {', '.join(missing) or 'none'}")
    if "--write" in words:
        licences = read_page() | {package.name: package.licence for package in packages}  # others: other platforms
        PAGE.write_text(render_page(licences), "utf-8")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
