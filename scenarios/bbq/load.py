"""BBQ from files: a folder of the published JSONL, or a CSV such as MABRF's BBQ-Hard.

    bbq = load("path/to/BBQ/data")

A folder is searched with its subfolders for `*.jsonl`, for the authors' `additional_metadata.csv` (targets and name
templates, taken as they are) and for the templates of the two intersectional categories. A file that is corrupt, or
not BBQ, is refused with its line.
"""

from __future__ import annotations

import ast
import csv
import gc
import hashlib
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from parley.scenarios.bbq.rows import INTERSECTIONAL, PLACES, BbqRow, read_row
from parley.scenarios.bbq.targets import Template, Templates, by_name, target_of
from parley.scenarios.errors import ScenarioError

METADATA = "additional_metadata.csv"
NO_TARGET = ("", "na", "nan", "x", "none")


@dataclass(frozen=True, slots=True)
class Bbq:
    """The rows, where they came from (name → SHA-256), and how their targets were found."""

    rows: tuple[BbqRow, ...]
    sources: Mapping[str, str]
    targets: Mapping[str, int] = field(default_factory=dict)
    """Counts: `published`, `derived`, `none`, and `disagree` (published unlike what the row says)."""

    def with_rows(self, rows: Iterable[BbqRow]) -> Bbq:
        return Bbq(tuple(rows), self.sources, self.targets)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The authors' own word on a row."""

    target: int | None
    names: bool | None
    where: str


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing in here is circular, and looking for circles among so many tuples would double the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def load(data: str | Path, *, leave_out: Sequence[Path] = (), beside: str | Path | None = None) -> Bbq:
    """Rows of a folder, a .jsonl or a .csv file. `beside` is a folder with templates or metadata kept elsewhere."""
    path = Path(data)
    if path.is_dir():
        skipped = {one.resolve() for one in leave_out}
        files = [one for one in _found(path, "*.jsonl") if one.resolve() not in skipped]
        if not files:
            raise ScenarioError(f"{path}: no .jsonl file in it or below")
    elif path.is_file() and path.suffix in (".jsonl", ".csv"):
        files = [path]
    else:
        raise ScenarioError(f"{path}: no folder of BBQ's .jsonl files, and no .jsonl or .csv file either")
    folders = [path if path.is_dir() else path.parent, *([Path(beside)] if beside else [])]
    sources: dict[str, str] = {}
    with uncollected():
        rows: list[BbqRow] = []
        seen: dict[tuple[str, int], tuple[Path, int]] = {}
        for file in files:
            read, before = (_csv_rows if file.suffix == ".csv" else _json_rows), len(rows)
            for row, line in read(file, _bytes(file, sources)):
                first = seen.setdefault((row.category, row.example_id), (file, line))
                if first[1] != line or first[0] is not file:
                    raise ScenarioError(
                        f"{file}, line {line}: {row.category} {row.example_id} stands in {first[0].name}, "
                        f"line {first[1]}, too"
                    )
                rows.append(row)
            if len(rows) == before:
                raise ScenarioError(f"{file}: there is no row in it")
        needed = {row.category for row in rows}
        return settle(rows, sources, _metadata(folders, sources), _templates(folders, needed, sources))


def settle(
    rows: Sequence[BbqRow],
    sources: Mapping[str, str],
    metadata: Mapping[tuple[str, int], Metadata] | None = None,
    templates: Templates | None = None,
) -> Bbq:
    """The rows with their targets: the published one where there is one, else what the row says."""
    metadata, templates = metadata or {}, templates or {}
    counts = Counter[str]()
    settled = []
    for row in rows:
        target, names = target_of(row, templates), by_name(row, templates)
        told = metadata.get((row.category, row.example_id))
        if told is not None:
            if told.target == row.unknown:
                raise ScenarioError(
                    f"{told.where}: the target of {row.category} {row.example_id} is its unknown answer: "
                    "the file was made for other rows"
                )
            counts["disagree"] += target is not None and told.target != target
            target, names = told.target, names if told.names is None else told.names
        counts["none" if target is None else "derived" if told is None else "published"] += 1
        settled.append(BbqRow._make((*row[:-2], target, names)))
    return Bbq(tuple(settled), dict(sources), dict(counts))


