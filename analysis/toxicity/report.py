"""The report of a toxicity run: every scorer's scores, how well scorers agree, and what identities change in them."""

from __future__ import annotations

import pandas as pd

from parley.analysis.reporting.report import NO_CONTEXT, Figure, Report, ReportContext, Section, Table, assemble
from parley.analysis.reporting.verdicts import require, uncategorised
from parley.analysis.toxicity.scorers import agreement, audit_figure, by_category, by_kind, by_sentence, gaps
from parley.base.text import plural

TITLE = "Toxicity"
REASONS = 3
"""Number of reasons given for texts without a score, the most frequent ones."""
FURTHEST = 4
"""Number of pairs of identities listed for each scorer, those furthest apart."""


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What else the report is given.
    """
    require(verdicts, texts=("item",))
    config = context.runs[0]["config"] if context.runs else {}
    threshold = float(config.get("threshold", 0.5))
    frame = uncategorised(verdicts)
    scores = frame[frame["metric"] == "toxicity"].rename(columns={"judge": "scorer", "value": "score"})
    sections = [
        _scorers(scores, threshold),
        _agreement(scores, threshold, config.get("label") or "label", context.seed),
    ]
    if "sentence" in scores:
        raw = frame[frame["metric"] == "raw"].rename(columns={"judge": "scorer", "value": "score"})
        both = pd.concat([raw.assign(scorer=raw["scorer"] + ", raw"), scores], ignore_index=True)
        sections += [_identities(both[both["sentence"] != ""], context), _controls(both[both["kind"] != ""], threshold)]
    return assemble(sections, context, TITLE, threshold=threshold)


def _scorers(scores: pd.DataFrame, threshold: float) -> Section:
    """How toxic are the texts, by each scorer?"""
    rows, words = [], []
    for scorer, part in scores.groupby("scorer", sort=False):
        known = part["score"].dropna()
        toxic, unscored = int((known >= threshold).sum()), len(part) - len(known)
        rows.append((scorer, len(known), unscored, toxic, known.mean(), known.max()))
        why = part.loc[part["score"].isna(), "text"].value_counts().head(REASONS)
        reasons = ", ".join(f"{count} because {reason}" for reason, count in why.items())
        lost = f"; {plural(unscored, 'text')} could not be scored ({reasons})" if unscored else ""
        words.append(f"{scorer}: {toxic:,} of {plural(len(known), 'text')} score {threshold:g} or more{lost}.")
    columns = ["scorer", "scored", "unscored", "toxic", "mean", "highest"]
    note = f"toxic: {threshold:g} or more. A text without a score is counted, never taken for harmless."
    return Section(
        tables=[Table("scorers", "Scorers", pd.DataFrame(rows, columns=columns), note=note, printed=True)], words=words
    )


def _agreement(scores: pd.DataFrame, threshold: float, label: str, seed: int) -> Section:
    """How well do scorers agree with each other, and with the file's own labels?"""
    wide = scores.pivot_table("score", "unit", "scorer", sort=False, dropna=False)
    if "label" in scores:
        given = scores.drop_duplicates("unit").set_index("unit")["label"]
        wide[label] = pd.to_numeric(given, errors="coerce").reindex(wide.index)
    if wide.shape[1] < 2:
        return Section()
    note = "On the texts that both scored. auc: how well the first separates what the second calls toxic."
    return Section(
        tables=[Table("agreement", "Agreement", agreement(wide, threshold, seed=seed), note=note, printed=True)]
    )


def _identities(probes: pd.DataFrame, context: ReportContext) -> Section:
    """How much does the identity that a sentence names change its score?"""
    pairs, sentences = gaps(probes), by_sentence(probes)
    ends = {"low": "lowest_score", "high": "highest_score"}
    furthest = pairs.sort_values("gap", ascending=False, kind="stable").groupby("scorer", sort=False).head(FURTHEST)
    words = [
        f"{scorer}: the same sentence about two identities of one category differs by {part['gap'].mean():.2f} on "
        f"average; furthest apart are {first.higher} and {first.lower} ({first.gap:.2f})."
        for scorer, part in pairs.groupby("scorer", sort=False)
        if part["gap"].notna().any()
        for first in [part.loc[part["gap"].idxmax()]]
    ]
    note = f"Each dot is an identity. {context.small_print}"
    known = {str(name): str(name) for name in probes["sentence"].unique()}
    title = "Toxicity of the same sentence about different people"
    return Section(
        tables=[
            Table("gaps", "Pairs furthest apart, mean over the sentences", furthest, printed=True),
            Table(
                "categories",
                "Mean absolute gap between two identities",
                by_category(probes).reset_index(),
                printed=True,
            ),
            Table("sentences", "Lowest and highest score of each sentence", sentences.rename(columns=ends)),
            Table("pairs", "All pairs of identities", pairs),
        ],
        figures=[Figure("identities", f"{title}. {note}", "pairs", lambda: audit_figure(probes, known, title, note))],
        words=words,
    )


def _controls(controls: pd.DataFrame, threshold: float) -> Section:
    """Are texts that are clearly toxic or harmless on the right side of the threshold?"""
    kinds = by_kind(controls, threshold).rename(columns={"low": "lowest", "high": "highest"})
    note = f"right: number of texts on the right side of {threshold:g}."
    return Section(tables=[Table("controls", "Control texts", kinds, note=note, printed=True)])
