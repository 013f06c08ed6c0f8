"""Targets: logs of Inspect AI (JSON and .eval archives) and of AutoGen: imported, shown and exported again.

Imported conversations are counted, so that none is dropped silently.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from parley.imports import Imported, read_autogen, read_inspect, write_run
from parley.reports.export import to_inspect, to_transcripts
from parley.runs import frames
from tests.fuzz import seeds
from tests.fuzz.checking import Target
from tests.fuzz.files import FOLDER, as_file, target
from tests.fuzz.runs import show_run
from tests.fuzz.strategies import as_json, as_jsonl, choose, edited_bytes, edited_file, edited_text, often
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


@st.composite
def edited_archive(draw: st.DrawFn, content: bytes) -> bytes:
    """Changes the archive's bytes, the text of a member, its name, its size or its flags."""
    if often(draw, 30):
        return draw(edited_bytes([content]))
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    name = choose(draw, list(members))
    edit = choose(draw, ("content", "content", "content", "remove", "rename", "pad", "encrypt"))
    if edit == "content":
        members[name] = draw(edited_file([], as_json, [members[name]]))
    elif edit == "remove":
        del members[name]
    elif edit == "rename":
        members[draw(edited_text([name])).replace("\0", "")[:200] or "x"] = members[name]
    elif edit == "pad":
        members["samples/padded.json"] = b" " * 40_000_000 + b"{}"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name, member in members.items():
            new.writestr(name.encode("utf-8", "replace").decode(), member)
    changed = bytearray(out.getvalue())
    if edit == "encrypt" and (offset := changed.find(b"PK\x01\x02")) > 0:
        changed[offset + 8] |= 1  # "encrypted"
        changed[6] |= 1
    return bytes(changed)


def archive_target() -> Target:
    path = FOLDER / "inspect_eval" / "inspect_eval.eval"
    path.parent.mkdir(exist_ok=True)
    write_eval(path, seeds.INSPECT)

    content = path.read_bytes()
    return Target("Inspect log, .eval", [content], edited_archive(content), as_file("inspect_eval.eval", inspect))


TARGETS = (
    target("Inspect log, .json", "inspect.json", inspect, [seeds.INSPECT], as_json),
    archive_target(),
    target(
        "AutoGen, .json",
        "autogen.json",
        autogen,
        [seeds.AUTOGEN, seeds.TEAM, seeds.AUTOGEN["messages"]],
        as_json,
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
