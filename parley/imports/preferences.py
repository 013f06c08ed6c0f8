"""Anyone's preference datasets in TRL's format, as one frame: a folder or file of Parquet or JSON lines.

    pairs = read_preferences(Path("age-pairs"))

Prompts may be explicit or implicit, texts plain or conversations. A folder of `parley export` also has its manifest,
with the instructions of the writers and how often the blind referee agreed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from parley.agents import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.stats.results import Line

Row = dict[str, Any]
MANIFEST = "export.json"
SPLITS = {"train": "train", "validation": "validation", "valid": "validation", "dev": "validation", "test": "test"}
KNOWN = ("round", "speaker", "blind")
_TURN = "\n\nAssistant:"


@dataclass(frozen=True, slots=True)
class Preferences:
    """The pairs of a dataset, and what its manifest says about how they were made.

    Args:
        pairs: One row per pair (`parley.analysis.preferences.audit`).
        instructions: What the writers of the texts were told; "" if that is not known.
        blind: How often a blind referee agreed, before the pairs that it contradicted were left out; None if that is
            not known.
    """

    pairs: pd.DataFrame
    instructions: str
    blind: Line | None


def read_preferences(path: Path) -> Preferences:
    """The pairs of a dataset; ConfigError if there are none.

    Args:
        path: A folder (of `parley export`, of the hub, of `datasets.save_to_disk`) or one file.
    """
    import pandas as pd

    rows = [_pair(row, split, where) for split, where, row in _rows(path)]
    if not rows:
        raise ConfigError(f"{path} has no rows")
    manifest = _manifest(path)
    instructions = manifest.get("instructions")
    return Preferences(pd.DataFrame(rows), instructions if isinstance(instructions, str) else "", _blind(manifest))


def referee_checks(path: Path) -> list[str]:
    """The results of the referee checks behind an export's debates; nothing for other datasets.

    Args:
        path: The folder of the dataset.
    """
    runs = _manifest(path).get("runs")
    checks = [run.get("check") for run in runs.values() if isinstance(run, dict)] if isinstance(runs, dict) else []
    said = [check.get("sentence") for check in checks if isinstance(check, dict)]
    return list(dict.fromkeys(line for line in said if isinstance(line, str)))


def _blind(manifest: Row) -> Line | None:
    """The blind referee's line of the audit that the export made."""
    from parley.analysis.preferences.audit import stored_agreement

    try:
        row = next(row for row in manifest["audit"]["shortcuts"] if "blind" in row["predictor"] and row["n"])
        found = {name: row[name] for name in ("estimate", "low", "high", "p")}
        numbers = {name: math.nan if value is None else float(value) for name, value in found.items()}
        return stored_agreement({**numbers, "n": int(row["n"]), "clusters": int(row["clusters"])})
    except (KeyError, TypeError, ValueError, StopIteration):
        return None


def _manifest(path: Path) -> Row:
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_text("utf-8")) if path.is_dir() and file.is_file() else {}
    except (OSError, ValueError):
        raise ConfigError(f"{file}: not a manifest of `parley export`") from None
    return manifest if isinstance(manifest, dict) else {}


def _rows(path: Path) -> Iterator[tuple[str, str, Row]]:
    """Split, place and content of every row that the folder's pairs have."""
    if not path.exists():
        raise ConfigError(f"there is no dataset at {path}")
    for file in [path] if path.is_file() else _files(path):
        split = next((SPLITS[part] for part in _name_parts(file, path) if part in SPLITS), "")
        for number, row in enumerate(_read(file), 1):
            yield split, f"{file}, row {number}", row


def _files(folder: Path) -> list[Path]:
    """The data files of a folder; if it has several tables, those of `pairs`."""
    folder = folder / "pairs" if (folder / "pairs").is_dir() else folder
    for ending in ("parquet", "jsonl", "json", "arrow"):
        files = sorted(folder.rglob(f"*.{ending}"))
        files = [
            file
            for file in files
            if file.name not in (MANIFEST, "dataset_info.json", "state.json", "dataset_dict.json")
        ]
        if files:
            return files
    raise ConfigError(f"{folder} has no .parquet, .jsonl, .json or .arrow file")


def _name_parts(file: Path, root: Path) -> list[str]:
    inside = file.relative_to(root) if root.is_dir() else Path(file.name)
    return [
        part for name in reversed(inside.parts) for part in name.lower().replace(".", "-").replace("_", "-").split("-")
    ]


def _read(file: Path) -> Iterator[Row]:
    if file.suffix in (".parquet", ".arrow"):
        yield from _read_arrow(file)
        return
    try:
        text = file.read_text("utf-8-sig")
        rows = from_json(text) if file.suffix == ".json" else map(from_json, filter(str.strip, text.split("\n")))
        yield from rows
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{file}: {getattr(error, 'strerror', None) or 'not JSON lines'}") from None


def _read_arrow(file: Path) -> list[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise ConfigError(f"{file}: Parquet needs pip install 'parley-autogen[datasets]'") from None
    try:
        if file.suffix == ".parquet":
            return list(pyarrow.parquet.read_table(file).to_pylist())
        with pyarrow.memory_map(os.fspath(file)) as source:
            return list(pyarrow.ipc.open_stream(source).read_all().to_pylist())
    except (OSError, pyarrow.ArrowException) as error:
        raise ConfigError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None


def _pair(row: Any, split: str, where: str) -> Row:
    try:
        prompt, chosen, rejected = _texts(row)
        meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
        known = {
            f"{column}_{side}": _value(row, meta, f"{column}_{side}")
            for column in KNOWN
            for side in ("chosen", "rejected")
        }
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        if isinstance(row, dict) and {"completion", "label"} <= set(row):
            raise ConfigError(f"{where}: a completion with a label (KTO) is not a pair; audit the pairs") from None
        raise ConfigError(f"{where}: not a row of chosen and rejected as TRL reads them (docs/datasets.md)") from None
    topic = meta.get("topic") or row.get("topic") or prompt
    return {"topic": str(topic), "split": split, "chosen": chosen, "rejected": rejected, **known}


def _value(row: Row, meta: Row, name: str) -> Any:
    value = row.get(name, meta.get(name))
    if name.startswith("speaker"):
        return None if value in (None, "") else str(value)
    return None if value is None else float(value)


def _texts(row: Row) -> tuple[str, str, str]:
    """The prompt and the two answers, whether the prompt is a column or the beginning of both sides."""
    chosen, rejected = row["chosen"], row["rejected"]
    prompt = _joined(row["prompt"]) if row.get("prompt") is not None else ""
    if isinstance(chosen, str) and isinstance(rejected, str):
        same = takewhile(lambda letters: letters[0] == letters[1], zip(chosen, rejected, strict=False))
        shared = "".join(letter for letter, _ in same)
        cut = shared.rfind(_TURN) + len(_TURN) if not prompt and _TURN in shared else 0
        return prompt or chosen[:cut] or "", chosen[cut:].strip(), rejected[cut:].strip()
    start = 0
    while start < min(len(chosen), len(rejected)) - 1 and chosen[start] == rejected[start]:
        start += 1
    return prompt or _joined(chosen[:start]), _joined(chosen[start:]), _joined(rejected[start:])


def _joined(messages: str | Sequence[Row]) -> str:
    text = messages if isinstance(messages, str) else "\n".join(message["content"] for message in messages)
    return text.strip()
