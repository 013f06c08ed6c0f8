"""`parley labels draw|simulate|export|import`: what people say about a run's texts, next to what the judges said."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.text import plural, visible
from parley.cli.shared import AddParser, newest_run
from parley.reports.labels.answers import SIMULATED, simulate
from parley.reports.labels.draws import DrawSettings, draw_items, find_draw, why_fewer
from parley.reports.labels.files import LabelFileError, as_csv, exported, import_labels
from parley.runs import RunFile, explain_damage
from parley.runs.notes import NotesFile

MAX_PROBLEMS = 50
RATERS = (f"{SIMULATED}?agree=0.8", f"{SIMULATED}?agree=0.7")
Handler = Callable[[argparse.Namespace, RunFile, NotesFile], None]


def add_draw(add_parser: AddParser) -> None:
    parser = _parser(add_parser, _draw)
    parser.add_argument("--items", type=int, default=50, help="number of texts (default: 50)")
    parser.add_argument(
        "--floor",
        type=float,
        default=1.0,
        help="smallest probability of a text, as a share of its probability in an even draw; below 1, texts on which "
        "the judges disagree are drawn more often (default: 1)",
    )
    parser.add_argument(
        "--sorted", action="store_true", help="the most disputed texts first; their labels never correct the judges"
    )
    parser.add_argument("--scores", action="store_true", help="for a pair, also ask for a score of each answer")
    parser.add_argument("--seed", type=int, help="random seed (default: the number of draws so far)")
    parser.add_argument(
        "--where",
        metavar="f.FACET=VALUE",
        action="append",
        default=[],
        help="only units with this facet, such as f.phase=2; may be repeated",
    )


def add_simulate(add_parser: AddParser) -> None:
    parser = _parser(add_parser, _simulate)
    parser.add_argument(
        "--rater",
        action="append",
        help=f"a simulated rater, {SIMULATED}?agree=…&bias=…&noise=…&skip=…; may be repeated (default: "
        f"{' and '.join(RATERS)})",
    )
    parser.add_argument("--draw", type=int, help="number of the draw (default: the last)")
    parser.add_argument("--items", type=int, help="stop after this many items (default: label all)")


def add_export(add_parser: AddParser) -> None:
    parser = _parser(add_parser, _export)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV (default)")
    form.add_argument("--jsonl", action="store_true", help="print JSON lines")
    parser.add_argument("--to", metavar="FILE", help="write to this file instead")


def add_import(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("file", metavar="FILE", help="labels with at least unit, rater, question and value")
    parser.add_argument("--draw", type=int, help="the draw that the labels answer, if the file does not say")
    _add_run(parser, _import)


def _parser(add_parser: AddParser, handler: Handler) -> argparse.ArgumentParser:
    parser = add_parser()
    _add_run(parser, handler)
    return parser


def _add_run(parser: argparse.ArgumentParser, handler: Handler) -> None:
    """Add the run, which every command here reads and writes the labels of."""

    def handle(parsed: argparse.Namespace) -> int:
        path = Path(parsed.run) if parsed.run else newest_run()
        with explain_damage(path), RunFile.open(path) as file:
            handler(parsed, file, NotesFile(path))
        return 0

    parser.add_argument("run", nargs="?", metavar="RUN", help="a run file (default: the newest in runs/)")
    parser.set_defaults(handler=handle)


def _draw(parsed: argparse.Namespace, file: RunFile, notes: NotesFile) -> None:
    filters: dict[str, list[str]] = {}
    for text in parsed.where:
        name, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--where needs f.FACET=VALUE, got '{text}'")
        filters.setdefault(name, []).append(value)
    if parsed.items < 1:
        raise ConfigError(f"--items must be at least 1, got {parsed.items}")
    settings = DrawSettings(
        count=parsed.items,
        seed=len(notes.draws()) if parsed.seed is None else parsed.seed,
        kind="sorted" if parsed.sorted else "random",
        floor=parsed.floor,
        scores=parsed.scores,
        filters=filters,
    )
    draw = find_draw(notes, draw_items(file, notes, settings))
    stored = draw["settings"]
    texts = f"{plural(stored['drawn'], 'item')} of {plural(stored['texts'], 'different text')}"
    print(visible(f"draw {draw['id']}: {texts}; label them on the Label page of `parley view {file.path}`"))
    if fewer := why_fewer(stored):
        print(fewer)


def _simulate(parsed: argparse.Namespace, file: RunFile, notes: NotesFile) -> None:
    draws = [draw["id"] for draw in notes.draws()]
    if not draws:
        raise ConfigError(f"no texts have been drawn yet: parley labels draw {file.path}")
    draw = draws[-1] if parsed.draw is None else parsed.draw
    for rater in parsed.rater or RATERS:
        count = simulate(file, notes, draw, rater, parsed.items)
        print(visible(f"SIMULATED: {rater} labelled {plural(count, 'item')} of draw {draw}"))


def _export(parsed: argparse.Namespace, file: RunFile, notes: NotesFile) -> None:
    rows = exported(notes)
    if not rows:
        raise ConfigError(f"{file.path} has no labels yet: label texts on the Label page of `parley view`")
    text = "".join(json.dumps(row) + "\n" for row in rows) if parsed.jsonl else as_csv(rows)
    if not parsed.to:
        sys.stdout.write(text)
        return
    with explain_unwritable(parsed.to):
        Path(parsed.to).write_text(text, "utf-8")
    print(visible(f"{parsed.to}: {plural(len(rows), 'answer')}"))


def _import(parsed: argparse.Namespace, file: RunFile, notes: NotesFile) -> None:
    try:
        stored = import_labels(file, notes, Path(parsed.file), parsed.draw)
    except LabelFileError as error:
        for problem in error.problems[:MAX_PROBLEMS]:
            print(visible(problem), file=sys.stderr)
        if more := error.problems[MAX_PROBLEMS:]:
            print(f"… and {len(more):,} more", file=sys.stderr)
        raise ConfigError(error.summary) from None
    print(visible("\n".join(stored)))
