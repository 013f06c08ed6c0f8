"""`parley report RUN…`: the first screen in the terminal, or all of it; a page, tables and figures as files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.cli.audit import dataset_report, is_dataset
from parley.cli.flags import as_flags
from parley.cli.shared import AddParser, comma_separated, need_analysis, newest_run
from parley.cli.tables import INTERVAL, cell_table, p_value, plain_table
from parley.runs import explain_damage
from parley.runs.example import example_runs
from parley.runs.packing import run_stem

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.report import Report

FORMATS = ("svg", "pdf", "png")
WIDEST = 500
"""Characters of the widest table of lines."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "run",
        nargs="*",
        metavar="RUN",
        help="run files, or a dataset of preference pairs in TRL's format (default: the newest run in runs/)",
    )
    parser.add_argument("--example", action="store_true", help="report on the real run that ships with Parley")
    parser.add_argument("--out", metavar="DIR", help="folder for the files (default: next to the first run)")
    parser.add_argument(
        "--figures",
        choices=("main", "all"),
        default="main",  # two thirds of a report's CPU time were eight figures in three formats
        help="draw only the forest plot of the main question, or all figures, which takes longer (default: main)",
    )
    parser.add_argument(
        "--formats", default="svg", metavar="A,B", help="file types of the figures: svg, pdf, png (default: svg)"
    )
    parser.add_argument(
        "--width",
        choices=("single", "double"),
        default="double",
        help="width of forest plots: one journal column (3.5 inches) or two (7.2 inches; default: double)",
    )
    parser.add_argument("--no-files", dest="files", action="store_false", help="print only, write nothing")
    parser.add_argument("--all", action="store_true", help="print every sentence and the main tables")
    parser.add_argument(
        "--lines", action="store_true", help="list every estimate by the name that parley check takes; write no files"
    )
    parser.add_argument("--json", action="store_true", help="print JSON; write no files unless --out is given")
    parser.add_argument(
        "--draws", type=int, default=2000, help="number of bootstrap and permutation draws (default: 2000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default: 0)")
    parser.add_argument(
        "--margin",
        type=float,
        help="largest difference that still counts as none (default: the run's planned margin)",
    )
    parser.add_argument("--study", metavar="FILE.py:CLASS", help="use the report of your own study")
    parser.add_argument(
        "--instructions",
        metavar="FILE",
        help="of a dataset: text file with the writers' instructions (default: those in the export's manifest)",
    )
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.reports import make_report  # loads pandas and matplotlib

    if len(parsed.run) == 1 and is_dataset(Path(parsed.run[0])):
        instructions = Path(parsed.instructions) if parsed.instructions else None
        dataset = dataset_report(Path(parsed.run[0]), instructions, parsed.seed)
        return show(dataset, Path(parsed.out) if parsed.out else None, as_json=parsed.json)
    if parsed.instructions:
        raise ConfigError("--instructions needs a dataset of pairs")
    if parsed.example and parsed.run:
        raise ConfigError("give runs or --example, not both")
    paths = [example_runs()["silent"]] if parsed.example else [Path(run) for run in parsed.run] or [newest_run()]
    files = parsed.files and (not (parsed.json or parsed.lines) or parsed.out is not None)
    folder = Path(parsed.out) if parsed.out else paths[0].parent / f"{run_stem(paths[0])}-report"
    with explain_damage(*paths):  # even while it is drawn
        report = make_report(paths, draws=parsed.draws, seed=parsed.seed, margin=parsed.margin, study=parsed.study)
        if parsed.lines:
            return _print_lines(report, as_json=parsed.json)
        return show(
            report,
            folder if files else None,
            paths=paths,
            typed=_typed(parsed),
            as_json=parsed.json,
            everything=parsed.all,
            figures=parsed.figures,
            formats=_formats(parsed.formats),
            width=parsed.width,
        )


def _typed(parsed: argparse.Namespace) -> list[str]:
    """The flags that change what the report says, as they were typed."""
    defaults = {"draws": 2000, "seed": 0, "margin": None, "study": None}
    return as_flags({name: value for name, usual in defaults.items() if (value := getattr(parsed, name)) != usual})


def _formats(text: str) -> list[str]:
    formats = comma_separated(text)
    if unknown := [name for name in formats if name not in FORMATS]:
        raise ConfigError(f"--formats takes {', '.join(FORMATS)}, got '{unknown[0]}'")
    return formats


def print_report(paths: Sequence[Path], study: str | None = None) -> int:
    """The report of a run that has just ended."""
    need_analysis()
    from parley.reports import make_report  # loads pandas and matplotlib

    folder = paths[0].parent / f"{run_stem(paths[0])}-report"
    typed = as_flags({"study": study} if study and ":" in study else {})  # a shipped study is known from the run
    return show(make_report(paths, study=study), folder, paths=paths, typed=typed, as_json=False)


def show(
    report: Report,
    folder: Path | None,
    *,
    paths: Sequence[Path] = (),
    typed: Sequence[str] = (),
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
        typed: Flags that the report was made with, for the commands of the first screen.
        as_json: Print it as JSON.
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

        print_first_screen(report, paths, page, Console(), typed)
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
            console.print(plain_table(table.title, _side_by_side(table.view())))
    for line in report.sentences:
        console.print(f"- {escape(visible(line))}", highlight=False)


def _print_lines(report: Report, *, as_json: bool) -> int:
    """Every estimate of the report, one line each."""
    from parley.analysis.reporting.forest import number_format
    from parley.analysis.reporting.report import json_values

    if as_json:
        lines = [{"name": name, **line.data()} for name, (line, _) in report.lines.items()]
        print(json.dumps(json_values(lines), indent=2, ensure_ascii=False))
        return 0
    rows = []
    for name, (line, forest) in report.lines.items():
        written = number_format(forest)
        ends = f"{written(line.low)} to {written(line.high)}" if line.bounded else "–"
        rows.append((name, written(line.estimate), ends, p_value(line.p_adjusted), f"{line.n:,}"))
    table = cell_table(("line", "estimate", INTERVAL, "p", "n"), rows, title=report.title, whole="line")
    # A name is there to be copied: a long one makes the table wider than the terminal rather than wrap.
    console = Console()
    needed = Measurement.get(console, console.options.update(max_width=WIDEST), table).maximum
    Console(width=max(console.width, needed)).print(table)
    return 0


def _side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """Metrics as columns, where there is a mean over all of them; the interval is that of this mean."""
    if not {"identity", "metric", "mean"} <= set(frame) or not (frame["metric"] == "all").any():
        return frame
    keys = [name for name in ("model", "identity") if name in frame]
    wide = frame.pivot_table(index=keys, columns="metric", values="mean", sort=False, observed=True, dropna=False)
    metrics = [name for name in wide.columns if name != "all"]
    overall = frame[frame["metric"] == "all"].set_index(keys)[["low", "high"]]
    return wide[[*metrics, *(["all"] if "all" in wide else [])]].join(overall).reset_index()
