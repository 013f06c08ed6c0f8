"""`parley import --damaged RUN`: what is readable in a damaged run file, as a run file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pydantic import Field

from parley.base.text import plural
from parley.cli.command import Answer, Command
from parley.runs.packing import run_stem
from parley.runs.salvage import Salvaged, salvage


class Import(Command):
    """Make a run file from what is readable in a damaged one."""

    damaged: Path = Field(
        title="RUN", description="copy what is readable in this damaged run file, which stays as it is"
    )
    out: Path | None = Field(None, description="the run file (default: RUN.salvaged.sqlite)")

    def answer(self) -> Answer:
        target = self.out or self.damaged.with_name(f"{run_stem(self.damaged)}.salvaged.sqlite")
        found = salvage(self.damaged, target)
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
