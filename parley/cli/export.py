"""`parley export RUN… --format …`: a dataset from conversations, with a card; or a whole run as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.files import WITH_FORCE, new_file, refuse
from parley.base.text import plural
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional
from parley.reports.export import (
    Dataset,
    make_dataset,
    push,
    to_transcripts,
    write_dataset,
)
from parley.reports.export.card import audit_lines, cautions, left_out, load_lines, quality_lines
from parley.reports.export.settings import Format, Settings
from parley.reports.export.write import manifest
from parley.reports.labels import labels_csv


class Export(Settings, Command):
    """Make a dataset from runs, or write any run as JSON lines."""

    run: Positional[list[Path]] = Field(description="run files of one study; only one with csv or transcripts")
    to: str | None = Field(
        None,
        title="FOLDER",
        description="where to write: a folder (default: <run>-<format>); with csv or transcripts, a folder or a "
        "file (default: the current folder); with hub, owner/name",
    )
    force: bool = Field(False, description="overwrite an earlier export")
    public: bool = Field(False, description="with hub: make the dataset public (default: private)")
    format: Literal[Format, "csv", "transcripts"] = Field(  # type: ignore[assignment]
        "trl",
        description="what to write: a dataset, a run's texts for people to score (csv), or a whole run (transcripts)",
    )

    def answer(self) -> Answer:
        if self.format in ("csv", "transcripts"):
            return self._whole_run()
        settings = self.part(Settings)
        if settings.format == "hub" and not self.to:
            raise ConfigError("give the dataset a name on the hub: --to owner/name")
        dataset = make_dataset(self.run, settings)
        target = self.to or f"{self.run[0].stem}-{settings.format}"
        if settings.format == "hub":
            location = push(dataset, target, public=self.public)
        else:
            location = str(write_dataset(dataset, Path(target), force=self.force))
        tables = dataset.tables()
        counts = [f"{split} {len(rows):,}" for split, rows in next(iter(tables.values())).items()]
        lines = [
            *_lines(dataset),
            f"rows: {', '.join(counts)}",
            f"written to {location}; its README.md describes the columns and shows a row",
            *(f"load it:  datasets.{line}" for line in load_lines(dataset, tables, target)),
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
        texts = [labels_csv(run, self.seed)] if self.format == "csv" else to_transcripts(run)
        with explain_unwritable(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        with new_file(target, lambda path: self.force and path.is_file() and not path.samefile(run)) as file:
            file.writelines(texts)
        return Answer({"to": target}, [f"written to {target}"])


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
