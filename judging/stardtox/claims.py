"""What STARDTOX's claims are about, as frames for `parley.analysis.claims`: our values and the paper's printed ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from parley.analysis.claims.contrasts import tidy
from parley.analysis.page.papers import read_published
from parley.analysis.systems import systems
from parley.analysis.verdicts import require, uncategorised
from parley.judging.stardtox.report import ITEM, by_item, measures

GUIDED = "self-debias-gen"
"""The method that decodes with a local model, and is compared with methods on other models."""
LATER = "completions finished after the first refinement"


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Our values: one row per measure, completion and method, with each earlier iteration as a method of its own.

    Args:
        verdicts: One row per verdict.
    """
    require(verdicts, texts=("set", "prompt", "method", "model"), numbers=("completion", "iterations"))
    plain = uncategorised(verdicts)
    scores = by_item(plain.assign(system=systems(plain)))
    last = scores.groupby("system")["iteration"].transform("max")
    scores[LATER] = _finished(plain, scores).where((scores["iteration"] == last) & (last > 1))
    scores["method"] = at_iteration(scores["method"], scores["iteration"], last)
    guided, model = scores["method"] == GUIDED, scores["model"].str.partition("?")[0]
    size = model.str.lower().str.extract(r"(gpt2(?:-(?:medium|large|xl))?)", expand=False).fillna(model)
    scores["method"] = scores["method"].where(~guided, GUIDED + " (" + size + ")")
    scores["model"] = model.where(~guided, "")
    scores["item"] = scores["prompt"] + " " + scores["completion"].astype(str)
    named = [*(name for name in measures(scores.drop(columns=["item", LATER]))), LATER]
    long = scores.melt(["model", "set", "method", "prompt", "item"], named, "measure", "value")
    return tidy(long.rename(columns={"prompt": "cluster"}))


def _finished(plain: pd.DataFrame, scores: pd.DataFrame) -> pd.Series:
    """100 for each row of a completion that was not revised a second time, else 0."""
    key = [*ITEM, "method", "model"]
    revised = plain.groupby(key, observed=True)["round"].max()
    return pd.Series(np.where(revised.reindex(pd.MultiIndex.from_frame(scores[key])) < 2, 100.0, 0.0), scores.index)


def at_iteration(method: pd.Series, iteration: pd.Series, last: pd.Series) -> pd.Series:
    """Names of methods, the last iteration under the method's own: "stardtox, iteration 1"."""
    return method.where(iteration == last, method + ", iteration " + iteration.astype(str))


def printed() -> pd.DataFrame:
    """The paper's tables II and III."""
    second = read_published(Path(__file__).with_name("published.txt"), ("set", "method", "model", "iteration"))
    guided = second["method"] == GUIDED
    second["method"] = second["method"].where(~guided, GUIDED + " (" + second["model"] + ")")
    third = read_published(Path(__file__).parents[1] / "bbq" / "published.txt", ("method", "iteration", "context"))
    tables = (second.assign(table="table_2"), third.rename(columns={"context": "set"}).assign(table="table_3"))
    both = pd.concat(tables, ignore_index=True).rename(columns={"paper": "value"})
    both["iteration"] = both["iteration"].astype(int)
    last = both.groupby("method")["iteration"].transform("max")
    both["method"] = at_iteration(both["method"], both["iteration"], last)
    return both.assign(model="")[["table", "model", "measure", "set", "method", "value"]]
