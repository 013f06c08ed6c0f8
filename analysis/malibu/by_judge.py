"""Every primary contrast by model and by judge, with a test of whether they differ.

A mean over a panel hides judges that lean opposite ways: one that adds a point to an identity and one that takes a
point away give a mean of 0. So each model and each judge has its own estimate, and within every cluster the judges'
differences are compared with each other: if all treat identities the same way, a cluster's deviations from its mean are
as likely to have the opposite signs (`parley.analysis.stats.permutation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from parley.analysis.malibu.contrasts import tested
from parley.analysis.malibu.panel import BLIND, PanelData, ScenarioGaps, ScoreTable, values_in_order
from parley.analysis.stats.crossed import crossed_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import ALPHA, DIFFERENT, JUDGES_DIFFER, Line
from parley.base.text import plural

MODEL, JUDGE = "model", "judge"
ALL_MODELS = "all models"
COLUMNS = [
    *("model", "by", "name", "category", "first", "second", "difference", "low", "high", "p", "clusters"),
    *("p_differ", "p_differ_adjusted", "note"),
]


class Contrast(NamedTuple):
    """The mean of some identities of a category minus the mean of others."""

    category: str
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def sides(self) -> dict[str, str]:
        """The columns of a table that name both sides."""
        return {"first": ", ".join(self.first), "second": ", ".join(self.second)}

    def subject(self, data: PanelData, model: str, phase: int = 1, name: str = "") -> dict[str, Any]:
        """What a line about it is about, as fields of the line.

        Args:
            data: The verdicts.
            model: Who judged.
            phase: 1 for scores, 2 for preferences.
            name: How requirements name the line, where this is not by its sides; the model is put in front where there
                are several.
        """
        several = len(data.models) > 1
        sides = (
            {"identity": (*self.first, *self.second)} if phase == 1 else {"identity": self.first, "other": self.second}
        )
        name = name or "-".join(self.sides.values())
        return {
            "about": {"model": model, "category": self.category, **self.sides},
            "label": " − ".join(self.sides.values()),
            "group": " · ".join(filter(None, (self.category, model if several else ""))),
            "units": {"phase": (str(phase),), **sides, **({"model": (model,)} if several else {})},
            "name": f"{model}.{name}" if several else name,
            "cluster": data.cluster_noun,
        }

    def among(self, identities: Sequence[str]) -> Contrast | None:
        """The contrast among existing identities; None where one side is empty."""
        sides = [tuple(name for name in side if name in identities) for side in (self.first, self.second)]
        return Contrast(self.category, *sides) if all(sides) else None


def by_judge(data: PanelData, contrasts: Sequence[Contrast]) -> pd.DataFrame:
    """Each contrast by model and by judge, one row each, with the p-value of the hypothesis that they do not differ.

    Models are compared within a panel whose judges have models of their own, and between the models of a run where
    scale and read-out are the same. Holm's correction is over the contrasts of a comparison.

    Args:
        data: The verdicts.
        contrasts: The primary contrasts, or others.
    """
    rows: list[dict[str, Any]] = []
    for scope, by, column, scores in _comparisons(data):
        tables = {name: ScoreTable.of(scores[scores[column] == name]) for name in values_in_order(scores, column)}
        family = [row for contrast in contrasts for row in _compared(tables, contrast)]
        tests = {(row["first"], row["second"]): row["p_differ"] for row in family}
        adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
        facets = {"model": scope, "by": by}
        rows += [facets | row | {"p_differ_adjusted": adjusted[row["first"], row["second"]]} for row in family]
    return pd.DataFrame(rows, columns=COLUMNS)


Comparison = tuple[str, str, str, pd.DataFrame]
"""Whose scores are compared (a panel, or all models), by what, the column that tells them apart, and the scores."""


def _comparisons(data: PanelData) -> Iterator[Comparison]:
    scores = data.final_scores
    panels = [(model, scores[scores["model"] == model]) for model in data.models]
    for model, own in panels:
        if own["judge_model"].nunique() > 1:
            yield model, MODEL, "judge_model", own
    if len(panels) > 1:
        # Points on another scale, or averages of samples, are not comparable.
        kinds = (
            scores["model"].astype(str).map({model: (data.scale(model), data.readout(model)) for model, _ in panels})
        )
        for _, part in scores.groupby(kinds.astype(str), sort=False):
            if part["model"].nunique() > 1:
                yield ALL_MODELS, MODEL, "model", part
    for model, own in panels:
        table = own
        if own["judge"].nunique() < 2 and len(data.talk):
            # The panel of a staged run casts its silent ballots on the units that it talks about afterwards.
            talk = data.talk[(data.talk["model"] == model) & (data.talk["phase"] == 1)]
            table = talk[(talk["round"] < BLIND) & (talk["metric"] != "preferred")]
        of_judges = table[["judge", "judge_model"]].drop_duplicates()
        if len(of_judges) > of_judges["judge_model"].nunique():  # else a judge is a model, which has been compared
            yield model, JUDGE, "judge", table


def _compared(tables: Mapping[str, ScoreTable], contrast: Contrast) -> Iterator[dict[str, Any]]:
    gaps: dict[str, ScenarioGaps] = {}
    for name, table in tables.items():
        if {*contrast.first, *contrast.second} <= {*table.identities}:
            found = table.contrast(contrast.first, contrast.second)
            if len(found.values):
                gaps[name] = found
    if len(gaps) < 2:
        return
    p = _differ(gaps)
    for name, found in gaps.items():
        yield {"name": name, "category": contrast.category, **contrast.sides, **tested(found), "p_differ": p}


def _differ(gaps: dict[str, ScenarioGaps]) -> float:
    """The p-value of the hypothesis that all of them have the same difference in every cluster."""
    crossed = any(found.wordings is not None for found in gaps.values())
    table = pd.DataFrame({name: _by_key(found, crossed) for name, found in gaps.items()}).dropna()
    if not crossed:
        return float(effect_of_cells(table).p) if len(table) else float("nan")
    # Over crossed samples one deviation at a time is tested; the smallest p-value counts for all of them.
    deviations = table.sub(table.mean(axis=1), axis=0)
    keys = [table.index.get_level_values(level) for level in (0, 1)]
    found_p = [crossed_mean(deviations[name].to_numpy(), *keys).p for name in table]
    return min(1.0, min(found_p) * (1 if len(found_p) == 2 else len(found_p)))


def _by_key(gaps: ScenarioGaps, crossed: bool) -> pd.Series:
    """The mean difference by cluster; by base and wording where these are crossed."""
    names = pd.Series(gaps.names)[gaps.bases].to_numpy()
    keys = [names, gaps.wordings] if crossed else [gaps.cluster_labels()]
    return pd.Series(gaps.values).groupby(keys).mean()


def with_differing_judges(lines: Sequence[Line], table: pd.DataFrame) -> list[Line]:
    """The lines of contrasts; the verdict says where the panel's judges, or their models, differ.

    A mean that differs from 0 by more than the margin stays "different"; no other verdict is given about a panel of
    judges who disagree.

    Args:
        lines: What `with_conclusions` returned.
        table: The table of `by_judge` on the same contrasts.
    """
    shown = table[table["p_differ_adjusted"] <= ALPHA]
    who = {(row.model, row.first, row.second): f"the {row.by}s differ" for row in shown[::-1].itertuples()}
    return [
        replace(
            line,
            verdict=line.verdict if line.verdict == DIFFERENT else JUDGES_DIFFER,
            note="; ".join(filter(None, (line.note, differ))),
        )
        if (differ := who.get(tuple(line.about[name] for name in ("model", "first", "second"))))
        else line
        for line in lines
    ]


def unread_judges(data: PanelData) -> Iterator[str]:
    """A caution for every judge without a readable reply.

    Args:
        data: The verdicts.
    """
    verdicts = data.all_verdicts
    readable = verdicts["value"].notna() | verdicts["text"].notna()
    counts = readable.groupby([verdicts["judge"], verdicts["judge_model"]], observed=True).agg(["sum", "size"])
    for (judge, model), row in counts[counts["sum"] == 0].iterrows():
        yield (
            f"None of the {plural(int(row['size']), 'verdict')} of judge {judge} ({model}) could be read: no number in "
            "this report is about this judge."
        )
