"""What a call costs, in US dollars. The cost of a model that is not in `prices.toml` is unknown (None), not zero."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from parley.agents.providers import provider_of


class LongPrompt(NamedTuple):
    """A surcharge for long prompts: above this many prompt tokens, the whole call's price is multiplied."""

    above: int
    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; None if unknown.

    Args:
        prompt: price of prompt tokens.
        completion: price of reply tokens, including those of thinking.
        cached: price of prompt tokens from the vendor's prompt cache; if unknown, the normal price, so that a cost
            is never too low.
        written_factor: price of prompt tokens written to the vendor's prompt cache, as a multiple of `prompt`.
        long: the surcharge for long prompts, if there is one.
    """

    prompt: float | None
    completion: float | None
    cached: float | None = None
    written_factor: float = 1.0
    long: LongPrompt | None = None

    @property
    def known(self) -> bool:
        return self.prompt is not None and self.completion is not None

    def cost(
        self, prompt_tokens: float, completion_tokens: float, cached_tokens: float = 0, written_tokens: float = 0
    ) -> float | None:
        """The cost of calls without a long prompt; None if unknown. `prompt_tokens` includes the cached and the
        written tokens."""
        if self.prompt is None or self.completion is None:
            return None
        cached = self.prompt if self.cached is None else self.cached
        plain = prompt_tokens - cached_tokens + written_tokens * (self.written_factor - 1)
        return (plain * self.prompt + cached_tokens * cached + completion_tokens * self.completion) / 1e6

    def cost_of_call(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, written_tokens: int = 0
    ) -> float | None:
        """The cost of one call, with the surcharge for a long prompt; None if unknown."""
        price = self
        if self.long is not None and prompt_tokens > self.long.above:
            price = self._times(self.long.prompt, self.long.completion)
        return price.cost(prompt_tokens, completion_tokens, cached_tokens, written_tokens)

    def _times(self, prompt: float, completion: float) -> Price:
        return replace(
            self,
            prompt=None if self.prompt is None else self.prompt * prompt,
            completion=None if self.completion is None else self.completion * completion,
            cached=None if self.cached is None else self.cached * prompt,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An entry of the price list.

    Args:
        price: the price today.
        source: where it was looked up.
        looked_up: when.
        dated: the date that the source itself gives, if it gives one.
        until: the last day of this price, if it is known to change.
        ends: the day on which the vendor shuts the model down, if it was announced.
        use: the model that the vendor recommends instead.
    """

    price: Price
    source: str
    looked_up: date
    dated: date | None = None
    until: date | None = None
    ends: date | None = None
    use: str | None = None


@lru_cache(maxsize=4)
def price_list(today: date | None = None) -> dict[str, Listed]:
    """The prices in `prices.toml` on a day (default: this one), by model name."""
    day = today or date.today()
    table = tomllib.loads(files("parley.agents.models").joinpath("prices.toml").read_text("utf-8"))
    listed = {}
    for name, row in table["models"].items():
        until = row.get("until")
        over = until is not None and day > until
        listed[name] = Listed(
            price=_price(row["after"] if over else row),
            source=row["source"],
            looked_up=table["looked_up"],
            dated=row.get("dated"),
            until=None if over else until,
            ends=row.get("ends"),
            use=row.get("use"),
        )
    return listed


def _price(row: Mapping[str, Any]) -> Price:
    long = row.get("long")
    return Price(
        row["in"],
        row["out"],
        row.get("cached"),
        row.get("written", row["in"]) / row["in"],
        long=None if long is None else LongPrompt(long["above"], long["in"], long["out"]),
    )


def price_of(
    name: str,
    price_in: float | None = None,
    price_out: float | None = None,
    price_cached: float | None = None,
    written_factor: float = 1.0,
) -> Price:
    """The price the user set, else the listed one; models that run in this process are free.

    Args:
        name: the model's name, without options.
        price_in: the user's price of prompt tokens.
        price_out: the user's price of reply tokens.
        price_cached: the user's price of cached prompt tokens.
        written_factor: the provider's factor for tokens written to its prompt cache, if the price is not listed.
    """
    entry = price_list().get(name)
    if entry is not None and price_in is None and price_out is None and price_cached is None:
        return entry.price
    listed = entry.price if entry else Price(0.0, 0.0) if provider_of(name).in_process else Price(None, None)
    # The listed price of cached tokens only makes sense with the listed price of prompt tokens.
    cached = listed.cached if price_in is None else None
    return Price(
        listed.prompt if price_in is None else price_in,
        listed.completion if price_out is None else price_out,
        cached if price_cached is None else price_cached,
        written_factor,
    )
