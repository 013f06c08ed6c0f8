"""Writes datasets to a temporary folder that is then renamed, manifest last. A whole run is written as JSON lines, one
conversation per line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parley.base.errors import ConfigError, install
from parley.base.files import MANIFEST, WITH_FORCE, new_folder, refuse
from parley.base.redaction import HiddenAddresses
from parley.base.text import without_surrogates
from parley.reports.export.card import card
from parley.reports.export.dataset import Dataset, Table, make_dataset
from parley.reports.export.settings import Settings
from parley.runs import RunFile, explain_damage


def write_dataset(dataset: Dataset, target: Path, *, force: bool = False) -> Path:
    """Writes the dataset in its format as JSON lines, with card and manifest.

    Args:
        dataset: The dataset.
        target: The folder, which must not exist.
        force: Whether to overwrite an earlier export that nobody has changed.
    """
    refuse(target, is_export, " and is not an unchanged export, or has other files: choose another folder with --to")
    refuse(target, lambda path: force, WITH_FORCE)
    tables = dataset.tables()
    with new_folder(target, lambda path: force and is_export(path)) as folder:
        for table, splits in tables.items():
            _jsonl(folder / table, splits)
        (folder / "README.md").write_text(card(dataset, tables, target.name), "utf-8")
        facts = manifest(dataset, tables) | {"files": _files(folder)}
        facts["hash"] = _hash(facts)
        (folder / MANIFEST).write_text(json.dumps(facts, indent=2, allow_nan=False, ensure_ascii=False), "utf-8")
    return target


def is_export(folder: Path) -> bool:
    """Whether a folder is an earlier export, in which nobody has changed or added a file."""
    try:
        facts = json.loads((folder / MANIFEST).read_text("utf-8"))
        return bool(facts.pop("hash") == _hash(facts) and _files(folder).items() <= facts["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _files(folder: Path) -> dict[str, str]:
    """The hashes of a dataset's files by name, without the manifest."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes() if path.is_file() else b"").hexdigest()
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() and path != folder / MANIFEST
    }


def _hash(facts: Mapping[str, Any]) -> str:
    return sha256(json.dumps(facts).encode()).hexdigest()


def dataset(*runs: str | Path, **settings: Any) -> Any:
    """The dataset of runs as a `datasets.DatasetDict`, one split each for train, validation and test.

    Args:
        runs: Run files of one study.
        settings: As the flags of `parley export`: format="trl" (the default), threshold=3, … With a format of two
            tables, the pairs.
    """
    try:
        chosen = Settings(**settings)
    except ValidationError as error:
        problem = error.errors()[0]
        raise ConfigError(f"dataset: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
    try:
        from datasets import Dataset as HubDataset
        from datasets import DatasetDict
    except ModuleNotFoundError:
        raise ConfigError(f"this needs the package datasets: {install('datasets')}") from None
    table = next(iter(make_dataset([Path(run) for run in runs], chosen).tables().values()))
    # A split in which a column has no value would get another type for it than the others.
    columns = HubDataset.from_list([row for rows in table.values() for row in rows]).features
    return DatasetDict({split: HubDataset.from_list(rows, features=columns) for split, rows in table.items() if rows})


def manifest(dataset: Dataset, tables: dict[str, Table]) -> dict[str, Any]:
    """The runs, settings, counts and quality figures, for programs."""
    return {
        "settings": dataset.settings.model_dump(mode="json"),
        "runs": {source.run_id: {"file": source.path.name, **source.info} for source in dataset.sources},
        "statements": len(dataset.statements),
        "high": len(dataset.groups.high),
        "low": len(dataset.groups.low),
        "left_out": dict(dataset.groups.left_out),
        "pairs": len(dataset.pairs),
        "rows": {name or "rows": {split: len(rows) for split, rows in table.items()} for name, table in tables.items()},
        "topics": dataset.topics(),
        "quality": _plain(dataset.quality),
        "confirmation": dataset.confirmation,
        "audit": _plain(dataset.audit),
        "instructions": dataset.instructions,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def _jsonl(folder: Path, table: Table) -> None:
    folder.mkdir(exist_ok=True)
    for split, rows in table.items():
        if rows:
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            with (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)


TURN = "seq, round, speaker, role, text, parse_status, parsed"
VERDICT = "judge, role, round, subject, metric, value, sampled, text, status"
CALL = "seq, model, prompt_tokens, completion_tokens, latency, cost, cached, attempts"


def to_transcripts(run: Path) -> Iterator[str]:
    """Convert a run to lines of JSON.

    Args:
        run: The run file.
    """
    with explain_damage(run), RunFile.open(run) as file:
        info = file.info()
        header = {"study": info["study"], "models": info["models"], "plan": info["plan"]}
        addresses = HiddenAddresses(info)
        for unit in _conversations(file):
            yield json.dumps(addresses.hide(without_surrogates({**header, **unit})), ensure_ascii=False) + "\n"


def _conversations(file: RunFile) -> Iterator[dict[str, Any]]:
    """Every unit that is done or failed, with its turns, calls and verdicts."""
    units = "id, status, facets, error, stop_reason, started_at, finished_at"
    for unit in _dicts(file, f"SELECT {units} FROM units WHERE status != 'planned' ORDER BY position"):
        file.check_unit(unit["id"])
        unit_id = (unit["id"],)
        turns = _dicts(file, f"SELECT {TURN} FROM transcript WHERE unit = ? ORDER BY seq", unit_id)
        calls = _dicts(file, f"SELECT {CALL} FROM calls WHERE unit = ? ORDER BY seq, nth", unit_id)
        for turn in turns:
            turn["parsed"] = json.loads(turn["parsed"]) if turn["parsed"] else None
            turn["calls"] = [call for call in calls if call["seq"] == turn["seq"]]
        for call in calls:
            del call["seq"]
        verdicts = _dicts(file, f"SELECT {VERDICT} FROM verdicts WHERE unit = ? ORDER BY nth", unit_id)
        yield {**unit, "facets": json.loads(unit["facets"]), "turns": turns, "verdicts": verdicts}


def _dicts(file: RunFile, sql: str, values: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
    columns, rows = file.rows(sql, values)
    return [dict(zip(columns, row, strict=True)) for row in rows]
