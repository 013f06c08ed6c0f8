"""The hashes of weights, computed once for every change of a file: a run records which weights it was made with."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from parley.base.home import home

PATTERNS = ("*.safetensors", "*.bin", "*.gguf")
"""The files of a transformers folder with weights."""


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file. It is computed again when size, times or inode differ from those it was computed for."""
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
    with suppress(OSError):  # where nothing can be written, it is computed again
        record.parent.mkdir(parents=True, exist_ok=True)
        part = record.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps({"path": str(path), "stamp": _stamp(path), "sha256": digest}), "utf-8")
        part.replace(record)


def _record(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    return home() / "hashes" / f"{name[:32]}.json"


def _stamp(path: Path) -> list[int]:
    file = path.stat()
    return [file.st_size, file.st_mtime_ns, file.st_ctime_ns, file.st_ino]


def weights_sha256(name: str) -> str | None:
    """The SHA-256 of a model's weights; None if they are not on this machine (a server's model, the hub's, none).

    Args:
        name: The model, as `provider/model?option=value`.
    """
    from parley.agents.models.catalogue import catalogue  # it hashes what it fetches with this module

    provider, _, model = name.partition("?")[0].partition("/")
    if provider not in ("local", "hf"):
        return None
    if model in catalogue():
        return catalogue()[model].sha256  # no other file is loaded under this name
    path = Path(model).expanduser()
    if provider == "local":
        file = path / "model.gguf" if path.is_dir() else path
        return sha256_of(file) if file.is_file() else None
    files = sorted(file for pattern in PATTERNS for file in path.glob(pattern)) if path.is_dir() else []
    lines = "".join(f"{sha256_of(file)}  {file.name}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest() if files else None
