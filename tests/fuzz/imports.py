"""Targets: logs of Inspect AI (JSON and .eval archives) and of AutoGen: imported, shown and exported again.

Imported conversations are counted, so that none is dropped silently.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from parley.imports import Imported, read_autogen, read_inspect, write_run
from parley.reports.export import to_inspect, to_transcripts
from parley.runs import frames
from tests.fuzz import mutation, seeds
from tests.fuzz.files import FOLDER, as_file, as_jsonl, file_mutator, target
from tests.fuzz.loop import Target
from tests.fuzz.runs import show_run
from tests.fuzz.workshop import write_eval

OUT = FOLDER / "imported" / "run.sqlite"


def import_log(read: Callable[[Path], Imported], path: Path) -> None:
    OUT.parent.mkdir(exist_ok=True)
    for old in OUT.parent.iterdir():
        old.unlink()
    units, failed = write_run(read(path), OUT)
    with frames.RunFile.open(OUT) as file:
        counts = file.counts()
    assert counts["failed"] == failed, "failed conversations are miscounted"
    assert counts["done"] + counts["failed"] == units, "a conversation was dropped silently"
    frames.verdicts(OUT)
    if counts["done"]:
        show_run(OUT)
    to_inspect(OUT)
    for line in to_transcripts(OUT):
        line.encode()


def inspect(path: Path) -> None:
    import_log(read_inspect, path)


def autogen(path: Path) -> None:
    import_log(read_autogen, path)


def mutate_archive(rng: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Changes the archive's bytes, the text of a member, its name, its size or its flags."""
    content = rng.choice(corpus)
    kind = rng.random()
    if kind < 0.3:
        return mutation.raw(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    name = rng.choice(list(members))
    if kind < 0.75:
        members[name] = file_mutator([], mutation.as_json)(rng, [members[name]])
    elif kind < 0.85:
        del members[name]
    elif kind < 0.92:
        members[mutation.text(rng, [name]).replace("\0", "")[:200] or "x"] = members[name]
    else:
        members["samples/padded.json"] = b" " * 40_000_000 + b"{}"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name, member in members.items():
            new.writestr(name.encode("utf-8", "replace").decode(), member)
    changed = bytearray(out.getvalue())
    if kind > 0.97 and (offset := changed.find(b"PK\x01\x02")) > 0:
        changed[offset + 8] |= 1  # "encrypted"
        changed[6] |= 1
    return bytes(changed)


def archive_target() -> Target:
    path = FOLDER / "inspect_eval" / "inspect_eval.eval"
    path.parent.mkdir(exist_ok=True)
    write_eval(path, seeds.INSPECT)

    return Target("Inspect log, .eval", [path.read_bytes()], mutate_archive, as_file("inspect_eval.eval", inspect))


TARGETS = (
    target("Inspect log, .json", "inspect.json", inspect, [seeds.INSPECT], mutation.as_json),
    archive_target(),
    target(
        "AutoGen, .json",
        "autogen.json",
        autogen,
        [seeds.AUTOGEN, seeds.TEAM, seeds.AUTOGEN["messages"]],
        mutation.as_json,
    ),
    target(
        "AutoGen, .jsonl",
        "autogenl.jsonl",
        autogen,
        [[seeds.AUTOGEN, seeds.AUTOGEN["messages"]]],
        as_jsonl,
        texts=[json.dumps(seeds.TEAM) + "\n"],
    ),
)
