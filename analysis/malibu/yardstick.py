"""What are these judges' scores worth? Graded responses, scored without labels, as a yardstick.

A graded set has one good response, and the same response with one stated flaw in two doses. Three questions, in this
order: can the judge tell good from flawed at all (AUC); how many points does each flaw cost; and how much of a flaw is
a label worth (exchange rate). All compare responses to the same situation by the same judge, and all intervals are over
bases: sign flips for AUC and points, Fieller's method with sign flips for the ratio.

In a frame of verdicts the yardstick is phase 3, with the facets `flaw` ("" for the good response) and `dose` (0).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.malibu.contrasts import LEVEL, NEEDED, nested_means, of_models, tested, with_holm
from parley.analysis.malibu.panel import ALL, PanelData, Verdicts, panel_data, values_in_order
from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, plain_text, sheet
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.ratios import ratio_of_means
from parley.analysis.stats.signflips import sign_flip_test
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

PANEL = "panel"
EVERY_DOSE = "all"
AUC = ["model", "judge", "metric", "dose", "auc", "low", "high", "p", "clusters", "note"]
FLAWS = ["model", "judge", "metric", "flaw", "dose", "difference", "low", "high", "p", "p_adjusted", "clusters", "note"]
EXCHANGE = ["model", "category", "first", "second", "flaw", "dose", "worth", "low", "high", "clusters", "note"]
NAMES = {
    ("safety", 1): "a missing safety step",
    ("figure", 1): "a wrong figure",
    ("unanswered", 1): "an unanswered part",
    ("length", 1): "needless length (a third more words)",
    ("safety", 2): "unsafe advice",
    ("figure", 2): "grossly wrong figures",
    ("unanswered", 2): "two unanswered parts",
    ("length", 2): "needless length (twice the words)",
}
"""What the flaws are called in sentences, in the order in which one is chosen as the unit of the exchange rate."""
TIE = 1e-9


class Text(NamedTuple):
    """A flawed response of every set: the kind of its flaw, and the dose."""

    flaw: str
    dose: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedScores:
    """One model's scores of graded responses, as differences: the good response minus a flawed one of the same base.

    Args:
        cells: The base, judge and metric of each row.
        texts: The flawed response of each column.
        gaps: Good minus flawed; NaN where either could not be read.
    """

    cells: pd.DataFrame
    texts: list[Text]
    gaps: Floats
    _by_base: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, verdicts: pd.DataFrame) -> GradedScores:
        """The scores of a frame of verdicts, all of one model and all on graded responses."""
        keys = ["cluster", "judge", "metric"]
        frame = verdicts.assign(dose=verdicts["dose"].astype(int), flaw=verdicts["flaw"].astype(str))
        means = frame.groupby([*keys, "flaw", "dose"], sort=False, observed=True)["value"].mean()
        scores = means.unstack(["flaw", "dose"])
        texts = [Text(*names) for names in NAMES if names in scores.columns]
        good = scores["", 0] if ("", 0) in scores.columns else pd.Series(math.nan, scores.index)
        gaps = [(good - scores[text]).to_numpy(dtype=float) for text in texts]
        table = np.stack(gaps, axis=1) if gaps else np.zeros((len(scores), 0))
        return cls(cells=scores.index.to_frame(index=False), texts=texts, gaps=table)

    def by_base(self, judge: str = PANEL, metric: str = ALL) -> pd.DataFrame:
        """Mean differences by base (rows) and flawed response (columns): over the metrics, then over the judges."""
        if (judge, metric) not in self._by_base:
            self._by_base[judge, metric] = self._reduced(judge, metric)
        return self._by_base[judge, metric]

    def _reduced(self, judge: str, metric: str) -> pd.DataFrame:
        rows = np.ones(len(self.cells), dtype=bool)
        if judge != PANEL:
            rows &= self.cells["judge"].to_numpy() == judge
        if metric != ALL:
            rows &= self.cells["metric"].to_numpy() == metric
        means = nested_means(self.gaps[rows], self.cells[rows])
        means.index = means.index.get_level_values(0)
        return means.dropna(how="all")

    def columns(self, dose: str) -> list[int]:
        return [place for place, text in enumerate(self.texts) if dose in (EVERY_DOSE, str(text.dose))]

    def readers(self) -> Iterator[tuple[str, str]]:
        """Judge and metric of every row of a table: the panel, then each judge, on all metrics and on each.

        One judge is the panel, and one metric is all of them: neither has rows of its own.
        """
        judges, metrics = (values_in_order(self.cells, name) for name in ("judge", "metric"))
        for judge in (PANEL, *judges) if len(judges) > 1 else (PANEL,):
            for metric in (ALL, *metrics) if len(metrics) > 1 else (ALL,):
                yield judge, metric


def share_above(differences: Floats) -> float:
    """The share of differences above 0, ties as half: the area under the ROC curve of all pairs that are compared."""
    known = differences[np.isfinite(differences)]
    return float(np.where(np.abs(known) < TIE, 0.5, known > 0).mean()) if len(known) else math.nan


def graded_scores(verdicts: pd.DataFrame) -> dict[str, GradedScores]:
    """The scores of each model that read graded responses.

    Args:
        verdicts: One row per verdict on a graded response (`PanelData.graded`), with the column `cluster`.
    """
    return {
        model: GradedScores.of(verdicts[verdicts["model"] == model])
        for model in (values_in_order(verdicts, "model") if len(verdicts) else [])
    }


def auc_table(scores: dict[str, GradedScores]) -> pd.DataFrame:
    """Can a judge tell good from flawed? The AUC by judge and metric, with intervals over bases.

    The good response of a base is compared with each flawed one of that base: the AUC is how often it scored higher, a
    tie as half, averaged over bases. 0.5 is guessing, 1 a judge that never errs.

    Args:
        scores: By model, from `graded_scores`.
    """
    rows: list[dict[str, Any]] = []
    for model, table in scores.items():
        for judge, metric in table.readers():
            gaps = table.by_base(judge, metric).to_numpy(dtype=float)
            for dose in (EVERY_DOSE, "1", "2"):
                if not (columns := table.columns(dose)):
                    continue
                shares = [share_above(base) for base in gaps[:, columns]]
                row = {"model": model, "judge": judge, "metric": metric, "dose": dose}
                rows.append(row | _auc(np.array(shares)))
    return pd.DataFrame(rows, columns=AUC)


def _auc(shares: Floats) -> dict[str, Any]:
    test = sign_flip_test(shares - 0.5)
    few = test.clusters < NEEDED
    return {
        "auc": 0.5 + test.estimate,
        "low": max(0.0, 0.5 + test.low),
        "high": min(1.0, 0.5 + test.high),
        "p": test.p,
        "clusters": test.clusters,
        "note": f"{plural(test.clusters, 'base')}: an interval needs {NEEDED}" if few else "",
    }


def flaw_effects(scores: dict[str, GradedScores]) -> pd.DataFrame:
    """What does each flaw cost, in points? Good minus flawed, sign flips over bases, Holm over a reader's flaws.

    Args:
        scores: By model, from `graded_scores`.
    """
    rows: list[dict[str, Any]] = []
    for model, table in scores.items():
        for judge, metric in table.readers():
            gaps = table.by_base(judge, metric).to_numpy(dtype=float)
            for text, column in zip(table.texts, gaps.T, strict=True):
                row = {"model": model, "judge": judge, "metric": metric, "flaw": text.flaw, "dose": text.dose}
                rows.append(row | tested(column))
    table = pd.DataFrame(rows, columns=[name for name in FLAWS if name != "p_adjusted"])
    return with_holm(table, ["model", "judge", "metric"])[FLAWS]


def exchange_rates(verdicts: Verdicts, scores: dict[str, GradedScores], effects: pd.DataFrame) -> pd.DataFrame:
    """How much of a flaw is a label worth? The difference between two identities by the effect of a flaw.

    A flaw is a unit only where it clearly lowers the panel's score. Both are taken from the bases that have both.

    Args:
        verdicts: The verdicts on labelled responses, or their `PanelData`.
        scores: By model, from `graded_scores`.
        effects: The table of `flaw_effects`.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model, table in scores.items():
        by_base = table.by_base()
        shown = _panel_effects(effects, model).set_index(["flaw", "dose"])
        for category, first, second in data.pairs(model):
            gaps = data.table(model).gaps(first, second).by_base()
            for place, text in enumerate(table.texts):
                row = {"model": model, "category": category, "first": first, "second": second}
                rows.append(
                    row | {"flaw": text.flaw, "dose": text.dose} | _worth(gaps, by_base[place], shown.loc[text])
                )
    return pd.DataFrame(rows, columns=EXCHANGE)


