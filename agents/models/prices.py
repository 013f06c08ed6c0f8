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

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float | None:
        if self.prompt is None or self.completion is None:
            return None
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6

    def times(self, factor: float) -> Price:
        return Price(
            None if self.prompt is None else self.prompt * factor,
            None if self.completion is None else self.completion * factor,
        )


@lru_cache(maxsize=1)
def price_list() -> dict[str, Price]:
    table = tomllib.loads(files("agents.models").joinpath("prices.toml").read_text("utf-8"))
    return {name: Price(row["in"], row["out"]) for name, row in table["models"].items()}


def price_of(name: str, price_in: float | None = None, price_out: float | None = None) -> Price:
    """A price the user set, else the list's; what runs on the user's own machine is free."""
    if price_in is not None or price_out is not None:
        listed = price_list().get(name, Price(None, None))
        return Price(
            listed.prompt if price_in is None else price_in, listed.completion if price_out is None else price_out
        )
    if name.startswith(("local/", "hf/", "sim/")):
        return Price(0.0, 0.0)
    return price_list().get(name, Price(None, None))
