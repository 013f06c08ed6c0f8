"""`parley import KIND FILE`: another tool's log, others' answers or a damaged run file, as a run file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional
from parley.imports import (
    Imported,
    read_autogen,
    read_bbq_predictions,
    read_inspect,
    read_mabrf,
    read_squad_predictions,
    write_run,
)
from parley.imports.imported import bare_name
from parley.runs.packing import run_stem
from parley.runs.salvage import Salvaged, salvage


class Reader(NamedTuple):
    """Reads one kind of file, and the flags that it takes."""

    read: Callable[..., Imported]
    takes: tuple[str, ...] = ()


READERS = {
    "autogen": Reader(read_autogen, ("model",)),
    "inspect": Reader(read_inspect),
    "bbq": Reader(read_bbq_predictions, ("data", "model", "templates")),
    "squad": Reader(read_squad_predictions, ("data", "model", "na_prob", "na_prob_thresh")),
    "mabrf": Reader(read_mabrf, ("data",)),
}


class Import(Command):
    """Make a run file from another tool's log, from others' answers to BBQ or SQuAD, or from what is readable in a
    damaged run file; `parley report`, `show` and `view` then read it as our own."""

    needs: ClassVar = {"na_prob_thresh": "na_prob"}
    alone: ClassVar = {"damaged": ("kind", "file", "data", "model", "templates", "na_prob")}

    kind: Positional[Literal["autogen", "inspect", "bbq", "squad", "mabrf"] | None] = Field(
        None, title="KIND", description="where the file is from: autogen, inspect, bbq, squad or mabrf"
    )
    file: Positional[Path | None] = Field(
        None,
        description="autogen: a team's state or messages, .json or .jsonl; inspect: a .eval or .json log; bbq: answers "
        "with category, example_id and prediction, .jsonl; squad: answers in the official JSON; mabrf: one of MABRF's "
        "notebooks, .ipynb (all but Inspect's also as .gz)",
    )
    damaged: Path | None = Field(
        None, title="RUN", description="copy what is readable in this damaged run file, which stays as it is"
    )
    data: str | None = Field(
        None, description="the questions that were answered: BBQ's folder, BBQHard.csv, SQuAD's JSON"
    )
    out: Path | None = Field(
        None, description="the run file (default: runs/<kind>-<name>.sqlite; RUN.salvaged.sqlite with --damaged)"
    )
    model: str | None = Field(None, description="the model that answered, if the file does not name it")
    templates: str | None = Field(
        None, description="bbq: folder of BBQ's templates or additional_metadata.csv, if it is not inside --data"
    )
    na_prob: Path | None = Field(
        None, title="FILE", description='squad: JSON with the probability of no answer: {"id": probability, …}'
    )
    na_prob_thresh: float = Field(1.0, title="P", description="a higher probability counts as no answer")

    def answer(self) -> Answer:
        if self.damaged:
            return _salvage(self.damaged, self.out)
        if self.kind is None or self.file is None:
            raise ConfigError(f"give the kind and the file: parley import {self.kind or 'KIND'} FILE")
        reader = READERS[self.kind]
        own = ("data", "model", "templates", "na_prob", "na_prob_thresh")
        given = {name: getattr(self, name) for name in own if name in self.model_fields_set}
        for name in given:
            if name not in reader.takes:
                raise ConfigError(f"leave out {self.flag(name)}: it has no effect with {self.kind}")
        if "data" in reader.takes and not self.data:
            raise ConfigError(f"import {self.kind} needs --data: the questions that were answered")
        imported = reader.read(self.file, **given)
        target = self.out or Path("runs") / f"{self.kind}-{bare_name(self.file)}.sqlite"
        units, failed = write_run(imported, target)
        data = {"run": target, "study": imported.study, "units": units, "failed": failed, "notes": imported.notes}
        report = "" if self.kind == "autogen" else f"    parley report {target}"  # its transcripts have no verdicts
        lines = [
            f"{plural(units, 'conversation')} of {imported.study} ({failed} failed): {target}",
            *imported.notes,
            f"read it:  parley show {target}{report}    parley view {target}",
        ]
        return Answer(data, lines)  # status 0: what failed in its log is imported as failed


def _salvage(damaged: Path, out: Path | None) -> Answer:
    target = out or damaged.with_name(f"{run_stem(damaged)}.salvaged.sqlite")
    found = salvage(damaged, target)
    lost = found.lost or found.incomplete or not found.has_settings
    return Answer({"run": target, "lost": found.lost, **asdict(found)}, _salvaged(found, target), 1 if lost else 0)


def _salvaged(found: Salvaged, target: Path) -> Iterator[str]:
    yield f"{plural(found.copied, 'unit')} copied, {found.lost:,} lost: {target}"
    if found.incomplete:
        yield f"part of a prompt could not be read in {plural(found.incomplete, 'copied unit')}"
    if found.planned:
        yield f"{plural(found.planned, 'unit')} had not run yet"
    if not found.has_settings:
        yield "the study, models and config of the run could not be read"
    elif found.gone:
        yield f"the new file cannot be resumed: the facets of {plural(found.gone, 'unit')} could not be read"
    elif found.again:
        yield f"to run the lost units again, add --out {shlex.quote(str(target))} to the command that made the run"
