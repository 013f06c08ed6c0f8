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


def test_every_price_has_a_source_and_a_date_and_plausible_rates():
    listed = price_list(DAY)
    assert {name.partition("/")[0] for name in listed} == {"openai", "anthropic", "google", "deepseek"}
    assert all(
        listed[PROVIDERS[prefix].example].ends is None for prefix in ("openai", "anthropic", "google", "deepseek")
    )
    assert "openai/gpt-4o-mini" in {name for name, entry in listed.items() if entry.ends}
    for name, entry in listed.items():
        price = entry.price
        assert urlsplit(entry.source).scheme == "https", name
        assert (entry.dated or entry.looked_up) <= entry.looked_up <= DAY, name
        assert (price.cached or 0.0) < price.prompt < price.completion, name  # type: ignore[operator]
        assert price.written_factor in (1.0, 1.25), name
        if price.batch:
            assert price.batch.cost(2, 2) == pytest.approx((price.cost(2, 2) or 0) / 2), name
        if entry.ends:
            assert entry.ends > DAY, f"{name} is gone: remove it"
            assert listed[entry.use or ""].ends is None


def test_a_price_changes_on_its_day():
    before, after = (price_list(date(2026, *day))["google/gemini-4-argon"] for day in ((11, 30), (12, 1)))
    assert (before.price.prompt, before.price.completion, before.price.cached) == (2.0, 10.0, 0.10)
    assert (after.price.prompt, after.price.completion, after.price.cached) == (4.0, 20.0, 0.20)
    assert (before.until, after.until) == (date(2026, 11, 30), None)


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        # 1,000 tokens of the prompt are read from the cache at 0.20, 2,000 written at 2.50, 3,000 plain at 2.00
        (
            price_of("anthropic/claude-sonnet-5-5"),
            (6000, 100, 1000, 2000),
            1000 * 0.20 + 2000 * 2.50 + 3000 * 2.00 + 100 * 10.0,
        ),
        (price_of("anthropic/claude-haiku-5-5"), (100_000, 1000), 10_500),
        (price_of("anthropic/claude-haiku-5-5"), (100_001, 1000), 5 * 10_500),  # a long prompt costs five times as much
        (Price(1.0, 2.0, cached=0.1, long=LongPrompt(10, 2.0, 1.5)), (100, 10, 50), 50 * 2.0 + 50 * 0.2 + 10 * 3.0),
        (Price(0.15, 0.6), (1000, 100, 900), 1000 * 0.15 + 100 * 0.6),  # an unknown cached price is the full one
    ],
)
def test_cached_written_and_long_prompts_have_their_rates(price, tokens, cost):
    assert price.cost_of_call(*tokens) == pytest.approx(cost / 1e6, rel=1e-4)


def test_batches_have_the_listed_rates():
    luna = price_of("openai/gpt-6-luna").in_batches()
    assert (luna.prompt, luna.cached, luna.completion) == (0.05, 0.005, 0.25), "listed, so the factor does not matter"
    assert luna.written_factor == 1.25
    flash = price_of("deepseek/deepseek-flash").in_batches()
    assert (flash.prompt, flash.cached, flash.completion) == (0.15, None, 0.60), "not listed: cached tokens cost `in`"


def test_unknown_stays_unknown():
    for price in (price_of("openai/no-such-model"), price_of("openai/no-such-model", price_in=1.0)):
        assert not price.known
        assert price.cost(1, 1) is price.cost_of_call(1, 1) is price.in_batches().cost(1, 1) is None
    assert price_of("sim/judge") == Price(0.0, 0.0)


def test_a_user_price_replaces_the_listed_one(monkeypatch):
    options: dict[str, Any] = {"price_in": 1.0, "price_out": 4.0}
    price = client_class("openai/gpt-6-luna").price_for("openai/gpt-6-luna", options)
    assert (price.prompt, price.completion, price.cached, price.batch, price.long) == (1.0, 4.0, None, None, None)
