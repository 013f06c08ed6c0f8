"""`parley power`: how many scenarios an effect takes, and what a given number can find."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from typing import Any

from parley.agents import ConfigError
from parley.cli.commands import AddParser
from parley.cli.needs import need_analysis


def add_to(add_parser: AddParser) -> None:
    plan = add_parser()
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


def _power(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.reporting.report import json_values
    from parley.analysis.stats.power import detectable_effect, power_with, scenarios_needed

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
        print(json.dumps(json_values(asdict(found)), indent=2, ensure_ascii=False))
    else:
        print(found.note or f"{line}.")
        print(
            f"{parsed.judges} judges, ICC {parsed.icc:g} (design effect {found.design_effect:.2f}), "
            f"sd {parsed.sd:g}, α {parsed.alpha:g}, {parsed.design}. {found.assumes[:1].upper()}{found.assumes[1:]}."
        )
    return 0
