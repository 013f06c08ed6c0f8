"""Small files that unpack into huge ones are refused in one line, before they fill the memory or the disk."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.imports import inspect_logs

LOG = Path(__file__).parent / "data" / "inspect-0.3.285.json"
MEMORY = 300 * 2**20
"""What importing a small log may take, the interpreter and its libraries included."""


def declare(path: Path, name: str, size: int) -> None:
    """Let the archive say that a member is this large, in its directory and before its data."""
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = data.index(mark)
        while data[start + (46 if mark[2] == 1 else 30) :][: len(name)] != name.encode():
            start = data.index(mark, start + 4)
        struct.pack_into("<I", data, start + at, size)
    path.write_bytes(data)


def bomb(path: Path, method: int, member: str, size: int) -> None:
    """A log whose member unpacks to `size` bytes of white space; the others are sound."""
    log = json.loads(LOG.read_text("utf-8"))
    samples = log.pop("samples")
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
        if member != "header.json":
            archive.writestr("header.json", json.dumps(log))
        archive.writestr("samples/1.json", json.dumps(samples[0]))
        with archive.open(member, "w", force_zip64=False) as file:
            for _ in range(size // 2**20):
                file.write(b" " * 2**20)


MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(status, peak * (1 if sys.platform == "darwin" else 1024))
"""
"""Between this process and the command: a child's peak starts with the memory of its parent, which may be large."""


def import_log(path: Path) -> tuple[int, str, int]:
    """Status, stderr and the peak memory, in bytes, of the command in a process of its own."""
    script = "import sys; from parley.cli import main; sys.stdout = sys.stderr; sys.exit(main())"
    command = [sys.executable, "-P", "-c", script, "import", "inspect", str(path), "--out", "run.sqlite"]
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *command], capture_output=True, text=True, check=True)
    status, peak = map(int, done.stdout.split())
    return status, done.stderr, peak


ZSTANDARD = 93


@pytest.mark.parametrize(
    ("method", "member"),
    [
        (zipfile.ZIP_DEFLATED, "header.json"),
        pytest.param(zipfile.ZIP_DEFLATED, "samples/2.json", marks=pytest.mark.nightly),
        pytest.param(ZSTANDARD, "header.json", marks=pytest.mark.nightly),
        (ZSTANDARD, "samples/2.json"),
    ],
)
def test_a_log_that_unpacks_into_much_takes_little_memory(place: Path, method: int, member: str) -> None:
    """Also if it states a small size for what is large."""
    if method == ZSTANDARD:
        pytest.importorskip("zipfile_zstd")
    path = place / "bomb.eval"
    bomb(path, method, member, 300 * 2**20)
    assert path.stat().st_size < 2 * 2**20

    status, said, memory = import_log(path)
    assert memory < MEMORY, f"{memory / 2**20:.0f} MB"
    assert (status, said.count("\n")) == (2, 1), said
    assert f"{path}: {member} has 300 MiB unpacked, more than the 64 MiB that are read" in said

    declare(path, member, 1000)
    status, said, memory = import_log(path)
    assert memory < MEMORY, f"{memory / 2**20:.0f} MB"
    assert (status, said.count("\n")) == (2, 1), said
    assert f"{path}: {member} cannot be unpacked (" in said
    assert not (place / "run.sqlite").exists()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_log_in_a_compression_that_inspect_does_not_use(parley: Callable[..., Any], place: Path, method: int) -> None:
    """These unpack without a limit on one step."""
    path = place / "bomb.eval"
    bomb(path, method, "samples/2.json", 2**20)
    result = parley("import", "inspect", path, "--out", "run.sqlite")
    assert (result.status, result.err.count("\n")) == (2, 1), result.err
    assert "is compressed in a way that Inspect does not use" in result.err


def test_many_samples_that_are_small_one_by_one(
    parley: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_logs, "MAX_UNPACKED", 2 * 2**20)
    log = json.loads(LOG.read_text("utf-8"))
    sample = log.pop("samples")[0]
    path = place / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", json.dumps(log))
        for number in range(9):
            sample["id"] = number
            archive.writestr(f"samples/{number}.json", json.dumps(sample) + " " * 2**20)

    result = parley("import", "inspect", path, "--out", "run.sqlite")

    assert (result.status, result.err.count("\n")) == (2, 1), result.err
    assert f"{path} unpacks to more than 2 MiB and 100 times its size" in result.err
    assert not (place / "run.sqlite").exists()


def test_prompts_that_refer_to_the_same_messages_over_and_over(parley: Callable[..., Any], place: Path) -> None:
    """Inspect stores the messages of prompts once, and prompts as ranges of them."""
    log = json.loads(LOG.read_text("utf-8"))
    sample = next(one for one in log["samples"] if not one.get("error"))
    pool = [{"role": "user", "content": "x"}] * 10_000
    reply = {"message": {"role": "assistant", "content": "y", "id": "z"}}
    event = {"event": "model", "output": {"choices": [reply]}, "input_refs": [[0, 10_000]] * 10_000}
    sample["events"], sample["events_data"] = [event], {"messages": pool}
    log["samples"] = [sample]
    path = place / "log.json"
    path.write_text(json.dumps(log))

    result = parley("import", "inspect", path, "--out", "run.sqlite")

    assert (result.status, result.err.count("\n")) == (2, 1), result.err
    assert "has prompts of more than 500,000 messages" in result.err


def test_a_large_log_that_is_honest_is_read(parley: Callable[..., Any], place: Path) -> None:
    log = json.loads(LOG.read_text("utf-8"))
    sample = log.pop("samples")[0]
    sample["messages"] = [{"role": "user", "content": os.urandom(2**20).hex()} for _ in range(10)]
    with zipfile.ZipFile(place / "log.eval", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", json.dumps(log))
        archive.writestr("samples/1.json", json.dumps(sample))
    assert parley("import", "inspect", "log.eval", "--out", "a.sqlite").status == 0
