"""Writes files and folders completely or not at all, and overwrites only Parley's own.

    with new_file(Path("page.html"), ours=is_page) as file:
        file.write(page)

Outputs have a temporary name next to the target until they are complete.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from parley.base.errors import ConfigError, explain_unwritable

Ours = Callable[[Path], bool]
"""A function that tells whether an existing file or folder may be replaced."""


MANIFEST = "export.json"
"""The file that describes a dataset of `parley export`, in its folder."""
WITH_FORCE = "; choose another name with --to, or overwrite it with --force"


def nobodys(path: Path) -> bool:
    """The rule for targets that must not exist."""
    return False


def refuse(target: Path, ours: Ours, hint: str = "; choose another name") -> None:
    """Raise `ConfigError` if the target exists and may not be overwritten.

    Args:
        target: The file or folder.
        ours: Says whether an existing one may be overwritten.
        hint: What to do instead.
    """
    if os.path.lexists(target) and not ours(target):
        raise ConfigError(f"{target} already exists{hint}")


@contextmanager
def new_path(target: Path, ours: Ours = nobodys) -> Iterator[Path]:
    """The path of a file that gets the target's name at the end of the block, or is removed if the block fails.

    Args:
        target: The file.
        ours: Says whether an existing one may be overwritten.
    """
    refuse(target, ours)
    with explain_unwritable(target):
        part = unused_file(target)
    try:
        with explain_unwritable(target):
            yield part
            refuse(target, ours)
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_file(target: Path, ours: Ours = nobodys) -> Iterator[TextIO]:
    """A text file in UTF-8 that gets the target's name at the end of the block; see `new_path`."""
    with new_path(target, ours) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        yield file


@contextmanager
def new_folder(target: Path, ours: Ours = nobodys, *, within: Path | None = None) -> Iterator[Path]:
    """A folder that gets the target's name at the end of the block, or is removed if the block fails.

    Args:
        target: The folder.
        ours: Says whether an existing one may be replaced, with all that is in it.
        within: The temporary location; None: next to the target.
    """
    refuse(target, ours)
    with explain_unwritable(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        place = within or target.parent
        part, old = (Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=place)) for _ in range(2))
    try:
        with explain_unwritable(target):
            yield part
            _share(part, 0o777)
            refuse(target, ours)
            if target.exists():
                target.rename(old / target.name)
            part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_files(target: Path, ours: Ours) -> Iterator[Path]:
    """A folder whose files are moved to the target at the end of the block, those of its subfolders first.

    Files of the same names are replaced, and others in the target stay.

    Args:
        target: The folder.
        ours: Says whether files may be added to an existing one.
    """
    refuse(target, ours)
    with explain_unwritable(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as name:
            yield Path(name)
            refuse(target, ours)
            written = [path for path in Path(name).rglob("*") if path.is_file()]
            for path in sorted(written, key=lambda path: (-len(path.parts), path)):
                place = target / path.relative_to(name)
                place.parent.mkdir(parents=True, exist_ok=True)
                path.replace(place)


def unused_file(target: Path) -> Path:
    """An empty file next to the target, with an unused name."""
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(number)
    _share(Path(name), 0o666)
    return Path(name)


def _share(path: Path, mode: int) -> None:
    """Give files of `tempfile`, which are private, the permissions of new files."""
    os.umask(mask := os.umask(0))
    path.chmod(mode & ~mask)
