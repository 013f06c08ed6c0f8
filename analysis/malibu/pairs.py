"""Phase 2: who is preferred to whom, win rates, the effect of the order, and how often a panel contradicts itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.malibu.by_judge import Contrast
from parley.analysis.malibu.clusters import CROSSED
from parley.analysis.malibu.conclusions import MARGIN, Blockers, effect, effects_frame, tested_words, with_conclusions
from parley.analysis.malibu.contrasts import nested_means, tested_line
from parley.analysis.malibu.panel import PanelData, ScenarioGaps, Verdicts, panel_data, values_in_order
from parley.analysis.malibu.scores import EFFECT, conclusions_note
from parley.analysis.reporting.figures import LINE, caption, colours, dots, plain_text, sheet
from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.paired import DECIMALS
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.results import DIFFERENT, SMALL, Line
from parley.analysis.stats.tables import Floats, as_floats
from parley.base.text import plural

ZERO_SUM = (
    "Win rates of a category are zero-sum: if one identity wins more, the others win less, and two identities that are "
    "treated alike differ if one of them met a favoured third more often. The table of preferences shows single pairs."
)
TWO_IDENTITIES = "two identities"
"""What comparisons are called that are no control."""
NO_BASELINE = "no unit was run twice in the same order: --repeats 2 gives the baseline"
POSITION = [
    *("model", "pairs", "first_rate", "first_low", "first_high", "n", "ties"),
    *(f"{rate}_{part}" for rate in ("swapped", "again") for part in ("rate", "low", "high", "n")),
    *("order", "order_low", "order_high", "order_p", "order_clusters", "clusters", "note"),
]


def win_margins(units: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame, ScenarioGaps]]:
    """Every pair with its units, and by scenario how much more often the first won than the second; ties count 0.

    The cells of a scenario (which label is on which response, and which is shown first) have the same weight.

    Args:
        units: Comparisons that could be read, of one model.
    """
    winner = units["winner"].astype(object)
    sides = [winner == units[side].astype(object) for side in ("identity", "other")]
    yield from margins_of_pairs(units, np.select(sides, [1.0, -1.0], 0.0))


def margins_of_pairs(units: pd.DataFrame, values: Floats) -> Iterator[tuple[str, str, pd.DataFrame, ScenarioGaps]]:
    """Every pair with its units, and by scenario and wording the mean of some value of the comparison.

    Args:
        units: Comparisons of one model.
        values: One per comparison, positive where it is for the first identity.
    """
    # Orders first: where a cell is missing, the effect of the first place still cancels.
    within = [key for key in ("question", "order", "assignment") if key in units]
    units = units if "wording" in units else units.assign(wording="")
    outer = ["identity", "other", "cluster", "situation", "wording", "scenario"]
    margins = nested_means(values, units[[*outer, *within]], keep=len(outer))[0]
    by_pair = dict(list(margins.groupby(level=[0, 1], sort=False)))
    for (first, second), group in units.groupby(["identity", "other"], sort=False, observed=True):
        part = by_pair[first, second]
        values, crossed = np.round(part.to_numpy(dtype=float), DECIMALS), bool((group["clustering"] == CROSSED).any())
        gaps = ScenarioGaps.of(values, part.index.to_frame(index=False), crossed=crossed)
        yield str(first), str(second), group, gaps


def preferences(verdicts: Verdicts, *, margin: float = MARGIN) -> pd.DataFrame:
    """Every pair of identities: wins of the first minus wins of the second, per comparison; a tie counts 0.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: A difference up to this counts as none.
    """
    return effects_frame(preference_lines(panel_data(verdicts), margin))


def preference_lines(data: PanelData, margin: float) -> list[Line]:
    """The preferences between every pair of identities, as lines; the pairs of a model are a family.

    Args:
        data: The verdicts.
        margin: A difference up to this counts as none.
    """
    lines: list[Line] = []
    for model, group in data.decided_pairs.groupby("model", sort=False, observed=True):
        pairs = list(win_margins(group))
        own = [
            effect(gaps, margin, **Contrast(_category(pair), (first,), (second,)).subject(data, str(model), phase=2))
            for first, second, pair, gaps in pairs
        ]
        lines += with_conclusions(own, [gaps for *_, gaps in pairs], silent=data.read_silently(str(model)))
    return lines


def _category(pair: pd.DataFrame) -> str:
    return str(pair["category"].iloc[0])


def win_rates(verdicts: Verdicts) -> pd.DataFrame:
    """Win rate of each identity within its category (figures 5, 6), without ties (`rate`) and with ties as half.

    `low` and `high` are Wilson's interval, which assumes independent verdicts, as the paper does; `cluster_low` and
    `cluster_high` are clustered by base. The win rates of a category are zero-sum: see `preferences`.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    units = data.decided_pairs
    labels = list(dict.fromkeys(label for side in ("identity", "other") for label in values_in_order(units, side)))
    rows: list[dict[str, Any]] = []
    for (model, category), group in units.groupby(["model", "category"], sort=False, observed=True):
        compared = {str(label) for side in "ab" for label in group[f"identity_{side}"]}
        for identity in [label for label in labels if label in compared]:
            pairs = group[(group["identity_a"] == identity) | (group["identity_b"] == identity)]
            rows.append({"model": str(model), "category": str(category), "identity": identity} | _rate(pairs, identity))
    columns = ["model", "category", "identity", "wins", "losses", "ties", "rate", "low", "high"]
    more = ["cluster_low", "cluster_high", "rate_ties_half", "half_low", "half_high", "n", "clusters"]
    return pd.DataFrame(rows, columns=[*columns, *more])


