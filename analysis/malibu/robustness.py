"""Does a finding survive other words? The difference between two identities by paraphrase and by wording of the label.

    tables = robustness(verdicts)
    list(robustness_words(tables))

Identities are compared within a scenario, which has the same words for all of them, and averaged up to one value per
base and wording. Whether a difference depends on the wording is tested within bases, by the signs of a base's
deviations (`stats.permutation`): where a base reacts to some words by chance, another one reacts to others. Where each
base has a single wording (one scenario per base, no repeats), wordings are permuted between bases, which is as valid,
since they were given to bases at random, but finds less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.malibu.contrasts import LEVEL, NEEDED, Cells, nested_means, of_models, tested, with_holm
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.reporting.figures import LINE, caption, colours, dots, plain_text, sheet
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.resampling import data_seed
from parley.analysis.stats.tables import Floats
from parley.base.text import p_text, plural

FACETS = {"paraphrase": "paraphrase", "label_style": "label style"}
"""Facets of a unit's words, and what they are called."""
DEPENDS, SURVIVES, NOTHING, UNTESTED = "depends on the words", "survives other words", "no finding", "not tested"
PAIR = ["model", "phase", "category", "first", "second", "facet"]
BY_WORDING = [*PAIR, "wording", "difference", "low", "high", "p", "clusters", "note"]
TESTS = [
    *(*PAIR, "wordings", "difference", "low", "high", "p_difference", "smallest", "largest", "same_sign"),
    *("p", "p_adjusted", "conclusion", "clusters", "note"),
]
USUAL = "plain"
"""The label style that comes first; of paraphrases it is the number 1."""
DRAWS = 9999
"""Permutations of wordings between bases."""
SHOWN = 3
"""Pairs with a sentence of their own; the table has all of them."""


class RobustnessTables(NamedTuple):
    """Every pair of identities by wording, and whether its difference depends on the wording."""

    by_wording: pd.DataFrame
    tests: pd.DataFrame


def robustness(verdicts: Verdicts) -> RobustnessTables:
    """The difference of every planned pair by paraphrase and by label style; empty for a run with one wording.

    Phase 1: points of ten. Phase 2: wins minus losses per comparison. `smallest`, `largest` and `same_sign` (wordings
    with the sign of the whole) describe the wordings; `p` is that of no dependence on them. Both p-values of a test are
    Holm-corrected over the pairs of a model, phase and facet.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    tests: list[dict[str, Any]] = []
    for facet, name in FACETS.items():
        if facet not in data.verdicts or data.verdicts[facet].nunique() < 2:
            continue
        for subject, by_base, whole in (*_scored(data, facet), *_preferred(data, facet)):
            subject |= {"facet": name}
            found = [subject | {"wording": str(wording)} | tested(by_base[wording].to_numpy()) for wording in by_base]
            rows += found
            tests.append(subject | _test(by_base, whole))
    table = pd.DataFrame(tests, columns=TESTS)
    if len(table):
        family = ["model", "phase", "facet"]
        table["p_difference"] = with_holm(table.assign(p=table["p_difference"]), family)["p_adjusted"]
        table = with_holm(table, family)
        table["conclusion"] = [_conclusion(row) for row in table.itertuples()]
    return RobustnessTables(pd.DataFrame(rows, columns=BY_WORDING), table[TESTS])


Compared = tuple[dict[str, Any], pd.DataFrame, Floats]
"""A pair's facets, its differences by base (rows) and wording (columns), and by base over all wordings."""


def _scored(data: PanelData, facet: str) -> Iterator[Compared]:
    scores = data.final_scores
    for model in data.models:
        part = scores[(scores["model"] == model) & scores[facet].notna()]
        if part[facet].nunique() < 2:
            continue
        levels = ["wording", "cluster", "scenario", "repeat", "judge", "metric"]
        cells = Cells.of(part.assign(wording=_texts(part[facet])), "value", levels)
        means, pairs = cells.means(), data.pairs(model)
        here, there = ([cells.column(pair[side]) for pair in pairs] for side in (1, 2))
        gaps = means[:, here] - means[:, there]
        by_base = nested_means(gaps, cells.levels, keep=2)
        whole = nested_means(gaps, cells.levels[levels[1:]]).to_numpy(dtype=float)
        for place, (category, first, second) in enumerate(pairs):
            subject = {"model": model, "phase": 1, "category": category, "first": first, "second": second}
            yield subject, _by_wording(by_base[place]), whole[:, place]


