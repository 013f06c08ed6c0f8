"""`parley calibrate`: false-positive rate and power of every test, on simulated judges."""

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
from parley.base.text import visible
from parley.cli import calibrate_adversarial
from parley.cli.commands import AddParser
from parley.cli.needs import need_analysis


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "--judges",
        type=_whole_numbers,
        metavar="A,B",
        help="judges per scenario (default: 1,4,8)",
    )
    parser.add_argument(
        "--scenarios",
        type=_whole_numbers,
        metavar="A,B",
        help="scenarios per study (default: 20,50)",
    )
    parser.add_argument(
        "--effects",
        type=_numbers,
        metavar="A,B",
        help="differences to plant, in points (default: 0,0.2,0.4)",
    )
    parser.add_argument(
        "--icc",
        type=float,
        help="intraclass correlation of judges in one conversation (default: 0.3)",
    )
    parser.add_argument("--simulations", type=int, help="studies per cell (default: 1000; with --adversarial: 200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulations (default: 0)")
    parser.add_argument("--out", metavar="DIR", help="also write the table (CSV) and the plot (SVG, PDF, PNG) there")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    calibrate_adversarial.add_flags(parser)
    parser.set_defaults(handler=lambda parsed, rest: _calibrate(parsed))


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs whole numbers separated by commas, got {text!r}") from None


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs numbers separated by commas, got {text!r}") from None


def _calibrate(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.calibration.as_assumed import calibrate, calibration_figure
    from parley.analysis.reporting.figures import save
    from parley.analysis.reporting.report import json_values

    _fill_in(parsed)
    _check(parsed)
    if parsed.adversarial:
        return calibrate_adversarial.show(parsed)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=None)
        rows = calibrate(
            parsed.judges,
            parsed.scenarios,
            parsed.effects,
            icc=parsed.icc,
            simulations=parsed.simulations,
            seed=parsed.seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if parsed.out:
        folder = Path(parsed.out)
        note = (
            f"{parsed.simulations} simulated studies per cell, ICC {parsed.icc:g}, seed {parsed.seed}; bars: 95% "
            "Wilson intervals. At effect 0 a test should lie at the dashed 5%. SIMULATED judges."
        )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "calibration.csv").write_text(rows.to_csv(index=False), "utf-8")
            save(calibration_figure(rows, "False-positive rate and power", note), folder / "calibration")
        except OSError as error:
            raise ParleyError(f"{folder} cannot be written: {error.strerror}") from None
    if parsed.json:
        print(json.dumps(json_values(rows), indent=2, ensure_ascii=False))
        return 0
    title = "Share of significant tests (SIMULATED judges)"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=title)
    for column in ("test", "judges", "scenarios", "effect", "rate", "95% interval"):
        table.add_column(column, no_wrap=True)
    for row in rows.itertuples():
        cells = (row.test, str(row.judges), str(row.scenarios), f"{row.effect:g}")
        rates = (f"{row.rate:.1%}", f"{row.low:.1%} to {row.high:.1%}") if row.simulations else ("–", "–")
        table.add_row(*cells, *rates)
    Console().print(table)
    print("At effect 0 the rate is the false-positive rate and should be near 5%; elsewhere it is the power.")
    print("Here scenarios are independent, as the tests assume. --adversarial breaks that, and every other assumption.")
    if parsed.out:
        print(visible(f"written to {parsed.out}"))
    return 0


def _fill_in(parsed: argparse.Namespace) -> None:
    """The defaults, which differ by what is simulated."""
    if parsed.adversarial:
        for flag in ("judges", "scenarios", "effects", "icc"):
            if getattr(parsed, flag) is not None:
                raise ConfigError(f"--{flag} cannot be combined with --adversarial, whose cells are fixed; see --only")
    elif parsed.only or parsed.workers != 1:
        raise ConfigError("--only and --workers need --adversarial")
    for name, value in (
        ("judges", [1, 4, 8]),
        ("scenarios", [20, 50]),
        ("effects", [0.0, 0.2, 0.4]),
        ("icc", 0.3),
        ("simulations", calibrate_adversarial.SIMULATIONS if parsed.adversarial else 1000),
    ):
        if getattr(parsed, name) is None:
            setattr(parsed, name, value)


def _check(parsed: argparse.Namespace) -> None:
    if not 0 <= parsed.icc < 1:
        raise ConfigError(f"--icc must be at least 0 and below 1, got {parsed.icc:g}")
    if not all(math.isfinite(effect) for effect in parsed.effects):
        raise ConfigError("--effects needs finite numbers")
    for flag, value, least in (
        ("--judges", min(parsed.judges), 1),
        ("--scenarios", min(parsed.scenarios), 2),
        ("--simulations", parsed.simulations, 1),
        ("--workers", parsed.workers, 1),
        ("--seed", parsed.seed, 0),
    ):
        if value < least:
            raise ConfigError(f"{flag} must be at least {least}, got {value}")