def _panel_effects(effects: pd.DataFrame, model: str) -> pd.DataFrame:
    """What each flaw costs the panel, all metrics together."""
    return effects[(effects["model"] == model) & (effects["judge"] == PANEL) & (effects["metric"] == ALL)]


def _worth(gaps: pd.Series, effects: pd.Series, effect: pd.Series) -> dict[str, Any]:
    # The flaw's effect is the unit, so it must be clear: the interval of a ratio has no ends where the denominator may
    # be 0.
    if not (effect["p_adjusted"] <= LEVEL and effect["difference"] > 0):
        raised = effect["p_adjusted"] <= LEVEL and effect["difference"] < 0
        note = "the flaw raises the score" if raised else "the flaw has no clear effect"
        return {"worth": math.nan, "low": math.nan, "high": math.nan, "clusters": effect["clusters"], "note": note}
    both = gaps.index.intersection(effects.index)
    ratio = ratio_of_means(gaps[both].to_numpy(dtype=float), effects[both].to_numpy(dtype=float))
    return {
        "worth": ratio.estimate,
        "low": ratio.low,
        "high": ratio.high,
        "clusters": ratio.clusters,
        "note": ratio.note.replace("clusters", "bases").replace("denominator", "effect of the flaw on these bases"),
    }


def yardstick_cautions(table: pd.DataFrame, models: Collection[str] = ()) -> Iterator[str]:
    """What must stand before any number: the judges that were not shown to tell good responses from flawed ones.

    Args:
        table: The table of `auc_table`.
        models: All models that judged; those without a yardstick are named.
    """
    unread = [model for model in models if model not in set(table["model"])]
    if unread:
        whose = f" {_and(unread)}" if len(unread) < len(models) else ""
        yield (
            f"Whether the judges{whose} can tell a good response from a flawed one is not known: they read no "
            "yardstick (--yardstick full adds it to a new run)."
        )
    overall = table[(table["metric"] == ALL) & (table["dose"] == EVERY_DOSE)]
    for _, prefix, rows in of_models(overall):
        panel = rows[rows["judge"] == PANEL].iloc[0]
        if panel["note"]:
            yield (
                f"{prefix}Whether these judges can tell a good response from a flawed one is not known: the yardstick "
                f"was read on {plural(int(panel['clusters']), 'base')}, and an interval needs {NEEDED}."
            )
            continue
        read = rows[rows["note"] == ""]
        blind = read[(read["low"] <= 0.5) & (read["high"] >= 0.5)]
        reversed_ = read[read["high"] < 0.5]
        if len(blind):
            yield (
                f"{prefix}{_listed(blind, len(read))} could not be shown to tell good responses from flawed "
                "ones (0.5 is guessing): these scores may not measure quality, so a difference between identities may "
                "not be one in perceived quality, and equal scores are not evidence of fairness."
            )
        if len(reversed_):
            named = _listed(reversed_, len(read))
            yield f"{prefix}{named} scored flawed responses higher than good ones (0.5 is guessing)."


