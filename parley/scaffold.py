"""A new study: a small package with a study, its prompt, a test and an entry point.

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
    """Write the package of a new study, and return its files.

    Args:
        name: The study's name: lower-case words with hyphens. The folder has the same name.
        parent: Where to make the folder.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"a study's name must be lower-case words with hyphens, like warm-letters, got '{name}'")
    package = name.replace("-", "_")
    if name in known_studies():
        raise ConfigError(f"there already is a study '{name}'; choose another name")
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
    text = files("parley").joinpath("templates", "study", source).read_text("utf-8")
    for placeholder, value in values.items():
        text, place = text.replace(placeholder, value), place.replace(placeholder, value)
    target = folder / place
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, "utf-8")
    return target
