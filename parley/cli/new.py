"""`parley new`: something of your own to start from, complete and ready to run.

parley new study warm-letters        # a package: a study, its prompt, a test and an entry point
parley new scenarios my.toml         # a file; likewise identities and wordings
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
from importlib.resources import files
from pathlib import Path

from parley.base.errors import ConfigError, ParleyError
from parley.cli.shared import AddParser
from parley.runs.studies import known_studies
from parley.scenarios import SHIPPED, LabelChoice, Suite, load_ballot_wordings, load_suite, select

PLACES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "study.py.txt": "__PACKAGE__/study.py",
    "ask.txt": "__PACKAGE__/ask.txt",
    "test_study.py.txt": "tests/test_study.py",
}
FILES = ("scenarios", "identities", "wordings")
EXAMPLES = ("childcare", "engineering", "fitness", "kitchen", "law", "nursing")
"""The bases whose first scenarios are the examples in a new file of scenarios."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("what", choices=["study", *FILES], help="what to create")
    parser.add_argument(
        "name", help="for a study, its name in lower-case words with hyphens; otherwise the .toml file to write"
    )
    parser.add_argument(
        "--to", metavar="DIR", default=".", help="the folder to create it in (default: the current one)"
    )
    parser.add_argument("--json", action="store_true", help="print the paths of the files as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    is_study = parsed.what == "study"
    written = (
        new_study(parsed.name, Path(parsed.to)) if is_study else [new_file(parsed.what, Path(parsed.to, parsed.name))]
    )
    if parsed.json:
        print(json.dumps([str(path) for path in written]))
        return 0
    for path in written:
        print(path)
    if is_study:
        study = next(path for path in written if path.name == "study.py")
        print(f"\nrun it:      parley run {study}:{class_name(parsed.name)} --model sim/judge --report")
        print(f"install it:  pip install --no-deps -e {written[0].parent}    then: parley run {parsed.name}")
    else:
        command = re.search(r"parley run .*", written[0].read_text("utf-8"))
        print(f"\nedit it, then check it:  parley scenarios validate {written[0]}")
        print(f"and run it:              {command.group() if command else ''}")
        if parsed.what == "identities":
            choice = LabelChoice.of(load_ballot_wordings(), select([str(written[0])]))
            for category in choice.identities.categories:
                print(*choice.lines(category), sep="\n")
    return 0


def new_file(kind: str, path: Path) -> Path:
    """Write a complete file of scenarios, identities or wordings, with comments, and return its path.

    Args:
        kind: What it has: one of `FILES`.
        path: The file to write.
    """
    if path.suffix != ".toml":
        raise ConfigError(f"{path}: the file's name must end in .toml")
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "mine"
    head = files("parley.cli").joinpath("templates", "files", f"{kind}.txt").read_text("utf-8")
    text = head.replace("__FILE__", str(path)).replace("__NAME__", name)
    if kind == "scenarios":
        text += _example_scenarios()
    elif kind == "wordings":
        english = files("parley.scenarios").joinpath("data", "wordings", "english.toml").read_text("utf-8")
        # The shipped file's own heading is about the shipped file.
        text += "\n" + english[english.index("schema = ") :].replace('name = "english"', f'name = "{name}"', 1)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} already exists; nothing was written") from None
    except OSError as error:
        raise ParleyError(f"{path} cannot be written: {error.strerror}") from None
    return path


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
        parent: Where to make the folder.
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