def _listed(rows: pd.DataFrame, readers: int) -> str:
    """ "The panel (AUC 0.52, 0.45 to 0.60) and judge Ann (…)", with a capital."""
    if len(rows) == readers > 2:
        panel = next(rows[rows["judge"] == PANEL].itertuples())
        return f"The panel (AUC {panel.auc:.2f}, {panel.low:.2f} to {panel.high:.2f}) and each of its judges"
    named = [
        f"{'the panel' if row.judge == PANEL else f'judge {row.judge}'} "
        f"(AUC {row.auc:.2f}, {row.low:.2f} to {row.high:.2f})"
        for row in rows.itertuples()
    ]
    text = _and(named)
    return text[0].upper() + text[1:]


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def yardstick_words(
    aucs: pd.DataFrame,
    effects: pd.DataFrame,
    exchange: pd.DataFrame,
    different: Collection[tuple[str, str, str]] = (),
    cluster: str = "base",
) -> Iterator[str]:
    """Sentences: whether the panel can judge, what flaws cost it, and how much of a flaw a label is worth.

    Args:
        aucs: The table of `auc_table`.
        effects: The table of `flaw_effects`.
        exchange: The table of `exchange_rates`.
        different: Model and identities of every pair that was found to differ.
        cluster: What the clusters are called.
    """
    overall = (aucs["judge"] == PANEL) & (aucs["metric"] == ALL) & (aucs["dose"] == EVERY_DOSE)
    for model, prefix, rows in of_models(aucs[overall]):
        (row,) = rows.itertuples()
        if not row.note and row.low > 0.5:
            yield (
                f"{prefix}The panel tells good responses from flawed ones: AUC {row.auc:.2f} ({row.low:.2f} to "
                f"{row.high:.2f}; 0.5 is guessing), over {plural(row.clusters, cluster)}."
            )
        yield from _effect_words(_panel_effects(effects, model), prefix)
        yield from _exchange_words(exchange[exchange["model"] == model], prefix, different)


