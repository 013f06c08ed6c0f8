"""`parley power`: the scenarios that an effect needs, and the effect that a number of scenarios can detect."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from typing import Any

from parley.agents import ConfigError
from parley.agents.text import plural
from parley.cli.commands import AddParser
from parley.cli.needs import need_analysis

MOST = 10**9
"""Scenarios or judges: beyond, the t distribution is the normal one, and no study has as many."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("--effect", type=float, help="the difference between two identities, in points of 10")
    parser.add_argument("--scenarios", type=int, help="number of scenarios; without --effect: what can they detect?")
    parser.add_argument(
        "--sd",
        type=float,
        default=1.7,
        help="standard deviation of one judge's difference on one scenario (default: 1.7)",
    )
    parser.add_argument(
        "--icc",
        type=float,
        default=0.3,
        help="intraclass correlation of judges in one conversation (default: 0.3)",
    )
    parser.add_argument("--judges", type=int, default=4, help="judges per scenario (default: 4)")
    parser.add_argument("--alpha", type=float, default=0.05, help="significance level (default: 0.05)")
    parser.add_argument("--power", type=float, default=0.8, help="the chance to find the effect (default: 0.8)")
    parser.add_argument(
        "--design",
        choices=("paired", "independent"),
        default="paired",
        help="paired: every scenario has both identities; independent: one (default: paired)",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.set_defaults(handler=lambda parsed, rest: _power(parsed))


def _power(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.reporting.report import json_values
    from parley.analysis.stats.power import detectable_effect, power_with, scenarios_needed

    if parsed.effect is None and parsed.scenarios is None:
        raise ConfigError("give --effect (how many scenarios does it need?) or --scenarios (what can they detect?)")
    for name in ("effect", "sd", "icc", "alpha", "power"):
        if not math.isfinite(getattr(parsed, name) or 0.0):
            raise ConfigError(f"--{name} must be a finite number, got {getattr(parsed, name)}")
    for name in ("scenarios", "judges"):
        if (getattr(parsed, name) or 0) > MOST:
            raise ConfigError(f"--{name} must be at most {MOST:,}, got {getattr(parsed, name)}")
    shared: dict[str, Any] = {
        "sd": parsed.sd,
        "icc": parsed.icc,
        "judges": parsed.judges,
        "alpha": parsed.alpha,
        "design": parsed.design,
    }
    try:
        if parsed.scenarios is None:
            plan = scenarios_needed(parsed.effect, power=parsed.power, **shared)
        elif parsed.effect is None:
            plan = detectable_effect(parsed.scenarios, power=parsed.power, **shared)
        else:
            plan = power_with(parsed.scenarios, parsed.effect, **shared)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    line = f"{plan.scenarios:g} scenarios find a difference of {plan.effect:.3g} with a power of {plan.power:.0%}"
    if parsed.json:
        print(json.dumps(json_values(asdict(plan)), indent=2, ensure_ascii=False))
    else:
        print(plan.note or f"{line}.")
        print(
            f"{plural(parsed.judges, 'judge')}, ICC {parsed.icc:g} (design effect {plan.design_effect:.2f}), "
            f"sd {parsed.sd:g}, α {parsed.alpha:g}, {parsed.design}. {plan.assumes[:1].upper()}{plan.assumes[1:]}."
        )
    return 0
