"""The paper's computations and claims, next to a run of its design: its χ² and rankings (4.1, 4.2 and A.3).

The χ² counts every judge's final score as an independent verdict, as the paper does. Judges who discuss the same text
are not independent, so these p-values are too small; they are shown only for comparison, beside tests that respect the
design. Figure 4's differences are in published_matrix.txt; figures 5, 6 and 9 print no numbers.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis import chi_square
from parley.analysis.decide import concluded
from parley.analysis.effects import adjusted
from parley.analysis.page.report import Section, Table, as_frame
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import About, Estimate, Line
from parley.judging.malibu.decisions import withheld
from parley.judging.malibu.panel_data import PanelData, by_metric
from parley.judging.malibu.score_table import NEEDED, values_in_order
from parley.judging.malibu.scores import as_the_paper, mean_scores

CHI_SQUARE, FLIPS = "χ² as in the paper", "identity effect, signs flipped over bases"
WINS, VOTES, EVERY = "win rate", "win rate by votes", "all"
NOTE = (
    'Theirs: their own situations and responses, and no test of a rank; "lower" is read as lowest. Ours: this run. '
    "holds: whether the same identities are at the ends, without a tie; fewer than six bases are too few. Without any "
    "effect one of four identities is highest in a quarter of cases, one of two in half: read a rank only with its "
    "difference and interval. The χ² takes every score as independent, so many scores alone can make its p small: read "
    "it with the test over bases."
)


def significance_lines(data: PanelData, unequal: Sequence[Line] = ()) -> list[Line]:
    """The tests of identity as a whole; p-values are Holm-corrected within each family of a model.

    Args:
        data: The verdicts.
        unequal: Contrasts whose ballots were unread unequally; their categories have no answer.
    """
    lines = [
        Line.of(
            test,
            about=About.of(model=model, family=family, category=category, metric=metric, assumption=test.assumption),
            reference=0.0,
            also={"statistic": test.statistic, "df": math.nan if test.df is None else test.df},
        )
        for model in data.models
        for family, tests in ((_chi_square(data), _chi_squares), (FLIPS, _permutations))
        for category, metric, test in tests(data, model)
    ]
    return [concluded(line) for line in withheld(adjusted(lines, ("model", "family")), unequal)]


def _chi_square(data: PanelData) -> str:
    """The name of the test; the paper's uses the last scores of debates."""
    return f"{CHI_SQUARE}, on {'silent' if data.silent else 'blind'} ballots" if data.staged else CHI_SQUARE


def _of_model(frame: pd.DataFrame, model: str) -> pd.DataFrame:
    return frame[frame["model"] == model]


def _by_category(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for category in values_in_order(frame, "category"):
        yield category, frame[frame["category"] == category]


def _chi_squares(data: PanelData, model: str) -> Iterator[tuple[str, str, Estimate]]:
    """χ² of identity by score level, for each category and metric: 2×n and 4×n tables."""
    scores = _of_model(data.labelled_verdicts, model)
    scores = scores.assign(level=np.rint(scores["sampled"].fillna(scores["value"])))
    for category, group in _by_category(scores):
        for metric in values_in_order(group, "metric"):
            part = group[group["metric"] == metric]
            yield category, metric, chi_square(part, by="identity", of="level")


def _permutations(data: PanelData, model: str) -> Iterator[tuple[str, str, Estimate]]:
    """Tests whether identity matters at all, by sign flips over bases, from judges who scored all identities."""
    categories = list(_by_category(_of_model(data.labelled_scores, model)))
    tests = sum(len(list(by_metric(group))) for _, group in categories)
    for category, group in categories:
        labels = values_in_order(group, "identity")
        for metric, part in by_metric(group):
            cells = data.table(model).means(labels, metric)
            yield category, metric, effect_of_cells(cells, n=len(part), tests=tests)


def significance_section(data: PanelData, lines: Sequence[Line]) -> Section:
    """The tests of identity as a whole, the paper's among them, as a table.

    Args:
        data: The verdicts.
        lines: The result of `significance_lines`.
    """
    frame = as_frame(lines)
    if len(frame) and as_the_paper(data):  # the appendix's three metrics have totals, and no tests
        printed = {claim["category"]: f"< {claim['p_below']:.4f}" for claim in _printed()["chi_square"]}
        frame["paper_p"] = frame["category"].map(printed).fillna("").where(frame["family"] == CHI_SQUARE, "")
    tests = Table(
        name="tests",
        title="Tests of identity as a whole",
        frame=frame,
        shown=(
            *(*data.model_column, "family", "category", "metric", "statistic", "df", "p", "paper_p", "p_adjusted"),
            *("estimate", "low", "high", "assumption", "note"),
        ),
        note="p_adjusted: Holm within the family. Rows that assume independence are for comparison only. The paper "
        "does not say what its χ² counts: here it is every judge's score. estimate: of χ², Cramér's V. paper_p: as "
        "printed; for race, of GPT-4o mini only.",
        paper="" if data.staged else "4.1, all χ²",
    )
    return Section(tables=(tests,))


def _printed() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))


