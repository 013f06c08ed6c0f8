"""Phase 2: win rates, the effect of the order, self-contradictions of a panel, and preferences in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from parley.agents import LOG_ODDS
from parley.analysis import win_rates
from parley.analysis.effects import Estimand, Question, corrected
from parley.analysis.frames import proportion
from parley.analysis.page.report import Section, Table, as_frame, section
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.results import ALPHA, About, Line
from parley.analysis.stats.tables import Floats, as_floats
from parley.base.text import as_written
from parley.judging.malibu.contrasts import BESIDE, tested
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.score_table import nested_means

TWO_IDENTITIES = "two identities"
"""Name of comparisons that are not controls."""
COUNTED = ("pairs", "single verdicts")
NEAR_TIE = 0.01
"""Log-odds below which a win by sign is a near-tie."""
WILSON = ("wilson_low", "wilson_high")
NO_BASELINE = "no unit was run twice in the same order: --repeats 2 gives the baseline"
RATES = Question(
    name="win_rates",
    ask="How often is each identity preferred?",
    measures={"rate": "win rate"},
    cluster="base",
    null=0.5,
    scale="share",
    note="Silent pairs: the mean probability of being preferred, over both orders. Debated pairs: the share of votes, "
    "ties as half; without_ties: without them. Judges are averaged, then bases. The intervals are simultaneous, also "
    "with a model's other families. Win rates of a category are zero-sum: if one identity is preferred more, the "
    "others are less. Single pairs are in the table of differences.",
    stated=False,
)
FIRST, SWAPPED, AGAIN, ORDER = "first", "swapped", "again", "order"
POSITION = Question(
    name="position",
    ask="How often is the first answer preferred?",
    measures={
        FIRST: Estimand(words="win rate of the first one"),
        SWAPPED: Estimand(
            words="share of verdicts that change when the order is swapped",
            ask="How often does swapping the order change the verdict?",
            reference=None,
        ),
        AGAIN: Estimand(
            words="share of verdicts that change when the same is asked again",
            ask="How often does asking again change the verdict?",
            reference=None,
        ),
        ORDER: Estimand(
            words="what the order adds to the noise of asking again",
            ask="What does the order add to the noise of asking again?",
            reference=0.0,
        ),
    },
    cluster="base",
    null=0.5,
    scale="share",
    note="50%: the place makes no difference. order: from blocks of one comparison in both orders, in two repeats.",
    stated=False,
)


def win_rate_lines(data: PanelData) -> list[Line]:
    """Win rate of each identity within its category; the intervals of a model hold together (Bonferroni).

    It is tested like a score, over bases. The win rates of a category are zero-sum: single pairs are planned contrasts.

    Args:
        data: The verdicts.
    """
    rates, names = _rates(data.compared), ["model", "category", "identity"]
    without_ties = _rates(data.compared_without_ties).groupby(level=names, observed=True).mean()
    lines: list[Line] = []
    for model, of_model in rates.groupby(level="model", sort=False, observed=True):
        labels = of_model.groupby(level="category", sort=False, observed=True)
        # With two labels the win rates add up to 1, so there is one interval.
        counts = [of_category.index.get_level_values("identity").nunique() for _, of_category in labels]
        level = 1 - ALPHA / (BESIDE * sum(count if count > 2 else 1 for count in counts))
        for keys, by_base in of_model.groupby(level=["category", "identity"], sort=False, observed=True):
            category, identity = map(str, keys)
            test = mean_test(by_base - 0.5, level)
            ends = {name: getattr(test, name) + 0.5 for name in ("estimate", "low", "high")}
            lines.append(
                Line.of(
                    replace(test, **ends),
                    about=About.of(model=str(model), category=category, identity=identity),
                    label=as_written(identity),
                    group=(category, *data.headed_by(str(model))),
                    units=data.units(2, str(model), identity=(identity,)),
                    cluster=data.cluster_noun,
                    measure="rate",
                    name=f"win-rate.{identity}",
                    reference=0.5,
                    also={"without_ties": float(without_ties.get((model, category, identity), math.nan))},
                    values=by_base.droplevel([0, 1, 2]).to_dict(),
                )
            )
    return lines


def _rates(compared: pd.DataFrame) -> pd.Series:
    """The win rate of each identity by model, category and cluster."""
    turned = compared.rename(columns={"identity": "other", "other": "identity"}).assign(lead=-compared["lead"])
    both = pd.concat([compared, turned]).dropna(subset="lead")
    levels = ["model", "category", "identity", "cluster", "scenario", "other", "order", "assignment"]
    levels = [name for name in levels if name in both]
    return (1 + nested_means(both.astype(dict.fromkeys(levels, str)).set_index(levels)["lead"], keep=4)) / 2


def counted_wins(data: PanelData, *, votes: bool = False) -> list[Line]:
    """Wins as the paper counts them: a panel's majority, or the sign of a silent pair's mean log-odds, is a whole win.

    Args:
        data: The verdicts.
        votes: Whether to count single verdicts: each judge's vote, each order of a silent pair.
    """
    wins = _votes(data) if votes else data.decided_pairs
    return [
        replace(
            line, about=About.of(model=str(model), category=str(category), identity=identity, counted=COUNTED[votes])
        )
        for (model, category), group in wins.groupby(["model", "category"], sort=False, observed=True)
        for identity, line in win_rates(group).items()
    ]


def _votes(data: PanelData) -> pd.DataFrame:
    """The readable verdicts on pairs, one row each, with the winner."""
    votes = data.final_votes[data.final_votes["text"].notna()]
    if votes.empty:
        return data.decided_pairs[:0]
    first, second = (votes[f"identity_{side}"].astype(object) for side in "ab")
    return votes.assign(winner=first.where(votes["text"] == "A", second.where(votes["text"] == "B", "tie")))


def position_lines(data: PanelData) -> list[Line]:
    """Rates at which the first candidate is preferred, and at which swapping the order changes the preference.

    By kind of comparison: two identities, and the null controls, where the label can have no effect. Intervals of rates
    are over bases. `again` is the rate of changes without a swap, and `order` the increase due to order, tested
    with sign flips over bases. It is taken from blocks of four: one comparison in both orders, in two repeats.
    Without an order effect the four verdicts, and so the two rates, are exchangeable: the difference is as likely to
    have the opposite sign.

    Args:
        data: The verdicts.
    """
    units = data.preferences.assign(block=data.preferences["repeat"] // 2)
    lines: list[Line] = []
    for (model, control), group in units.groupby(["model", "control"], sort=False, observed=True):
        read = group[group["first"].notna()]
        again = changes(group, "order", "block") if "order" in group else flips(group)[:0]
        kind, added = str(control) or TWO_IDENTITIES, tested(_beyond_noise(group))
        by_measure = {
            FIRST: proportion(read["first"], read["cluster"]),
            SWAPPED: proportion(flips(group)["flipped"], flips(group)["cluster"]),
            AGAIN: proportion(again["flipped"], again["cluster"]),
            ORDER: Line.of(replace(added, note=added.note if len(again) else NO_BASELINE), reference=0.0),
        }
        for measure, line in by_measure.items():
            line = replace(
                line,
                about=About.of(model=str(model), pairs=kind),
                label=kind,
                group=data.headed_by(str(model)),
                units=data.units(2, str(model), control=(str(control),)),
                cluster=data.cluster_noun,
                measure=measure,
                name=".".join(filter(None, ("position", "" if measure == FIRST else measure, str(control)))),
                secondary=measure != FIRST,
                reference=0.5 if measure == FIRST else line.reference,
                also={"ties": float((group["choice"] == "tie").sum())} if measure == FIRST else {},
            )
            lines += corrected([line]) if measure == ORDER else [line]  # the others are described
    return lines


def _beyond_noise(units: pd.DataFrame) -> Floats:
    """By base: the rate of changes with a swap minus that without, from complete blocks of four."""
    if "order" not in units:
        return np.zeros(0)
    keys = ["cluster", "scenario", "identity", "other", "assignment", "block"]
    whole = units[units["choice"].notna()]
    size = whole.groupby(keys, observed=True)["unit"].transform("size")
    orders = whole.groupby(keys, observed=True)["order"].transform("sum")
    # Two orders × two repeats: without an order effect these four are exchangeable, so that sign flips are exact.
    whole = whole[(size == 4) & (orders == 2)]
    by_kind = [
        nested_means(couples.set_index(["cluster", "scenario"])["flipped"].astype(float))
        for couples in (flips(whole), changes(whole, "order", "block"))
    ]
    return as_floats(by_kind[0] - by_kind[1])


def flips(units: pd.DataFrame) -> pd.DataFrame:
    """Comparisons run in both orders with the same label on the same response, and whether the verdict followed the
    order.

    One row per couple of such units. Couples with an unreadable unit are left out; a tie against a win is a flip.

    Args:
        units: One row per comparison, from `panel_preferences`.
    """
    return changes(units, "repeat")


def changes(units: pd.DataFrame, *same: str) -> pd.DataFrame:
    """Couples of comparisons with the same label on the same response, and whether the verdict changed.

    Args:
        units: One row per comparison, from `panel_preferences`.
        same: What the two also share: the repeat (two orders of one repeat) or the order (two repeats).
    """
    keys = ["model", "cluster", "scenario", "identity", "other", "assignment", *same]
    keys = [key for key in keys if key in units]
    columns = [*keys, "flipped"]
    readable = units[units["choice"].notna()] if len(units) else units
    if readable.empty or "assignment" not in keys:
        return pd.DataFrame(columns=columns).astype({"flipped": float})
    # Compare responses (1 or 2), not labels: null controls have the same label on both sides.
    chosen = np.select(
        [readable["choice"] == "A", readable["choice"] == "B"], [readable["response_a"], readable["response_b"]], 0
    )
    marked = readable[keys].assign(low=chosen, high=chosen, units=1)
    couples = (
        marked.groupby(keys, observed=True, sort=False)
        .agg(low=("low", "min"), high=("high", "max"), units=("units", "sum"))
        .reset_index()
    )
    couples = couples[couples["units"] == 2]
    return couples.assign(flipped=(couples["low"] != couples["high"]).astype(float))[columns]


def position_section(data: PanelData, lines: Sequence[Line]) -> Section:
    """The section on order: how often the first place wins, and the effect of order beyond the noise of asking again.

    Args:
        data: The verdicts.
        lines: The result of `position_lines`.
    """
    note = f"95% intervals over {data.cluster_noun}s."
    measures = {name: replace(POSITION.estimand(name), note=note) for name in POSITION.measures}
    return section(replace(POSITION, cluster=data.cluster_noun, measures=measures), lines)


def win_rates_section(data: PanelData, lines: Sequence[Line]) -> Section:
    """The win rates, as a table and a plot.

    Args:
        data: The verdicts.
        lines: The result of `win_rate_lines`.
    """
    paper = "" if data.staged else "4.2, figures 5 and 6"
    note = f"Simultaneous 95% intervals over {data.cluster_noun}s. The win rates of a category are zero-sum."
    measures = {"rate": Estimand(words=data.win_rate, note=note)}
    return section(replace(RATES, cluster=data.cluster_noun, paper=paper, measures=measures), lines)


def wins_table(data: PanelData, lines: Sequence[Line]) -> Table:
    """Wins as the paper counts them, for its own form.

    Args:
        data: The verdicts.
        lines: The result of `counted_wins`, for both ways of counting.
    """
    signs = data.decided_pairs
    near = int((signs[LOG_ODDS].abs() < NEAR_TIE).sum()) if LOG_ODDS in signs else 0
    note = f" {near:,} of {len(signs):,} wins by sign are near-ties: a mean log-odds below {NEAR_TIE:g}." * (near > 0)
    return Table(
        name="wins",
        title="Wins, as the paper counts them",
        frame=as_frame(lines).rename(columns={"estimate": "rate"}) if lines else pd.DataFrame(),
        shown=(*data.model_column, "category", "identity", "counted", "wins", "losses", "ties", "rate", *WILSON),
        note=f"The sign of any difference is a whole win. wilson: its interval takes comparisons as independent.{note}",
        paper="4.2, figures 5 and 6",
    )


def first_place(places: Sequence[Line]) -> Line | None:
    """The rate at which the first of two identities wins, for one model."""
    rates = (line for line in places if line.measure == FIRST)
    return next((line for line in rates if line.about.columns["pairs"] == TWO_IDENTITIES), None)
