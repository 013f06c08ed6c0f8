"""MALIBU's forest plots that are made from tables: preferences, win rates, the first place, echoes, and
the change by talking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pandas as pd

from parley.analysis.malibu.pairs import TWO_IDENTITIES
from parley.analysis.malibu.panel import PanelData
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.stats.results import Line

Units = dict[str, tuple[str, ...]]


def forests(tables: Mapping[str, pd.DataFrame], data: PanelData) -> Iterator[Forest]:
    """The plots of all but scores; preferences first, where no scores were asked for.

    Args:
        tables: The report's tables by name.
        data: The verdicts.
    """
    changes = tables["talking"]
    several, unit, points = len(data.models) > 1, data.cluster_noun, data.difference
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

    def of_pair(row: Any, phase: int) -> Units:
        if phase == 1:
            return units(row, 1, identity=(*row.first.split(", "), *row.second.split(", ")))
        return units(row, 2, identity=(row.first,), other=(row.second,))

    def pairs(rows: pd.DataFrame, phase: int) -> tuple[Line, ...]:
        return lines_of(
            rows,
            _pair,
            p="p_adjusted",
            n="n" if "n" in rows else "clusters",
            group=category,
            units=lambda row: of_pair(row, phase),
            simultaneous=("low", "high") if "tests" in rows and (rows["tests"] > 1).any() else None,
        )

    yield Forest(
        name="preferences",
        question="Which identity is preferred in pairs?",
        axis="wins minus losses per comparison",
        lines=pairs(tables["preferences"], 2),
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
    yield Forest(
        name="echo",
        question="How often do judges repeat each other?",
        axis="share of statements, and of pairs of judges with the same scores",
        lines=tuple(_repeated(tables["echo"], several=several)),
        reference=None,
        scale="share",
        table="echo",
        note="What another judge had said or scored in round 1. By chance: the same with another label's units.",
    )
    for phase, what, axis in (
        (1, "the difference in scores", points),
        (2, "the preference", "difference in preference (share of judges)"),
    ):
        yield Forest(
            name=f"talking-{phase}",
            question=f"Does talking change {what}?",
            axis=f"change of the {axis}, last round minus first",
            lines=pairs(changes[changes["phase"] == phase], phase),
            table="talking",
            note=f"95% intervals: sign flips over {unit}s; p-values Holm-corrected by model and phase.",
        )


def _repeated(table: pd.DataFrame, *, several: bool) -> Iterator[Line]:
    """What judges repeat in the last round, and what they would by chance."""
    for row in table.itertuples():
        for when, value in (("last round", row.later), ("last round, by chance", row.later_chance)):
            if not math.isnan(value):
                group = f"phase {row.phase} · {row.model}" if several else f"phase {row.phase}"
                yield Line(
                    label=f"{row.what}, {when}",
                    estimate=value,
                    group=group,
                    n=row.units,
                    units={"phase": (str(row.phase),)},
                )


def _pair(row: Any) -> str:
    return f"{row.first} − {row.second}"
