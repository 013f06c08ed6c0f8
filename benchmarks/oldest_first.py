"""When results come: calls of the oldest units first and a limit that is found, or 256 concurrent calls throughout.

    python -m benchmarks.oldest_first

Run from the repository's root. 300 units of 24 calls each, 256 of them at a time, simulated by `parley.jobs.forecast`
with the client's own throttle: a busy machine would distort what is compared. With `?max_connections=256` all calls are
sent at once and the server queues them; without, the client finds how many calls the server can use, and the others
wait in the order of their units. Medians over the seeds; the least ratio of lengths is 0.97.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from benchmarks.workload import median, verdict
from parley.jobs.forecast import Forecast, Machine, ProviderLimits, Work, forecast

TARGET = 0.97
CASES = (
    ProviderLimits(capacity=8, latency=0.2),
    ProviderLimits(capacity=8, latency=0.2, spread=0.5),
    ProviderLimits(capacity=40, latency=0.2, spread=0.5),
    ProviderLimits(latency=0.05),
    ProviderLimits(latency=0.2),
    ProviderLimits(latency=1.0),
    ProviderLimits(latency=1.0, spread=0.5),
)


def shares(expected: Forecast) -> dict[str, float]:
    """When the first unit was finished, and the units finished after a tenth and half of the time, all as shares."""
    total, ends = expected.seconds, expected.unit_ends
    done = {f"done at {share:.0%}": sum(end <= share * total for end in ends) / len(ends) for share in (0.1, 0.5)}
    return {"first unit": ends[0] / total, **done}


def measure(provider: ProviderLimits, work: Work, seeds: int) -> tuple[dict[str, dict[str, float]], float]:
    """Each setting's figures, and how long the first one takes relative to the second."""
    found = Machine()
    runs = {
        name: [forecast(work, provider, machine, seed) for seed in range(seeds)]
        for name, machine in (("all at once", replace(found, find_limit=False)), ("oldest first", found))
    }
    rows = {}
    for name, several in runs.items():
        figures = [{"seconds": one.seconds, **shares(one)} for one in several]
        rows[name] = {key: median([figure[key] for figure in figures]) for key in figures[0]}
    ratios = [before.seconds / after.seconds for before, after in zip(*runs.values(), strict=True)]
    return rows, median(ratios)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--units", type=int, default=300)
    parser.add_argument("--calls", type=int, default=24, help="calls in each unit")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    work = Work(arguments.units * arguments.calls, arguments.calls)
    for provider in CASES:
        rows, ratio = measure(provider, work, arguments.seeds if provider.spread else 1)
        places = f"{provider.capacity} at a time" if provider.capacity else "all at a time"
        print(f"\n{places}, {provider.latency * 1000:.0f} ms, spread {provider.spread}")
        for name, row in rows.items():
            print(
                f"  {name:<13}{row['seconds']:7.1f} s; first unit after {row['first unit']:4.0%} of it; "
                f"done after 10% of it: {row['done at 10%']:4.0%}, after 50%: {row['done at 50%']:4.0%}"
            )
        print("  " + verdict("all at once / oldest first", ratio, TARGET, at_least=True))
