"""BBQ from files (a folder of the published JSONL, or a CSV such as MABRF's BBQ-Hard), or from the Hugging Face hub.

    bbq = load("path/to/BBQ/data")

A folder and its subfolders are searched for `*.jsonl`, for the authors' `additional_metadata.csv` (targets and name
templates, used as they are) and for the templates of the two intersectional categories. A file that is corrupt, or not
BBQ, is an error that names the line. The hub's revision is fixed, and every count is checked.
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

from parley.base.errors import ScenarioError
from parley.scenarios.bbq.rows import COUNTS, INTERSECTIONAL, PLACES, BbqRow, read_row
from parley.scenarios.bbq.targets import Template, Templates, by_name, target_of
from parley.scenarios.hub import load_lines

METADATA = "additional_metadata.csv"
NO_TARGET = ("", "na", "nan", "x", "none")


@dataclass(frozen=True, slots=True)
class Bbq:
    """The rows of BBQ.

    Args:
        rows: The rows.
        sources: Where they came from (name → SHA-256).
        targets: How many targets are `published`, `derived` and `none`, and how many published ones `disagree` with
            the derived one.
    """

    rows: tuple[BbqRow, ...]
    sources: Mapping[str, str]
    targets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The authors' metadata of a row."""

    target: int | None
    names: bool | None
    where: str


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn garbage collection off: rows have no reference cycles, and searching for them would double the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def load(data: str | Path, *, beside: str | Path | None = None) -> Bbq:
    """Load BBQ from files.

    Args:
        data: A folder, a .jsonl file or a .csv file.
        beside: Another folder with templates or metadata.
    """
    path = Path(data)
    if path.is_dir():
        files = _find_files(path, "*.jsonl")
        if not files:
            raise ScenarioError(f"{path}: contains no .jsonl file")
    elif path.is_file() and path.suffix in (".jsonl", ".csv"):
        files = [path]
    else:
        raise ScenarioError(f"{path}: expected a folder of BBQ's .jsonl files, or a .jsonl or .csv file")
    folders = [path if path.is_dir() else path.parent, *([Path(beside)] if beside else [])]
    sources: dict[str, str] = {}
    with uncollected():
        rows: list[BbqRow] = []
        first_use: dict[tuple[str, int], tuple[Path, int]] = {}
        for file in files:
            read, before = (_csv_rows if file.suffix == ".csv" else _json_rows), len(rows)
            for row, line in read(file, _read_bytes(file, sources)):
                first_file, first_line = first_use.setdefault((row.category, row.example_id), (file, line))
                if first_line != line or first_file is not file:
                    raise ScenarioError(
                        f"{file}, line {line}: {row.category} {row.example_id} is already in {first_file.name}, "
                        f"line {first_line}"
                    )
                rows.append(row)
            if len(rows) == before:
                raise ScenarioError(f"{file}: contains no row")
        needed = {row.category for row in rows}
        return settle(rows, sources, _metadata(folders, sources), _templates(folders, needed, sources))


def settle(
    rows: Sequence[BbqRow],
    sources: Mapping[str, str],
    metadata: Mapping[tuple[str, int], Metadata] | None = None,
    templates: Templates | None = None,
) -> Bbq:
    """Add targets to the rows: the published target if there is one, otherwise one derived from the row.

    Args:
        rows: The rows, without targets.
        sources: Where they came from (name → SHA-256).
        metadata: The authors' metadata by category and example_id.
        templates: The authors' templates by category and question_index.
    """
    metadata, templates = metadata or {}, templates or {}
    counts = Counter[str]()
    settled = []
    for row in rows:
        target, names = target_of(row, templates), by_name(row, templates)
        published = metadata.get((row.category, row.example_id))
        if published is not None:
            if published.target == row.unknown:
                raise ScenarioError(
                    f"{published.where}: the target of {row.category} {row.example_id} is its unknown answer: "
                    "the file belongs to other rows"
                )
            counts["disagree"] += target is not None and published.target != target
            target, names = published.target, names if published.names is None else published.names
        counts["none" if target is None else "derived" if published is None else "published"] += 1
        settled.append(BbqRow._make((*row[:-2], target, names)))
    return Bbq(tuple(settled), dict(sources), dict(counts))


def _find_files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.rglob(pattern) if not path.name.startswith("."))