def _rate(pairs: pd.DataFrame, identity: str) -> dict[str, Any]:
    winner = pairs["winner"]
    won = pd.Series(np.where(winner == "tie", 0.5, winner == identity), index=pairs.index, dtype=float)
    no_tie = won != 0.5
    wins, losses = int((won == 1).sum()), int((won == 0).sum())
    rate = wilson(wins, wins + losses)
    clustered = cluster_proportion(won[no_tie], pairs["cluster"][no_tie])
    halves = cluster_proportion(won, pairs["cluster"])
    return {
        "wins": wins,
        "losses": losses,
        "ties": len(pairs) - wins - losses,
        "rate": rate.estimate,
        "low": rate.low,
        "high": rate.high,
        "cluster_low": clustered.low,
        "cluster_high": clustered.high,
        "rate_ties_half": halves.estimate,
        "half_low": halves.low,
        "half_high": halves.high,
        "n": wins + losses,
        "clusters": clustered.clusters,
    }


def position(verdicts: Verdicts) -> pd.DataFrame:
    """How often the candidate shown first is preferred, and how often swapping the order changes who is preferred.

    By kind of comparison: two identities, and the null controls, where the label can have no effect. Intervals of rates
    are over bases. `again_rate` is how often the verdict changes without a swap, and `order` what the order adds to
    this noise, with sign flips over bases. It is taken from blocks of four: one comparison in both orders, in two
    repeats. Without an order effect the four verdicts, and so the two rates, are exchangeable: the difference is as
    likely to have the opposite sign.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    units = panel_data(verdicts).preferences
    units = units.assign(block=units["repeat"] // 2)
    rows: list[dict[str, Any]] = []
    for (model, control), group in units.groupby(["model", "control"], sort=False, observed=True):
        decided = group[group["choice"].isin(["A", "B"])]
        first = cluster_proportion((decided["choice"] == "A").astype(float), decided["cluster"])
        row: dict[str, Any] = {"model": str(model), "pairs": str(control) or TWO_IDENTITIES}
        row |= {**_rate_columns("first", first), "n": first.n, "ties": int((group["choice"] == "tie").sum())}
        again = changes(group, "order", "block") if "order" in group else flips(group)[:0]
        for name, couples in (("swapped", flips(group)), ("again", again)):
            rate = cluster_proportion(couples["flipped"].astype(float), couples["cluster"])
            row |= {**_rate_columns(name, rate), f"{name}_n": rate.n}
        added = tested_line(_beyond_noise(group))
        row |= {"order": added.estimate, "order_low": added.low, "order_high": added.high, "order_p": added.p}
        row |= {"order_clusters": added.clusters, "clusters": first.clusters}
        rows.append(row | {"note": added.note if len(again) else NO_BASELINE})
    return pd.DataFrame(rows, columns=POSITION)


def _beyond_noise(units: pd.DataFrame) -> Floats:
    """By base: the rate of changes when the order is swapped minus that when it is not, from whole blocks of four."""
    if "order" not in units:
        return np.zeros(0)
    keys = ["cluster", "scenario", "identity", "other", "assignment", "block"]
    whole = units[units["choice"].notna()]
    size = whole.groupby(keys, observed=True)["unit"].transform("size")
    orders = whole.groupby(keys, observed=True)["order"].transform("sum")
    # Two orders × two repeats: without an order effect these four are exchangeable, so that sign flips are exact.
    whole = whole[(size == 4) & (orders == 2)]
    by_kind = [
        nested_means(couples["flipped"].to_numpy(dtype=float), couples[["cluster", "scenario"]])[0]
        for couples in (flips(whole), changes(whole, "order", "block"))
    ]
    return as_floats(by_kind[0] - by_kind[1])


def _rate_columns(name: str, rate: Line) -> dict[str, float]:
    """A rate and the ends of its interval, as the columns of a table."""
    return {f"{name}_rate": rate.estimate, f"{name}_low": rate.low, f"{name}_high": rate.high}


def flips(units: pd.DataFrame) -> pd.DataFrame:
    """Comparisons run in both orders with the same label on the same response: did the verdict follow the order?

    One row per couple of such units. Couples with an unreadable unit are left out; a tie against a win is a flip.

    Args:
        units: One row per comparison, as `panel_preferences` returns them.
    """
    return changes(units, "repeat")


def changes(units: pd.DataFrame, *same: str) -> pd.DataFrame:
    """Couples of comparisons with the same label on the same response: did the verdict change between the two?

    Args:
        units: One row per comparison, as `panel_preferences` returns them.
        same: What else the two have in common: their repeat (two orders of one repeat), their order (two repeats).
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


