"""Toxicity scorers compared: how much the identity in a sentence changes each score, how well they agree, a figure.

An audit has one row per scorer and text: `scorer`, `sentence`, `hostile`, `category`, `identity`, `score` (NaN
if the text could not be scored). Unscored texts are left out everywhere, and counted.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from parley.analysis.reporting.figures import LINE, PALETTE, caption, colours, plain_text, sheet, tidy
from parley.analysis.stats.agreement import weighted_kappa
from parley.analysis.stats.tables import Floats


def by_sentence(audit: pd.DataFrame) -> pd.DataFrame:
    """For every scorer and sentence: the identities with the lowest and the highest score, and the range."""
    rows = []
    for (scorer, sentence), part in audit.groupby(["scorer", "sentence"], sort=False):
        known = part.dropna(subset="score")
        row = {"scorer": scorer, "sentence": sentence, "hostile": bool(part["hostile"].iloc[0]), "n": len(known)}
        for end, name, place in (("low", "lowest", "idxmin"), ("high", "highest", "idxmax")):
            found = known.loc[getattr(known["score"], place)()] if len(known) else {"score": math.nan, "identity": ""}
            row |= {end: found["score"], name: found["identity"]}
        row |= {"range": row["high"] - row["low"] if len(known) > 1 else math.nan, "unscored": len(part) - len(known)}
        rows.append(row)
    return pd.DataFrame(rows)


def gaps(audit: pd.DataFrame) -> pd.DataFrame:
    """Every pair of identities within a category, for every scorer: the mean absolute difference over sentences."""
    rows = []
    for (scorer, category), part in audit.groupby(["scorer", "category"], sort=False):
        table = part.pivot_table("score", "sentence", "identity", sort=False)
        for first, second in combinations(table.columns, 2):
            gap = (table[first] - table[second]).dropna()
            higher, lower = (first, second) if gap.mean() >= 0 else (second, first)
            rows.append((scorer, category, higher, lower, gap.abs().mean(), gap.abs().max(), len(gap)))
    return pd.DataFrame(rows, columns=["scorer", "category", "higher", "lower", "gap", "largest", "sentences"])


def by_category(audit: pd.DataFrame) -> pd.DataFrame:
    """The mean absolute gap over all pairs of each category, one column per scorer; the last row is over all pairs."""
    pairs = gaps(audit)
    table = pairs.pivot_table("gap", "category", "scorer", sort=False)
    table.loc["all pairs within"] = pairs.groupby("scorer")["gap"].mean()
    return table


def by_kind(controls: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Control texts by kind: mean, lowest and highest score, and how many are on the right side of the threshold."""
    rows = []
    for (scorer, kind), part in controls.groupby(["scorer", "kind"], sort=False):
        known = part.dropna(subset="score")
        right = ((known["score"] >= threshold) == known["toxic"].astype(bool)).sum()
        toxic, unscored = bool(part["toxic"].iloc[0]), len(part) - len(known)
        scores = known["score"]
        rows.append((scorer, kind, toxic, len(known), scores.mean(), scores.min(), scores.max(), int(right), unscored))
    return pd.DataFrame(rows, columns=["scorer", "kind", "toxic", "n", "mean", "low", "high", "right", "unscored"])


def agreement(scores: pd.DataFrame, threshold: float, seed: int = 0) -> pd.DataFrame:
    """Every two scorers on the texts that both scored.

    `auc` is how well the first one's scores separate what the second calls toxic.

    Args:
        scores: One column per scorer, one row per text.
        threshold: Scores at or above it count as toxic.
        seed: Seed of kappa's bootstrap.
    """
    rows = []
    for first, second in combinations(scores.columns, 2):
        both = scores[[first, second]].dropna().to_numpy(dtype=float)
        sides = both >= threshold
        kappa = weighted_kappa(
            list(sides[:, 0]), list(sides[:, 1]), weights="none", categories=[False, True], seed=seed
        )
        varied = len(both) > 1 and bool((np.ptp(both, axis=0) > 0).all())
        rows.append(
            {
                "first": first,
                "second": second,
                "n": len(both),
                "pearson": float(stats.pearsonr(*both.T).statistic) if varied else math.nan,
                "spearman": float(stats.spearmanr(*both.T).statistic) if varied else math.nan,
                "same_side": float((sides[:, 0] == sides[:, 1]).mean()) if len(both) else math.nan,
                "kappa": kappa.estimate,
                "kappa_low": kappa.low,
                "kappa_high": kappa.high,
                "auc": auc(both[:, 0], list(sides[:, 1])),
            }
        )
    return pd.DataFrame(rows)


def auc(scores: Floats, toxic: Sequence[bool]) -> float:
    """The probability that a toxic text scores higher than another, ties counted half; NaN if one kind is missing."""
    is_toxic = np.asarray(toxic, dtype=bool)
    positives, negatives = int(is_toxic.sum()), int((~is_toxic).sum())
    if not positives or not negatives:
        return math.nan
    ranks = stats.rankdata(scores)
    return float((ranks[is_toxic].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def audit_figure(audit: pd.DataFrame, sentences: Mapping[str, str], title: str, note: str) -> Figure:
    """The scores of every sentence by identity, coloured by category.

    Args:
        audit: One row per scorer and text; see `scorers`.
        sentences: The text of each sentence, by its name.
        title: Title of the figure.
        note: Small print below it.
    """
    scorers = list(dict.fromkeys(audit["scorer"]))
    names = list(dict.fromkeys(audit["sentence"]))
    tints = colours(list(dict.fromkeys(audit["category"])))
    figure, axes = sheet(3.4 + 2.6 * len(scorers), 1.6 + 1.5 * LINE * len(names), len(scorers), sharey=True)
    for axis, scorer in zip(axes[0], scorers, strict=True):
        for nth, (category, part) in enumerate(audit[audit["scorer"] == scorer].groupby("category", sort=False)):
            lines = [names.index(name) + 0.06 * (nth - 3) for name in part["sentence"]]
            marker = "o" if nth < len(PALETTE) else "D"
            axis.plot(part["score"], lines, marker, color=tints[str(category)], markersize=3, alpha=0.8, label=category)
        axis.set_title(plain_text(scorer), fontsize=9)
        axis.set_xlim(-0.03, 1.03)
        tidy(axis)
    labels = ["\n".join(textwrap.wrap(plain_text(sentences[name]), 30)) for name in names]
    axes[0][0].set_yticks(range(len(names)), labels, fontsize=7)
    axes[0][0].set_ylim(len(names) - 0.4, -0.6)
    handles, categories = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, categories, loc="outside right upper", fontsize=7, frameon=False)
    caption(figure, title, note)
    return figure
