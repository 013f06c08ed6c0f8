"""`parley labels draw|simulate|export|import`: what people say about a run's texts, next to what the judges said."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.cli.shared import AddParser, newest_run
from parley.reports.label_answers import SIMULATED, simulate
from parley.reports.label_draw import DrawSettings, draw_items, find_draw, why_fewer
from parley.reports.label_files import as_csv, exported, import_labels
from parley.reports.label_rows import LabelFileError
from parley.runs import RunFile, explain_damage
from parley.runs.notes import NotesFile

MAX_PROBLEMS = 50
RATERS = (f"{SIMULATED}?agree=0.8", f"{SIMULATED}?agree=0.7")


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    drawing = verbs.add_parser("draw", help="draw texts to label; people then label them in `parley view`")
    drawing.add_argument("run", nargs="?", metavar="RUN", help="a run file (default: the newest)")
    drawing.add_argument("--items", type=int, default=50, help="how many texts (default 50)")
    drawing.add_argument(
        "--floor",
        type=float,
        default=1.0,
        help="the least probability of a text, as a share of an even draw's; below 1, texts on which the judges "
        "disagree are drawn more often (default 1)",
    )
    drawing.add_argument(
        "--sorted", action="store_true", help="the most disputed texts first; their labels never correct the judges"
    )
    drawing.add_argument("--scores", action="store_true", help="of a pair, also ask for a score of each answer")
    drawing.add_argument("--seed", type=int, help="default: the number of draws so far")
    drawing.add_argument(
        "--where", metavar="f.FACET=VALUE", action="append", default=[], help="only units with this facet (f.phase=2)"
    )
    simulating = verbs.add_parser(
        "simulate", help=f"let simulated raters label a draw ({SIMULATED}?agree=…&bias=…&noise=…&skip=…)"
    )
    simulating.add_argument("run", nargs="?", metavar="RUN", help="a run file (default: the newest)")
    simulating.add_argument(
        "--rater", action="append", help=f"a simulated rater, repeatable (default: {' and '.join(RATERS)})"
    )
    simulating.add_argument("--draw", type=int, help="which draw (default: the last)")
    simulating.add_argument("--items", type=int, help="how many items, as if the rater stopped early (default: all)")
    exporting = verbs.add_parser("export", help="print all labels of a run, one row per answer")
    exporting.add_argument("run", nargs="?", metavar="RUN", help="a run file (default: the newest)")
    form = exporting.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="as CSV (default)")
    form.add_argument("--jsonl", action="store_true", help="as JSON lines")
    exporting.add_argument("--to", metavar="FILE", help="write to this file")
    importing = verbs.add_parser("import", help="add labels from a file: CSV, JSON lines, Label Studio or Argilla")
    importing.add_argument("file", metavar="FILE", help="columns: unit, rater, question, value")
    importing.add_argument("run", nargs="?", metavar="RUN", help="a run file (default: the newest)")
    importing.add_argument("--draw", type=int, help="the draw that the labels answer, if the file does not say")
    handlers = {drawing: _draw, simulating: _simulate, exporting: _export, importing: _import}
    for verb, handler in handlers.items():
        verb.set_defaults(handler=lambda parsed, rest, handler=handler: _handle(handler, parsed))


def _handle(handler: object, parsed: argparse.Namespace) -> int:
    path = Path(parsed.run) if parsed.run else newest_run()
    assert callable(handler)
    with explain_damage(path), RunFile.open(path) as file:
        handler(parsed, file, NotesFile(path))
    return 0


def _draw(parsed: argparse.Namespace, file: RunFile, notes: NotesFile) -> None:
    filters: dict[str, list[str]] = {}
    for text in parsed.where:
        name, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--where needs f.FACET=VALUE, got '{text}'")
        filters.setdefault(name, []).append(value)
    if parsed.items < 1:
        raise ConfigError(f"--items needs 1 or more, got {parsed.items}")
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
    print(visible(f"draw {draw['id']}: {texts}; label them on the page Label of `parley view {file.path}`"))
    if fewer := why_fewer(stored):
        print(fewer)


def _simulate(parsed: argparse.Namespace, file: RunFile, notes: NotesFile) -> None:
    draws = [draw["id"] for draw in notes.draws()]
    if not draws:
        raise ConfigError(f"nothing is drawn yet: parley labels draw {file.path}")
    draw = draws[-1] if parsed.draw is None else parsed.draw
    for rater in parsed.rater or RATERS:
        count = simulate(file, notes, draw, rater, parsed.items)
        print(visible(f"SIMULATED: {rater} labelled {plural(count, 'item')} of draw {draw}"))


def _export(parsed: argparse.Namespace, file: RunFile, notes: NotesFile) -> None:
    rows = exported(notes)
    if not rows:
        raise ConfigError(f"{file.path} has no labels yet: label texts on the page Label of `parley view`")
    text = "".join(json.dumps(row) + "\n" for row in rows) if parsed.jsonl else as_csv(rows)
    if not parsed.to:
        sys.stdout.write(text)
        return
    try:
        Path(parsed.to).write_text(text, "utf-8")
    except OSError as error:
        raise ParleyError(f"{parsed.to} cannot be written: {error.strerror}") from None
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