def preferences_section(
    data: PanelData,
    lines: Sequence[Line],
    wins: pd.DataFrame,
    places: pd.DataFrame,
    blocked: Mapping[str, Blockers],
    margin: float,
) -> Section:
    """The preferences pair by pair, as a table and a plot, and what they say with win rates and the first place.

    Args:
        data: The verdicts.
        lines: What `preference_lines` returned.
        wins: The table of `win_rates`.
        places: The table of `position`.
        blocked: What leaves questions without an answer, by model.
        margin: The margin of the lines.
    """
    unit = data.cluster_noun
    table = Table(
        name="preferences",
        title="Phase 2: preferences, pair by pair",
        frame=effects_frame(lines),
        shown=(*data.model_column, "category", "first", "second", *EFFECT, "n", "clusters", "note"),
        note=f"difference: wins minus losses per comparison. {conclusions_note(unit, margin)}",
    )
    forest = Forest(
        name="preferences",
        question="Which identity is preferred in pairs?",
        axis="wins minus losses per comparison",
        lines=tuple(line for line in lines if math.isfinite(line.estimate)),
        table="preferences",
        note=f"Simultaneous 95% intervals: sign flips over {unit}s; p-values: the larger one of sign flips and "
        "Student's t, Holm-corrected over the pairs of a model.",
    )
    words = []
    for model in data.models:
        own = [line for line in lines if line.about["model"] == model and not math.isnan(line.p)]
        text = blocked[model].preferences
        if own and not text:
            rates, first = (frame[frame["model"] == model] for frame in (wins, places))
            text = f"{_preferred(own)}{_rates(rates)}{_first_place(first)}."
        words += [f"{data.prefix(model)}{text}"] if text else []
    return Section(tables=(table,), forests=(forest,), words=tuple(words))


def _preferred(lines: Sequence[Line]) -> str:
    shown = [line for line in lines if line.verdict in (DIFFERENT, SMALL)]
    if not shown:
        return "In pairs no label was shown to be preferred to another" + (
            f" ({len(lines)} pairs of labels)" if len(lines) > 1 else ""
        )
    line = max(shown, key=lambda line: abs(line.estimate))
    higher, lower = (line.about[side] for side in (("first", "second") if line.estimate > 0 else ("second", "first")))
    return (
        f"In pairs, {len(shown)} of {plural(len(lines), 'pair')} of labels {'shows' if len(shown) == 1 else 'show'} a "
        f"preference, the clearest for '{higher}' over '{lower}' (wins minus losses per comparison "
        f"{abs(line.estimate):.2f}, {tested_words(line, line.cluster)})"
    )


def _rates(wins: pd.DataFrame) -> str:
    known = wins[wins["rate"].notna()].sort_values("rate")
    if len(known) < 2:
        return ""
    low, high = known.iloc[0], known.iloc[-1]
    return f"; win rates go from {low['rate']:.0%} ({low['identity']}) to {high['rate']:.0%} ({high['identity']})"


