"""What a run would do and cost, before anything is sent: `parley run STUDY --dry-run [--limits …]`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, Field

from parley.agents import Client
from parley.agents.models.prices import Price
from parley.agents.models.registry import client_class
from parley.agents.models.request import split_name
from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.cli.command import Answer
from parley.jobs.forecast import Forecast, Machine, ProviderLimits, Work, forecast
from parley.runs.job import Job
from parley.runs.options import Options, validated


def dry_run(job: Job, limits: Sequence[str] | None = None) -> Answer:
    """What a job would do and cost.

    Args:
        job: What would be executed.
        limits: A provider's limits as KEY=VALUE, to forecast time, disk and memory; None: no forecast.
    """
    jobs = [part for part in (None if job.known_failure else job.check, job) if part is not None]
    names = list(dict.fromkeys(name for part in jobs for name in part.study.models()))
    cached = sum(_cached_tokens(part) for part in jobs)
    plan = {
        "study": job.study.name,
        "models": names,
        "units": sum(part.size.units for part in jobs),
        "calls": sum(part.usage.calls for part in jobs),
        "prompt_tokens": sum(part.usage.prompt_tokens for part in jobs),
        "completion_tokens": sum(part.usage.completion_tokens for part in jobs),
        "cached_tokens": round(cached),
        "cost": _total(estimated_cost(part) for part in jobs),
        "cost_if_cached": _total(estimated_cost(part, cached=True) for part in jobs),
        "asked_again": sum(part.usage.again for part in jobs),
        "cost_if_asked_again": _total(estimated_cost(part, again=True) for part in jobs),
        "run": job.path,
        "notes": job.notes(dry_run=True),
    }
    lines = list(_lines(job, plan))
    if limits is not None:
        expected = _forecast(plan, limits, job.options)
        plan["forecast"] = {
            **{key: value for key, value in asdict(expected).items() if key != "unit_ends"},
            "bounds": {name: None if math.isinf(rate) else rate for name, rate in expected.bounds.items()},
            "bound_by": expected.bound_by,
        }
        lines += _forecast_lines(expected)
    return Answer(plan, lines)


def _lines(job: Job, plan: Mapping[str, Any]) -> Iterator[str]:
    cost, if_cached = plan["cost"], plan["cost_if_cached"]
    price = "unknown (set ?price_in= and ?price_out=)" if cost is None else dollars(cost)
    yield f"{job.study.name} on {', '.join(plan['models'])}: nothing was sent"
    if known := job.known_failure:
        stops = getattr(job.study.config, "require_referee", None) is not False
        yield f"  first        {known}{' Without --no-require-referee the run stops here.' * stops}"
    elif check := job.check:
        yield f"  first        the referee's check: {plural(check.usage.calls, 'call')} of one token"
    least = "   (at least)" if job.usage.error else ""
    yield f"  units        {plan['units']:>12,}\n  calls        {plan['calls']:>12,}{least}"
    yield f"  tokens in    {plan['prompt_tokens']:>12,}   (estimated)"
    if plan["cached_tokens"]:
        yield f"  of these     {plan['cached_tokens']:>12,}   (at most, from the provider's prompt cache)"
    yield f"  tokens out   {plan['completion_tokens']:>12,}   (estimated)"
    yield f"  cost         {price:>12}   (estimated)"
    if plan["cached_tokens"] and if_cached is not None and if_cached != cost:
        yield f"  with cache   {dollars(if_cached):>12}   (estimated, if all of these are cached)"
    if plan["asked_again"]:
        most = "" if cost is None else f": {dollars(plan['cost_if_asked_again'])} in all"
        yield f"  asked again  {plan['asked_again']:>12,}   (at most, if no reply has the asked form at first{most})"
    yield f"  run file     {job.path}"
    yield from plan["notes"]


class Limits(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The keys of --limits: what a forecast assumes of the provider and of this machine."""

    requests_a_minute: float | None = Field(None, gt=0)
    tokens_a_minute: float | None = Field(None, gt=0)
    latency: float = Field(1.0, gt=0)
    spread: float = Field(0.5, ge=0)
    faults: float = Field(0.0, ge=0, lt=1)
    concurrency: int = Field(256, ge=1)
    cpu_ms: float = Field(0.6, ge=0)
    processes: int = Field(1, ge=1)
    calls: int | None = Field(None, ge=1)
    seed: int = 0