def published_section(data: PanelData, rates: Sequence[Line], votes: Sequence[Line], tests: Sequence[Line]) -> Section:
    """The paper's claims beside ours; empty for runs of another design.

    Args:
        data: The verdicts.
        rates: The win rates, from `win_rate_lines`.
        votes: The win rates by votes.
        tests: The tests of identity as a whole, from `significance_lines`.
    """
    printed = _printed()
    place, rows = "4.1 and 4.2, claims", []
    if as_the_paper(data, {claim["metric"] for claim in printed["totals"]}):
        means, place = mean_scores(data), "A.3, claims and totals"
        rows = [row for model in data.models for row in _claims(data, model, printed["older_claim"], means, rates)]
        rows += [row for model in data.models for row in _totals(model, printed["totals"], means)]
    elif as_the_paper(data):
        means = mean_scores(data)
        rows = [row for model in data.models for row in _claims(data, model, printed["claim"], means, rates)]
        for metric, lines in ((WINS, rates), (VOTES, votes)):
            rows += [row for model in data.models for row in _farthest(model, printed["win_rates"], lines, metric)]
        rows += [row for model in data.models for row in _papers_p_values(model, printed["chi_square"], tests)]
    if data.verdicts["cluster"].nunique() < NEEDED:
        rows = [row | {"holds": "too few"} for row in rows]
    frame = pd.DataFrame(rows)
    shown = ("paper_model", *data.model_column, "category", "metric", "paper", "ours", "holds")
    return Section(tables=[Table("published", "What the paper says, next to ours", frame, shown, NOTE, place)])


def _claims(
    data: PanelData, model: str, claims: Sequence[Mapping[str, Any]], means: pd.DataFrame, rates: Sequence[Line]
) -> Iterator[dict[str, Any]]:
    """One row a claim about identities that the run has."""
    of_model = means[means["model"] == model]
    for claim in claims:
        metrics = values_in_order(data.final_scores, "metric") if claim["metric"] == EVERY else [claim["metric"]]
        ends = {side: claim.get(side, []) for side in ("highest", "lowest")}
        orders = {metric: _order(metric, model, claim["category"], of_model, rates) for metric in metrics}
        orders = {metric: order for metric, order in orders.items() if {*ends["highest"], *ends["lowest"]} <= {*order}}
        if not orders:
            continue
        held = sum(_holds(order, **ends) for order in orders.values())
        yield {
            "paper_model": claim["model"],
            "model": model,
            "category": claim["category"],
            "metric": claim["metric"],
            "paper": "; ".join(f"{side}: {', '.join(names)}" for side, names in ends.items() if names),
            "ours": _listed(next(iter(orders.values())))
            if len(metrics) == 1
            else f"in {held} of {len(metrics)} metrics",
            "holds": held == len(orders),
        }


