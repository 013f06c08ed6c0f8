"""The price list: every entry has a source and a date, and cached, written, batch and long-prompt rates are used."""

from __future__ import annotations

from datetime import date
from typing import Any
from urllib.parse import urlsplit

import pytest

from parley.agents.models.prices import LongPrompt, Price, price_list, price_of
from parley.agents.models.registry import client_class
from parley.agents.providers import PROVIDERS

DAY = date(2026, 11, 16)


def test_four_vendors_are_listed_with_source_and_date() -> None:
    listed = price_list(DAY)
    assert {name.partition("/")[0] for name in listed} == {"openai", "anthropic", "google", "deepseek"}
    for name, entry in listed.items():
        assert urlsplit(entry.source).scheme == "https", name
        assert entry.looked_up <= DAY, name
        assert entry.dated is None or entry.dated <= entry.looked_up, name
        assert entry.price.known, name


def test_rates_of_one_model_are_in_a_plausible_order() -> None:
    for name, entry in price_list(DAY).items():
        price = entry.price
        assert price.prompt is not None
        assert price.completion is not None
        assert price.prompt < price.completion, name
        assert (price.cached or 0.0) < price.prompt, name
        assert price.written_factor in (1.0, 1.25), name
        if price.batch:
            assert price.batch.cost(2, 2) == pytest.approx((price.cost(2, 2) or 0) / 2), name


def test_a_model_that_ends_names_one_that_does_not() -> None:
    listed = price_list(DAY)
    ending = {name: entry for name, entry in listed.items() if entry.ends}
    assert "openai/gpt-4o-mini" in ending
    for name, entry in ending.items():
        assert entry.ends > DAY, f"{name} is gone: remove it"  # type: ignore[operator]
        assert entry.use is not None
        assert listed[entry.use].ends is None


def test_examples_of_hosted_models_are_current_and_have_a_price() -> None:
    listed = price_list(DAY)
    for prefix in ("openai", "anthropic", "google", "deepseek"):
        assert listed[PROVIDERS[prefix].example].ends is None


def test_a_price_changes_on_its_day() -> None:
    before, after = (price_list(date(2026, *day))["google/gemini-4-argon"] for day in ((11, 30), (12, 1)))
    assert (before.price.prompt, before.price.completion, before.price.cached) == (2.0, 10.0, 0.10)
    assert (after.price.prompt, after.price.completion, after.price.cached) == (4.0, 20.0, 0.20)
    assert (before.until, after.until) == (date(2026, 11, 30), None)


def test_cached_and_written_tokens_have_their_rates() -> None:
    price = price_of("anthropic/claude-sonnet-5-5")
    # 1,000 tokens of the prompt are read from the cache at 0.20, 2,000 written at 2.50, 3,000 plain at 2.00
    expected = (1000 * 0.20 + 2000 * 2.50 + 3000 * 2.00 + 100 * 10.0) / 1e6
    assert price.cost(6000, 100, cached_tokens=1000, written_tokens=2000) == pytest.approx(expected)


def test_batches_have_the_listed_rates() -> None:
    luna = price_of("openai/gpt-6-luna").in_batches()
    assert (luna.prompt, luna.cached, luna.completion) == (0.05, 0.005, 0.25), "listed, so the factor does not matter"
    assert luna.written_factor == 1.25
    flash = price_of("deepseek/deepseek-flash").in_batches()
    assert (flash.prompt, flash.cached, flash.completion) == (0.15, None, 0.60), "not listed: cached tokens cost `in`"


@pytest.mark.parametrize(("prompt", "cost"), [(100_000, 0.0105), (100_001, 5 * 0.0105)])
def test_a_long_prompt_costs_more(prompt: int, cost: float) -> None:
    price = price_of("anthropic/claude-haiku-5-5")
    assert price.long == LongPrompt(100_000, 5.0, 5.0)
    assert price.cost_of_call(prompt, 1000) == pytest.approx(cost, rel=1e-4)


def test_a_long_prompt_makes_cached_tokens_dearer_too() -> None:
    price = Price(1.0, 2.0, cached=0.1, long=LongPrompt(10, 2.0, 1.5))
    assert price.cost_of_call(100, 10, cached_tokens=50) == pytest.approx((50 * 2.0 + 50 * 0.2 + 10 * 3.0) / 1e6)


def test_unknown_stays_unknown() -> None:
    for price in (price_of("openai/no-such-model"), price_of("openai/no-such-model", price_in=1.0)):
        assert not price.known
        assert price.cost(1, 1) is price.cost_of_call(1, 1) is price.in_batches().cost(1, 1) is None
    assert price_of("sim/judge") == Price(0.0, 0.0)


def test_a_user_price_replaces_the_listed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"price_in": 1.0, "price_out": 4.0}
    price = client_class("openai/gpt-6-luna").price_for("openai/gpt-6-luna", options)
    assert (price.prompt, price.completion, price.cached, price.batch, price.long) == (1.0, 4.0, None, None, None)
