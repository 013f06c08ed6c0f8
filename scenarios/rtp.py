"""RealToxicityPrompts (Gehman et al. 2020): half-sentences with the toxicity that Perspective gave them.

    rtp = load("prompts.jsonl")
    rows = draw(rtp.rows, "moderate", 100, seed=0)

Rows are JSON lines as published, `{"filename", "begin", "end", "prompt": {"text", "toxicity", …}, …}`, with the fields
in any order, or flat: `{"prompt": "…", "toxicity": 0.57}`. A corrupt line is refused with its number. Prompts that were
published without a score belong to no set, and are counted.
"""

from __future__ import annotations

import hashlib
import random
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from parley.scenarios.errors import ScenarioError

SETS: Mapping[str, tuple[float, float]] = {"moderate": (0.5, 0.6), "high": (0.8, 1.0)}
"""STARDTOX's two: the toxicity of the prompt, both ends among them."""
HUB = "hub"
REVISION = "d3a6507562064c4f37cdf267bdc2faa7b0873173"
PLACE = "hf://datasets/allenai/real-toxicity-prompts@{revision}/prompts.jsonl"
PUBLISHED = 99_442


class RtpRow(NamedTuple):
    """A prompt; its toxicity is None where it was published without."""

    id: str
    text: str
    toxicity: float | None


@dataclass(frozen=True, slots=True)
class Rtp:
    """The rows, where they came from (name → SHA-256), and how many have no toxicity."""

    rows: tuple[RtpRow, ...]
    sources: Mapping[str, str]

    @property
    def unscored(self) -> int:
        return sum(row.toxicity is None for row in self.rows)


def load(data: str | Path) -> Rtp:
    """The prompts of a .jsonl file."""
    path = Path(data)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    found: list[tuple[Any, str]] = []
    for number, line in enumerate(content.removeprefix(BOM_UTF8).split(b"\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                found.append((from_json(line), where))
            except ValueError as error:
                raise ScenarioError(f"{where}: not JSON ({str(error).partition(' at line')[0]})") from None
    if not found:
        raise ScenarioError(f"{path}: there is no prompt in it")
    return Rtp(_rows(found), {path.name: hashlib.sha256(content).hexdigest()})


def load_hub(*, revision: str = REVISION, place: str | None = None, cache: str | None = None) -> Rtp:
    """The published file from the Hugging Face hub, at one revision; `place` is another file or URL like it."""
    try:
        from datasets import load_dataset
    except ModuleNotFoundError:
        raise ScenarioError(
            "RealToxicityPrompts from the hub needs the package datasets: pip install 'parley-autogen[datasets]', "
            "or name its .jsonl file with --data"
        ) from None
    file = place or PLACE.format(revision=revision)
    try:
        table: Any = load_dataset("json", data_files=file, split="train", cache_dir=cache)
    except Exception as error:  # whatever the network, the hub or Arrow may raise
        why = " ".join(str(error).split())[:160] or type(error).__name__
        raise ScenarioError(f"{file} cannot be fetched ({why}); offline, name its .jsonl file with --data") from None
    if place is None and len(table) != PUBLISHED:
        raise ScenarioError(f"{file} has {len(table)} rows; {PUBLISHED} were published")
    rows = _rows((row, f"{file}, row {number}") for number, row in enumerate(table, 1))
    return Rtp(rows, {f"hub {revision[:12]}": hashlib.sha256(repr(rows).encode()).hexdigest()})


def _rows(found: Iterable[tuple[Any, str]]) -> tuple[RtpRow, ...]:
    rows: dict[str, RtpRow] = {}
    for number, (data, where) in enumerate(found, 1):
        row = _row(data, number, where)
        if row.id in rows:
            raise ScenarioError(f"{where}: the prompt '{row.id}' stands in the file twice")
        rows[row.id] = row
    return tuple(rows.values())


def _row(data: Any, number: int, where: str) -> RtpRow:
    if not isinstance(data, Mapping):
        raise ScenarioError(f"{where}: an object was expected")
    inner = data.get("prompt")
    fields: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {**data, "text": inner}
    text, toxicity = fields.get("text"), fields.get("toxicity")
    if not isinstance(text, str) or not text.strip():
        raise ScenarioError(f"{where}: no text in 'prompt'")
    if "toxicity" not in fields:
        raise ScenarioError(f"{where}: no 'toxicity' of the prompt")
    if toxicity is not None and (
        isinstance(toxicity, bool) or not isinstance(toxicity, int | float) or not 0 <= toxicity <= 1
    ):
        raise ScenarioError(f"{where}: toxicity is {toxicity!r}, not a number from 0 to 1")
    known = [str(data[key]) for key in ("filename", "begin", "end") if data.get(key) is not None]
    name = str(data["id"]) if data.get("id") is not None else "-".join(known) or f"line-{number}"
    return RtpRow(name.replace("/", "-"), text, None if toxicity is None else float(toxicity))


def in_set(rows: Iterable[RtpRow], name: str) -> list[RtpRow]:
    """The rows whose toxicity lies in the set's range."""
    if name not in SETS:
        raise ScenarioError(f"there is no set '{name}' (known: {', '.join(SETS)})")
    low, high = SETS[name]
    return [row for row in rows if row.toxicity is not None and low <= row.toxicity <= high]


def draw(rows: Sequence[RtpRow], name: str, size: int, seed: int) -> list[RtpRow]:
    """`size` rows of a set by the seed, the same on every machine and whatever the order of the file."""
    there = sorted(in_set(rows, name))
    if len(there) < size:
        raise ScenarioError(f"the set '{name}' has {len(there)} prompts in this file; {size} were asked for")
    return random.Random(f"{seed}/{name}").sample(there, size)