def _preferred(data: PanelData, facet: str) -> Iterator[Compared]:
    units = data.decided_pairs
    if units.empty:
        return
    known = data.verdicts.loc[data.verdicts["phase"] == 2, ["model", "unit", facet]].astype({"unit": str})
    known = known.drop_duplicates(["model", "unit"])
    units = units.astype({"unit": str}).merge(known, on=["model", "unit"]).dropna(subset=facet)
    units = units.assign(wording=_texts(units[facet]))
    winner = units["winner"].astype(object)
    won = np.select([winner == units[side].astype(object) for side in ("identity", "other")], [1.0, -1.0], 0.0)
    levels = ["wording", "cluster", "scenario", *(key for key in ("order", "assignment", "repeat") if key in units)]
    for (model, category, first, second), part in units.groupby(
        ["model", "category", "identity", "other"], sort=False, observed=True
    ):
        if part["wording"].nunique() < 2:
            continue
        subject = {"model": str(model), "phase": 2, "category": str(category)}
        margins = won[units.index.get_indexer(part.index)]
        whole = nested_means(margins, part[levels[1:]])[0].to_numpy(dtype=float)
        by_base = nested_means(margins, part[levels], keep=2)[0]
        yield subject | {"first": str(first), "second": str(second)}, _by_wording(by_base), whole


def _texts(facet: pd.Series) -> pd.Series:
    """The wordings as texts; numbers, which are floats where a unit has none, without a point."""
    return facet.map(lambda value: value if isinstance(value, str) else f"{value:g}").astype(object)


def _by_wording(differences: pd.Series) -> pd.DataFrame:
    table = differences.unstack(level=0)
    return table[sorted(table.columns, key=lambda wording: (wording != USUAL, wording))]


def _test(by_base: pd.DataFrame, whole: Floats) -> dict[str, Any]:
    means = by_base.mean()
    row = tested(whole)
    row["p_difference"] = row.pop("p")
    p, note = _dependence(by_base)
    return row | {
        "wordings": by_base.shape[1],
        "smallest": means.min(),
        "largest": means.max(),
        "same_sign": int((np.sign(means) == np.sign(row["difference"])).sum()),
        "p": p,
        "note": row["note"] or note,
    }


def _dependence(by_base: pd.DataFrame) -> tuple[float, str]:
    """The p-value of no dependence on the wording, and how it was tested if not within bases."""
    several = int((by_base.notna().sum(axis=1) > 1).sum())
    if several >= NEEDED:
        # Whole bases are flipped. Scenarios permuted within a base would reject too often where bases react to words by
        # chance.
        return effect_of_cells(by_base).p, ""
    if several:
        return math.nan, f"{plural(several, 'base')} with several wordings: a test needs {NEEDED}"
    values = by_base.stack().dropna()
    wordings, names = pd.factorize(values.index.get_level_values(1))
    if len(values) <= len(names) or len(values) < NEEDED:
        return math.nan, f"one wording per base, and {plural(len(values), 'base')}: too few for a test"
    groups = np.eye(len(names))[wordings]
    centred = values.to_numpy(dtype=float) - float(values.mean())
    rng = np.random.default_rng(data_seed(centred))
    permuted = np.vstack([centred, rng.permuted(np.tile(centred, (DRAWS, 1)), axis=1)])
    spread = ((permuted @ groups) ** 2 / groups.sum(axis=0)).sum(axis=1)
    return float((spread >= spread[0] * (1 - 1e-9)).mean()), "one wording per base: tested between bases"


def _conclusion(row: Any) -> str:
    if math.isnan(row.p):
        return UNTESTED
    if row.p_adjusted <= LEVEL:
        return DEPENDS
    return SURVIVES if row.p_difference <= LEVEL else NOTHING


def robustness_words(tables: RobustnessTables, cluster: str = "base") -> Iterator[str]:
    """Does the finding survive other words? By model, phase and facet.

    Args:
        tables: The tables of `robustness`.
        cluster: What the clusters are called.
    """
    for _, prefix, rows in of_models(tables.tests):
        for (phase, facet), part in rows.groupby(["phase", "facet"], sort=False):
            start = f"{prefix}Phase {phase}, other words ({plural(int(part['wordings'].max()), str(facet))}):"
            yield from (f"{start} {sentence}" for sentence in _sentences(part, tables.by_wording, cluster))


