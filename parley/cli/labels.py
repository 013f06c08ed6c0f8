"""`parley labels draw|simulate|export|import`: what people say about a run's texts, next to what the judges said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import Field

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.text import plural, visible
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional, Repeated
from parley.cli.shared import newest_run
from parley.reports.labels.answers import SIMULATED, simulate
from parley.reports.labels.draws import DrawSettings, draw_items, find_draw, why_fewer
from parley.reports.labels.files import LabelFileError, as_csv, exported, import_labels
from parley.runs import RunFile, explain_damage
from parley.runs.notes import NotesFile

MAX_PROBLEMS = 50
RATERS = (f"{SIMULATED}?agree=0.8", f"{SIMULATED}?agree=0.7")


class _OfARun(Command):
    """The base of the commands here, which read and write the labels of a run."""

    run: Positional[Path | None] = Field(None, description="a run file (default: the newest in runs/)")

    def answer(self) -> Answer:
        path = self.run or newest_run()
        with explain_damage(path), RunFile.open(path) as file:
            return self.of(file, NotesFile(path))

    def of(self, file: RunFile, notes: NotesFile) -> Answer:
        raise NotImplementedError


class Draw(_OfARun):
    """Draw texts to label; people label them in `parley view`."""

    items: int = Field(50, ge=1, description="number of texts")
    floor: float = Field(
        1.0,
        description="smallest probability of a text, as a share of its probability in an even draw; below 1, texts on "
        "which the judges disagree are drawn more often (default: 1)",
    )
    sorted: bool = Field(False, description="the most disputed texts first; their labels never correct the judges")
    scores: bool = Field(False, description="for a pair, also ask for a score of each answer")
    seed: int | None = Field(None, description="random seed (default: the number of draws so far)")
    where: Repeated[list[str]] = Field(
        [], title="f.FACET=VALUE", description="only units with this facet, such as f.phase=2; may be repeated"
    )

    def of(self, file: RunFile, notes: NotesFile) -> Answer:
        filters: dict[str, list[str]] = {}
        for text in self.where:
            name, sign, value = text.partition("=")
            if not sign:
                raise ConfigError(f"--where needs f.FACET=VALUE, got '{text}'")
            filters.setdefault(name, []).append(value)
        settings = DrawSettings(
            count=self.items,
            seed=len(notes.draws()) if self.seed is None else self.seed,
            kind="sorted" if self.sorted else "random",
            floor=self.floor,
            scores=self.scores,
            filters=filters,
        )
        draw = find_draw(notes, draw_items(file, notes, settings))
        stored = draw["settings"]
        texts = f"{plural(stored['drawn'], 'item')} of {plural(stored['texts'], 'different text')}"
        line = f"draw {draw['id']}: {texts}; label them on the Label page of `parley view {file.path}`"
        fewer = why_fewer(stored)
        return Answer({"draw": draw["id"], **stored}, [line, *([fewer] if fewer else []), *stored["corrects"]])


class Simulate(_OfARun):
    """Let simulated raters label a draw."""

    rater: Repeated[list[str]] = Field(
        list(RATERS),
        title="RATER",
        description=f"a simulated rater, {SIMULATED}?agree=…&bias=…&noise=…&skip=…; may be repeated (default: "
        f"{' and '.join(RATERS)})",
    )
    draw: int | None = Field(None, description="number of the draw (default: the last)")
    items: int | None = Field(None, description="stop after this many items (default: label all)")

    def of(self, file: RunFile, notes: NotesFile) -> Answer:
        draws = [draw["id"] for draw in notes.draws()]
        if not draws:
            raise ConfigError(f"no texts have been drawn yet: parley labels draw {file.path}")
        draw = draws[-1] if self.draw is None else self.draw
        counts = {rater: simulate(file, notes, draw, rater, self.items) for rater in self.rater}
        lines = (
            f"SIMULATED: {rater} labelled {plural(count, 'item')} of draw {draw}" for rater, count in counts.items()
        )
        return Answer({"draw": draw, "labelled": counts}, lines)


class Export(_OfARun):
    """Print all labels of a run, one row per answer."""

    jsonl: bool = Field(False, description="print JSON lines (default: CSV)")
    to: Path | None = Field(None, title="FILE", description="write to this file instead")

    def of(self, file: RunFile, notes: NotesFile) -> Answer:
        rows = exported(notes)
        if not rows:
            raise ConfigError(f"{file.path} has no labels yet: label texts on the Label page of `parley view`")
        text = "".join(json.dumps(row) + "\n" for row in rows) if self.jsonl else as_csv(rows)
        if self.to is None:
            if not self.as_json:
                sys.stdout.write(text)
            return Answer(rows)
        with explain_unwritable(self.to):
            self.to.write_text(text, "utf-8")
        return Answer({"to": self.to, "answers": len(rows)}, [f"{self.to}: {plural(len(rows), 'answer')}"])


class Import(_OfARun):
    """Add labels from a file: CSV, JSON lines, Label Studio or Argilla."""

    file: Positional[Path] = Field(description="labels with at least unit, rater, question and value")
    run: Positional[Path | None] = Field(None, description="a run file (default: the newest in runs/)")
    draw: int | None = Field(None, description="the draw that the labels answer, if the file does not say")

    def of(self, file: RunFile, notes: NotesFile) -> Answer:
        try:
            stored = import_labels(file, notes, self.file, self.draw)
        except LabelFileError as error:
            for problem in error.problems[:MAX_PROBLEMS]:
                print(visible(problem), file=sys.stderr)
            if more := error.problems[MAX_PROBLEMS:]:
                print(f"… and {len(more):,} more", file=sys.stderr)
            raise ConfigError(error.summary) from None
        return Answer({"stored": stored}, stored)


VERBS = {"draw": Draw, "simulate": Simulate, "export": Export, "import": Import}
