"""The example: real runs that ship with the package, so that viewer and reports have something to show from the start.

    runs = example_runs()        # {"silent": …/example/silent.sqlite, "talking": …/example/talking.sqlite}

The package has them compressed; they are unpacked to Parley's home, never among the user's runs, and opened there.
`python -m docs.example --silent RUN --talking RUN` packs other ones. The first run's report page is shipped too, since
making it takes seconds.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from importlib.resources import files
from pathlib import Path
from typing import Any

from parley.base.errors import ParleyError
from parley.base.files import new_path
from parley.base.home import home
from parley.base.toml import parse_toml

FOLDER = "examples"
INDEX = "examples.toml"
PAGE = ".page.json.xz"
MARK = "This is an example that ships with Parley, not one of your runs."


def example_runs() -> dict[str, Path]:
    """The runs of the example by name, unpacked if missing or changed."""
    folder = example_folder()
    packed = files("parley.runs").joinpath(FOLDER)
    index: dict[str, Any] = parse_toml(packed.joinpath(INDEX).read_text("utf-8"))
    runs = {name: folder / f"{name}.sqlite" for name in index}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in runs.items():
            if not path.is_file() or _sha256(path.read_bytes()) != index[name]["sha256"]:
                _unpack(packed.joinpath(f"{name}.sqlite.xz").read_bytes(), path, index[name]["sha256"])
    except OSError as error:
        raise ParleyError(f"the example cannot be unpacked to {folder}: {error.strerror}") from None
    return runs


def example_folder() -> Path:
    """The folder of the unpacked example."""
    return home() / "example"


def is_example(path: Path) -> bool:
    """True for the example's runs and their folder."""
    folder = example_folder().resolve()
    return folder in (path.resolve(), path.resolve().parent)


def shipped_page(path: Path) -> dict[str, Any]:
    """Entries of the viewer's cache for a run of the example, by key; empty for any other run.

    Args:
        path: The run file.
    """
    packed = files("parley.runs").joinpath(FOLDER, f"{path.stem}{PAGE}")
    if not is_example(path) or not packed.is_file():
        return {}
    page: dict[str, Any] = json.loads(lzma.decompress(packed.read_bytes()))
    return page


def _unpack(packed: bytes, path: Path, sha256: str) -> None:
    try:
        data = lzma.decompress(packed)
    except lzma.LZMAError:
        data = b""
    if _sha256(data) != sha256:
        raise ParleyError(f"the example {path.stem} of this installation is damaged: install Parley again")
    with new_path(path, Path.is_file) as part:
        part.write_bytes(data)
        part.chmod(0o444)  # nobody should add to it by mistake


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
