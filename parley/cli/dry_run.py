"""`parley run STUDY --dry-run`: what a run would do and cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
    plan = estimates(job)
    return Answer(plan, _lines(job, plan))


def estimates(job: Job) -> dict[str, Any]:
    """The units, calls, tokens and cost of a job with its check.

    Args:
        job: What would be executed.
    """
    jobs = [part for part in (job.check, job) if part is not None]
    names = list(dict.fromkeys(name for part in jobs for name in part.study.models()))
    return {
        "study": job.study.name,
        "models": names,
        "units": sum(part.size.units for part in jobs),
        "calls": sum(part.usage.calls for part in jobs),
        "prompt_tokens": sum(part.usage.prompt_tokens for part in jobs),
        "completion_tokens": sum(part.usage.completion_tokens for part in jobs),
        "cost": total(estimated_cost(part) for part in jobs),
        "run": job.path,
        "notes": job.notes(dry_run=True),
    }


def _lines(job: Job, plan: Mapping[str, Any]) -> Iterator[str]:
    cost = plan["cost"]
    price = "unknown (set ?price_in= and ?price_out=)" if cost is None else dollars(cost)
    yield f"{job.study.name} on {', '.join(plan['models'])}: nothing was sent"
    if (first := job.first) and first.failed:
        yield f"  first        {first.failed} Without {first.anyway} the run stops here."
    elif first and job.check:
        yield f"  first        {first.name}: {plural(job.check.usage.calls, 'call')} of one token"
    least = "   (at least)" if job.usage.error else ""
    yield f"  units        {plan['units']:>12,}\n  calls        {plan['calls']:>12,}{least}"
    yield f"  tokens in    {plan['prompt_tokens']:>12,}   (estimated)"
    yield f"  tokens out   {plan['completion_tokens']:>12,}   (estimated)"
    yield f"  cost         {price:>12}   (estimated)"
    yield f"  run file     {job.path}"
    yield from plan["notes"]


def dollars(cost: float) -> str:
    """Dollars with two decimals, or four below one dollar."""
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def estimated_cost(job: Job) -> float | None:
    """The expected cost in US dollars; None if a price is not known.

    Assumes that a study's models share its tokens evenly, and that no token comes from a provider's prompt cache.
    """
    names = [split_name(name) for name in job.study.models()]
    prices = [client_class(plain).price_for(plain, options) for plain, options in names]
    shares = len(prices) or 1  # a study may have no models
    tokens = job.usage.prompt_tokens / shares, job.usage.completion_tokens / shares
    return total(price.cost(*tokens) for price in prices)


def total(costs: Iterable[float | None]) -> float | None:
    """The sum of some costs; None if one is not known."""
    summands = list(costs)
    return None if None in summands else sum(cost or 0.0 for cost in summands)
