"""`parley calibrate`: does the instrument work? `parley power`: how many scenarios are needed?"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from agents import ConfigError, ParleyError
from parley.cli import savings


def add_to(commands: Any) -> None:
    check = commands.add_parser("calibrate", help="simulated judges: false alarms and power of every test")
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
    savings.add_flags(check)
    check.set_defaults(handler=lambda parsed, rest: _calibrate(parsed))
    plan = commands.add_parser("power", help="scenarios needed for an effect, and the reverse")
    plan.add_argument("--effect", type=float, help="the difference of two identities, points of 10")
    plan.add_argument("--scenarios", type=int, help="so many are at hand: what can be found?")
    plan.add_argument("--sd", type=float, default=1.7, help="of one judge's difference on one scenario (default: 1.7)")
    plan.add_argument("--icc", type=float, default=0.3, help="how alike judges of one table are (default: 0.3)")
    plan.add_argument("--judges", type=int, default=4, help="(default: 4)")
    plan.add_argument("--alpha", type=float, default=0.05, help="(default: 0.05)")
    plan.add_argument("--power", type=float, default=0.8, help="(default: 0.8)")
    plan.add_argument("--design", choices=("paired", "independent"), default="paired", help="(default: paired)")
    plan.add_argument("--json", action="store_true")
    plan.set_defaults(handler=lambda parsed, rest: _power(parsed))


def _whole(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _calibrate(parsed: argparse.Namespace) -> int:
    _needs_analysis()
    from analysis.calibration import calibrate, calibration_figure
    from analysis.figures import save
    from analysis.report import plain

    parsed.judges = parsed.judges or ([4] if parsed.sequential else [1, 4, 8])
    _check(parsed)
    if parsed.sequential:
        return savings.show(parsed)
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
        print(json.dumps(plain(rows), indent=2, ensure_ascii=False))
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


def _power(parsed: argparse.Namespace) -> int:
    _needs_analysis()
    from analysis.power import detectable_effect, power_with, scenarios_needed
    from analysis.report import plain

    if parsed.effect is None and parsed.scenarios is None:
        raise ConfigError("give --effect (how many scenarios does it take?) or --scenarios (what can they find?)")
    if not all(math.isfinite(one) for one in (parsed.effect or 0.0, parsed.sd, parsed.icc, parsed.alpha, parsed.power)):
        raise ConfigError("effect, sd, icc, alpha and power must be numbers")
    shared: dict[str, Any] = {
        "sd": parsed.sd,
        "icc": parsed.icc,
        "judges": parsed.judges,
        "alpha": parsed.alpha,
        "design": parsed.design,
    }
    try:
        if parsed.scenarios is None:
            found = scenarios_needed(parsed.effect, power=parsed.power, **shared)
        elif parsed.effect is None:
            found = detectable_effect(parsed.scenarios, power=parsed.power, **shared)
        else:
            found = power_with(parsed.scenarios, parsed.effect, **shared)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    line = f"{found.scenarios:g} scenarios find a difference of {found.effect:.3g} with a power of {found.power:.0%}"
    if parsed.json:
        print(json.dumps(plain(asdict(found)), indent=2, ensure_ascii=False))
    else:
        print(found.note or f"{line}.")
        print(
            f"{parsed.judges} judges, ICC {parsed.icc:g} (design effect {found.design_effect:.2f}), "
            f"sd {parsed.sd:g}, α {parsed.alpha:g}, {parsed.design}. {found.assumes[:1].upper()}{found.assumes[1:]}."
        )
    return 0


def _needs_analysis() -> None:
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("this needs pandas and friends: pip install 'parley[analysis]'") from None
