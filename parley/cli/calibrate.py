"""`parley calibrate [--adversarial]`: false-positive rate and power of every test, on simulated judges.

Without --adversarial the judges are as the tests assume; with it they break the assumptions, one after the other.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from parley.base.errors import ConfigError, explain_unwritable
from parley.base.text import plural, visible
from parley.cli.shared import AddParser, need_analysis
from parley.cli.tables import cell_table

ADVERSARIAL_SIMULATIONS = 200
"""Studies per cell with --adversarial, which has 116 cells."""
LEGEND = """\
Numbers are false alarms in % at a nominal 5%; a + marks power, where there is something to find, and <x a
test that can reach at most x%. bases, scen.: sign flips over bases, over scenarios. all: labels of all identities,
sign flips over bases. F: do effects differ by base? align: stereotype-aligned. naive: over bases, although they
share wordings. alike: how often silent ballots are said to be alike. cover: how often the 95% interval over bases
contains the truth. Targets: 3 to 7, cover 93 to 97."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("--judges", type=_listed(int), metavar="A,B", help="judges per scenario (default: 1,4,8)")
    parser.add_argument("--scenarios", type=_listed(int), metavar="A,B", help="scenarios per study (default: 20,50)")
    parser.add_argument(
        "--effects", type=_listed(float), metavar="A,B", help="differences to plant, in points (default: 0,0.2,0.4)"
    )
    parser.add_argument("--icc", type=float, help="intraclass correlation of judges in one conversation (default: 0.3)")
    parser.add_argument("--simulations", type=int, help="studies per cell (default: 1000; with --adversarial: 200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulations (default: 0)")
    parser.add_argument(
        "--out", metavar="DIR", help="also write the table (CSV) and the plot (SVG, PDF, PNG) to this folder"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    _add_adversarial_flags(parser)
    parser.set_defaults(handler=_calibrate)


def _listed(kind: type[int] | type[float]) -> Callable[[str], list[Any]]:
    """Reads numbers with commas between them."""

    def read(text: str) -> list[Any]:
        try:
            return [kind(part) for part in text.split(",")]
        except ValueError:
            what = "whole numbers" if kind is int else "numbers"
            raise argparse.ArgumentTypeError(f"needs {what} separated by commas, got {text!r}") from None

    return read


def _calibrate(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.calibration.as_assumed import calibrate, calibration_figure
    from parley.analysis.reporting.figures import save
    from parley.analysis.reporting.report import json_values

    _fill_in(parsed)
    _check(parsed)
    if parsed.adversarial:
        return _calibrate_adversarially(parsed)
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
        with explain_unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "calibration.csv").write_text(rows.to_csv(index=False), "utf-8")
            save(calibration_figure(rows, "False-positive rate and power", note), folder / "calibration")
    if parsed.json:
        print(json.dumps(json_values(rows), indent=2, ensure_ascii=False))
        return 0
    cells = [
        (row.test, row.judges, row.scenarios, f"{row.effect:g}")
        + ((f"{row.rate:.1%}", f"{row.low:.1%} to {row.high:.1%}") if row.simulations else ("–", "–"))
        for row in rows.itertuples()
    ]
    columns = ("test", "judges", "scenarios", "effect", "rate", "95% interval")
    Console().print(cell_table(columns, cells, "Share of significant tests (SIMULATED judges)"))
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
                raise ConfigError(
                    f"--{flag} does not work with --adversarial, whose cells are fixed; choose some with --only"
                )
    elif parsed.only or parsed.workers != 1:
        raise ConfigError("--only and --workers need --adversarial")
    for name, value in (
        ("judges", [1, 4, 8]),
        ("scenarios", [20, 50]),
        ("effects", [0.0, 0.2, 0.4]),
        ("icc", 0.3),
        ("simulations", ADVERSARIAL_SIMULATIONS if parsed.adversarial else 1000),
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


def _add_adversarial_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with --adversarial")
    group.add_argument(
        "--adversarial",
        action="store_true",
        help="simulate judges that break the tests' assumptions, and try every test that a report prints",
    )
    group.add_argument("--only", metavar="TEXT", help="simulate only cells with this text in their name or group")
    group.add_argument("--workers", type=int, default=1, help="number of processes (default: 1)")


def _calibrate_adversarially(parsed: argparse.Namespace) -> int:
    from parley.analysis.calibration.adversarial import adversarial_figure, calibrate_adversarially
    from parley.analysis.calibration.cells import cells
    from parley.analysis.reporting.figures import save
    from parley.analysis.reporting.report import json_values

    wanted = (parsed.only or "").lower()
    chosen = [cell for cell in cells() if wanted in f"{cell.group}: {cell.name}".lower()]
    if not chosen:
        groups = ", ".join(dict.fromkeys(cell.group for cell in cells()))
        raise ConfigError(f"no cell has {parsed.only!r} in its name (--only); the groups are {groups}")
    console, start = Console(stderr=True), time.monotonic()
    columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:.0f}%"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=None)
        table = calibrate_adversarially(
            chosen,
            simulations=parsed.simulations,
            seed=parsed.seed,
            workers=parsed.workers,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    spent = (
        f"{plural(len(chosen), 'cell')}, {plural(parsed.simulations, 'study', 'studies')} each, seed {parsed.seed}: "
        f"{table.cpu_seconds:.0f} s of CPU time, {time.monotonic() - start:.0f} s with "
        f"{plural(parsed.workers, 'worker')}."
    )
    if parsed.out:
        folder = Path(parsed.out)
        note = (
            f"{parsed.simulations} simulated studies per cell, seed {parsed.seed}; bars: 95% Wilson intervals; grey: "
            "the target, 3 to 7%. Under 6 bases sign flips cannot reject. SIMULATED judges."
        )
        with explain_unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "adversarial.csv").write_text(table.rows.to_csv(index=False), "utf-8")
            figure = adversarial_figure(table.rows, "False alarms where assumptions are broken", note)
            save(figure, folder / "adversarial")
    if parsed.json:
        record = {"rows": json_values(table.rows), "cpu_seconds": round(table.cpu_seconds, 1)}
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return 0
    output = Console()
    for group, part in table.rows.groupby("group", sort=False):
        output.print(_table(str(group), part))
    missed = table.rows[table.rows["finding"] != ""]
    print(LEGEND)
    print(f"Tests that reports rest on and that miss a target: {len(missed)}")
    for row in missed.itertuples():
        print(f"  {row.group}: {row.cell} · {row.test} · {_figures(row)}: {row.finding}")
    print(spent)
    if parsed.out:
        print(visible(f"written to {parsed.out}"))
    return 0


def _table(group: str, rows: Any) -> Table:
    from parley.analysis.calibration import printed, silent

    shown = {
        "bases": printed.BY_BASE,
        "scen.": printed.BY_SCENARIO,
        "χ²": printed.CHI_SQUARE,
        "units": printed.BINOMIAL,
        "McNemar": printed.MCNEMAR,
        "all": printed.OMNIBUS,
        "F": printed.BETWEEN_BASES,
        "align": printed.ALIGNED,
        "naive": silent.NAIVE_BASES,
        "alike": printed.ALIKE if "silent" in group else "",
    }
    shown = {name: test for name, test in shown.items() if test in set(rows["test"])}
    cells = []
    for cell, part in rows.groupby("cell", sort=False):
        by_test = part.set_index("test")
        rates = [_rate(by_test.loc[test]) if test in by_test.index else "–" for test in shown.values()]
        cells.append((cell, *rates, f"{100 * by_test.loc[printed.BY_BASE, 'coverage']:.0f}"))
    return cell_table(("cell", *shown, "cover"), cells, f"{group} (SIMULATED judges)")


def _rate(row: Any) -> str:
    if math.isnan(row["rate"]):
        return "–"
    if not row["null"]:
        return f"{100 * row['rate']:.0f}+"
    limit = f"<{100 * row['attainable']:.1f}" if row["attainable"] < 0.03 else ""
    return f"{100 * row['rate']:.1f}{limit}"


def _figures(row: Any) -> str:
    parts = [f"{row.rate:.1%}"] if row.null and not math.isnan(row.rate) else []
    return ", ".join([*parts, *([f"covers {row.coverage:.1%}"] if not math.isnan(row.coverage) else [])])
