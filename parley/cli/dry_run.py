"""What a run would do and cost, before anything is sent: `parley run STUDY --dry-run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from parley.agents import Client
from parley.agents.models.prices import Price
from parley.agents.models.registry import client_class
from parley.agents.models.request import split_name
from parley.base.text import plural
from parley.cli.command import Answer
from parley.runs.job import Job


def dry_run(job: Job) -> Answer:
    """What a job would do and cost.

    Args:
        job: What would be executed.
    """
    jobs = [part for part in (job.check, job) if part is not None]
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
    return Answer(plan, _lines(job, plan))


def _lines(job: Job, plan: Mapping[str, Any]) -> Iterator[str]:
    cost, if_cached = plan["cost"], plan["cost_if_cached"]
    price = "unknown (set ?price_in= and ?price_out=)" if cost is None else dollars(cost)
    yield f"{job.study.name} on {', '.join(plan['models'])}: nothing was sent"
    if (first := job.first) and first.failed:
        stops = f" Without {first.anyway} the run stops here." if first.required is not False else ""
        yield f"  first        {first.failed}{stops}"
    elif first and job.check:
        yield f"  first        {first.name}: {plural(job.check.usage.calls, 'call')} of one token"
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