def _sentences(tests: pd.DataFrame, by_wording: pd.DataFrame, cluster: str) -> Iterator[str]:
    known = tests[tests["p"].notna()]
    if known.empty:
        yield f"whether a difference depends on them cannot be tested with {plural(tests['clusters'].max(), cluster)}."
        return
    corrected = f" after Holm correction for {plural(len(known), 'pair')}" if len(known) > 1 else ""
    depends = known[known["conclusion"] == DEPENDS].sort_values("p", kind="stable")
    for row in depends.head(SHOWN).itertuples():
        by_pair = by_wording[(by_wording[PAIR] == [getattr(row, name) for name in PAIR]).all(axis=1)]
        listed = "; ".join(f"{_span(one)} with '{one.wording}'" for one in by_pair.itertuples())
        yield (
            f"the difference between '{row.first}' and '{row.second}' depends on them (p {p_text(row.p_adjusted)}"
            f"{corrected}, {plural(row.clusters, cluster)}): {listed}. {_verdict(by_pair)}"
        )
    if len(depends) > SHOWN:
        yield f"{plural(len(depends) - SHOWN, 'further difference')} depend on them: see the table."
    survived = known[known["conclusion"] == SURVIVES]
    for row in survived.head(SHOWN).itertuples():
        yield (
            f"the difference between '{row.first}' and '{row.second}', {_span(row)} with all of them together, is "
            f"between {row.smallest:+.2f} and {row.largest:+.2f} with each, and has the same sign with {row.same_sign} "
            f"of {row.wordings}: no evidence that the finding depends on the words (p {p_text(row.p_adjusted)}"
            f"{corrected})."
        )
    if depends.empty and survived.empty:
        row = next(known.sort_values("p", kind="stable").head(1).itertuples())
        yield (
            "no difference between identities is shown with all of them together, and none is shown to depend on them "
            f"(smallest p {p_text(row.p_adjusted)}{corrected}, '{row.first}' and '{row.second}')."
        )


def _span(row: Any) -> str:
    return f"{row.difference:+.2f}" + (f" ({row.low:+.2f} to {row.high:+.2f})" if math.isfinite(row.low) else "")


def _verdict(by_pair: pd.DataFrame) -> str:
    """Whether a difference that depends on the words has one direction with all of them."""
    shown = ((by_pair["low"] > 0).all(), (by_pair["high"] < 0).all())
    if any(shown):
        return "Its direction survives other words, its size does not."
    return "The finding does not survive all of these words."


def robustness_figure(tables: RobustnessTables, title: str, note: str) -> Drawing:
    """The difference of every pair by wording, with intervals: one panel per model, phase and facet.

    Args:
        tables: The tables of `robustness`.
        title: Of the figure.
        note: The small print.
    """
    table = tables.by_wording
    keys = ["model", "phase", "facet"]
    panels = list(table[keys].drop_duplicates().itertuples(index=False))
    lines = int(table.groupby(keys, sort=False).size().max())
    columns = min(2, len(panels))
    rows_of_panels = math.ceil(len(panels) / columns)
    height = 0.9 + rows_of_panels * (1.0 + 0.7 * LINE * max(lines, 6))
    figure, axes = sheet(4.8 * columns + 0.8, height, columns, rows_of_panels)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    several = table["model"].nunique() > 1
    for axis, (model, phase, facet) in zip(axes.flat, panels, strict=False):
        here, tests = (frame[(frame[keys] == [model, phase, facet]).all(axis=1)] for frame in (table, tables.tests))
        names = [f"{row.first} − {row.second}{'*' if row.conclusion == DEPENDS else ''}" for row in tests.itertuples()]
        wordings = list(pd.unique(here["wording"]))
        tints = colours(wordings)
        for nth, wording in enumerate(wordings):
            rows = here[here["wording"] == wording].set_index(["first", "second"])
            rows = rows.reindex(pd.MultiIndex.from_frame(tests[["first", "second"]]))
            shift = (nth - (len(wordings) - 1) / 2) * 0.7 / len(wordings)
            ends = rows["difference"], rows["low"], rows["high"]
            dots(axis, names, *ends, [tints[wording]] * len(rows), shift=shift, label=wording)
        axis.axvline(0, color="#999999", linewidth=0.8, zorder=0)
        axis.set_xlabel("points of ten" if phase == 1 else "wins minus losses per comparison", fontsize=8)
        axis.set_title(plain_text(f"phase {phase}, {facet}" + (f", {model}" if several else "")), fontsize=9)
        axis.tick_params(labelsize=8)
        axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    caption(figure, title, f"{note} *: depends on the words (p ≤ 0.05 after Holm correction).")
    return figure


def robustness_section(data: PanelData, context: ReportContext) -> Section:
    """Whether differences survive other words: tables, a figure and sentences."""
    tables, unit = robustness(data), data.cluster_noun
    figure = Figure(
        name="other-words",
        caption=f"Differences between identities by wording, with 95% intervals over {unit}s ({data.counts}).",
        table="robustness",
        draw=lambda: robustness_figure(tables, context.title, f"{data.counts}. 95% intervals over {unit}s."),
    )
    return Section(
        tables=(
            Table(
                name="robustness_tests",
                title="Other words: does a difference between identities depend on the wording?",
                frame=tables.tests,
                note="p: no dependence on the wording, within each base. difference, p_difference: over all wordings. "
                "Holm over the pairs of a model, phase and facet.",
            ),
            Table(
                name="robustness",
                title="Other words: differences by paraphrase and by label style",
                frame=tables.by_wording,
                note=f"First minus second with this wording; sign flips over {unit}s, not corrected.",
            ),
        ),
        figures=(figure,),
        words=tuple(robustness_words(tables, unit)),
    )
