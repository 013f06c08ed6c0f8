"""Determines the independent clusters of a run (bases, wordings, or sets of them), and what its results generalise to.

Where every base has wordings of its own, a base is a cluster, and a test over bases covers them too. Where bases use
the same wording, of a label or of the question, their differences share its effect, so a cluster is everything
connected: bases that share a wording, wordings that share a base. With eight label wordings for 20 bases, a test over
bases raises 19% false alarms. Where everything is connected, nothing is independent, and there is no interval.

A few question wordings are no sample of all: results are then about these, and say so. Every category has label
wordings of its own, so clusters are those of a category.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from parley.analysis.stats.tables import factorize
from parley.base.text import plural

BASE, WORDING, QUESTION, SET = "base", "wording", "question", "set of bases and wordings"
"""Kinds of clusters."""
QUESTIONS = 10
"""Minimum number of question wordings to count as a sample; fewer are treated as fixed."""
COLUMNS = ("situation", "cluster", "clustering")


def with_clusters(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The frame with `situation` (base, or scenario without one), `cluster`, and `clustering` (what clusters are).

    Args:
        verdicts: One row per verdict. A column `cluster` of its own is kept.
    """
    if set(COLUMNS) <= set(verdicts):
        return verdicts
    if "cluster" in verdicts:
        return verdicts.assign(situation=verdicts["cluster"], clustering=BASE)
    bases = _bases(verdicts)
    verdicts = verdicts.assign(situation=bases, cluster=bases, clustering=BASE)
    labelled = _labelled(verdicts)
    if not labelled.any():
        return verdicts
    cluster, clustering = (verdicts[name].to_numpy(dtype=object, copy=True) for name in COLUMNS[1:])
    places = np.flatnonzero(labelled)
    for rows in verdicts[labelled].groupby(["model", "category"], observed=True, sort=False).indices.values():
        here = places[rows]
        cluster[here], clustering[here] = _of_category(verdicts.iloc[here])
    return verdicts.assign(cluster=cluster, clustering=clustering)


def _bases(verdicts: pd.DataFrame) -> pd.Series:
    """The base of each scenario; the scenario itself where it has none."""
    if "base" not in verdicts:
        return verdicts["scenario"]
    has_base = verdicts["base"].notna() & (verdicts["base"] != "")
    if has_base.all():
        return verdicts["base"]
    return verdicts["base"].astype(object).where(has_base, verdicts["scenario"].astype(object))


def _labelled(verdicts: pd.DataFrame) -> pd.Series:
    if "wording" not in verdicts:
        return pd.Series(False, verdicts.index)
    return verdicts["wording"].notna() & (verdicts["wording"] != "")


def has_wordings(verdicts: pd.DataFrame) -> bool:
    """Whether labels have wordings, which bases may differ in."""
    return bool(_labelled(verdicts).any())


def _of_category(part: pd.DataFrame) -> tuple[pd.Series, str]:
    """The cluster of each row of a category, and what clusters are."""
    (base, bases), (wording, wordings) = (factorize(part[name].astype(str)) for name in ("situation", "wording"))
    (question, questions) = factorize(part["question"].astype(str)) if "question" in part else (base, bases)
    if len(questions) < QUESTIONS:
        question, questions = base, bases
    worded, question_node = len(bases) + wording, len(bases) + len(wordings) + question
    links = {pair for codes in (worded, question_node) for pair in zip(base.tolist(), codes.tolist(), strict=True)}
    member = _connected(len(bases) + len(wordings) + len(questions), links)
    sets = len(set(member))
    kinds = {BASE: ("situation", bases), WORDING: ("wording", wordings), QUESTION: ("question", questions)}
    for kind, (column, names) in kinds.items():
        if sets == len(names):
            return part[column].astype(object), kind
    first_base = {int(code): bases[place] for place, code in reversed(list(enumerate(member[: len(bases)])))}
    return pd.Series([f"set of {first_base[code]}" for code in (member[place] for place in base)], dtype=object), SET


def _connected(count: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """The connected component of each number (scipy's function takes longer to load than this to run)."""
    parent = list(range(count))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]  # in a chain, the left side would be read with the new number
            number = parent[number]
        return number

    for first, second in links:
        parent[root(first)] = root(second)
    return [root(number) for number in range(count)]


def cluster_noun(verdicts: pd.DataFrame) -> str:
    """The noun for a cluster: "base", "scenario" if scenarios have no base, or the wording that repeats.

    Args:
        verdicts: One row per verdict, with the columns of `with_clusters`.
    """
    if "base" not in verdicts or not (verdicts["base"].astype(str) != "").any():
        return "scenario"
    kinds = set(verdicts["clustering"][_labelled(verdicts)].unique()) or {BASE}
    if kinds == {QUESTION}:
        return "question wording"
    if kinds == {WORDING}:
        return "label wording"
    return "base" if kinds == {BASE} else "cluster"


def generalises_to(verdicts: pd.DataFrame) -> Iterator[str]:
    """What the results of a run with label wordings generalise to, in one sentence for each way of clustering.

    Args:
        verdicts: One row per verdict, with the columns of `with_clusters`.
    """
    columns = verdicts.columns.intersection(["clustering", "category", "situation", "wording", "question"])
    labelled = verdicts.loc[_labelled(verdicts), columns]
    for kind, part in labelled.groupby("clustering", observed=True, sort=False):
        categories = ", ".join(dict.fromkeys(part["category"].astype(str)))
        bases, wordings = plural(part["situation"].nunique(), "base"), part["wording"].nunique()
        where = "" if labelled["clustering"].nunique() == 1 else f" ({categories})"
        to = f"These results{where} generalise to other bases and label wordings of this kind"
        worded = plural(wordings, "label wording")
        questions = part["question"].nunique() if "question" in part else part["situation"].nunique()
        phrased = plural(questions, "question wording")
        if questions < min(QUESTIONS, part["situation"].nunique()):
            to += f", asked in {'this one' if questions == 1 else f'these {questions}'} way{'s' * (questions > 1)}"
        yield {
            BASE: f"{to}: each of the {bases} has a label wording of its own, so that the test over bases covers both.",
            WORDING: f"{to}. The sample is {worded}; {bases} share them, so the test is over wordings and not over "
            "bases.",
            QUESTION: f"{to} and to other ways to ask. The sample is {phrased}; {bases} share them, so the test is "
            "over question wordings and not over bases.",
            SET: f"{to}: {bases} share {worded}, so that the test is over sets of bases and wordings that have "
            "nothing in common.",
        }[str(kind)]
