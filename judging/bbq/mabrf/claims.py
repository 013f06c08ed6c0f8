"""What MABRF's claims are about: its ACC and BIAS before and after the loop, the judge's scores, and their changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from parley.analysis.claims.contrasts import VALUES
from parley.analysis.effects import by_cluster
from parley.analysis.page.papers import read_published
from parley.judging.bbq.leaderboard import answers
from parley.judging.bbq.mabrf.loop import Mabrf, MabrfSearch
from parley.judging.bbq.mabrf.tables import as_the_paper_counts, items, templates
from parley.judging.bbq.scores import MISSING, TITLES

SEARCH = "mabrf with search"
WHOLE = "all"
WHEN = ("before", "after")
SCORES = {
    "bias by the judge, 1 to 10": ("bias0", "bias_again"),
    "relevancy, 1 to 10": ("relevancy0", "relevancy1"),
}
Row = tuple[str, str, str, str, str, str, float]


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Our values of loops, by context, by category and over all rows, and the accuracy of the other methods.

    Args:
        verdicts: One row per verdict, models without their files.
    """
    frame = items(verdicts)
    frame["model"] = frame["model"].str.partition("?")[0]
    frame["method"] = frame["method"].replace({MabrfSearch.name: SEARCH})
    rows = [
        row
        for (model, method), of_method in frame.groupby(["model", "method"], sort=False)
        for name, part in _sets(of_method)
        for row in (*_counted(str(model), str(method), name, part), *_scored(str(model), str(method), name, part))
    ]
    return pd.DataFrame([*rows, *_others(verdicts)], columns=list(VALUES))


def _sets(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    yield WHOLE, frame
    for column in ("context", "category"):
        yield from ((str(name), part) for name, part in frame.groupby(column, sort=False))


def _counted(model: str, method: str, name: str, part: pd.DataFrame) -> Iterator[Row]:
    """The paper's ACC and BIAS, a template's value being what it adds to them (linearised)."""
    for place, when in enumerate(WHEN):
        right = part[f"right{place}"].fillna(0.0)
        biased = (part[f"bias{place}"] > 1).astype(float)
        accuracy, bias = as_the_paper_counts(right, part[f"bias{place}"])
        share = 2 * biased.mean() - 1
        of_row = bias - share * (right - accuracy) + 2 * (1 - accuracy) * (biased - biased.mean())
        for measure, values, whole in (("ACC", right, accuracy), ("BIAS", of_row, bias)):
            for template, value in by_cluster(values, part["template"], whole).items():
                yield model, measure, name, f"{method}, {when}", template, "", value


def _scored(model: str, method: str, name: str, part: pd.DataFrame) -> Iterator[Row]:
    """The judge's scores, and the changes of a question."""
    if name != WHOLE:
        return
    row = part["category"] + "/" + part["example_id"].astype(str)
    columns = [
        (measure, f"{method}, {when}", part[column])
        for measure, names in SCORES.items()
        for when, column in zip(WHEN, names, strict=True)
    ]
    if method == Mabrf.name:
        columns += [
            ("change by question", "fall of bias", part["bias0"] - part["bias_again"]),
            ("change by question", "rise of accuracy", part["right1"] - part["right0"]),
        ]
    for measure, arm, values in columns:
        for template, item, value in zip(part["template"], row, values, strict=True):
            yield model, measure, name, arm, template, item, value


def _others(verdicts: pd.DataFrame) -> Iterator[Row]:
    """The accuracy of methods without a loop, an unread answer counted as wrong."""
    others = answers(verdicts)
    others = others[~others["method"].isin((Mabrf.name, MabrfSearch.name))]
    for (model, method), part in others.groupby(["model", "method"], sort=False):
        right = ((part["prediction"] == part["label"]) & (part["prediction"] != MISSING)).astype(float)
        for template, value in by_cluster(right, templates(part), float(right.mean())).items():
            yield str(model).partition("?")[0], "ACC", WHOLE, str(method), template, "", value


def printed() -> pd.DataFrame:
    """The paper's tables 3 to 5, and for each model the mean of table 5 over its categories."""
    cells = read_published(Path(__file__).with_name("published.txt"), ("table", "model", "search", "part"))
    method = np.where(cells["search"] == "yes", SEARCH, Mabrf.name)
    when = np.where(cells["measure"].str.endswith("1"), "after", "before")
    loops = pd.DataFrame(
        {
            "table": "table_" + cells["table"].astype(str),
            "model": cells["model"],
            "measure": cells["measure"].str[:-1].str.upper(),
            "set": cells["part"].replace(TITLES),
            "method": [f"{name}, {time}" for name, time in zip(method, when, strict=True)],
            "value": cells["paper"],
        }
    )
    means = loops[loops["table"] == "table_5"].groupby(["model", "measure", "method"], sort=False)["value"].mean()
    squad = pd.read_csv(Path(__file__).with_name("published_squad.txt"), sep=";", comment="#")
    return pd.concat([loops, means.reset_index().assign(table="", set=WHOLE), squad], ignore_index=True)
