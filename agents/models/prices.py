"""What a call costs, in US dollars. A model that is not in `prices.toml` costs an unknown amount, never nothing."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars a million tokens; None where nobody told us."""

    prompt: float | None
    completion: float | None
    cached: float | None = None
    """Of prompt tokens from the vendor's cache; where nobody told us, they count in full: costs are never too low."""
    written_factor: float = 1.0

    def cost(
        self, prompt_tokens: float, completion_tokens: float, cached_tokens: float = 0, written_tokens: float = 0
    ) -> float | None:
        """Cached and written tokens are among those of the prompt."""
        if self.prompt is None or self.completion is None:
            return None
        cached = self.prompt if self.cached is None else self.cached
        plain = prompt_tokens - cached_tokens + written_tokens * (self.written_factor - 1)
        return (plain * self.prompt + cached_tokens * cached + completion_tokens * self.completion) / 1e6

    def in_batches(self, factor: float) -> Price:
        """So much of it; cached tokens count as all others, since not every model's are cheaper in a batch."""
        prompt, completion = (None if one is None else one * factor for one in (self.prompt, self.completion))
        return Price(prompt, completion)


@lru_cache(maxsize=1)
def price_list() -> dict[str, Price]:
    table = tomllib.loads(files("parley.agents.models").joinpath("prices.toml").read_text("utf-8"))
    return {name: Price(row["in"], row["out"], row.get("cached")) for name, row in table["models"].items()}


def price_of(
    name: str,
    price_in: float | None = None,
    price_out: float | None = None,
    price_cached: float | None = None,
    written_factor: float = 1.0,
) -> Price:
    """A price the user set, else the list's; what runs on the user's own machine is free."""
    own = name.startswith(("local/", "hf/", "sim/"))
    listed = Price(0.0, 0.0) if own else price_list().get(name, Price(None, None))
    # The list's price of cached tokens belongs to the list's price of all others.
    cached = listed.cached if price_in is None else None
    return Price(
        listed.prompt if price_in is None else price_in,
        listed.completion if price_out is None else price_out,
        cached if price_cached is None else price_cached,
        written_factor,
    )
