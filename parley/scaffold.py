"""A study of one's own, begun: a small package with a study, its prompt, a test and an entry point.

parley new study warm-letters --to .
"""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path

from parley.agents import ConfigError, ParleyError
from parley.studies import known_studies

PLACES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "study.py.txt": "__PACKAGE__/study.py",
    "ask.txt": "__PACKAGE__/ask.txt",
    "test_study.py.txt": "tests/test_study.py",
}


def new_study(name: str, parent: Path = Path()) -> list[Path]:
    """Writes the package `name` into a new folder of that name, and gives its files."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"a study's name is lower-case words with hyphens, like warm-letters, not '{name}'")
    package = name.replace("-", "_")
    if name in known_studies():
        raise ConfigError(f"there is a study '{name}' already; take another name")
    if keyword.iskeyword(package):
        raise ConfigError(f"'{name}' means something in Python; take another name")
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
        start = folder / package / "__init__.py"
        start.write_text(f'"""{values["__TITLE__"]}: a study for Parley."""\n', "utf-8")
    except FileExistsError:
        raise ConfigError(f"{folder} is there already; nothing was written") from None
    except OSError as error:
        raise ParleyError(f"{folder} cannot be written: {error.strerror}") from None
    return [*written, start]


def class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def _write(folder: Path, source: str, place: str, values: dict[str, str]) -> Path:
    text = files("parley").joinpath("templates", "study", source).read_text("utf-8")
    for mark, value in values.items():
        text, place = text.replace(mark, value), place.replace(mark, value)
    target = folder / place
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, "utf-8")
    return target