def _read_bytes(path: Path, sources: dict[str, str]) -> bytes:
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
    """Read BBQ from columns, with lists in Python's notation."""
    for cells, line in _csv(path, content):
        try:
            yield read_row(_unflattened(cells)), line
        except ValueError as error:
            raise ScenarioError(f"{path}, line {line}: {_brief(error)}") from None


def _unflattened(cells: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {key: value for key, value in cells.items() if "." not in key}
    row["answer_info"] = {place: _list(cells, f"answer_info.{place}") for place in PLACES}
    row["additional_metadata"] = {
        "stereotyped_groups": _list(cells, "additional_metadata.stereotyped_groups"),
        "subcategory": cells.get("additional_metadata.subcategory", ""),
    }
    return row


def _list(cells: Mapping[str, str], key: str) -> list[str]:
    try:
        items = ast.literal_eval(cells[key])
    except KeyError:
        raise ValueError(f"the column '{key}' is missing: not BBQ") from None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        items = None
    if not isinstance(items, list) or not items:
        raise ValueError(f"'{key}' must be a list of strings")
    return items


def _csv(path: Path, content: bytes) -> Iterator[tuple[dict[str, str], int]]:
    try:
        reader = csv.DictReader(content.decode("utf-8-sig").splitlines(keepends=True))
        for cells in reader:
            yield {key: value or "" for key, value in cells.items() if key}, reader.line_num
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path}: not a CSV file ({error})") from None


def _metadata(folders: Sequence[Path], sources: dict[str, str]) -> dict[tuple[str, int], Metadata]:
    metadata: dict[tuple[str, int], Metadata] = {}
    for path in [path for folder in folders for path in _find_files(folder, METADATA)]:
        for cells, line in _csv(path, _read_bytes(path, sources)):
            where = f"{path}, line {line}"
            try:
                key = cells["category"], int(cells["example_id"])
                place = cells["target_loc"].strip()
                target = None if place.lower() in NO_TARGET else int(float(place))
            except (KeyError, ValueError, OverflowError):
                raise ScenarioError(f"{where}: expected category, example_id and target_loc") from None
            if target not in (None, 0, 1, 2):
                raise ScenarioError(f"{where}: target_loc must be 0, 1 or 2, got {target}")
            kind = cells.get("label_type", "").strip().lower()
            metadata[key] = Metadata(target, kind == "name" if kind in ("name", "label") else None, where)
    return metadata


def _templates(folders: Sequence[Path], needed: set[str], sources: dict[str, str]) -> dict[tuple[str, int], Template]:
    templates: dict[tuple[str, int], Template] = {}
    for category in sorted(needed & set(INTERSECTIONAL)):
        for path in [path for folder in folders for path in _find_files(folder, f"*{category}.csv")]:
            for cells, line in _csv(path, _read_bytes(path, sources)):
                try:
                    question, trait = int(cells["Q_id"]), cells["Known_stereotyped_var2"].strip()
                    names = cells["Proper_nouns_only"].strip().lower() == "true"
                except (KeyError, ValueError):
                    raise ScenarioError(
                        f"{path}, line {line}: not a template of {category} (expected Q_id, "
                        "Known_stereotyped_var2 and Proper_nouns_only)"
                    ) from None
                templates[category, question] = Template(trait, names)
    return templates


REVISION = "5d6faae52070aa5eb71b46d1c0723d3ba7930209"
PLACE = f"hf://datasets/heegyu/bbq@{REVISION}/data"
"""A copy of the authors' JSONL files, one per category."""


def load_hub(categories: Iterable[str] | None = None, *, place: str | None = None, cache: str | None = None) -> Bbq:
    """Load categories from the hub.

    Args:
        categories: The categories (default: all).
        place: Another folder or URL with the same files.
        cache: The folder to cache them in (default: that of `datasets`).
    """
    where = (place or PLACE).rstrip("/")
    rows: list[BbqRow] = []
    for category in categories or COUNTS:
        if category not in COUNTS:
            raise ScenarioError(f"unknown category of BBQ '{category}' (known: {', '.join(COUNTS)})")
        file = f"{where}/{category}.jsonl"
        table = load_lines(file, data="BBQ", instead="a folder of BBQ's .jsonl files", cache=cache)
        if len(table) != COUNTS[category]:
            raise ScenarioError(f"{file} has {len(table)} rows, expected {COUNTS[category]} of {category}")
        for number, row in enumerate(table, 1):
            try:
                rows.append(read_row(row))
            except ValueError as error:
                raise ScenarioError(f"{file}, row {number}: {error}") from None
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    return settle(rows, {f"hub {REVISION[:12]}": digest})
