"""People's labels as a probability sample: which texts were rated, what the raters said, and with which probability.

    texts = rated_texts(parley.frames.labels(run), parley.frames.drawn(run), "Accuracy")

One text counts once, however many units show it under different labels. Only labels of a random draw are used: a
sorted queue shows raters what somebody wanted to see first, and says nothing about the other texts.
"""

from __future__ import annotations

import pandas as pd


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
