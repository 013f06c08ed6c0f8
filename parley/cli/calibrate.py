"""`parley calibrate`: false alarms and power of every test, on simulated judges."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from parley.agents import ConfigError, ParleyError
from parley.cli import calibrate_sequential
from parley.cli.commands import AddParser
from parley.cli.needs import need_analysis


def add_to(add_parser: AddParser) -> None:
    check = add_parser()
    check.add_argument("--judges", type=_whole, metavar="A,B", help="(default: 1,4,8; with --sequential 4)")
    check.add_argument("--scenarios", type=_whole, default=[20, 50], metavar="A,B", help="(default: 20,50)")
    check.add_argument(
        "--effects",
        type=_numbers,
        default=[0.0, 0.2, 0.4],
        metavar="A,B",
        help="planted points (default: 0,0.2,0.4)",
    )
    check.add_argument("--icc", type=float, default=0.3, help="how alike judges of one table are (default: 0.3)")
    check.add_argument("--simulations", type=int, default=1000, help="studies for each cell (default: 1000)")
    check.add_argument("--draws", type=int, default=2000, help="permutations a test (default: 2000)")
    check.add_argument("--seed", type=int, default=0)
    check.add_argument("--out", metavar="DIR", help="also write the table (CSV) and the plot (SVG, PDF, PNG) there")
    check.add_argument("--json", action="store_true")
    calibrate_sequential.add_flags(check)
    check.set_defaults(handler=lambda parsed, rest: _calibrate(parsed))


def _whole(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _calibrate(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.calibration.fixed import calibrate, calibration_figure
    from parley.analysis.reporting.figures import save
    from parley.analysis.reporting.report import json_values

    parsed.judges = parsed.judges or ([4] if parsed.sequential else [1, 4, 8])
    _check(parsed)
    if parsed.sequential:
        return calibrate_sequential.show(parsed)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=None)
        rows = calibrate(
            parsed.judges,
            parsed.scenarios,
            parsed.effects,
            icc=parsed.icc,
            simulations=parsed.simulations,
            draws=parsed.draws,
            seed=parsed.seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if parsed.out:
        folder = Path(parsed.out)
        note = (
            f"{parsed.simulations} simulated studies a cell, ICC {parsed.icc:g}, seed {parsed.seed}; bars: 95% Wilson. "
            "At effect 0 a test should lie at the dashed 5%. SIMULATED judges."
        )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "calibration.csv").write_text(rows.to_csv(index=False), "utf-8")
            save(calibration_figure(rows, "False alarms and power", note), folder / "calibration")
        except OSError as error:
            raise ParleyError(f"{folder} cannot be written: {error.strerror}") from None
    if parsed.json:
        print(json.dumps(json_values(rows), indent=2, ensure_ascii=False))
        return 0
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title="Called significant (SIMULATED judges)")
    for column in ("test", "judges", "scenarios", "effect", "rate", "95% interval"):
        table.add_column(column, no_wrap=True)
    for row in rows.itertuples():
        cells = (row.test, str(row.judges), str(row.scenarios), f"{row.effect:g}")
        rates = (f"{row.rate:.1%}", f"{row.low:.1%} to {row.high:.1%}") if row.simulations else ("–", "–")
        table.add_row(*cells, *rates)
    Console().print(table)
    print("At effect 0 the rate is that of false alarms and should be near 5%; elsewhere it is the power.")
    return 0


def _check(parsed: argparse.Namespace) -> None:
    if not 0 <= parsed.icc < 1:
        raise ConfigError(f"--icc must lie between 0 and 1, not {parsed.icc:g}")
    if parsed.seed < 0 or not all(math.isfinite(effect) for effect in parsed.effects):
        raise ConfigError("effects must be numbers, and --seed at least 0")
    if min(parsed.judges) < 1 or min(parsed.scenarios) < 2 or parsed.simulations < 1 or parsed.draws < 1:
        raise ConfigError("at least one judge, two scenarios, one simulation and one draw are needed")
