"""Reads the wordings of silent ballots from a TOML file, and checks every placeholder.

    wordings = load_ballot_wordings()          # the shipped English ones, or your own: "mine.toml"

A file with `extends = "english"` takes all that it leaves out from the English one; its [[label]] rows replace all of
those.

A placeholder that is missing or unknown is an error that names the file, the line and the placeholder.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parley.base.errors import UnknownName
from parley.base.problems import UserFile
from parley.base.toml import Location, read_toml
from parley.scenarios.ballot_texts import BallotWordings, LabelWording
from parley.scenarios.identities import CATEGORIES, HEADER
from parley.scenarios.templates import PLACEHOLDER, form_key

ENGLISH = "english"


def load_ballot_wordings(name: str | Path = ENGLISH) -> BallotWordings:
    """Load the wordings of a file.

    Args:
        name: A shipped file (`english`), or the path of a .toml file.
    """
    if str(name) in (shipped := _shipped_files()):
        return _shipped(shipped[str(name)])
    path = Path(name)
    if path.suffix != ".toml" or os.path.isdir(path):
        raise UnknownName(f"unknown wordings '{name}' (known: {', '.join(shipped)}, or a .toml file)")
    return read_ballot_wordings(path)


def names_wordings(name: str) -> bool:
    """Whether a user's name stands for wordings rather than for a suite.

    Args:
        name: A shipped name, or the path of a .toml file or a folder.
    """
    if not name.endswith(".toml") or not os.path.isfile(name):
        return name in _shipped_files()
    table = read_toml(Path(name), "suite")
    return not table.keys().isdisjoint(("label", "question", "prompt", "extends"))


@lru_cache(maxsize=1)
def _shipped_files() -> dict[str, Path]:
    folder = Path(str(files("parley.scenarios").joinpath("data", "wordings")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


@lru_cache(maxsize=4)
def _shipped(path: Path) -> BallotWordings:
    return read_ballot_wordings(path)


def read_ballot_wordings(path: Path) -> BallotWordings:
    """Read the wordings of a .toml file; ScenarioError lists every missing or unknown placeholder.

    Args:
        path: The file.
    """
    file = UserFile.read(path, "file of wordings")
    if base := file.table.pop("extends", None):
        if str(base) not in (shipped := _shipped_files()):
            file.add(("extends",), f"unknown wordings '{base}' (known: {', '.join(shipped)})")
            file.refuse()
        inherited = read_toml(shipped[base], "file of wordings")
        file.table = _extended({key: inherited[key] for key in inherited.keys() - HEADER}, file.table)
    wordings = file.validate(BallotWordings)
    # Missing or invalid texts are replaced by the English ones, so that the rest is checked.
    checked = wordings or _corrected(file)
    for kind in ("label", "question", "placebo"):
        rows = file.table.get(kind)
        ids = [row.get("id") if isinstance(row, dict) else None for row in rows] if isinstance(rows, list) else []
        for number, row_id in enumerate(ids):
            if row_id is not None and row_id in ids[:number]:
                file.add((kind, number, "id"), "the id occurs twice")
    for loc, problem in _placeholder_problems(checked) if checked else ():
        if not file.is_invalid(loc):
            file.add(loc, problem)
    file.refuse()
    assert wordings is not None
    return wordings


def _extended(inherited: Any, given: Any) -> Any:
    """A file's contents, with omitted keys taken from the wordings that it extends."""
    if not (isinstance(inherited, dict) and isinstance(given, dict)):
        return given
    return inherited | {key: _extended(inherited.get(key), value) for key, value in given.items()}


def _corrected(file: UserFile) -> BallotWordings | None:
    """The wordings with invalid texts replaced by English ones; None if that is not enough."""
    english = read_toml(_shipped_files()[ENGLISH], "file of wordings")
    table: dict[str, Any] = copy.deepcopy(file.table)
    for first, *rest in file.invalid:
        inner, given = english.get(str(first)), table.get(str(first))
        if rest and isinstance(rest[0], int) and isinstance(given, list) and isinstance(inner, list):
            given[rest[0]] = inner[0]
        elif rest and isinstance(given, dict) and isinstance(inner, dict) and rest[0] in inner:
            given[rest[0]] = inner[str(rest[0])]
        elif rest and isinstance(given, dict) and rest[0] in given:
            del given[rest[0]]
        elif inner is not None:
            table[str(first)] = inner
        else:
            table.pop(str(first), None)
    try:
        return BallotWordings.model_validate(table)
    except ValidationError:
        return None