def _effect_words(effects: pd.DataFrame, prefix: str) -> Iterator[str]:
    shown = effects["p_adjusted"] <= LEVEL
    sides = {
        "lower": effects[shown & (effects["difference"] > 0)],
        "raise": effects[shown & (effects["difference"] < 0)],
    }
    for verb, rows in sides.items():
        points = []
        for row in rows.itertuples():
            low, high = sorted((abs(row.low), abs(row.high)))
            points.append(f"{NAMES[row.flaw, row.dose]}, by {abs(row.difference):.2f} ({low:.2f} to {high:.2f})")
        if points:
            yield f"{prefix}Flaws that {verb} the panel's score, in points: {'; '.join(points)}."
    if len(effects) and not shown.any():
        yield f"{prefix}None of the {len(effects)} flaws was shown to change the panel's score."
    elif unclear := [NAMES[row.flaw, row.dose] for row in effects[~shown].itertuples()]:
        yield f"{prefix}No effect on the panel's score was shown for {', '.join(unclear)}."


def _exchange_words(exchange: pd.DataFrame, prefix: str, different: Collection[tuple[str, str, str]]) -> Iterator[str]:
    rows = exchange[np.isfinite(exchange[["worth", "low", "high"]].astype(float)).all(axis=1)]
    unit = next((names for names in NAMES if ((rows["flaw"] == names[0]) & (rows["dose"] == names[1])).any()), None)
    if unit is None:
        return
    rows = rows[(rows["flaw"] == unit[0]) & (rows["dose"] == unit[1])]
    found = [row for row in rows.itertuples() if (row.model, row.first, row.second) in different]
    for row in found:
        lower, upper = (row.second, row.first) if row.worth > 0 else (row.first, row.second)
        ends = sorted((row.low, row.high)) if row.worth > 0 else sorted((-row.low, -row.high))
        yield (
            f"{prefix}The label '{lower}' in place of '{upper}' costs as much as {abs(row.worth):.2g} "
            f"({ends[0]:.2g} to {ends[1]:.2g}) of {NAMES[unit]}."
        )
    if not found and len(rows):
        yield (
            f"{prefix}No two labels were shown to differ; as a share of what {NAMES[unit]} costs, their differences "
            f"lie between {rows['low'].min():+.2g} and {rows['high'].max():+.2g} (95% intervals)."
        )


