"""The cases of `cases.toml`: commands that a user could type, in one folder, whose results are recorded together."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

RUN = "run {} --quiet --out run.sqlite"
REPORT = "report run.sqlite --json --out page"


@dataclass(frozen=True, slots=True)
class Case:
    """Commands whose results are recorded together."""

    name: str
    commands: tuple[str, ...]

    @property
    def studies(self) -> tuple[str, ...]:
        """The studies that the commands run."""
        words = map(shlex.split, self.commands)
        return tuple(word[1] for word in words if word[0] == "run")


def _read() -> tuple[Case, ...]:
    table: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))
    models = table.pop("models")
    cases = []
    for name, about in table.items():
        run = [RUN.format(" ".join(about["run"].split())), REPORT] if "run" in about else []
        commands = (*run, *about.get("commands", ()))
        cases.append(Case(name, tuple(Template(command).substitute(models) for command in commands)))
    return tuple(cases)


CASES = _read()
