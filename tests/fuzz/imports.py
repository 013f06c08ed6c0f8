"""Targets: logs of Inspect AI (JSON and archives) and dumps of AutoGen, imported, reported and exported again.

Conversations are counted against the file: none is dropped without a word.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from parley import frames
from parley.interop import Imported, read_autogen, read_inspect, to_inspect, to_transcripts, write_run
from tests.fuzz import mutation, seeds
from tests.fuzz.files import PLACE, lines, made, target
from tests.fuzz.loop import Target
from tests.fuzz.runs import show_it
from tests.fuzz.workshop import write_eval

OUT = PLACE / "imported" / "run.sqlite"


def imported(read: Callable[[Path], Imported], path: Path) -> None:
    OUT.parent.mkdir(exist_ok=True)
    for old in OUT.parent.iterdir():
        old.unlink()
    units, failed = write_run(read(path), OUT)
    with frames.RunFile.open(OUT) as file:
        counts = file.counts()
    assert counts["failed"] == failed, "failed conversations are miscounted"
    assert counts["done"] + counts["failed"] == units, "a conversation was dropped without a word"
    frames.verdicts(OUT)
    if counts["done"]:
        show_it(OUT)
    to_inspect(OUT)
    for line in to_transcripts(OUT):
        line.encode()


def inspect(path: Path) -> None:
    imported(read_inspect, path)


def autogen(path: Path) -> None:
    imported(read_autogen, path)


def archive(rng: random.Random, kept: Sequence[bytes]) -> bytes:
    """An .eval with a member changed, its bytes changed, or claims about a member that are not true."""
    chosen = rng.choice(kept)
    kind = rng.random()
    if kind < 0.3:
        return mutation.raw(rng, chosen)
    try:
        with zipfile.ZipFile(io.BytesIO(chosen)) as old:
            members = {name: old.read(name) for name in old.namelist()}
    except Exception:  # what was broken before is broken further
        return mutation.raw(rng, chosen)
    name = rng.choice(list(members) or ["header.json"])
    if kind < 0.75:
        members[name] = made([], mutation.as_json)(rng, [members.get(name, b"{}")])
    elif kind < 0.85:
        members.pop(name, None)
    elif kind < 0.92:
        members[mutation.text(rng, [name])[:200] or "x"] = members.get(name, b"")
    else:
        members["samples/swollen.json"] = b" " * 40_000_000 + b"{}"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name.encode("utf-8", "replace").decode(), content)
    content = bytearray(out.getvalue())
    if kind > 0.97 and (at := content.find(b"PK\x01\x02")) > 0:
        content[at + 8] |= 1  # "encrypted"
        content[6] |= 1
    return bytes(content)


def archives() -> Target:
    path = PLACE / "inspect_eval" / "log.eval"
    path.parent.mkdir(exist_ok=True)
    write_eval(path, seeds.INSPECT)

    def feed(content: bytes) -> None:
        path.write_bytes(content)
        inspect(path)

    return Target("Inspect log, .eval", [path.read_bytes()], archive, feed, 0.5)


TARGETS = (
    target("Inspect log, .json", "inspect.json", inspect, [seeds.INSPECT], mutation.as_json, weight=0.5),
    archives(),
    target(
        "AutoGen, .json",
        "autogen.json",
        autogen,
        [seeds.AUTOGEN, seeds.TEAM, seeds.AUTOGEN["messages"]],
        mutation.as_json,
        weight=0.5,
    ),
    target(
        "AutoGen, .jsonl",
        "autogenl.jsonl",
        autogen,
        [[seeds.AUTOGEN, seeds.AUTOGEN["messages"]]],
        lines,
        json.dumps(seeds.TEAM) + "\n",
        weight=0.5,
    ),
)
