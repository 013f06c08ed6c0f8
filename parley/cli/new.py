"""`parley new`: templates that are complete and ready to run.

parley new study warm-letters        # a package: a study, its prompt, a test and an entry point
parley new scenarios my.toml         # a file; likewise identities and wordings
parley new scenarios --from notes.csv
"""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import Field

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional
from parley.runs.studies import known_studies
from parley.scenarios import SHIPPED, Suite, load_suite
from parley.scenarios.from_csv import suite_from_csv

PLACES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "study.py.txt": "__PACKAGE__/study.py",
    "ask.txt": "__PACKAGE__/ask.txt",
    "report.py.txt": "__PACKAGE__/report.py",
    "test_study.py.txt": "tests/test_study.py",
}
EXAMPLES = ("childcare", "engineering", "fitness", "kitchen", "law", "nursing")
"""The bases whose first scenarios are the examples in a new file of scenarios."""


class New(Command):
    """Start a study of your own, or a file of scenarios, identities or wordings."""

    what: Positional[Literal["study", "scenarios", "identities", "wordings"]] = Field(description="what to create")
    name: Positional[str | None] = Field(
        None, description="for a study, its name in lower-case words with hyphens; otherwise the .toml file to write"
    )
    spreadsheet: Path | None = Field(
        None,
        alias="from",
        title="CSV",
        description="a CSV file with the columns base, text and response (and response_2), for scenarios",
    )
    to: Path = Field(Path(), title="DIR", description="the folder to create it in (default: the current one)")

    def answer(self) -> Answer:
        if self.spreadsheet and self.what != "scenarios":
            raise ConfigError(f"--from is for scenarios, not for {self.what}")
        name = self.name or (self.spreadsheet and f"{self.spreadsheet.stem}.toml")
        if not name:
            raise ConfigError(f"a name is missing: parley new {self.what} NAME")
        if self.what == "study":
            written = new_study(name, self.to)
            study = next(path for path in written if path.name == "study.py")
            lines = [
                f"\nrun it:      parley run {study}:{class_name(name)} --model sim/judge --report",
                f"install it:  pip install --no-deps -e {written[0].parent}    then: parley run {name}",
            ]
        else:
            suite = suite_from_csv(self.spreadsheet) if self.spreadsheet else None
            written = [new_file(self.what, self.to / name, suite)]
            command = re.search(r"parley run .*", written[0].read_text("utf-8"))
            flaws = sum(len(graded.flaw) for graded in suite.graded) if suite else 0
            lines = [
                f"\n{plural(flaws, 'graded answer')} made by rule: read each, and mend or delete it" if flaws else "",
                f"edit it, then check it:  parley scenarios validate {written[0]}",
                f"and run it:              {command.group() if command else ''}",
            ]
        return Answer(written, [*map(str, written), *lines])


def new_file(kind: str, path: Path, suite: Suite | None = None) -> Path:
    """Write a complete file of scenarios, identities or wordings, with comments, and return its path.

    Args:
        kind: The kind of file: scenarios, identities or wordings.
        path: The file to write.
        suite: The scenarios, in place of examples.
    """
    if path.suffix != ".toml":
        raise ConfigError(f"{path}: the file's name must end in .toml")
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "mine"
    head = files("parley.cli").joinpath("templates", "files", f"{kind}.txt").read_text("utf-8")
    text = head.replace("__FILE__", str(path)).replace("__NAME__", name)
    if kind == "scenarios":
        text = _filled(text, suite) if suite else text + _example_scenarios()
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} already exists; nothing was written") from None
    except OSError as error:
        raise ParleyError(f"{path} cannot be written: {error.strerror}") from None
    return path


def _filled(head: str, suite: Suite) -> str:
    """A suite below the first comment of the template."""
    single = any(len(scenario.responses) == 1 for scenario in suite.scenario)
    comment = head.partition("\n\n")[0].replace("gender", "gender --phases 1" if single else "gender")
    return f"{comment}\n\n{suite.to_toml()}"


def _example_scenarios() -> str:
    """Bases of the shipped suite, each with its first scenario."""
    shipped = load_suite(SHIPPED)[0].only(EXAMPLES, per_base=1)
    rows = []
    for scenario in shipped.scenario:
        part = Suite(schema=1, name="", version="", base=(shipped.base_of(scenario),), scenario=(scenario,))
        toml = part.to_toml()
        rows.append(toml[toml.index("[[base]]") :])
    return "\n".join(rows)


def new_study(name: str, parent: Path = Path()) -> list[Path]:
    """Write the package of a new study, and return its files.

    Args:
        name: The study's name: lower-case words with hyphens. The folder has the same name.
        parent: The parent folder.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"a study's name must be lower-case words with hyphens, like warm-letters, got '{name}'")
    package = name.replace("-", "_")
    if name in known_studies():
        raise ConfigError(f"a study '{name}' already exists; choose another name")
    if keyword.iskeyword(package):
        raise ConfigError(f"'{name}' is a Python keyword; choose another name")
    values = {
        "__NAME__": name,
        "__PACKAGE__": package,
        "__CLASS__": class_name(name),
        "__TITLE__": name.replace("-", " ").capitalize(),
    }
    folder = parent / name
    try:
        folder.mkdir(parents=True)
        written = [_write(folder, source, place, values) for source, place in PLACES.items()]
        init = folder / package / "__init__.py"
        init.write_text(f'"""{values["__TITLE__"]}: a study for Parley."""\n', "utf-8")
    except FileExistsError:
        raise ConfigError(f"{folder} already exists; nothing was written") from None
    except OSError as error:
        raise ParleyError(f"{folder} cannot be written: {error.strerror}") from None
    return [*written, init]


def class_name(name: str) -> str:
    """The class for a study's name: WarmLetters for warm-letters."""
    return "".join(word.capitalize() for word in name.split("-"))


def _write(folder: Path, source: str, place: str, values: dict[str, str]) -> Path:
    text = files("parley.cli").joinpath("templates", "study", source).read_text("utf-8")
    for placeholder, value in values.items():
        text, place = text.replace(placeholder, value), place.replace(placeholder, value)
    target = folder / place
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, "utf-8")
    return target