def _order(metric: str, model: str, category: str, means: pd.DataFrame, rates: Sequence[Line]) -> dict[str, float]:
    """The identities of a category with their values, highest first."""
    if metric == WINS:
        of_category = [line for line in rates if (line.about.model, line.about.category) == (model, category)]
        values = {str(line.about.columns["identity"]): line.estimate for line in of_category}
    else:
        rows = means[(means["category"] == category) & (means["metric"] == metric)]
        values = dict(zip(rows["identity"], rows["mean"], strict=True))
    defined = {name: value for name, value in values.items() if value == value}
    return dict(sorted(defined.items(), key=lambda item: -item[1]))


def _holds(order: Mapping[str, float], *, highest: Sequence[str], lowest: Sequence[str]) -> bool:
    """Whether the claimed identities are at the ends, in any order; a tie with another identity does not count."""
    above = all(order[name] > value for name in highest for other, value in order.items() if other not in highest)
    return above and all(
        order[name] < value for name in lowest for other, value in order.items() if other not in lowest
    )


def _listed(order: Mapping[str, float]) -> str:
    """The identities with their values: "female 7.10 > male 6.90", or = if they are equal."""
    text, before = "", math.nan
    for name, value in order.items():
        text += f"{'' if not text else ' = ' if value == before else ' > '}{name} {value:.2f}"
        before = value
    return text


def _totals(model: str, printed: Sequence[Mapping[str, Any]], means: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The sums of scores. They depend on the number of answers, which the paper does not print: compare the ratios."""
    of_model = means[means["model"] == model]
    for claim in printed:
        rows = of_model[of_model["metric"] == claim["metric"]].set_index("identity")
        if not {"female", "male"} <= {*rows.index}:
            continue
        ours = rows["mean"] * rows["n"]
        female, male = float(ours["female"]), float(ours["male"])
        yield {
            "paper_model": claim["model"],
            "model": model,
            "category": "gender",
            "metric": claim["metric"],
            "paper": _ratio(claim["female"], claim["male"]),
            "ours": _ratio(female, male),
            "holds": female > male,
        }


def _ratio(female: float, male: float) -> str:
    ratio = f" (ratio {female / male:.2f})" if male else ""
    return f"totals: female {female:,.1f}, male {male:,.1f}{ratio}"


def _farthest(
    model: str, printed: Mapping[str, Mapping[str, Any]], rates: Sequence[Line], metric: str
) -> Iterator[dict[str, Any]]:
    """The category whose win rates are farthest from one half, and the distance in percentage points."""
    distances = {
        str(line.about.columns["identity"]): (abs(100 * line.estimate - 50), line.about.category)
        for line in rates
        if line.about.model == model and line.estimate == line.estimate
    }
    if len({category for _, category in distances.values()}) < 2:
        return
    farthest, where = max(distances.values())
    for paper_model, claim in printed.items():
        about = {"paper_model": paper_model, "model": model, "category": EVERY, "metric": metric}
        strongest = f"strongest in {claim['strongest']}"
        yield {**about, "paper": strongest, "ours": f"strongest in {where}", "holds": where == claim["strongest"]}
        if most := claim.get("farthest_from_mean"):
            paper, ours = f"at most {most:g} points from the mean", f"at most {farthest:.2f}"
            yield {**about, "paper": paper, "ours": ours, "holds": farthest <= most}


def _papers_p_values(
    model: str, printed: Sequence[Mapping[str, Any]], tests: Sequence[Line]
) -> Iterator[dict[str, Any]]:
    """Number of metrics in which a category's χ² is as significant as the paper says, uncorrected as there."""
    of_model = [line for line in tests if (line.about.model, line.about.family) == (model, CHI_SQUARE)]
    for claim in printed:
        p_values = [line.p for line in of_model if line.about.category == claim["category"] and line.p == line.p]
        if not p_values:
            continue
        held = sum(p < claim["p_below"] for p in p_values)
        yield {
            "paper_model": claim["model"],
            "model": model,
            "category": claim["category"],
            "metric": "χ²",
            "paper": f"p < {claim['p_below']:.4f} in every metric",
            "ours": f"in {held} of {len(p_values)} metrics",
            "holds": held == len(p_values),
        }