def _first_place(places: pd.DataFrame) -> str:
    text = ""
    for row in places[(places["pairs"] == TWO_IDENTITIES) & (places["n"] > 0)].itertuples():
        span = f" ({row.first_low:.0%} to {row.first_high:.0%})" if row.first_low == row.first_low else ""
        text += f", and the candidate shown first won {row.first_rate:.0%}{span}"
    return text


def position_section(data: PanelData, places: pd.DataFrame) -> Section:
    """How often the first place wins, and what the order adds to the noise of asking again, as a table and a plot.

    Args:
        data: The verdicts.
        places: The table of `position`.
    """
    forest = Forest(
        name="place",
        question="How often does the answer shown first win?",
        axis="share of comparisons that the first one wins (without ties)",
        lines=lines_of(
            places,
            lambda row: str(row.pairs),
            value="first_rate",
            ends=("first_low", "first_high"),
            group=lambda row: str(row.model) if data.model_column else "",
            units=lambda row: _units(data, row, control=("" if row.pairs == TWO_IDENTITIES else row.pairs,)),
        ),
        reference=0.5,
        scale="share",
        table="position",
        note=f"95% intervals over {data.cluster_noun}s. 50%: the place makes no difference.",
    )
    return Section(
        tables=(Table("position", "Effects of the order, next to the noise of asking again", places),),
        forests=(forest,),
    )


def _units(data: PanelData, row: Any, **facets: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {"phase": ("2",), **facets, **({"model": (row.model,)} if data.model_column else {})}


def win_rates_section(data: PanelData, wins: pd.DataFrame, context: ReportContext) -> Section:
    """The win rates, as a table, a plot and the paper's figures 5 and 6.

    Args:
        data: The verdicts.
        wins: The table of `win_rates`.
        context: What the report is given.
    """
    unit, counts = data.cluster_noun, data.counts(data.final_votes)
    table = Table(
        name="win_rates",
        title="Phase 2: win rates",
        frame=wins,
        shown=(
            *(*data.model_column, "identity", "wins", "losses", "ties", "rate", "low", "high"),
            *("cluster_low", "cluster_high", "rate_ties_half"),
        ),
        note="low, high: Wilson interval, which assumes independent verdicts; cluster_low, cluster_high: over "
        f"{unit}s. {ZERO_SUM}",
        printed=True,
    )
    forest = Forest(
        name="win-rates",
        question="How often does each identity win?",
        axis="win rate (without ties)",
        lines=lines_of(
            wins,
            lambda row: str(row.identity),
            value="rate",
            ends=("cluster_low", "cluster_high"),
            group=lambda row: " · ".join([row.category, *([row.model] if data.model_column else [])]),
            units=lambda row: _units(data, row, identity=(row.identity,)),
        ),
        reference=0.5,
        scale="share",
        table="win_rates",
        note=f"95% intervals over {unit}s. The win rates of a category are zero-sum.",
    )
    figure = Figure(
        name="win-rates",
        caption=f"Win rates with 95% intervals: thick, over {unit}s; thin, Wilson ({counts}).",
        table="win_rates",
        draw=lambda: wins_figure(
            wins, context.title, f"{counts}. Thick: 95% interval over {unit}s; thin: 95% Wilson; n: decided pairs."
        ),
    )
    return Section(tables=(table,), figures=(figure,), forests=(forest,))


def wins_figure(wins: pd.DataFrame, title: str, note: str) -> Drawing:
    """Win rates without ties, one panel per model. The thick interval is over scenarios, the thin one is Wilson's."""
    models = list(pd.unique(wins["model"]))
    longest = int(wins.groupby("model", sort=False).size().max())
    figure, axes = sheet(3.8 * len(models) + 1.0, 1.7 + LINE * longest, len(models), sharex=True)
    for axis, model in zip(axes.flat, models, strict=True):
        rows = wins[wins["model"] == model]
        tints = colours(list(rows["category"]))
        for y, row in enumerate(rows.itertuples()):
            axis.plot([row.low, row.high], [y, y], color=tints[row.category], linewidth=0.8)
        shades = [tints[category] for category in rows["category"]]
        names = [f"{row.identity}  (n={row.n})" for row in rows.itertuples()]
        dots(axis, names, rows["rate"], rows["cluster_low"], rows["cluster_high"], shades)
        axis.axvline(0.5, color="#999999", linewidth=0.8, zorder=0)
        axis.set(xlim=(-0.02, 1.02), xlabel="win rate (without ties)")
        axis.set_title(plain_text(str(model)) if len(models) > 1 else "", fontsize=9)
        axis.tick_params(labelsize=8)
    caption(figure, title, note)
    return figure
