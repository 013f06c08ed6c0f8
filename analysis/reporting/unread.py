"""How many replies could not be read: a line of every run, named "unread", that it can be held to.

parley check runs/a.sqlite --require "unread < 0.02"
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.questions import Question, answer, section
from parley.analysis.reporting.verdicts import STATUSES, UNREADABLE, cluster_of
from parley.analysis.stats.results import Line

UNREAD = Question(
    name="unread",
    ask="How many replies could not be read?",
    measures={"unread": "share of replies"},
    cluster="cluster",
    scale="share",
    worse="higher",
    note="Replies that could not be read are left out of every mean; they never count as 0.",
)


def unread(verdicts: pd.DataFrame) -> Forest:
    """The share of a run's replies that could not be read, for every study. A reply with four scores counts as four.

    Args:
        verdicts: One row per verdict.
    """
    clusters = cluster_of(verdicts)
    names = {"model": verdicts["model"].astype(str), "status": verdicts["status"].astype(str)}
    lines = unread_lines(pd.DataFrame({**names, str(clusters.name): clusters}), cluster=str(clusters.name))
    (forest,) = section(UNREAD, lines).forests
    return forest


def unread_lines(replies: pd.DataFrame, **asked: Any) -> list[Line]:
    """The share of replies that could not be read, with the number of replies by status.

    It is a count of these replies, with no error: a run that lost none of a thousand has lost less than 2%.

    Args:
        replies: One row per reply: its status, what is asked by, and 1 in `unread` where it is, if its status does not
            say so. `on_scale` is averaged where it is there.
        asked: What to ask otherwise than `UNREAD`.
    """

    def level(values: pd.Series, clusters: pd.Series) -> Line:
        own, lost = replies.loc[values.index], float(values.mean())
        counts = own["status"].value_counts()
        also: dict[str, float] = {status: int(counts.get(status, 0)) for status in STATUSES if status != "unscored"}
        if "on_scale" in own:
            also["on_scale"] = float(own["on_scale"].mean())
        n, method = len(values), "none, all replies are counted"
        line = Line(estimate=lost, low=lost, high=lost, n=n, clusters=clusters.nunique(), method=method, also=also)
        return replace(line, standard_error=0.0)

    replies = replies.reset_index(drop=True)  # frames that a user puts together repeat their index
    frame = replies if "unread" in replies else replies.assign(unread=replies["status"].isin(UNREADABLE).astype(float))
    lines = answer(replace(UNREAD, level=level, **asked), frame) if len(frame) else []
    return [line if line.secondary else replace(line, name=UNREAD.name) for line in lines]
