"""MALIBU's forest plots: differences in score, preferences, win rates, the first place, echoes, the change
by talking, and the yardstick."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from parley.analysis.malibu.diagnostics import TWO_IDENTITIES
from parley.analysis.malibu.panel import ALL
from parley.analysis.malibu.yardstick import EVERY_DOSE, PANEL
from parley.analysis.reporting.forest import Estimate, Forest, estimates

NET_WINS = "wins minus losses per comparison"
TESTED = ("primary", "differences", "preferences", "talking")
SIMULTANEOUS = ("simultaneous_low", "simultaneous_high")


def forests(tables: Mapping[str, pd.DataFrame], unit: str, scale: tuple[float, float]) -> Iterator[Forest]:
    """The plots, the study's main question first: scores, or preferences where no scores were asked for.

    Args:
        tables: The report's tables by name.
        unit: What a cluster is: "base" or "scenario".
        scale: The lowest and the highest score.
    """
    low, high = scale
    points = f"difference in score (points of {high:g})" if low == 0 else f"difference in score ({low:g} to {high:g})"
    tables = {**tables, **{name: _shown(tables[name]) for name in TESTED if name in tables}}
    gaps = tables["differences"]
    planned = gaps[(gaps["metric"] == ALL) & gaps["within"].astype(bool)]
    several = gaps["model"].nunique() > 1 or tables["win_rates"]["model"].nunique() > 1
    both = f"95% intervals: sign flips over {unit}s; p-values: the larger one of sign flips and Student's t,"
    note = f"{both} Holm-corrected over the pairs of a model."

    def group(row: Any) -> str:
        return f"{row.category} · {row.model}" if several else str(row.category)

    def units(row: Any, phase: int) -> dict[str, tuple[str, ...]]:
        model = {"model": (row.model,)} if several else {}
        if phase == 1:
            return {"phase": ("1",), "identity": (*row.first.split(", "), *row.second.split(", ")), **model}
        return {"phase": ("2",), "identity": (row.first,), "other": (row.second,), **model}

    if "primary" in tables:
        yield Forest(
            name="primary",
            question="Do scores depend on the identity?",
            axis=points,
            estimates=_primary(tables["primary"], tables["by_judge"], group, lambda row: units(row, 1)),
            table="primary",
            note=f"{both} Holm-corrected over a model's contrasts. Where the judges of a panel differ, each has a line "
            "beside it.",
        )
    yield Forest(
        name="differences",
        question="Do scores depend on the identity?"
        if "primary" not in tables
        else "Which identities differ, by pairs?",
        axis=points,
        estimates=estimates(
            planned, _pair, p="p_shown", group=group, units=lambda row: units(row, 1), simultaneous=SIMULTANEOUS
        ),
        table="differences",
        note=note,
    )
    yield Forest(
        name="preferences",
        question="Which identity is preferred in pairs?",
        axis=NET_WINS,
        estimates=estimates(
            tables["preferences"],
            _pair,
            p="p_shown",
            group=group,
            units=lambda row: units(row, 2),
            simultaneous=SIMULTANEOUS,
        ),
        table="preferences",
        note=note,
    )
    yield Forest(
        name="win-rates",
        question="How often does each identity win?",
        axis="win rate (without ties)",
        estimates=estimates(
            tables["win_rates"],
            lambda row: str(row.identity),
            value="rate",
            ends=("cluster_low", "cluster_high"),
            group=group,
            units=lambda row: {
                "phase": ("2",),
                "identity": (row.identity,),
                **({"model": (row.model,)} if several else {}),
            },
        ),
        reference=0.5,
        scale="share",
        table="win_rates",
        note=f"95% intervals over {unit}s. The win rates of a category are zero-sum.",
    )
    yield Forest(
        name="place",
        question="How often does the answer shown first win?",
        axis="share of comparisons that the first one wins (without ties)",
        estimates=estimates(
            tables["position"],
            lambda row: str(row.pairs),
            value="first_rate",
            ends=("first_low", "first_high"),
            group=lambda row: str(row.model) if several else "",
            units=lambda row: {
                "phase": ("2",),
                "control": ("" if row.pairs == TWO_IDENTITIES else row.pairs,),
                **({"model": (row.model,)} if several else {}),
            },
        ),
        reference=0.5,
        scale="share",
        table="position",
        note=f"95% intervals over {unit}s. 50%: the place makes no difference.",
    )
    yield Forest(
        name="echo",
        question="How often do judges repeat each other?",
        axis="share of statements, and of pairs of judges with the same scores",
        estimates=tuple(_repeated(tables["echo"], several=several)),
        reference=None,
        scale="share",
        table="echo",
        note="What another judge had said or scored in round 1. By chance: the same with another label's units.",
    )
    changes = tables["talking"]
    for phase, axis in ((1, points), (2, "difference in preference (share of judges)")):
        yield Forest(
            name=f"talking-{phase}",
            question="Does talking change the difference in scores?"
            if phase == 1
            else "Does talking change the preference?",
            axis=f"change of the {axis}, last round minus first",
            estimates=estimates(
                changes[changes["phase"] == phase],
                _pair,
                p="p_shown",
                n="clusters",
                group=group,
                units=lambda row, phase=phase: units(row, phase),  # type: ignore[misc]
            ),
            table="talking",
            note=f"95% intervals: sign flips over {unit}s; p-values Holm-corrected by model and phase.",
        )
    aucs = tables["yardstick_auc"]
    yield Forest(
        name="yardstick",
        question="Can the judges tell good responses from flawed ones?",
        axis="how often the good response scores higher (AUC)",
        estimates=estimates(
            aucs[(aucs["metric"] == ALL) & (aucs["dose"] == EVERY_DOSE)],
            lambda row: "the panel" if row.judge == PANEL else str(row.judge),
            value="auc",
            p="p",
            n="clusters",
            group=lambda row: str(row.model) if several else "",
            units=lambda row: {"phase": ("3",), **({"model": (row.model,)} if several else {})},
        ),
        reference=0.5,
        scale="share",
        table="yardstick_auc",
        note=f"0.5 is guessing. p-values: sign flips over {unit}s.",
    )


def _repeated(table: pd.DataFrame, *, several: bool) -> Iterator[Estimate]:
    """What judges repeat in the last round, and what they would by chance."""
    for row in table.itertuples():
        for when, value in (("last round", row.later), ("last round, by chance", row.later_chance)):
            if not math.isnan(value):
                group = f"phase {row.phase} · {row.model}" if several else f"phase {row.phase}"
                yield Estimate(
                    f"{row.what}, {when}", value, group=group, n=row.units, units={"phase": (str(row.phase),)}
                )


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the p-value that "different" needs: the larger one of both tests."""
    larger = table["p_adjusted"] if "t_p_adjusted" not in table else table[["p_adjusted", "t_p_adjusted"]].max(axis=1)
    return table.assign(p_shown=larger)


def _pair(row: Any) -> str:
    return f"{row.first} − {row.second}"


def _primary(
    table: pd.DataFrame,
    by_judge: pd.DataFrame,
    group: Callable[[Any], str],
    units: Callable[[Any], Mapping[str, tuple[str, ...]]],
) -> tuple[Estimate, ...]:
    """One line per contrast; where a panel's judges differ, one for each of them too."""
    lines: list[Estimate] = []
    for row in table.itertuples():
        own = table.loc[[row.Index]]
        lines += estimates(own, _pair, p="p_shown", group=group, units=units, simultaneous=SIMULTANEOUS)
        of_judges = by_judge[(by_judge["model"] == row.model) & (by_judge["category"] == row.category)]
        if row.conclusion.endswith(" differ"):
            of_judges = of_judges[of_judges["by"] == row.conclusion.removesuffix("s differ")]
            lines += estimates(
                of_judges.rename(columns={"name": "who"}),
                lambda one: f"{_pair(one)} · {one.who}",
                n="clusters",
                group=group,
                units=units,
                secondary=lambda one: True,
            )
    return tuple(lines)
