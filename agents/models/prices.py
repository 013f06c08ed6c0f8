"""What a call costs, in US dollars. The cost of a model that is not in `prices.toml` is unknown (None), not zero."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; None if unknown.

    Args:
        prompt: price of prompt tokens.
        completion: price of reply tokens.
        cached: price of prompt tokens from the vendor's prompt cache; if unknown, they cost as much as any other, so
            that a cost is never too low.
        written_factor: price of prompt tokens written to the vendor's prompt cache, as a multiple of `prompt`.
    """

    prompt: float | None
    completion: float | None
    cached: float | None = None
    written_factor: float = 1.0

    def cost(
        self, prompt_tokens: float, completion_tokens: float, cached_tokens: float = 0, written_tokens: float = 0
    ) -> float | None:
        """The cost of a call; None if unknown. `prompt_tokens` includes the cached and the written tokens."""
        if self.prompt is None or self.completion is None:
            return None
        cached = self.prompt if self.cached is None else self.cached
        plain = prompt_tokens - cached_tokens + written_tokens * (self.written_factor - 1)
        return (plain * self.prompt + cached_tokens * cached + completion_tokens * self.completion) / 1e6

    def in_batches(self, factor: float) -> Price:
        """The price in a batch: `factor` times this one. Cached tokens have no price of their own there, since not
        every vendor discounts them in batches."""
        prompt, completion = (None if price is None else price * factor for price in (self.prompt, self.completion))
        return Price(prompt, completion)


@lru_cache(maxsize=1)
def price_list() -> dict[str, Price]:
    """The prices in `prices.toml`, by model name."""
    table = tomllib.loads(files("parley.agents.models").joinpath("prices.toml").read_text("utf-8"))
    return {name: Price(row["in"], row["out"], row.get("cached")) for name, row in table["models"].items()}


def price_of(
    name: str,
    price_in: float | None = None,
    price_out: float | None = None,
    price_cached: float | None = None,
    written_factor: float = 1.0,
) -> Price:
    """The price the user set, else the listed one; models that run in this process are free."""
    in_process = name.startswith(("local/", "hf/", "sim/"))
    listed = Price(0.0, 0.0) if in_process else price_list().get(name, Price(None, None))
    # The listed price of cached tokens only makes sense with the listed price of prompt tokens.
    cached = listed.cached if price_in is None else None
    return Price(
        listed.prompt if price_in is None else price_in,
        listed.completion if price_out is None else price_out,
        cached if price_cached is None else price_cached,
        written_factor,
    )
