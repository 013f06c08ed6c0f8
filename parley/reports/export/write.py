"""Writes datasets to a temporary folder that is then renamed, manifest last; or to the hub. A whole run is written as
JSON lines, one conversation per line.

An upload to the Hugging Face hub has Parquet files and card, in one commit. Its token is HF_TOKEN.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parley.base.errors import ConfigError, ParleyError, install
from parley.base.files import MANIFEST, WITH_FORCE, new_folder, refuse
from parley.base.redaction import HiddenAddresses
from parley.base.text import without_surrogates
from parley.reports.export.card import card
from parley.reports.export.dataset import Dataset, Table, make_dataset
from parley.reports.export.settings import Settings
from parley.runs import RunFile, explain_damage

MISSING = f"this format needs more packages: {install('datasets')}"


def write_dataset(dataset: Dataset, target: Path, *, force: bool = False, name: str = "") -> Path:
    """Writes the dataset in its format, with card and manifest.

    Args:
        dataset: The dataset.
        target: The folder, which must not exist.
        force: Whether to overwrite an earlier export that nobody has changed.
        name: The name in the card's example: owner/name on the hub (default: the folder).
    """
    refuse(target, is_export, " and is not an unchanged export, or has other files: choose another folder with --to")
    refuse(target, lambda path: force, WITH_FORCE)
    tables = dataset.tables()
    writers = {"parquet": _parquet, "hub": _parquet, "datasets": _datasets}
    write = writers.get(dataset.settings.format, _jsonl)
    with new_folder(target, lambda path: force and is_export(path)) as folder:
        for table, splits in tables.items():
            write(folder / table, splits)
        (folder / "README.md").write_text(card(dataset, tables, name or target.name), "utf-8")
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
    package = _import("datasets")
    table = next(iter(make_dataset([Path(run) for run in runs], chosen).tables().values()))
    return package.DatasetDict({split: package.Dataset(rows) for split, rows in _arrow(table).items()})


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


def _parquet(folder: Path, table: Table) -> None:
    for split, rows in _arrow(table).items():
        folder.mkdir(exist_ok=True)
        _import("pyarrow.parquet").write_table(rows, folder / f"{split}.parquet")


def _datasets(folder: Path, table: Table) -> None:
    package = _import("datasets")
    package.disable_progress_bars()
    parts = {split: package.Dataset(rows) for split, rows in _arrow(table).items()}
    if parts:
        package.DatasetDict(parts).save_to_disk(str(folder))


def _arrow(table: Table) -> dict[str, Any]:
    """Arrow tables of the splits that have rows, all of one schema."""
    arrow = _import("pyarrow")
    rows = [row for part in table.values() for row in part]
    schema = arrow.Table.from_pylist(rows).schema if rows else None
    return {split: arrow.Table.from_pylist(part, schema=schema) for split, part in table.items() if part}


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise ConfigError(MISSING) from None


def push(dataset: Dataset, name: str, *, public: bool) -> str:
    """Upload the dataset; returns its address on the hub.

    Args:
        dataset: The dataset.
        name: owner/name.
        public: Whether everyone can see it.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ModuleNotFoundError:
        raise ConfigError(MISSING) from None
    token = os.environ.get("HF_TOKEN")
    if not token:
        raise ConfigError("the hub needs a token: set HF_TOKEN")
    if name.count("/") != 1:
        raise ConfigError(f"name the dataset as owner/name with --to, not '{name}'")
    hub = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)
    with tempfile.TemporaryDirectory() as folder:
        path = write_dataset(dataset, Path(folder) / "dataset", name=name)
        try:
            hub.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
            hub.upload_folder(repo_id=name, folder_path=path, repo_type="dataset", commit_message="Debates by Parley")
        except (HfHubHTTPError, HFValidationError, OSError) as error:
            why = " ".join(str(error).replace(token, "***").split())[:200]
            raise ParleyError(f"the hub refused {name}: {why}") from None
    return f"{hub.endpoint}/datasets/{name}"


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