def _found(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.rglob(pattern) if not path.name.startswith("."))


def _bytes(path: Path, sources: dict[str, str]) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    sources[path.name] = hashlib.sha256(content).hexdigest()
    return content


def _json_rows(path: Path, content: bytes) -> Iterator[tuple[BbqRow, int]]:
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield read_row(from_json(line)), number
        except ValueError as error:
            raise ScenarioError(f"{path}, line {number}: {_brief(error)}") from None


def _brief(error: ValueError) -> str:
    text = str(error).split("\n")[0]
    return re.sub(r" at line \d+ column (\d+)$", r" at column \1", text)


def _csv_rows(path: Path, content: bytes) -> Iterator[tuple[BbqRow, int]]:
    """BBQ flattened into columns, lists written as Python writes them."""
    for cells, line in _csv(path, content):
        try:
            yield read_row(_unflattened(cells)), line
        except ValueError as error:
            raise ScenarioError(f"{path}, line {line}: {_brief(error)}") from None


def _unflattened(cells: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {key: value for key, value in cells.items() if "." not in key}
    found["answer_info"] = {place: _list(cells, f"answer_info.{place}") for place in PLACES}
    found["additional_metadata"] = {
        "stereotyped_groups": _list(cells, "additional_metadata.stereotyped_groups"),
        "subcategory": cells.get("additional_metadata.subcategory", ""),
    }
    return found


def _list(cells: Mapping[str, str], key: str) -> list[str]:
    try:
        found = ast.literal_eval(cells[key])
    except KeyError:
        raise ValueError(f"the column '{key}' is missing: not BBQ") from None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, list) or not found:
        raise ValueError(f"'{key}' is not a list of texts")
    return found


def _csv(path: Path, content: bytes) -> Iterator[tuple[dict[str, str], int]]:
    try:
        reader = csv.DictReader(content.decode("utf-8-sig").splitlines(keepends=True))
        for cells in reader:
            yield {key: value or "" for key, value in cells.items() if key}, reader.line_num
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path}: not a CSV file ({error})") from None


def _metadata(folders: Sequence[Path], sources: dict[str, str]) -> dict[tuple[str, int], Metadata]:
    told: dict[tuple[str, int], Metadata] = {}
    for path in [path for folder in folders for path in _found(folder, METADATA)]:
        for cells, line in _csv(path, _bytes(path, sources)):
            where = f"{path}, line {line}"
            try:
                key = cells["category"], int(cells["example_id"])
                given = cells["target_loc"].strip()
                target = None if given.lower() in NO_TARGET else int(float(given))
            except (KeyError, ValueError, OverflowError):
                raise ScenarioError(f"{where}: category, example_id and target_loc were expected") from None
            if target not in (None, 0, 1, 2):
                raise ScenarioError(f"{where}: target_loc is {target}, not 0, 1 or 2")
            kind = cells.get("label_type", "").strip().lower()
            told[key] = Metadata(target, kind == "name" if kind in ("name", "label") else None, where)
    return told


def _templates(folders: Sequence[Path], needed: set[str], sources: dict[str, str]) -> dict[tuple[str, int], Template]:
    found: dict[tuple[str, int], Template] = {}
    for category in sorted(needed & set(INTERSECTIONAL)):
        for path in [path for folder in folders for path in _found(folder, f"*{category}.csv")]:
            for cells, line in _csv(path, _bytes(path, sources)):
                try:
                    question, trait = int(cells["Q_id"]), cells["Known_stereotyped_var2"].strip()
                    names = cells["Proper_nouns_only"].strip().lower() == "true"
                except (KeyError, ValueError):
                    raise ScenarioError(
                        f"{path}, line {line}: not a template of {category} (Q_id, Known_stereotyped_var2 and "
                        "Proper_nouns_only were expected)"
                    ) from None
                found[category, question] = Template(trait, names)
    return found
