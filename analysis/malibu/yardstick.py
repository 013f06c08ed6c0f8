"""What are these judges' scores worth? Graded responses, scored without labels, as a yardstick.

A graded set has one good response, and the same response with one stated flaw in two doses. Three questions, in this
order: can the judge tell good from flawed at all (AUC); how many points does each flaw cost; and how much of a flaw is
a label worth (exchange rate). Each compares responses to the same situation by the same judge, with intervals over
bases: sign flips for AUC and points, Fieller's method with sign flips for the ratio.

In a frame of verdicts the yardstick is phase 3, with the facets `flaw` ("" for the good response) and `dose` (0).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.malibu.contrasts import NEEDED, nested_means, tested, with_holm
from parley.analysis.malibu.panel import ALL, PanelData, values_in_order
from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, plain_text, sheet
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.proportions import exact_proportion
from parley.analysis.stats.ratios import ratio_of_means
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.signflips import sign_flip_test
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

PANEL = "panel"
EVERY_DOSE = "all"
AUC = ["model", "judge", "metric", "dose", "auc", "low", "high", "p", "clusters", "note"]
FLAWS = ["model", "judge", "metric", "flaw", "dose", "difference", "low", "high", "p", "p_adjusted", "clusters", "note"]
EXCHANGE = ["model", "first", "second", "flaw", "dose", "worth", "low", "high", "clusters", "note"]
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
ALL_AGREE = "all bases agree: there is no spread to take an interval from"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedScores:
    """One model's scores of graded responses, as differences: the good response minus a flawed one of the same base.

    Args:
        cells: The base, judge and metric of each row.
        texts: The flawed response of each column: the kind of its flaw, and the dose.
        gaps: Good minus flawed; NaN where either could not be read.
    """

    cells: pd.DataFrame
    texts: list[tuple[str, int]]
    gaps: Floats

    @classmethod
    def of(cls, verdicts: pd.DataFrame) -> GradedScores:
        """The scores of a frame of verdicts, all of one model and all on graded responses."""
        keys = ["cluster", "judge", "metric"]
        frame = verdicts.assign(dose=verdicts["dose"].astype(int), flaw=verdicts["flaw"].astype(str))
        means = frame.groupby([*keys, "flaw", "dose"], sort=False, observed=True)["value"].mean()
        scores = means.unstack(["flaw", "dose"])
        texts = [text for text in NAMES if text in scores.columns]
        good = scores["", 0] if ("", 0) in scores.columns else pd.Series(math.nan, scores.index)
        gaps = [(good - scores[text]).to_numpy(dtype=float) for text in texts]
        table = np.stack(gaps, axis=1) if gaps else np.zeros((len(scores), 0))
        return cls(cells=scores.index.to_frame(index=False), texts=texts, gaps=table)

    def by_base(self, judge: str = PANEL, metric: str = ALL) -> pd.DataFrame:
        """Mean differences by base (rows) and flawed response (columns): over the metrics, then over the judges."""
        rows = np.ones(len(self.cells), dtype=bool)
        if judge != PANEL:
            rows &= self.cells["judge"].to_numpy() == judge
        if metric != ALL:
            rows &= self.cells["metric"].to_numpy() == metric
        means = nested_means(self.gaps[rows], self.cells[rows])
        means.index = means.index.get_level_values(0)
        return means.dropna(how="all")

    def columns(self, dose: str) -> list[int]:
        return [place for place, (_, own) in enumerate(self.texts) if dose in (EVERY_DOSE, str(own))]

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
                rows.append(row | _auc(np.array(shares), int(np.isfinite(gaps[:, columns]).sum())))
    return pd.DataFrame(rows, columns=AUC)


def _auc(shares: Floats, comparisons: int) -> dict[str, Any]:
    test = sign_flip_test(shares - 0.5)
    low, high = exact_proportion(shares[np.isfinite(shares)], comparisons)
    few = test.n < NEEDED
    note = f"{plural(test.n, 'base')}: an interval needs {NEEDED}" if few else ""
    return {
        "auc": 0.5 + test.estimate,
        "low": math.nan if few else low,
        "high": math.nan if few else high,
        "p": test.p,
        "clusters": test.clusters,
        "note": note or (ALL_AGREE if math.isnan(low) else ""),
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
            for (flaw, dose), column in zip(table.texts, gaps.T, strict=True):
                row = {"model": model, "judge": judge, "metric": metric, "flaw": flaw, "dose": dose}
                rows.append(row | tested(column))
    return with_holm(pd.DataFrame(rows, columns=FLAWS), ["model", "judge", "metric"])


def of_panel(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table that are about the whole panel, all metrics together."""
    return table[(table["judge"] == PANEL) & (table["metric"] == ALL)]


