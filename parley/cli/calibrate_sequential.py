"""`parley calibrate --sequential`: error rates of stopping rules, and what stopping early saves."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from parley.agents import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.execute import explain
from parley.judging import StopRule


def add_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with --sequential")
    group.add_argument("--sequential", action="store_true", help="simulate studies with interim looks")
    group.add_argument(
        "--identities",
        default="2,4",
        metavar="A,B",
        help="identities per study; every two are compared (default: 2,4)",
    )
    group.add_argument(
        "--per-base",
        type=int,
        default=1,
        metavar="N",
        help="scenarios per base; --scenarios must be a multiple of it (default: 1)",
    )
    group.add_argument(
        "--base-sd",
        type=float,
        default=0.3,
        metavar="SD",
        help="SD over bases of each identity's effect, in points (default: 0.3)",
    )
    group.add_argument("--looks", default=5, help="interim looks per study (default: 5)")
    group.add_argument("--alpha", default=0.05, help="significance level for all comparisons together (default: 0.05)")
    group.add_argument(
        "--spending",
        default="obrien-fleming,pocock",
        metavar="A,B",
        help="spending functions (default: obrien-fleming,pocock)",
    )
    group.add_argument(
        "--futility",
        default="0,0.1",
        metavar="A,B",
        help="conditional power below which a comparison is given up; 0: never (default: 0,0.1)",
    )


def show(parsed: argparse.Namespace) -> int:
    from parley.analysis.calibration.sequential import savings
    from parley.analysis.reporting.report import json_values
    from parley.analysis.stats.sequential import StoppingRule

    rules = [StoppingRule(**rule.model_dump()) for rule in _rules(parsed)]
    try:
        identities = [int(part) for part in parsed.identities.split(",")]
    except ValueError:
        identities = []
    if not identities or min(identities) < 2:
        raise ConfigError(f"--identities needs whole numbers of at least 2, got {parsed.identities!r}")
    if parsed.per_base < 1 or any(count % parsed.per_base or count < 2 * parsed.per_base for count in parsed.scenarios):
        raise ConfigError(
            f"--scenarios must be multiples of --per-base, for two bases or more; got {parsed.per_base} per base"
        )
    if not 0 <= parsed.base_sd < math.inf:
        raise ConfigError(f"--base-sd must be a number of at least 0, got {parsed.base_sd:g}")
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=None)
        rows = savings(
            rules,
            parsed.judges,
            parsed.scenarios,
            parsed.effects,
            identities,
            per_base=parsed.per_base,
            base_sd=parsed.base_sd,
            icc=parsed.icc,
            simulations=parsed.simulations,
            seed=parsed.seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if parsed.out:
        try:
            Path(parsed.out).mkdir(parents=True, exist_ok=True)
            (Path(parsed.out) / "savings.csv").write_text(rows.to_csv(index=False), "utf-8")
        except OSError as error:
            raise ParleyError(f"{parsed.out} cannot be written: {error.strerror}") from None
    if parsed.json:
        print(json.dumps(json_values(rows), indent=2, ensure_ascii=False))
        return 0
    looks, studies = plural(rules[0].looks, "look"), plural(parsed.simulations, "study", "studies")
    title = f"At most {looks}, α {parsed.alpha}, {studies} per row (SIMULATED judges)"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=title, title_justify="left")
    for column in ("spending, futility", "ids", "bases", "effect", "false pos.", "power", "units"):
        table.add_column(column, no_wrap=True)
    for row in rows.itertuples():
        cells = (
            f"{row.spending} {row.futility:g}" if row.futility else row.spending,
            str(row.identities),
            str(row.bases),
            f"{row.effect:g}",
            _with_fixed(row.false_alarms, row.fixed_false_alarms, 1),
            _with_fixed(row.power, row.fixed_power, 0),
            f"{row.units:.0%}" if row.fixed_units != row.fixed_units else f"{row.units:.0%} ({row.fixed_units:.0%})",
        )
        table.add_row(*cells)
    Console().print(table)
    per_base = plural(parsed.per_base, "scenario")
    print(f"ids: identities, every two compared. bases: clusters, with {per_base} each. A label's effect")
    print(f"varies between bases with SD {parsed.base_sd:g}. False pos.: studies with a false positive.")
    print("Power: share of true differences found. Units: mean share of the plan that was run. In")
    print("parentheses: the fixed design, tested once at the end; for units, the share with which it has")
    print("the same power.")
    if parsed.out:
        print(visible(f"written to {parsed.out}"))
    return 0


def _rules(parsed: argparse.Namespace) -> list[StopRule]:
    try:
        return [
            StopRule.model_validate(
                {"spending": spending, "futility": futility, "looks": parsed.looks, "alpha": parsed.alpha}
            )
            for spending in parsed.spending.split(",")
            for futility in parsed.futility.split(",")
        ]
    except ValidationError as error:
        raise ConfigError(explain(error, StopRule)) from None


def _with_fixed(sequential: float, fixed: float, digits: int) -> str:
    return "–" if sequential != sequential else f"{sequential:.{digits}%} ({fixed:.{digits}%})"
