"""`parley plan`: hours, dollars, disk and memory of a run that is too large to try."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.agents.models.registry import client_class, split_name
from parley.cli.commands import AddParser
from parley.planning import Forecast, Machine, ProviderLimits, Work, forecast


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        description="Simulate a large run against a provider's limits: hours, dollars, disk, memory. Nothing is sent."
    )
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="what `parley run … --dry-run --json` printed (-: stdin)"
    )
    parser.add_argument("--calls", type=int, help="model calls in all")
    parser.add_argument("--calls-a-unit", type=int, help="one after the other in each unit (default: 8)")
    parser.add_argument("--prompt-tokens", type=float, help="of one call (default: 1000)")
    parser.add_argument("--reply-tokens", type=float, help="of one call (default: 150)")
    parser.add_argument("--model", help="for its price, as in `parley run`")
    parser.add_argument("--requests-a-minute", type=float, default=math.inf, metavar="N", help="the provider's limit")
    parser.add_argument("--tokens-a-minute", type=float, default=math.inf, metavar="N", help="the provider's limit")
    parser.add_argument("--latency", type=float, default=1.0, help="median seconds of a call (default: 1)")
    parser.add_argument("--spread", type=float, default=0.5, help="deviation of its logarithm (default: 0.5)")
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls that fail and are tried again")
    parser.add_argument("--concurrency", type=int, default=256, help="units held at once (default: 256)")
    parser.add_argument("--cpu-ms", type=float, default=0.6, help="of one core, a call (default: 0.6)")
    parser.add_argument("--processes", type=int, default=1, help="that share the run (default: 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    planned = _planned(parsed.source) if parsed.source else {}
    work = _work(parsed, planned)
    for name in ("requests_a_minute", "tokens_a_minute", "latency", "concurrency", "processes"):
        if not getattr(parsed, name) > 0:
            raise ConfigError(f"--{name.replace('_', '-')} must be above 0")
    if not 0 <= parsed.faults < 1 or parsed.spread < 0 or parsed.cpu_ms < 0:
        raise ConfigError("--faults is a share below 1, and --spread and --cpu-ms are not below 0")
    provider = ProviderLimits(
        parsed.requests_a_minute, parsed.tokens_a_minute, parsed.latency, parsed.spread, parsed.faults
    )  # fmt: skip
    found = forecast(work, provider, Machine(parsed.concurrency, parsed.cpu_ms, parsed.processes), parsed.seed)
    cost = _cost(parsed.model, work) if parsed.model else planned.get("cost")
    if parsed.json:
        shown = asdict(found) | {"bound_by": found.bound_by, "cost": cost, "calls": work.calls}
        shown["bounds"] = {name: None if math.isinf(value) else value for name, value in found.bounds.items()}
        print(json.dumps(shown))
    else:
        _show(work, found, cost)
    return 0


def _planned(source: str) -> dict[str, Any]:
    try:
        found = json.loads(sys.stdin.read() if source == "-" else Path(source).read_text("utf-8"))
        if not isinstance(found, dict) or not all(isinstance(found[key], int) for key in ("calls", "units")):
            raise ValueError
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError):
        raise ConfigError(f"{source} is not what `parley run … --dry-run --json` prints") from None
    return found


def _work(parsed: argparse.Namespace, planned: dict[str, Any]) -> Work:
    """Flags first, then the dry run, then what a panel is like."""
    calls = parsed.calls or planned.get("calls")
    if not calls:
        raise ConfigError("say how many: --calls N, or --from the JSON of a dry run")
    dry = max(planned.get("calls", 0), 1)
    return Work(
        calls,
        parsed.calls_a_unit or max(1, round(planned.get("calls", 8) / max(planned.get("units", 1), 1))),
        parsed.prompt_tokens if parsed.prompt_tokens is not None else planned.get("prompt_tokens", 1000 * dry) / dry,
        parsed.reply_tokens if parsed.reply_tokens is not None else planned.get("completion_tokens", 150 * dry) / dry,
    )


def _cost(name: str, work: Work) -> float | None:
    plain, options = split_name(name)
    price = client_class(plain).price_for(plain, options)
    return price.cost(work.calls * work.prompt_tokens, work.calls * work.reply_tokens)


def _show(work: Work, found: Forecast, cost: float | None) -> None:
    price = "unknown (give --model NAME?price_in=…&price_out=…)" if cost is None else f"${cost:,.2f}"
    print(f"{work.calls:,} calls, {work.calls_a_unit} a unit: nothing was sent")
    print(f"  time         {_duration(found.seconds)} ({found.calls_a_second:,.1f} calls/s)")
    for name, value in sorted(found.bounds.items(), key=lambda bound: bound[1]):
        mark = "  <- what holds it back" if name == found.bound_by else ""
        print(f"    {name:<18} {'no limit' if math.isinf(value) else f'{value:,.1f} calls/s at most'}{mark}")
    print(f"  refused      {found.refused:.3f} a call; {found.failed:.2%} of the units give up")
    print(f"  cost         {price}")
    print(f"  disk         {found.run_gb:,.1f} GB run file, {found.cache_gb:,.1f} GB reply cache")
    print(f"  memory       {found.memory_mb:,.0f} MB\n  CPU          {_duration(3600 * found.cpu_hours)} of one core")


def _duration(seconds: float) -> str:
    if math.isinf(seconds):
        return "never: nothing gets through"
    if seconds < 120:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours"
