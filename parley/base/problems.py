"""Collects all problems of a user's TOML file, each with its line.

file = UserFile.read(Path("my.toml"), "suite")
suite = file.validate(Suite)                       # None if it is not one
file.add(("scenario", 3, "text"), "is empty")
file.refuse()                                      # my.toml: line 7: scenario 'bus': text is empty
"""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from parley.base.errors import ScenarioError, several
from parley.base.toml import Lines, Location, read_text, read_toml, toml_key

MAX_PROBLEMS = 20
"""Further problems are only counted: a file of another kind has one in every line."""
ID_PATTERN = r"^[a-z0-9][a-z0-9-]*$"
REFUSED = "refused"
"""Error type of validators whose message is complete without the value."""
M = TypeVar("M", bound=BaseModel)
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


class UserFile:
    """The contents of a TOML file, or of a folder of them, and their problems.

    Args:
        name: The file or folder, for messages.
        table: The contents.
        lines: Their lines.
    """

    def __init__(self, name: str, table: dict[str, Any], lines: Lines) -> None:
        self.name, self.table, self._lines = name, table, lines
        self._lacking: list[str] = []
        self._problems: dict[str, None] = {}  # in order, each once

    @classmethod
    def read(cls, path: Path, kind: str) -> UserFile:
        """Read a file; ScenarioError if it cannot be read or is not TOML.

        Args:
            path: The file.
            kind: What it should be, for messages: "suite".
        """
        table = read_toml(path, kind)
        return cls(str(path), table, Lines({str(path): read_text(path)}))

    def validate(self, model: type[M]) -> M | None:
        """Validate the contents as a model; None if invalid, with the problems added.

        Args:
            model: The type of the contents.
        """
        try:
            return model.model_validate(self.table, context={"file": self.name})
        except ValidationError as error:
            self.invalid = tuple(tuple(problem["loc"]) for problem in error.errors())
            for problem in error.errors():
                # Pydantic does not count invalid rows, and so finds a list with such rows too short as well.
                short, loc = problem["type"] == "too_short", tuple(problem["loc"])
                if not (short and any(len(wrong) > len(loc) and wrong[: len(loc)] == loc for wrong in self.invalid)):
                    self._add_invalid(model, problem)
            return None

    invalid: tuple[Location, ...] = ()
    """Locations of invalid values."""

    def is_invalid(self, loc: Location) -> bool:
        """Whether a row or key was already reported as invalid."""
        return any(loc[: len(wrong)] == wrong or wrong[: len(loc)] == loc for wrong in self.invalid)

    def _add_invalid(self, model: type[BaseModel], problem: Mapping[str, Any]) -> None:
        loc = tuple(problem["loc"])
        *table, key = loc or ("",)
        if problem["type"] == "missing":
            lacking = _with_only_value(model, str(key)) if not table else str(key)
            if table:
                self._put(f"{self.words(tuple(table))} lacks {lacking}", loc)
            else:
                self._lacking.append(lacking)
        elif problem["type"] == "extra_forbidden":
            owner = _model_at(model, table)
            place = f"{self.words(tuple(table))} has an" if table else "there is an"
            self._put(f"{place} unknown key {key}{near_key(str(key), list(_keys(owner)) if owner else [])}", loc)
        elif problem["type"] == REFUSED:
            self.add(loc, problem["msg"])
        elif problem.get("ctx", {}).get("pattern") == ID_PATTERN:
            wrong = _BRIEF.repr(problem["input"])
            self.add(loc, f"expected lower-case letters, digits and hyphens, not {wrong}")
        else:
            expected = str(problem["msg"]).replace("Input should be", "expected")
            self.add(loc, f"{expected}, not {_BRIEF.repr(problem['input'])}" if loc else expected)

    def add(self, loc: Location, problem: str) -> None:
        """Add a problem.

        Args:
            loc: Its table and key.
            problem: What is wrong and what was expected.
        """
        self._put(f"{self.words(loc)}: {problem}" if loc else problem, loc)

    def _put(self, text: str, loc: Location) -> None:
        line = self._lines.line(loc)
        self._problems.setdefault(f"{line}: {text}" if line else text)

    def words(self, loc: Location) -> str:
        """A table and key in words, rows by their id or name: "scenario 'bus' text"."""
        words: list[str] = []
        row: Any = self.table
        for part in loc:
            try:
                row = row[part]
            except (KeyError, IndexError, TypeError):
                row = None
            if isinstance(part, str):
                words.append(toml_key(part))
                continue
            named = isinstance(row, dict) and (row.get("id") or row.get("name"))
            words.append(f"'{named}'" if isinstance(named, str) and named else str(part + 1))
        return " ".join(words)

    @property
    def has_problems(self) -> bool:
        """True if a problem was found."""
        return bool(self._lacking or self._problems)

    def refuse(self, error: type[Exception] = ScenarioError) -> None:
        """Raise an error with all problems, one per line, in the file's order, if there are any.

        Args:
            error: The type of the error.
        """
        ordered = sorted(self._problems, key=_line_number)
        lines = [f"{self.name}: {problem}" for problem in ordered[:MAX_PROBLEMS]]
        if self._lacking:
            lacking = " and ".join(filter(None, (", ".join(self._lacking[:-1]), self._lacking[-1])))
            lines.insert(0, f"{self.name} lacks {lacking}")
        if more := len(self._problems) - MAX_PROBLEMS:
            lines += [f"{self.name}: and {more} more problems"] if more > 0 else []
        if lines:
            raise several(error, lines)


def near_key(name: str, names: Sequence[str]) -> str:
    """The end of a message about an unknown key: the key probably meant, or all known keys."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean '{near[0]}'?" if near else f" (known: {', '.join(names)})" if names else ""


def _line_number(problem: str) -> int:
    match = re.search(r"\bline (\d+):", problem)
    return int(match[1]) if match else 0


def _keys(model: type[BaseModel]) -> Iterator[str]:
    return (field.alias or name for name, field in model.model_fields.items())


def _with_only_value(model: type[BaseModel], key: str) -> str:
    """A key, with its value if only one is possible: "schema = 1"."""
    field = next((field for name, field in model.model_fields.items() if key in (name, field.alias)), None)
    values = get_args(field.annotation) if field else ()
    return f"{key} = {values[0]}" if len(values) == 1 and isinstance(values[0], int) else key


def _model_at(model: type[BaseModel], loc: list[int | str]) -> type[BaseModel] | None:
    """The model of an inner table; None if it is not a model."""
    for part in (part for part in loc if isinstance(part, str)):
        field = next((field for name, field in model.model_fields.items() if part in (name, field.alias)), None)
        kinds = (field.annotation, *get_args(field.annotation)) if field else ()
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if inner is None:
            return None
        model = inner
    return model