_SCORE = {"low", "high"}
_NEEDED: dict[str, tuple[set[str], set[str]]] = {
    "prompt.heading": ({"answer"}, set()),
    "prompt.single": ({"situation", "answer", "question"}, set()),
    "prompt.pair": ({"situation", "answer_a", "answer_b", "question"}, set()),
    "talk.first": ({"format"} | _SCORE, {"metrics"}),
    "talk.discuss": ({"format"} | _SCORE, {"metrics"}),
    "talk.first_pair": ({"format"} | _SCORE, {"metrics"}),
    "talk.discuss_pair": ({"format"} | _SCORE, {"metrics"}),
    "question.single": (_SCORE, set()),
    "question.metric": ({"metric", "definition"} | _SCORE, set()),
    "question.pair": (set(), set()),
    "question.pair_ties": ({"tie"}, set()),
}
"""Required and optional placeholders of a text."""


def _placeholder_problems(wordings: BallotWordings) -> Iterator[tuple[Location, str]]:
    texts: list[tuple[Location, str]] = []
    for table, parts in (("prompt", wordings.prompt), ("talk", wordings.talk)):
        texts += [((table, key), text) for key, text in parts.model_dump().items()]
    for number, question in enumerate(wordings.question):
        texts += [(("question", number, key), text) for key, text in question.model_dump(exclude={"id"}).items()]
    for loc, text in texts:
        needed, allowed = _NEEDED.get(f"{loc[0]}.{loc[-1]}", (set(), set()))
        yield from ((loc, problem) for problem in _problems(text, needed, allowed | {"a", "A"}))
    for key, text in wordings.otherwise.items():
        placeholders = {"label", "modifier", "person", "a", "A"} if key not in ("person", "separator") else set()
        yield from ((("otherwise", key), problem) for problem in _problems(text, set(), placeholders))
    for identity, forms in wordings.identity.items():
        for key, text in forms.items():
            yield from ((("identity", identity, key), problem) for problem in _problems(text, set(), set()))
    for number, label in enumerate(wordings.placebo):
        needed = {"adjective", *(["answer"] if label.place == "beside" else [])}
        yield from ((("placebo", number, "text"), problem) for problem in _problems(label.text, needed, set()))
    for number, label in enumerate(wordings.label):
        yield from ((("label", number, "text"), problem) for problem in _label_problems(wordings, label))


def _problems(text: str, needed: set[str], allowed: set[str]) -> Iterator[str]:
    placeholders = set(PLACEHOLDER.findall(text))
    if unknown := sorted(placeholders - needed - allowed):
        yield f"unknown placeholder {{{unknown[0]}}}"
    if stray := re.search(r"[{}][^{}]*[{}]?", PLACEHOLDER.sub("", text)):
        yield f"'{stray.group()}' is not a placeholder: those are written like {{noun}}, in pairs and without spaces"
    if missing := sorted(needed - placeholders):
        yield f"{{{missing[0]}}} is missing"


def _label_problems(wordings: BallotWordings, label: LabelWording) -> Iterator[str]:
    tables = wordings.identity
    if label.categories:
        identities = {identity for category in label.categories for identity in CATEGORIES.get(category, ())}
        tables = {identity: forms for identity, forms in tables.items() if identity in identities} or tables
    every = {key for forms in tables.values() for key in forms} | set(wordings.otherwise) - {"separator"}
    shared = {key for key in every if all(key in forms for forms in tables.values())}
    # A form that all identities of a category share, such as the category's name, does not name the author.
    groups = [[tables[label] for label in labels if label in tables] for labels in CATEGORIES.values()]
    groups = [group for group in groups if len(group) > 1] or [list(tables.values())]
    telling = {key for key in every if any(len({forms.get(key) for forms in group}) > 1 for group in groups)}
    telling = telling - shared if label.kind == "pronoun" else telling & shared
    needed = {"answer"} if label.place == "beside" else set()
    yield from _problems(label.text, needed, {"a", "A"} | every | {key[:1].upper() + key[1:] for key in every})
    forms_used = {form_key(key) for key in PLACEHOLDER.findall(label.text)}
    if not forms_used & telling and forms_used <= every | {
        "a",
        "answer",
    }:  # unknown ones were reported above
        yield f"{' or '.join(f'{{{key}}}' for key in sorted(telling)) or 'a form of the identity'} is missing"
    if label.kind != "pronoun":
        for key in sorted(forms_used & every - shared):
            lacking = next(identity for identity, forms in tables.items() if key not in forms)
            yield f"{{{key}}} has no form in [identity.{lacking}]"
