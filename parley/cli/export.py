"""`parley export RUN… --format …`: a dataset from conversations, with a card; or a whole run as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from typing import Literal

from pydantic import Field

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.files import WITH_FORCE, new_path, refuse
from parley.base.home import home
from parley.base.text import plural
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional
from parley.reports.export import Dataset, make_dataset, to_transcripts, write_dataset
from parley.reports.export.card import audit_lines, cautions, left_out, load_lines, quality_lines
from parley.reports.export.settings import Format, Settings
from parley.reports.export.write import manifest
from parley.reports.labels import labels_csv

CHANGED = " and was changed, or not written by this installation: choose another name with --to"


class Export(Settings, Command):
    """Make a dataset from runs, or write any run as JSON lines."""

    run: Positional[list[Path]] = Field(description="run files of one study; only one with csv or transcripts")
    to: str | None = Field(
        None,
        title="FOLDER",
        description="where to write: a folder (default: <run>-<format>); with csv or transcripts, a folder or a "
        "file (default: the current folder)",
    )
    force: bool = Field(False, description="overwrite an earlier export that nobody has changed")
    format: Literal[Format, "csv", "transcripts"] = Field(  # type: ignore[assignment]
        "trl",
        description="what to write: a dataset, a run's texts for people to score (csv), or a whole run (transcripts)",
    )

    def answer(self) -> Answer:
        if self.format in ("csv", "transcripts"):
            return self._whole_run()
        settings = self.part(Settings)
        dataset = make_dataset(self.run, settings)
        target = self.to or f"{self.run[0].stem}-{settings.format}"
        location = str(write_dataset(dataset, Path(target), force=self.force))
        tables = dataset.tables()
        counts = [f"{split} {len(rows):,}" for split, rows in next(iter(tables.values())).items()]
        lines = [
            *_lines(dataset),
            f"rows: {', '.join(counts)}",
            f"written to {location}; its README.md describes the columns and shows a row",
            *(f"load it:  datasets.{line}" for line in load_lines(tables, target)),
        ]
        return Answer({"to": location, **manifest(dataset, tables)}, lines)

    def _whole_run(self) -> Answer:
        if len(self.run) > 1:
            raise ConfigError(f"--format {self.format} takes one run")
        run, target = self.run[0], Path(self.to or ".")
        suffix = ".csv" if self.format == "csv" else ".jsonl"
        if target.suffix != suffix:
            target /= f"{run.stem}{suffix}"
        refuse(target, lambda path: self.force, WITH_FORCE)
        refuse(target, _is_unchanged, CHANGED)
        texts = [labels_csv(run, self.seed)] if self.format == "csv" else to_transcripts(run)
        with explain_unwritable(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        with new_path(target, lambda path: self.force and _is_unchanged(path)) as part:
            with part.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(texts)
            with suppress(OSError):  # without a record, --force does not overwrite the file
                record = _record(part)
                record.parent.mkdir(parents=True, exist_ok=True)
                record.touch()
        return Answer({"to": target}, [f"written to {target}"])


def _is_unchanged(target: Path) -> bool:
    """Whether Parley wrote the file and nobody has changed it since, as by filling in labels."""
    return target.is_file() and _record(target).exists()


def _record(file: Path) -> Path:
    """The record that Parley wrote these contents: a file for spreadsheets, or with a unit per line, holds no hash."""
    with file.open("rb") as contents:
        return home() / "exports" / file_digest(contents, "sha256").hexdigest()


def _lines(dataset: Dataset) -> Iterator[str]:
    for line in cautions(dataset):
        yield f"Caution: {line}"
    groups = dataset.groups
    yield (
        f"{plural(len(dataset.statements), 'statement')}: {len(groups.high):,} high bias, {len(groups.low):,} low "
        f"(threshold {dataset.settings.threshold:g}), {sum(groups.left_out.values()):,} left out"
        + (f"; {plural(len(dataset.pairs), 'pair')}" if dataset.paired else "")
    )
    yield from (f"- left out: {line}" for line in left_out(dataset))
    yield quality_lines(dataset)
    yield from (f"- {line}" for line in audit_lines(dataset))
