"""Every primary contrast by model and by judge, with a test of whether they differ.

A mean over a panel hides judges that lean opposite ways: one that adds a point to an identity and one that takes a
point away give a mean of 0. So each model and each judge has its own estimate, and within every cluster the judges'
differences are compared with each other: if all treat identities the same way, a cluster's deviations from its mean are
as likely to have the opposite signs (`parley.analysis.stats.permutation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from parley.analysis.malibu.conclusions import estimate
from parley.analysis.malibu.panel import BLIND, PanelData, ScenarioGaps, ScoreTable, values_in_order
from parley.analysis.stats.crossed import crossed_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import ALPHA, DIFFERENT, JUDGES_DIFFER, Line
from parley.base.text import p_text, plural, signed

MODEL, JUDGE = "model", "judge"
ALL_MODELS = "all models"


class Contrast(NamedTuple):
    """The mean of some identities of a category minus the mean of others."""

    category: str
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def sides(self) -> dict[str, str]:
        """The columns of a table that name both sides."""
        return {"first": ", ".join(self.first), "second": ", ".join(self.second)}

    def subject(self, data: PanelData, model: str, phase: int = 1, name: str = "", **about: str) -> dict[str, Any]:
        """What a line about it is about, as fields of the line.

        Args:
            data: The verdicts.
            model: Who judged.
            phase: 1 for scores, 2 for preferences.
            name: How requirements name the line, where this is not by its sides.
            about: What else the line is about, such as its family.
        """
        several, sides = len(data.models) > 1, self.sides
        alone = {"identity": (*self.first, *self.second)}
        pair = "-".join(sides.values())
        return {
            "about": {"model": model, "category": self.category, **sides, **about},
            "label": " − ".join(sides.values()),
            "group": " · ".join(filter(None, (self.category, model if several else ""))),
            "units": {
                "phase": (str(phase),),
                **(alone if phase == 1 else {"identity": self.first, "other": self.second}),
                **({"model": (model,)} if several else {}),
            },
            "name": name or (pair if phase == 1 else f"preferences.{pair}"),
            "cluster": data.cluster_noun,
        }

    def among(self, identities: Sequence[str]) -> Contrast | None:
        """The contrast among existing identities; None where one side is empty."""
        sides = [tuple(name for name in side if name in identities) for side in (self.first, self.second)]
        return Contrast(self.category, *sides) if all(sides) else None


def by_judge(data: PanelData, contrasts: Sequence[Contrast]) -> list[Line]:
    """Each contrast by model and by judge, one line each, with the p-value of the hypothesis that they do not differ.

    Models are compared within a panel whose judges have models of their own, and between the models of a run where
    scale and read-out are the same. Holm's correction is over the contrasts of a comparison.

    Args:
        data: The verdicts.
        contrasts: The primary contrasts, or others.
    """
    lines: list[Line] = []
    for scope, by, column, scores in _comparisons(data):
        tables = {name: ScoreTable.of(scores[scores[column] == name]) for name in values_in_order(scores, column)}
        found = {contrast: of_each for contrast in contrasts if len(of_each := _of_each(tables, contrast)) > 1}
        p_differ = [_differ(of_each) for of_each in found.values()]
        for (contrast, of_each), p, adjusted in zip(found.items(), p_differ, holm(p_differ), strict=True):
            for name, gaps in of_each.items():
                subject = contrast.subject(data, scope, name=f"{contrast.category}.{name}", by=by)
                subject["about"]["name"] = name
                label, also = f"{subject['label']} · {name}", {"p_differ": p, "p_differ_adjusted": adjusted}
                lines.append(replace(estimate(gaps), **subject | {"label": label}, also=also, secondary=True))
    return lines


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


def _of_each(tables: Mapping[str, ScoreTable], contrast: Contrast) -> dict[str, ScenarioGaps]:
    """The differences by judge, or by model, of those who have any."""
    known = {
        name: table.contrast(contrast.first, contrast.second)
        for name, table in tables.items()
        if {*contrast.first, *contrast.second} <= {*table.identities}
    }
    return {name: gaps for name, gaps in known.items() if len(gaps.values)}


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


def _differing(judged: Iterable[Line]) -> list[Line]:
    return [line for line in judged if line.also["p_differ_adjusted"] <= ALPHA]


def _subject(line: Line) -> tuple[str, ...]:
    return tuple(line.about[name] for name in ("model", "first", "second"))


def with_differing_judges(lines: Sequence[Line], judged: Sequence[Line]) -> list[Line]:
    """The lines of contrasts; the verdict says where the panel's judges, or their models, differ.

    A mean that differs from 0 by more than the margin stays "different"; no other verdict is given about a panel of
    judges who disagree.

    Args:
        lines: What `with_conclusions` returned.
        judged: The lines of `by_judge` on the same contrasts.
    """
    who = {_subject(line): f"the {line.about['by']}s differ" for line in reversed(_differing(judged))}
    return [
        replace(
            line,
            verdict=line.verdict if line.verdict == DIFFERENT else JUDGES_DIFFER,
            note="; ".join(filter(None, (line.note, who[_subject(line)]))),
        )
        if _subject(line) in who
        else line
        for line in lines
    ]


def judges_below(lines: Iterable[Line], judged: Sequence[Line]) -> Iterator[Line]:
    """The lines; where a panel's judges differ, each of them has a line below.

    Args:
        lines: The lines of contrasts.
        judged: The lines of `by_judge` on the same contrasts.
    """
    for line in lines:
        yield line
        if line.verdict == JUDGES_DIFFER:
            yield from (own for own in _differing(judged) if _subject(own) == _subject(line))


def judges_differ(judged: Iterable[Line]) -> Iterator[str]:
    """A sentence for every contrast on which judges, or models, were shown to differ.

    Args:
        judged: The lines of `by_judge`, or some of them.
    """
    found: dict[tuple[str, ...], list[Line]] = {}
    for line in _differing(judged):
        found.setdefault((line.about["by"], *_subject(line)), []).append(line)
    for (by, _, first, second), lines in found.items():
        named = [f"{signed(line.estimate)} {'with' if by == MODEL else 'by'} {line.about['name']}" for line in lines]
        p = p_text(lines[0].also["p_differ_adjusted"])
        yield (
            f"The {by}s differ on '{first}' against '{second}': {', '.join(named)} points (p {p} after Holm's "
            "correction)."
        )


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
