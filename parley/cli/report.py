"""`parley report RUN…`: the first screen in the terminal, or all of it; a page, tables and figures as files."""

from __future__ import annotations

import argparse
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.cli.shared import AddParser, need_analysis, newest_run
from parley.runs import explain_damage
from parley.runs.example import example_runs
from parley.runs.packing import run_stem

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.report import Report

TABLE_STYLE: dict[str, Any] = {"title_justify": "left", "box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
"""Narrow enough for a terminal of 80 columns."""
INTERVAL = "95% interval"
MIN_TEXT = 12
"""A column of texts is never narrower than this, or than its longest text."""
FORMATS = ("svg", "pdf", "png")
MAX_ROWS = 24
"""Rows of a table that are printed; the files have all of them."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="*", metavar="RUN", help="run files (default: the newest in runs/)")
    parser.add_argument("--example", action="store_true", help="report on the real run that ships with Parley")
    parser.add_argument("--out", metavar="DIR", help="folder for the files (default: beside the first run)")
    parser.add_argument(
        "--figures",
        choices=("main", "all"),
        default="main",  # two thirds of a report's CPU time were eight figures in three formats
        help="draw the forest plot of the main question, or all figures, which takes longer (default: main)",
    )
    parser.add_argument(
        "--formats",
        default="svg",
        metavar="A,B",
        help="file types of the figures: svg, pdf, png (default: svg)",
    )
    parser.add_argument(
        "--width",
        choices=("single", "double"),
        default="double",
        help="width of forest plots: one column of a journal, 3.5 inches, or two, 7.2 (default: double)",
    )
    parser.add_argument("--no-files", dest="files", action="store_false", help="print only, write nothing")
    parser.add_argument("--all", action="store_true", help="print every sentence and the main tables")
    parser.add_argument("--json", action="store_true", help="print one JSON object; no files unless --out is given")
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap and permutation draws (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default: 0)")
    parser.add_argument(
        "--margin",
        type=float,
        help="difference that still counts as none (default: as planned when the run began)",
    )
    parser.add_argument("--study", metavar="FILE.py:CLASS", help="your own study, whose report is used")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    need_analysis()
    from parley.reports import make_report  # loads pandas and matplotlib

    if parsed.example and parsed.run:
        raise ConfigError("give runs or --example, not both")
    paths = [example_runs()["silent"]] if parsed.example else [Path(run) for run in parsed.run] or [newest_run()]
    files = parsed.files and (not parsed.json or parsed.out is not None)
    folder = Path(parsed.out) if parsed.out else paths[0].parent / f"{run_stem(paths[0])}-report"
    with explain_damage(*paths):  # even while it is drawn
        report = make_report(paths, draws=parsed.draws, seed=parsed.seed, margin=parsed.margin, study=parsed.study)
        return show(
            report,
            folder if files else None,
            paths=paths,
            as_json=parsed.json,
            everything=parsed.all,
            figures=parsed.figures,
            formats=_formats(parsed.formats),
            width=parsed.width,
        )


def _formats(text: str) -> list[str]:
    formats = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in formats if name not in FORMATS]:
        raise ConfigError(f"--formats takes {', '.join(FORMATS)}, got '{unknown[0]}'")
    return formats


def print_report(paths: Sequence[Path], study: str | None = None) -> int:
    """The report of a run that has just ended."""
    need_analysis()
    from parley.reports import make_report  # loads pandas and matplotlib

    folder = paths[0].parent / f"{run_stem(paths[0])}-report"
    return show(make_report(paths, study=study), folder, paths=paths, as_json=False)


def show(
    report: Report,
    folder: Path | None,
    *,
    paths: Sequence[Path] = (),
    as_json: bool,
    everything: bool = False,
    quiet: bool = False,
    **drawing: Any,
) -> int:
    """Write and print a report.

    Args:
        report: What to show.
        folder: Where its files go; None: no files.
        paths: The run files, for the quotes and commands of the first screen; without any, everything is printed.
        as_json: Print it as one JSON object.
        everything: Print all sentences and the main tables, not the first screen.
        quiet: Print nothing but where the files are.
        drawing: Which figures to draw, and how: those of `render.write`.
    """
    page = None
    if folder is not None:
        from parley.analysis.reporting.render import write

        try:
            page = write(report, folder, **drawing)
        except OSError as error:
            raise ParleyError(f"the report cannot be written to {folder}: {error.strerror}") from None
    if as_json:
        print(json.dumps(report.data(), indent=2, ensure_ascii=False))
        return 0
    if paths and not quiet and not everything:
        from parley.cli.first_screen import print_first_screen

        print_first_screen(report, paths, page, Console())
        return 0
    if not quiet:
        _print_all(report)
    if page is not None:
        print(f"page: {page}    tables and figures: {page.parent}")
    return 0


def _print_all(report: Report) -> None:
    console = Console()
    console.print(f"\n[bold]{escape(visible(report.title))}[/bold]", highlight=False)
    if report.headline:
        console.print(f"[bold]{escape(visible(report.headline.text))}[/bold]", highlight=False)
    for run in report.runs:
        units = run["units"]
        cost = "cost unknown" if run["cost"] is None else f"${run['cost']:.2f}"
        if (cache := run.get("prompt_cache")) and cache["prompt_tokens"]:
            cost += (
                f" · {cache['cached_tokens'] / cache['prompt_tokens']:.0%} of prompt tokens were in the server's cache"
            )
        console.print(
            f"{escape(visible(run['file']))}: {plural(units['done'], 'unit')} done, {units['failed']:,} failed, "
            f"{units['planned']:,} not yet run · {plural(run['calls'], 'call')}, "
            f"{plural(run['tokens'], 'token')}, {cost}",
            highlight=False,
        )
    for line in report.cautions:
        console.print(f"[bold yellow]Caution:[/bold yellow] {escape(visible(line))}", highlight=False)
    for table in report.tables:
        if table.printed and len(table.frame):
            console.print(_table(table.title, table.view()))
    for line in report.words:
        console.print(f"- {escape(visible(line))}", highlight=False)


def _table(title: str, frame: pd.DataFrame) -> Table:
    """A frame for the terminal: metrics side by side where there is a mean over all of them."""
    if {"identity", "metric", "mean"} <= set(frame) and (frame["metric"] == "all").any():
        frame = _side_by_side(frame)
    return plain_table(title, frame)


def plain_table(title: str, frame: pd.DataFrame, width: int | None = None) -> Table:
    """A frame with each interval in one column. Text may wrap, numbers may not.

    Columns that the terminal has no room for are left out, and named below the table.

    Args:
        title: Title of the table.
        frame: The rows.
        width: Width of the terminal in characters (default: as it is).
    """
    import pandas as pd

    from parley.analysis.reporting.report import format_cell

    frame = _interval_columns(frame)
    more = f" ({plural(len(frame) - MAX_ROWS, 'more row')} in the files)" if len(frame) > MAX_ROWS else ""
    heads = {name: visible(str(name)).replace("_", " ") for name in frame.columns}
    cells = {name: [visible(format_cell(value)) for value in frame[name].head(MAX_ROWS)] for name in frame.columns}
    numeric = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name]) or INTERVAL in str(name)}
    needed = {name: _needed(heads[name], cells[name], name in numeric) for name in frame.columns}
    kept, left_out = _fitting(needed, width or Console().width)
    missing = ", ".join(heads[name] for name in left_out)
    note = f"Not shown, for lack of width: {missing} (widen the terminal, or use --json)" if left_out else None
    style = {**TABLE_STYLE, "caption_justify": "left"}
    table = Table(title=escape(visible(title + more)), caption=escape(note) if note else None, **style)
    for name in kept:
        is_number = name in numeric
        head = "\n".join(textwrap.wrap(heads[name], needed[name])) if is_number else heads[name]
        table.add_column(escape(head), no_wrap=is_number, overflow="fold")
    if left_out:
        table.add_column("…", no_wrap=True)
    for row in zip(*(cells[name] for name in kept), strict=True):
        table.add_row(*map(escape, row), *(["…"] if left_out else []))
    return table


def _needed(head: str, cells: Sequence[str], is_number: bool) -> int:
    """The fewest characters for a column: numbers and words of the heading stay whole, other texts wrap."""
    words = max(map(len, head.split()), default=1)
    longest = max(map(len, cells), default=1)
    return max(words, longest if is_number else min(longest, MIN_TEXT))


def _fitting(needed: Mapping[Any, int], width: int) -> tuple[list[Any], list[Any]]:
    """The columns that fit, and those that do not: the last ones, but never the first or an estimate's interval."""
    kept: list[Any] = list(needed)
    left_out: list[Any] = []
    while sum(needed[name] + 2 for name in kept) + (3 if left_out else 0) > width:
        droppable = [name for name in kept[1:] if name not in ("estimate", INTERVAL)] or kept[1:]
        if not droppable:
            break
        left_out.insert(0, droppable[-1])
        kept.remove(droppable[-1])
    return kept, left_out


def _side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """Metrics as columns; the interval is that of the mean over all of them."""
    keys = [name for name in ("model", "identity") if name in frame]
    wide = frame.pivot_table(index=keys, columns="metric", values="mean", sort=False, observed=True, dropna=False)
    metrics = [name for name in wide.columns if name != "all"]
    overall = frame[frame["metric"] == "all"].set_index(keys)[["low", "high"]]
    return wide[[*metrics, *(["all"] if "all" in wide else [])]].join(overall).reset_index()


def _interval_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """`low` and `high` as one column, and likewise `x_low` and `x_high`; if a mean has two, the one over scenarios."""
    import pandas as pd

    from parley.analysis.reporting.report import format_cell

    names = {str(name) for name in frame.columns}
    if not names & {"low", "cluster_low"}:
        return frame
    dropped = {"n", "clusters"} | ({"low", "high"} if "cluster_low" in names else set())
    columns: dict[str, Any] = {}
    for name in map(str, frame.columns):
        stem = name.removesuffix("low")
        if name in dropped or (name.endswith("high") and f"{name.removesuffix('high')}low" in names):
            continue
        if stem != name and f"{stem}high" in names:
            ends = zip(frame[name], frame[f"{stem}high"], strict=True)
            head = INTERVAL if stem in ("", "cluster_") else f"{stem}{INTERVAL}"
            columns[head] = [
                f"{format_cell(low)} to {format_cell(high)}" if high - low < math.inf else "–" for low, high in ends
            ]
        else:
            columns[name] = frame[name]
    return pd.DataFrame(columns, index=frame.index)