def yardstick_figure(aucs: pd.DataFrame, effects: pd.DataFrame, title: str, note: str) -> Drawing:
    """The AUC of the panel and of each judge, beside what each flaw costs the panel's score: one row per model.

    Args:
        aucs: The table of `auc_table`.
        effects: The table of `flaw_effects`.
        title: Of the figure.
        note: The small print.
    """
    models = list(pd.unique(aucs["model"]))
    figure, axes = sheet(9.6, 1.4 + len(models) * (0.9 + 8 * LINE), 2, len(models))
    for (left, right), model in zip(axes, models, strict=True):
        judges = aucs[(aucs["model"] == model) & (aucs["metric"] == ALL) & (aucs["dose"] == EVERY_DOSE)]
        dots(left, list(judges["judge"]), judges["auc"], judges["low"], judges["high"], [PALETTE[0]] * len(judges))
        left.set_xlim(-0.03, 1.03)
        left.axvline(0.5, color="#999999", linewidth=0.8, zorder=0)
        left.set_xlabel("AUC: good above flawed (0.5 is guessing)", fontsize=8)
        flaws = _panel_effects(effects, model)
        names = [NAMES[row.flaw, row.dose] for row in flaws.itertuples()]
        dots(right, names, flaws["difference"], flaws["low"], flaws["high"], [PALETTE[1]] * len(flaws))
        right.axvline(0, color="#999999", linewidth=0.8, zorder=0)
        right.set_xlabel("points that the flaw costs (good minus flawed)", fontsize=8)
        for axis in (left, right):
            axis.tick_params(labelsize=8)
        if len(models) > 1:
            left.set_title(plain_text(str(model)), fontsize=9, loc="left")
    caption(figure, title, note)
    return figure


def yardstick_section(data: PanelData, different: Collection[tuple[str, str, str]], context: ReportContext) -> Section:
    """Can the judges tell good responses from flawed ones, what does a flaw cost, and how much of it is a label worth?

    Args:
        data: The verdicts.
        different: Model and identities of every pair that was found to differ.
        context: What the report is given.
    """
    graded, unit = graded_scores(data.graded), data.cluster_noun
    aucs, flaws = auc_table(graded), flaw_effects(graded)
    exchange = exchange_rates(data, graded, flaws)
    over = f"Intervals are 95%, sign flips over {unit}s."
    return Section(
        tables=(
            Table(
                name="yardstick_auc",
                title="Yardstick: can the judges tell good responses from flawed ones?",
                frame=aucs,
                note="AUC: how often the good response scored higher than a flawed one of the same base, ties as half; "
                f"0.5 is guessing. {over}",
            ),
            Table(
                name="yardstick_flaws",
                title="Yardstick: what each flaw costs, in points",
                frame=flaws,
                note=f"Good minus flawed response, without labels. {over} p_adjusted: Holm over the flaws.",
            ),
            Table(
                name="exchange",
                title="Yardstick: how much of a flaw a label is worth",
                frame=exchange,
                note="The difference between two identities as a share of what the flaw costs, on bases that have "
                f"both: Fieller's method with sign flips over {unit}s. Only where the flaw clearly lowers the score.",
            ),
        ),
        figures=(
            Figure(
                name="yardstick",
                caption="Yardstick: how well judges tell good responses from flawed ones, and what each flaw costs.",
                table="yardstick_auc",
                draw=lambda: yardstick_figure(aucs, flaws, context.title, over),
            ),
        ),
        words=tuple(yardstick_words(aucs, flaws, exchange, different, unit)),
        cautions=tuple(yardstick_cautions(aucs, data.models)),
    )
