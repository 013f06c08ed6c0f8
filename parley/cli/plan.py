"""`parley plan`: the expected time, cost, disk and memory of a large run."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from parley.agents.models.registry import client_class
from parley.agents.models.request import split_name
from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.cli.shared import AddParser
from parley.jobs.forecast import Forecast, Machine, ProviderLimits, Work, forecast


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        description="Forecast a large run under a provider's limits: time, cost, disk and memory. Nothing is sent."
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="the output of `parley run … --dry-run --json`, or - for standard input",
    )
    parser.add_argument("--calls", type=int, help="total number of model calls")
    parser.add_argument("--calls-a-unit", type=int, help="calls per unit, one after the other (default: 8)")
    parser.add_argument("--prompt-tokens", type=float, help="prompt tokens per call (default: 1000)")
    parser.add_argument("--reply-tokens", type=float, help="reply tokens per call (default: 150)")
    parser.add_argument("--model", help="the model whose price is used, as in `parley run`")
    parser.add_argument(
        "--requests-a-minute", type=float, default=math.inf, metavar="N", help="the provider's limit (default: none)"
    )
    parser.add_argument(
        "--tokens-a-minute", type=float, default=math.inf, metavar="N", help="the provider's limit (default: none)"
    )
    parser.add_argument("--latency", type=float, default=1.0, help="median seconds per call (default: 1)")
    parser.add_argument(
        "--spread", type=float, default=0.5, help="standard deviation of the latency's logarithm (default: 0.5)"
    )
    parser.add_argument(
        "--faults", type=float, default=0.0, help="share of calls that fail and are retried (default: 0)"
    )
    parser.add_argument("--concurrency", type=int, default=256, help="units that run at the same time (default: 256)")
    parser.add_argument("--cpu-ms", type=float, default=0.6, help="CPU milliseconds per call (default: 0.6)")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the run (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    planned = _planned(parsed.source) if parsed.source else {}
    work = _work(parsed, planned)
    for name in ("requests_a_minute", "tokens_a_minute", "latency", "concurrency", "processes"):
        if not getattr(parsed, name) > 0:
            raise ConfigError(f"--{name.replace('_', '-')} must be above 0")
    if not 0 <= parsed.faults < 1 or parsed.spread < 0 or parsed.cpu_ms < 0:
        raise ConfigError("--faults must be at least 0 and below 1; --spread and --cpu-ms must be at least 0")
    provider = ProviderLimits(
        requests_a_minute=parsed.requests_a_minute,
        tokens_a_minute=parsed.tokens_a_minute,
        latency=parsed.latency,
        spread=parsed.spread,
        faults=parsed.faults,
    )
    machine = Machine(concurrency=parsed.concurrency, cpu_ms=parsed.cpu_ms, processes=parsed.processes)
    expected = forecast(work, provider, machine, parsed.seed)
    cost = _cost(parsed.model, work) if parsed.model else planned.get("cost")
    if parsed.json:
        output = asdict(expected) | {"bound_by": expected.bound_by, "cost": cost, "calls": work.calls}
        del output["unit_ends"]
        output["bounds"] = {name: None if math.isinf(value) else value for name, value in expected.bounds.items()}
        print(json.dumps(output))
    else:
        _print(work, expected, cost)
    return 0


def _planned(source: str) -> dict[str, Any]:
    try:
        plan = json.loads(sys.stdin.read() if source == "-" else Path(source).read_text("utf-8-sig"))
        if not isinstance(plan, dict) or not all(isinstance(plan[key], int) for key in ("calls", "units")):
            raise ValueError
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError):
        raise ConfigError(f"{source} is not the output of `parley run … --dry-run --json`") from None
    return plan


def _work(parsed: argparse.Namespace, planned: dict[str, Any]) -> Work:
    """The calls, from the flags, else the dry run, else the defaults for a panel."""
    calls = parsed.calls or planned.get("calls")
    if not calls:
        raise ConfigError("give --calls N, or --from FILE with the JSON of a dry run")
    dry_calls = max(planned.get("calls", 0), 1)
    prompt_tokens, reply_tokens = parsed.prompt_tokens, parsed.reply_tokens
    if prompt_tokens is None:
        prompt_tokens = planned.get("prompt_tokens", 1000 * dry_calls) / dry_calls
    if reply_tokens is None:
        reply_tokens = planned.get("completion_tokens", 150 * dry_calls) / dry_calls
    return Work(
        calls=calls,
        calls_a_unit=parsed.calls_a_unit or max(1, round(planned.get("calls", 8) / max(planned.get("units", 1), 1))),
        prompt_tokens=prompt_tokens,
        reply_tokens=reply_tokens,
    )


def _cost(name: str, work: Work) -> float | None:
    plain, options = split_name(name)
    price = client_class(plain).price_for(plain, options)
    return price.cost(work.calls * work.prompt_tokens, work.calls * work.reply_tokens)


def _print(work: Work, expected: Forecast, cost: float | None) -> None:
    price = "unknown (give --model NAME?price_in=…&price_out=…)" if cost is None else f"${cost:,.2f}"
    print(f"{plural(work.calls, 'call')}, {work.calls_a_unit} per unit: nothing was sent")
    print(f"  time         {_duration(expected.seconds)} ({expected.calls_a_second:,.1f} calls/s)")
    for name, value in sorted(expected.bounds.items(), key=lambda bound: bound[1]):
        mark = "  <- the bottleneck" if name == expected.bound_by else ""
        rate = "no limit" if math.isinf(value) else f"{value:,.1f} calls/s at most"
        print(f"    {name.replace(' a ', ' per '):<20} {rate}{mark}")
    print(f"  refused      {expected.refused:.3f} per call; {expected.failed:.2%} of the units fail")
    print(f"  cost         {price}")
    print(f"  disk         {expected.run_gb:,.1f} GB run file, {expected.cache_gb:,.1f} GB reply cache")
    print(f"  memory       {expected.memory_mb:,.0f} MB")
    print(f"  CPU          {_duration(3600 * expected.cpu_hours)} of one core")


def _duration(seconds: float) -> str:
    if math.isinf(seconds):
        return "infinite: no call succeeds"
    if seconds < 120:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours"
