"""`parley run --dry-run --limits`: the simulation in cases whose result is known, and the command."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.jobs.forecast import Machine, ProviderLimits, Work, forecast
from tests.panels import RUN_PANEL


def test_latency_alone_is_arithmetic() -> None:
    """100 calls of one second, ten concurrently: ten seconds."""
    expected = forecast(Work(100, calls_a_unit=1), ProviderLimits(latency=1.0), Machine(concurrency=10, cpu_ms=0))

    assert expected.seconds == pytest.approx(10.0)
    assert expected.bound_by == "latency"
    assert expected.refused == 0


def test_calls_of_a_unit_come_one_after_the_other() -> None:
    """Two units of eight calls of one second, with a concurrency of a hundred: still eight seconds."""
    expected = forecast(Work(16, calls_a_unit=8), ProviderLimits(latency=1.0), Machine(concurrency=100, cpu_ms=0))

    assert expected.seconds == pytest.approx(8.0)


def test_cpu_alone_is_arithmetic() -> None:
    """A thousand calls of 2 ms each on one core are two seconds; on two, one."""
    work, provider = Work(1000, calls_a_unit=1), ProviderLimits(latency=0.0)

    assert forecast(work, provider, Machine(50, cpu_ms=2.0)).seconds == pytest.approx(2.0, rel=0.01)
    assert forecast(work, provider, Machine(50, cpu_ms=2.0, processes=2)).seconds == pytest.approx(1.0, rel=0.01)


def test_a_limit_on_requests_is_respected_and_refusals_are_counted() -> None:
    """3,000 per minute are 50 per second; 2,000 calls take 39 s at least, with one second's worth at the start."""
    expected = forecast(Work(2000), ProviderLimits(requests_a_minute=3000, latency=0.1), Machine(concurrency=64))

    assert 39 <= expected.seconds < 80
    assert expected.bound_by == "requests a minute"
    assert 0 < expected.refused < 0.5
    assert expected.failed == 0


def test_a_limit_on_tokens_is_respected() -> None:
    """60,000 tokens per minute are one call of 1,000 tokens per second; the bucket starts with one second's worth."""
    work = Work(100, calls_a_unit=1, prompt_tokens=900, reply_tokens=100)

    expected = forecast(work, ProviderLimits(tokens_a_minute=60_000, latency=0.1), Machine(concurrency=4))

    assert expected.seconds >= 100 * (1 - expected.failed) - 2
    assert expected.bound_by == "tokens a minute"


def test_units_fail_if_the_provider_never_answers() -> None:
    expected = forecast(Work(64), ProviderLimits(latency=0.1, faults=1.0), Machine(concurrency=8))

    assert expected.failed == 1.0


def test_ten_million_calls_are_extrapolated_from_the_first_hundred_thousand() -> None:
    """A lognormal latency with median 1 s and spread 0.5 has the mean exp(0.125) s; 256 units run concurrently."""
    expected = forecast(Work(10_000_000), ProviderLimits(latency=1.0, spread=0.5), Machine(concurrency=256))

    assert expected.seconds == pytest.approx(10_000_000 * math.exp(0.125) / 256, rel=0.01)
    assert expected.cpu_hours == pytest.approx(10_000_000 * 0.6 / 1000 / 3600, rel=0.01)


BUSY = ProviderLimits(capacity=8, latency=0.2)
MANY_UNITS = Work(300 * 24, 24)


def test_a_busy_server_gives_results_early_if_few_calls_wait_in_its_queue() -> None:
    """Eight calls at a time, 0.2 s each: 7,200 calls take 180 s however many wait at the server."""
    many, few = forecast(MANY_UNITS, BUSY, Machine()), forecast(MANY_UNITS, BUSY, Machine(16))
    assert many.seconds == pytest.approx(180, rel=0.01)
    assert few.seconds == pytest.approx(180, rel=0.01)
    assert many.unit_ends[0] > 140
    assert few.unit_ends[0] < 20


@settings(max_examples=40)
@given(
    calls=st.integers(1, 3000),
    a_unit=st.integers(1, 10),
    concurrency=st.integers(1, 100),
    latency=st.floats(0.001, 2.0),
    a_minute=st.one_of(st.just(math.inf), st.floats(60, 60_000)),
    cpu_ms=st.floats(0, 5),
)
def test_no_run_is_faster_than_its_limits(
    calls: int, a_unit: int, concurrency: int, latency: float, a_minute: float, cpu_ms: float
) -> None:
    work, machine = Work(calls, a_unit, 10, 10), Machine(concurrency, cpu_ms)

    expected = forecast(work, ProviderLimits(requests_a_minute=a_minute, latency=latency), machine)

    given_at_once = a_minute / 60 if math.isfinite(a_minute) else 0
    if expected.failed:
        return  # units that failed were not done either
    assert expected.seconds >= 0.999 * latency * math.ceil(calls / concurrency)
    assert expected.seconds >= 0.999 * calls * cpu_ms / 1000
    if math.isfinite(a_minute):
        assert expected.seconds >= 0.999 * (calls - given_at_once - 1) / (a_minute / 60)


# The command


def test_a_dry_run_is_planned_against_limits(parley: Callable[..., Any], place: Path) -> None:
    run = (*RUN_PANEL, "--suite", "tiny", "--model", "openai/gpt-4o-mini", "--dry-run", "--json")
    assert "forecast" not in parley(*run).json

    result = parley(*run, "--limits", "requests_a_minute=60")

    assert result.status == 0, result.err
    assert (result.json["calls"], result.json["cost"] > 0) == (72, True)
    expected = result.json["forecast"]
    assert expected["seconds"] >= 71
    assert expected["bound_by"] == "requests a minute"
    assert expected["bounds"]["tokens a minute"] is None
    assert parley(*run, "--limits").json["forecast"]["bound_by"] != "requests a minute", "without any limits"
    assert list(place.iterdir()) == [], "nothing was written"


def test_the_forecast_is_printed(parley: Callable[..., Any]) -> None:
    limits = ("--dry-run", "--limits", "requests_a_minute=10000,calls=10000000")
    result = parley(*RUN_PANEL, "--suite", "tiny", "--model", "openai/gpt-4o-mini", *limits)

    assert result.status == 0, result.err
    assert "requests per minute  166.7 calls/s at most  <- the bottleneck" in result.out
    assert "GB run file" in result.out
