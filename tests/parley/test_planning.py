"""`parley run --dry-run --limits`: the simulation in cases whose result is known, and the command."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.jobs.forecast import Machine, ProviderLimits, Work, forecast
from tests.panels import RUN_PANEL

NEVER = ProviderLimits(latency=0.1, faults=1.0)
BUSY, MANY = ProviderLimits(capacity=8, latency=0.2), Work(300 * 24, 24)
TEN_MILLION = Work(10_000_000), ProviderLimits(latency=1.0, spread=0.5), Machine(concurrency=256)
KNOWN = {
    "100 calls of a second, ten at a time": (
        (Work(100, 1), ProviderLimits(latency=1.0), Machine(10, cpu_ms=0)),
        {"seconds": 10.0, "bound_by": "latency", "refused": 0},
    ),
    "the calls of a unit come one after the other": (
        (Work(16, 8), ProviderLimits(latency=1.0), Machine(100, cpu_ms=0)),
        {"seconds": 8.0},
    ),
    "2 ms of one core a call": ((Work(1000, 1), ProviderLimits(latency=0.0), Machine(50, 2.0)), {"seconds": 2.0}),
    "and of two": ((Work(1000, 1), ProviderLimits(latency=0.0), Machine(50, 2.0, processes=2)), {"seconds": 1.0}),
    "a provider that never answers": ((Work(64), NEVER, Machine(concurrency=8)), {"failed": 1.0}),
    "a lognormal latency has the mean exp(spread² / 2)": (
        TEN_MILLION,
        {"seconds": 10_000_000 * math.exp(0.125) / 256, "cpu_hours": 10_000_000 * 0.6 / 1000 / 3600},
    ),
    "eight at a time, however many wait": ((MANY, BUSY, Machine()), {"seconds": 180.0}),
    "and if few wait": ((MANY, BUSY, Machine(16)), {"seconds": 180.0}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_results_that_are_arithmetic(name):
    given, results = KNOWN[name]
    found = forecast(*given)
    for key, value in results.items():
        assert getattr(found, key) == (value if isinstance(value, str) else pytest.approx(value, rel=0.01))


def test_limits_a_minute_are_respected_and_a_short_queue_gives_results_early():
    """3,000 calls a minute are 50 a second, with a second's worth at the start; 60,000 tokens are one call a second."""
    calls = forecast(Work(2000), ProviderLimits(requests_a_minute=3000, latency=0.1), Machine(concurrency=64))
    assert 39 <= calls.seconds < 80
    assert (calls.bound_by, calls.failed) == ("requests a minute", 0)
    assert 0 < calls.refused < 0.5
    work = Work(100, calls_a_unit=1, prompt_tokens=900, reply_tokens=100)
    tokens = forecast(work, ProviderLimits(tokens_a_minute=60_000, latency=0.1), Machine(concurrency=4))
    assert tokens.seconds >= 100 * (1 - tokens.failed) - 2
    assert tokens.bound_by == "tokens a minute"
    assert forecast(MANY, BUSY, Machine()).unit_ends[0] > 140
    assert forecast(MANY, BUSY, Machine(16)).unit_ends[0] < 20


@settings(max_examples=40)
@given(
    calls=st.integers(1, 3000),
    a_unit=st.integers(1, 10),
    concurrency=st.integers(1, 100),
    latency=st.floats(0.001, 2.0),
    a_minute=st.one_of(st.just(math.inf), st.floats(60, 60_000)),
    cpu_ms=st.floats(0, 5),
)
def test_no_run_is_faster_than_its_limits(calls, a_unit, concurrency, latency, a_minute, cpu_ms):
    limits = ProviderLimits(requests_a_minute=a_minute, latency=latency)
    expected = forecast(Work(calls, a_unit, 10, 10), limits, Machine(concurrency, cpu_ms))
    if expected.failed:
        return  # units that failed were not done either
    assert expected.seconds >= 0.999 * latency * math.ceil(calls / concurrency)
    assert expected.seconds >= 0.999 * calls * cpu_ms / 1000
    if math.isfinite(a_minute):
        assert expected.seconds >= 0.999 * (calls - a_minute / 60 - 1) / (a_minute / 60)


def test_a_dry_run_is_planned_against_limits(parley, place):
    run = (*RUN_PANEL, "--suite", "tiny", "--model", "openai/gpt-4o-mini", "--dry-run")
    assert "forecast" not in parley(*run, "--json").json
    result = parley(*run, "--json", "--limits", "requests_a_minute=60")
    assert result.status == 0, result.err
    assert (result.json["calls"], result.json["cost"] > 0) == (72, True)
    expected = result.json["forecast"]
    assert expected["seconds"] >= 71
    assert (expected["bound_by"], expected["bounds"]["tokens a minute"]) == ("requests a minute", None)
    without = parley(*run, "--json", "--limits").json["forecast"]["bound_by"]
    assert without != "requests a minute", "without any limits"
    assert list(place.iterdir()) == [], "nothing was written"
    printed = parley(*run, "--limits", "requests_a_minute=10000,calls=10000000")
    assert "requests per minute  166.7 calls/s at most  <- the bottleneck" in printed.out
    assert "GB run file" in printed.out
