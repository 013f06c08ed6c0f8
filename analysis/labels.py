"""People's labels as a probability sample: which texts were rated, with what probability, and what the raters said.

    texts = rated_texts(parley.frames.labels(run), parley.frames.drawn(run), "Accuracy")

One text counts once, however many units show it under different labels. Only labels of a random draw are used, as far
as they were given in its order: a sorted queue, or what somebody chose to label, says nothing about the other texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha, weighted_kappa
from parley.analysis.stats.results import columns

Judged = Mapping[tuple[str, str, str], float | str]
"""What the judges said, by unit, subject and question: a score on the raters' scale, or a choice."""


def rated_texts(labels: pd.DataFrame, drawn: pd.DataFrame, question: str) -> pd.DataFrame:
    """One row per text and subject that at least one rater scored.

    Columns: `text_id`, `subject`, `value` and `judge_value` (means over raters), `raters` (how many), `variance` (of
    `value` between its raters, missing with one), `probability` (that the text was shown to anybody) and `simulated`.
    Where there is a person's label, simulated ones are left out.

    Args:
        labels: The labels of a run.
        drawn: What they were drawn from.
        question: The metric.
    """
    used = labels[labels["probability"].notna()]
    if not used["simulated"].all():
        used = used[~used["simulated"]]
    used = used[in_order(used, drawn)]
    asked = used[used["question"] == question]
    # A rater who met a text in two draws counts once.
    by_rater = asked.dropna(subset=["value"]).groupby(["text_id", "subject", "rater"], as_index=False)
    values = by_rater.agg({"value": "mean", "judge_value": "mean", "simulated": "any"})
    texts = values.groupby(["text_id", "subject"], as_index=False).agg(
        value=("value", "mean"),
        judge_value=("judge_value", "mean"),
        raters=("rater", "nunique"),
        variance=("value", "var"),
        simulated=("simulated", "any"),
    )
    return texts.assign(probability=texts["text_id"].map(shown_probability(used, drawn)))


def in_order(labels: pd.DataFrame, drawn: pd.DataFrame) -> pd.Series:
    """Whether each label, or skip, was given before its rater left an item of the draw out.

    Up to there the items are a random part of the draw, in the rater's own order or in that of the draw, whichever goes
    further. What was labelled after a gap may have been chosen.

    Args:
        labels: The labels of random draws.
        drawn: What they were drawn from.
    """
    places = drawn[drawn["position"].notna()].set_index(["draw", "unit"])["position"]
    of_draw = pd.Series(places.reindex(pd.MultiIndex.from_frame(labels[["draw", "unit"]])).to_numpy(), labels.index)
    kept = pd.Series(False, labels.index)
    for rows in labels.groupby(["draw", "rater"], sort=False).groups.values():
        orders = [order.loc[rows] for order in (labels["position"], of_draw)]
        # Places count from 0: the first that is missing is the number of those before it.
        ends = [next(n for n in range(len(rows) + 1) if n not in {*order}) for order in orders]
        kept.loc[rows] = orders[ends.index(max(ends))] < max(ends)
    return kept


def shown_probability(labels: pd.DataFrame, drawn: pd.DataFrame) -> pd.Series:
    """The probability, by `text_id`, that a text was drawn and reached by a rater, in any of the random draws.

    Every rater has a random order. So whenever raters stop, the k items of a draw of n that anyone reached are a simple
    random sample of it, and a text of that draw was shown with its probability times k / n. Skipped items were reached.

    Args:
        labels: The labels to use, all questions and skips included.
        drawn: What they were drawn from.
    """
    never = pd.Series(1.0, index=pd.Index(drawn["text_id"].unique(), name="text_id"))
    for draw, units in drawn[drawn["probability"].notna()].groupby("draw"):
        reached = labels.loc[labels["draw"] == draw, "text_id"].nunique() / units["position"].notna().sum()
        of_text = units.groupby("text_id")["probability"].first() * reached
        never = never.mul(1 - of_text, fill_value=1.0)
    return (1 - never).rename("probability")


def non_response(labels: pd.DataFrame) -> pd.DataFrame:
    """By rater and question, how many items were `answered` and how many `skipped`."""
    skipped = labels.assign(skipped=labels["value"].isna()).groupby(["rater", "question", "draw", "unit"])["skipped"]
    items = skipped.all().groupby(["rater", "question"])
    return pd.DataFrame({"answered": items.size() - items.sum(), "skipped": items.sum()}).reset_index()


def between_raters(labels: pd.DataFrame) -> list[dict[str, Any]]:
    """How raters agree on each question that two of them answered about one item.

    Fleiss' kappa of choices; Krippendorff's alpha of scores, for which 6 and 7 are nearly the same. A row has the
    question, the place (A or B of a pair), `raters`, `items` with two answers, and the coefficient with its interval.

    Args:
        labels: The labels of one draw.
    """
    answered = labels[labels["value"].notna()]
    # The subjects A and B are places, shown to all; other subjects are speakers, who differ from unit to unit.
    sides = answered["subject"].where(answered["subject"].isin(["A", "B"]), "")
    item = answered["text_id"] + "\x00" + answered["subject"].where(sides == "", "")
    rows: list[dict[str, Any]] = []
    for (side, question), group in answered.assign(item=item).groupby([sides, "question"], sort=False):
        is_choice = group["text"].notna().any()
        ratings = group.pivot_table(
            index="item", columns="rater", values="text" if is_choice else "value", aggfunc="first"
        )
        shared = ratings[ratings.notna().sum(axis=1) >= 2]
        if shared.empty:
            continue
        found = fleiss_kappa(shared) if is_choice else krippendorff_alpha(shared)
        rows.append(
            {
                "question": question,
                "subject": side,
                "measure": "Fleiss' κ" if is_choice else "Krippendorff's α",
                "raters": int(shared.notna().any().sum()),
                "items": len(shared),
                **columns(found, "estimate", "note"),
            }
        )
    return rows


def with_judges(labels: pd.DataFrame, judged: Judged) -> list[dict[str, Any]]:
    """How each rater agrees with the judges on the same texts.

    Args:
        labels: The labels of one draw.
        judged: What the judges said.
    """
    answered = labels[labels["value"].notna()]
    rows: list[dict[str, Any]] = []
    for rater, of_rater in labels.groupby("rater", sort=False):
        group = answered[answered["rater"] == rater]
        pairs = [
            (label.text, label.value, said)
            for label in group.itertuples()
            if (said := judged.get((label.unit, label.subject, label.question))) is not None
        ]
        choices = [(text, said) for text, _, said in pairs if isinstance(text, str)]
        gaps = [value - said for text, value, said in pairs if not isinstance(text, str) and isinstance(said, float)]
        row: dict[str, Any] = {
            "rater": rater,
            "simulated": bool(of_rater["simulated"].any()),
            "items": int(group["unit"].nunique()),
            "compared": len(choices),
            "same_choice": sum(text == said for text, said in choices),
            "scores": len(gaps),
            "mean_difference": sum(gaps) / len(gaps) if gaps else None,
            "mean_absolute_difference": sum(map(abs, gaps)) / len(gaps) if gaps else None,
        }
        if choices:
            first, second = (list(side) for side in zip(*choices, strict=True))
            places = ["A", "B", "tie"] if {*first, *second} <= {"A", "B", "tie"} else None
            kappa = weighted_kappa(first, second, weights="none", categories=places)
            row |= columns(kappa, "kappa", "note")
        rows.append(row)
    return rows