def yardstick_figure(aucs: pd.DataFrame, effects: pd.DataFrame, title: str, note: str) -> Drawing:
    """The AUC of the panel and of each judge, and what each flaw costs the panel's score: one row per model.

    Args:
        aucs: The table of `auc_table`.
        effects: The table of `flaw_effects`.
        title: Title of the figure.
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
        flaws = of_panel(effects[effects["model"] == model])
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


def exchange(
    data: PanelData, scores: dict[str, GradedScores], effects: pd.DataFrame, different: Collection[tuple[str, str, str]]
) -> pd.DataFrame:
    """How much of a flaw is a label worth? Labels that were shown to differ, by flaws that were shown to cost points.

    The intervals hold for all flaws at once: only flaws that were shown become units, and at 95% each, intervals would
    miss the ratio to a weak one in 14% of studies.

    Args:
        data: The verdicts on labelled responses.
        scores: By model, from `graded_scores`.
        effects: The table of `flaw_effects`.
        different: Model and identities of every pair that was found to differ.
    """
    rows: list[dict[str, Any]] = []
    for model, table in scores.items():
        flaws = of_panel(effects[effects["model"] == model])
        shown = flaws[(flaws["p_adjusted"] <= ALPHA) & (flaws["difference"] > 0)]
        for first, second in [(first, second) for name, first, second in different if name == model]:
            gaps = data.table(model).gaps(first, second).by_base()
            for flaw in shown.itertuples():
                costs = table.by_base()[table.texts.index((flaw.flaw, flaw.dose))]
                both = gaps.index.intersection(costs.index)
                level = 1 - ALPHA / max(len(flaws), 1)
                ratio = ratio_of_means(gaps[both].to_numpy(dtype=float), costs[both].to_numpy(dtype=float), level)
                row = {"model": model, "first": first, "second": second, "flaw": flaw.flaw, "dose": flaw.dose}
                found = {"worth": ratio.estimate, "low": ratio.low, "high": ratio.high, "clusters": ratio.clusters}
                note = ratio.note.replace("clusters", "bases").replace("denominator", "cost of the flaw on these bases")
                rows.append(row | found | {"note": note})
    return pd.DataFrame(rows, columns=EXCHANGE)


def yardstick_section(data: PanelData, different: Collection[tuple[str, str, str]], context: ReportContext) -> Section:
    """Can the judges tell good responses from flawed ones, what does a flaw cost, and how much of it is a label worth?

    Args:
        data: The verdicts.
        different: Model and identities of every pair that was found to differ.
        context: What the report is given.
    """
    graded, unit, counts = graded_scores(data.graded), data.cluster_noun, data.counts(data.graded)
    aucs, flaws = auc_table(graded), flaw_effects(graded)
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
                frame=exchange(data, graded, flaws, different),
                note="The difference between two identities as a share of what the flaw costs, on bases that have "
                f"both: Fieller's method with sign flips over {unit}s, simultaneous over the flaws. Only where labels "
                "differ and the flaw costs points.",
            ),
        ),
        figures=(
            Figure(
                name="yardstick",
                caption="Yardstick: how well judges tell good responses from flawed ones, and what each flaw costs "
                f"({counts}).",
                table="yardstick_auc",
                draw=lambda: yardstick_figure(aucs, flaws, context.title, f"{counts}. {over}"),
            ),
        ),
    )
