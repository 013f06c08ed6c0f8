"""What a run would do and cost, before anything is sent: `parley run STUDY --dry-run`."""

from __future__ import annotations

import json

from parley.agents import Client
from parley.agents.models.prices import Price
from parley.agents.models.registry import client_class
from parley.agents.models.request import split_name
from parley.base.text import plural
from parley.runs.job import Job


def dry_run(job: Job, *, as_json: bool) -> int:
    """Print what a job would do and cost, and return the exit status.

    Args:
        job: What would be executed.
        as_json: Print it as JSON.
    """
    jobs = [part for part in (job.check, job) if part is not None]
    names = list(dict.fromkeys(name for part in jobs for name in part.study.models()))
    costs = [estimated_cost(part) for part in jobs]
    batch = job.options.executor == "batch"
    cost = None if None in costs else sum(part or 0.0 for part in costs)
    cached = 0.0 if batch else sum(_cached_tokens(part) for part in jobs)  # providers promise no cache for batches
    cached_costs = costs if batch else [estimated_cost(part, cached=True) for part in jobs]
    cost_if_cached = None if None in cached_costs else sum(part or 0.0 for part in cached_costs)
    notes = job.notes(dry_run=True)
    plan = {
        "study": job.study.name,
        "models": names,
        "units": sum(part.size.units for part in jobs),
        "calls": sum(part.size.calls for part in jobs),
        "prompt_tokens": sum(part.size.prompt_tokens for part in jobs),
        "completion_tokens": sum(part.size.completion_tokens for part in jobs),
        "cached_tokens": round(cached),
        "cost": cost,
        "cost_if_cached": cost_if_cached,
        "run": str(job.path),
        "notes": notes,
    }
    if as_json:
        print(json.dumps(plan))
        return 0
    price = "unknown (set ?price_in= and ?price_out=)" if cost is None else dollars(cost)
    print(f"{job.study.name} on {', '.join(names)}: nothing was sent")
    if check := job.check:
        print(f"  first        the referee's check: {plural(check.size.calls, 'call')} of one token")
    print(f"  units        {plan['units']:>12,}\n  calls        {plan['calls']:>12,}")
    print(f"  tokens in    {plan['prompt_tokens']:>12,}   (estimated)")
    if cached:
        print(f"  of these     {plan['cached_tokens']:>12,}   (at most, from the provider's prompt cache)")
    print(f"  tokens out   {plan['completion_tokens']:>12,}   (estimated)")
    print(f"  cost         {price:>12}   (estimated{', at batch prices' * batch})")
    if cached and cost_if_cached is not None and cost_if_cached != cost:
        print(f"  with cache   {dollars(cost_if_cached):>12}   (estimated, if all of these are cached)")
    print(f"  run file     {job.path}")
    for line in notes:
        print(line)
    return 0


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
        price = client.price_for(plain, options)
        clients.append((client, price.in_batches() if job.options.executor == "batch" else price))
    return clients


def _cached_tokens_at(job: Job, client: type[Client]) -> float:
    """The cached tokens of one of the study's models."""
    billed = sum(calls * client.billed_as_cached(tokens) for tokens, calls in job.size.shared.items())
    return billed / len(job.study.models())


def estimated_cost(job: Job, *, cached: bool = False) -> float | None:
    """The expected cost in US dollars; None if a price is not known.

    The models of a study are taken to share its tokens evenly. With `cached`, all prefixes that can be cached are
    billed as cached; None where the provider charges for writing its cache or has no known price for reading it.
    """
    size, clients = job.size, _clients(job)
    costs = []
    for client, price in clients:
        cached_tokens = _cached_tokens_at(job, client) if cached else 0.0
        if cached_tokens and (price.cached is None or price.written_factor != 1):
            return None
        prompt_tokens, completion_tokens = size.prompt_tokens / len(clients), size.completion_tokens / len(clients)
        costs.append(price.cost(prompt_tokens, completion_tokens, cached_tokens))
    return None if None in costs else sum(cost or 0.0 for cost in costs)