def _forecast(plan: Mapping[str, Any], typed: Sequence[str], options: Options) -> Forecast:
    pairs = [text.partition("=") for text in typed]
    if wrong := [text for text, (_, sign, _) in zip(typed, pairs, strict=True) if not sign]:
        raise ConfigError(f"--limits takes KEY=VALUE, got '{wrong[0]}' (keys: {', '.join(Limits.model_fields)})")
    usual = {"concurrency": options.concurrency, "processes": options.workers}
    given = {key: value for key, value in usual.items() if value} | {key: value for key, _, value in pairs}
    limits = validated(Limits, given)
    calls = max(plan["calls"], 1)
    work = Work(
        calls=limits.calls or calls,
        calls_a_unit=max(1, round(calls / max(plan["units"], 1))),
        prompt_tokens=plan["prompt_tokens"] / calls,
        reply_tokens=plan["completion_tokens"] / calls,
    )
    provider = ProviderLimits(
        requests_a_minute=limits.requests_a_minute or math.inf,
        tokens_a_minute=limits.tokens_a_minute or math.inf,
        latency=limits.latency,
        spread=limits.spread,
        faults=limits.faults,
    )
    machine = Machine(concurrency=limits.concurrency, cpu_ms=limits.cpu_ms, processes=limits.processes)
    return forecast(work, provider, machine, limits.seed)


def _forecast_lines(expected: Forecast) -> Iterator[str]:
    yield f"  time         {duration(expected.seconds)} ({expected.calls_a_second:,.1f} calls/s)"
    for name, value in sorted(expected.bounds.items(), key=lambda bound: bound[1]):
        mark = "  <- the bottleneck" if name == expected.bound_by else ""
        rate = "no limit" if math.isinf(value) else f"{value:,.1f} calls/s at most"
        yield f"    {name.replace(' a ', ' per '):<20} {rate}{mark}"
    yield f"  refused      {expected.refused:.3f} per call; {expected.failed:.2%} of the units fail"
    yield f"  disk         {expected.run_gb:,.1f} GB run file, {expected.cache_gb:,.1f} GB reply cache"
    yield f"  memory       {expected.memory_mb:,.0f} MB"
    yield f"  CPU          {duration(3600 * expected.cpu_hours)} of one core"


def duration(seconds: float) -> str:
    if math.isinf(seconds):
        return "infinite: no call succeeds"
    if seconds < 120:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours"


def dollars(cost: float) -> str:
    """Two decimals, or four if it is less than a dollar."""
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def _cached_tokens(job: Job) -> float:
    """Prompt tokens that providers may bill as cached: prefixes shared with an earlier call of the same unit."""
    return sum(_cached_tokens_at(job, client) for client, _ in _clients(job))


def _clients(job: Job) -> list[tuple[type[Client], Price]]:
    """The clients of the job's models, and what each costs as the job calls it."""
    clients = []
    for plain, options in map(split_name, job.study.models()):
        client = client_class(plain)
        clients.append((client, client.price_for(plain, options)))
    return clients


def _cached_tokens_at(job: Job, client: type[Client]) -> float:
    """The cached tokens of one of the study's models."""
    billed = sum(calls * client.billed_as_cached(tokens) for tokens, calls in job.usage.shared.items())
    return billed / len(job.study.models())


def estimated_cost(job: Job, *, cached: bool = False, again: bool = False) -> float | None:
    """The expected cost in US dollars; None if a price is not known.

    The models of a study are taken to share its tokens evenly. With `cached`, all prefixes that can be cached are
    billed as cached; None where the provider charges for writing its cache or has no known price for reading it. With
    `again`, every reply whose form is read is asked for twice.
    """
    usage, clients = job.usage, _clients(job)
    shares = len(clients) or 1  # a study may have no models
    prompt_tokens = (usage.prompt_tokens + again * usage.again_prompt_tokens) / shares
    completion_tokens = (usage.completion_tokens + again * usage.again_completion_tokens) / shares
    costs = []
    for client, price in clients:
        cached_tokens = _cached_tokens_at(job, client) if cached else 0.0
        if cached_tokens and (price.cached is None or price.written_factor != 1):
            return None
        costs.append(price.cost(prompt_tokens, completion_tokens, cached_tokens))
    return _total(costs)


def _total(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else sum(cost or 0.0 for cost in known)
