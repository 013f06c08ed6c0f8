"""What the paper says about who ranks where (sections 4.1, 4.2 and A.3), beside a run of its design.

Figure 4's differences are in `scores.PRINTED`; figures 5, 6 and 9 print no numbers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from parley.analysis.malibu.ballots import values_in_order
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.scores import as_the_paper, mean_scores
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.results import Line

WINS, EVERY = "win rate", "all"
NOTE = (
    "Theirs: their own situations and responses, and no test of a rank. Ours: this run. holds: whether the same "
    "identities are at the ends. Without any effect one of four identities is highest in a quarter of cases, one of "
    "two in half: read a rank only with its difference and interval."
)


def published_section(data: PanelData, rates: Sequence[Line]) -> Section:
    """The paper's claims beside ours; nothing for runs of another design.

    Args:
        data: The verdicts.
        rates: The win rates, from `win_rate_lines`.
    """
    printed = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))
    if as_the_paper(data, {claim["metric"] for claim in printed["totals"]}):
        rows = [row for model in data.models for row in _totals(model, printed["totals"], mean_scores(data))]
    elif as_the_paper(data):
        means = mean_scores(data)
        rows = [row for model in data.models for row in _claims(data, model, printed["claim"], means, rates)]
        rows += [row for model in data.models for row in _farthest(model, printed["win_rates"], rates)]
    else:
        return Section()
    return Section(tables=[Table("published", "What the paper says, next to ours", pd.DataFrame(rows), note=NOTE)])


def _claims(
    data: PanelData, model: str, claims: Sequence[Mapping[str, Any]], means: pd.DataFrame, rates: Sequence[Line]
) -> Iterator[dict[str, Any]]:
    """One row a claim about identities that the run has."""
    own = means[means["model"] == model]
    for claim in claims:
        metrics = values_in_order(data.final_scores, "metric") if claim["metric"] == EVERY else [claim["metric"]]
        ends = {side: claim.get(side, []) for side in ("highest", "lowest")}
        orders = {metric: _order(metric, model, claim["category"], own, rates) for metric in metrics}
        orders = {metric: order for metric, order in orders.items() if {*ends["highest"], *ends["lowest"]} <= {*order}}
        if not orders:
            continue
        held = sum(_holds(list(order), **ends) for order in orders.values())
        listed = " > ".join(f"{name} {value:.2f}" for name, value in next(iter(orders.values())).items())
        yield {
            "paper_model": claim["model"],
            "model": model,
            "category": claim["category"],
            "metric": claim["metric"],
            "paper": "; ".join(f"{side}: {', '.join(names)}" for side, names in ends.items() if names),
            "ours": listed if len(metrics) == 1 else f"in {held} of {len(metrics)} metrics",
            "holds": held == len(orders),
        }


def _order(metric: str, model: str, category: str, means: pd.DataFrame, rates: Sequence[Line]) -> dict[str, float]:
    """The identities of a category with their values, highest first."""
    if metric == WINS:
        own = [line for line in rates if (line.about["model"], line.about["category"]) == (model, category)]
        values = {str(line.about["identity"]): line.estimate for line in own}
    else:
        rows = means[(means["category"] == category) & (means["metric"] == metric)]
        values = dict(zip(rows["identity"], rows["mean"], strict=True))
    known = {name: value for name, value in values.items() if value == value}
    return dict(sorted(known.items(), key=lambda item: -item[1]))


def _holds(ranked: Sequence[str], *, highest: Sequence[str], lowest: Sequence[str]) -> bool:
    """Whether the claimed identities are at the ends, in any order among themselves."""
    top, bottom = set(ranked[: len(highest)]), set(ranked[len(ranked) - len(lowest) :])
    return top == set(highest) and bottom == set(lowest)


def _totals(model: str, printed: Sequence[Mapping[str, Any]], means: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The sums of scores. They depend on the number of answers, which the paper does not print: compare the ratios."""
    own = means[means["model"] == model]
    for claim in printed:
        rows = own[own["metric"] == claim["metric"]].set_index("identity")
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


def _farthest(model: str, printed: Mapping[str, Mapping[str, Any]], rates: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """In which category win rates are farthest from one half, and how far, in points of 100."""
    own = {
        str(line.about["identity"]): (abs(100 * line.estimate - 50), str(line.about["category"]))
        for line in rates
        if line.about["model"] == model and line.estimate == line.estimate
    }
    if len({category for _, category in own.values()}) < 2:
        return
    farthest, where = max(own.values())
    for paper_model, claim in printed.items():
        about = {"paper_model": paper_model, "model": model, "category": EVERY, "metric": WINS}
        strongest = f"strongest in {claim['strongest']}"
        yield {**about, "paper": strongest, "ours": f"strongest in {where}", "holds": where == claim["strongest"]}
        if most := claim.get("farthest_from_mean"):
            paper, ours = f"at most {most:g} points from the mean", f"at most {farthest:.2f}"
            yield {**about, "paper": paper, "ours": ours, "holds": farthest <= most}
