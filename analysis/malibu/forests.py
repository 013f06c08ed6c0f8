"""MALIBU's forest plots that are made from tables: preferences, win rates, and the first place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pandas as pd

from parley.analysis.malibu.pairs import TWO_IDENTITIES
from parley.analysis.malibu.panel import PanelData
from parley.analysis.reporting.forest import Forest, lines_of

Units = dict[str, tuple[str, ...]]


def forests(tables: Mapping[str, pd.DataFrame], data: PanelData) -> Iterator[Forest]:
    """The plots of all but scores; preferences first, where no scores were asked for.

    Args:
        tables: The report's tables by name.
        data: The verdicts.
    """
    several, unit = len(data.models) > 1, data.cluster_noun
    both = (
        f"Simultaneous 95% intervals: sign flips over {unit}s; p-values: the larger one of sign flips and Student's t,"
    )
    by_pairs = f"{both} Holm-corrected over the pairs of a model."
    share = partial(Forest, reference=0.5, scale="share")

    def category(row: Any) -> str:
        return f"{row.category} · {row.model}" if several else str(row.category)

    def model(row: Any) -> str:
        return str(row.model) if several else ""

    def units(row: Any, phase: int, **facets: tuple[str, ...]) -> Units:
        return {"phase": (str(phase),), **facets, **({"model": (row.model,)} if several else {})}

    yield Forest(
        name="preferences",
        question="Which identity is preferred in pairs?",
        axis="wins minus losses per comparison",
        lines=lines_of(
            tables["preferences"],
            lambda row: f"{row.first} − {row.second}",
            p="p_adjusted",
            group=category,
            units=lambda row: units(row, 2, identity=(row.first,), other=(row.second,)),
            simultaneous=("low", "high") if (tables["preferences"]["tests"] > 1).any() else None,
        ),
        table="preferences",
        note=by_pairs,
    )
    yield share(
        name="win-rates",
        question="How often does each identity win?",
        axis="win rate (without ties)",
        lines=lines_of(
            tables["win_rates"],
            lambda row: str(row.identity),
            value="rate",
            ends=("cluster_low", "cluster_high"),
            group=category,
            units=lambda row: units(row, 2, identity=(row.identity,)),
        ),
        table="win_rates",
        note=f"95% intervals over {unit}s. The win rates of a category are zero-sum.",
    )
    yield share(
        name="place",
        question="How often does the answer shown first win?",
        axis="share of comparisons that the first one wins (without ties)",
        lines=lines_of(
            tables["position"],
            lambda row: str(row.pairs),
            value="first_rate",
            ends=("first_low", "first_high"),
            group=model,
            units=lambda row: units(row, 2, control=("" if row.pairs == TWO_IDENTITIES else row.pairs,)),
        ),
        table="position",
        note=f"95% intervals over {unit}s. 50%: the place makes no difference.",
    )
