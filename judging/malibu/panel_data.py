"""The panel's results: one score per unit and metric (phase 1), one preference per unit (phase 2).

A frame has one row per verdict: the unit's facets (phase, scenario, category, identity, model, …) and judge, role,
round, subject, metric, value, text, status. The panel's result is the mean of its last round (for preferences the
majority, with ties as an outcome of their own), or the chair's statement if there is a chair. Unreadable replies are
left out, never counted as 0.

The ballots used depend on the design. Runs with stages use silent ballots (round 0) or, if all units talk, blind
ballots (round 1), since later rounds repeat what was heard. Runs without stages use their last round, as the paper
does. `PanelData.talk` has the effect of talking.

The scenarios of a base probe the same stereotype, so they are not independent; see `clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parley.agents import LOG_ODDS
from parley.analysis.clusters import cluster_noun
from parley.analysis.stats.results import Contrast
from parley.analysis.stats.tables import Ints
from parley.analysis.verdicts import final_verdicts
from parley.base.text import plural
from parley.judging.ballots import PREFERRED, SAMPLED_TEXT
from parley.judging.malibu.plan import BLIND, GRADED, PRIMARY_CONTRASTS, TALK, Plan, executed
from parley.judging.malibu.score_table import (
    ALL,
    NOT_SCORES,
    POINTS,
    ScoreTable,
    check_columns,
    differ_in_one_part,
    primary_ballots,
    scale_ends,
    split,
    values_in_order,
)
from parley.scenarios.identities import PLACEBO

SINGLE = ["model", "unit", "scenario", "cluster", "category", "identity", "control", "repeat"]
PAIR = [
    "model",
    "unit",
    "scenario",
    *("situation", "cluster", "clustering", "wording", "question"),
    "category",
    "identity",
    "other",
    "identity_a",
    "identity_b",
    "response_a",
    "response_b",
    "assignment",
    "order",
    "control",
    "repeat",
]


OF_ORDER = ("unit", "order", "identity_a", "identity_b", "response_a", "response_b")
"""Columns in which the two orders of a silent comparison differ."""
T = TypeVar("T")
EXPECTED = "expected"
"""How silent ballots are read if a model gives probabilities."""
VOTES = {"A": 1.0, "B": -1.0, "tie": 0.0}
"""Preferences as numbers, in the order of `majority`."""
Units: TypeAlias = Mapping[str, tuple[str, ...]]
"""The facets of the units behind a line, with their stored values."""


@dataclass(frozen=True, eq=False)
class PanelData:
    """The verdicts of one or several runs, with reductions that are computed on first use.

    Args:
        verdicts: One row per verdict, with at least the columns in `REQUIRED`.
        plans: The analysis plans that their runs stored.
        placebo: The verdicts on placebo labels, which `verdicts` leaves out.
    """

    verdicts: pd.DataFrame
    """The ballots that give the results."""
    plans: Sequence[Mapping[str, Any]] = ()
    placebo: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    graded: pd.DataFrame = field(init=False, repr=False)
    """The yardstick's scores, which `verdicts` leaves out."""
    all_verdicts: pd.DataFrame = field(init=False, repr=False)
    """All verdicts on labelled responses, of every stage and round."""
    _shared: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        verdicts, graded = split(check_columns(self.verdicts), "phase", GRADED)
        for name, frame in {"all_verdicts": verdicts, "graded": graded}.items():
            object.__setattr__(self, name, frame)
        object.__setattr__(self, "verdicts", primary_ballots(verdicts))

    @property
    def staged(self) -> bool:
        """Whether units have a stage; runs of the paper's design have none."""
        return "stage" in self.all_verdicts

    @cached_property
    def silent(self) -> bool:
        """Whether all results come from silent ballots."""
        return bool(self.models) and all(self.read_silently(model) for model in self.models)

    def read_silently(self, model: str) -> bool:
        """Whether a model's results come from silent ballots."""
        return self.staged and model not in self._models_that_spoke

    @cached_property
    def _models_that_spoke(self) -> set[str]:
        return {*self.verdicts.loc[self.verdicts["round"] != 0, "model"].astype(str).unique()}

    @cached_property
    def talk(self) -> pd.DataFrame:
        """All verdicts of talking units, in every round, including silent ballots; empty in a run without stages."""
        verdicts = self.all_verdicts
        return verdicts[verdicts["stage"] == TALK] if self.staged else verdicts[:0]

    @cached_property
    def debates(self) -> PanelData:
        """Debates, by their last round: talking units without their silent ballots."""
        if not self.staged:
            return self
        return PanelData(self.talk[self.talk["round"] >= BLIND].drop(columns="stage"))

    def scale(self, model: str | None = None) -> tuple[float, float]:
        """The lowest and the highest score of a model's scale; for None, of all models together."""
        return self.shared(f"scale of {model}", lambda: self._scale(model))

    def _scale(self, model: str | None) -> tuple[float, float]:
        verdicts = self.verdicts if model is None else self.verdicts[self.verdicts["model"] == model]
        named = values_in_order(verdicts, "scale") if "scale" in verdicts else []
        ends = [scale_ends(name) for name in named] or [POINTS]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def readout(self, model: str) -> str:
        """How a model's silent ballots were read: "expected" from probabilities, or "sampled"."""
        of_model = self.verdicts[self.verdicts["model"] == model]
        return (
            "sampled"
            if (of_model["text"].astype(object) == SAMPLED_TEXT).any() or not self.read_silently(model)
            else EXPECTED
        )

    @property
    def points(self) -> str:
        """The scale in words, for axes."""
        low, high = self.scale()
        return f"points on a scale of {low:g} to {high:g}"

    @property
    def difference(self) -> str:
        """The name of a difference between two scores, for axes."""
        low, high = self.scale()
        return f"difference in score ({f'points of {high:g}' if low == 0 else f'{low:g} to {high:g}'})"

    def prefix(self, model: str) -> str:
        """The beginning of a sentence about a model; "" if there is only one."""
        return f"{model}: " if len(self.models) > 1 else ""

    def by_itself(self, model: str) -> str:
        """The beginning of a sentence whose tests are corrected for this model's alone; "" if there is only one."""
        return f"{model}, by itself: " if len(self.models) > 1 else ""

    def headed_by(self, model: str) -> tuple[str, ...]:
        """The model, as a heading of its lines, if there are several."""
        return (model,) if len(self.models) > 1 else ()

    def units(self, phase: int, model: str, *, debated: bool = False, **facets: tuple[str, ...]) -> Units:
        """The facets of the units behind a line: the given ones, and the stage and control that all of them share.

        Args:
            phase: The phase of the study.
            model: The line's model.
            debated: Whether the line is from debates.
            facets: The line's own facets.
        """
        units = {"phase": (str(phase),), **facets, **({"model": models} if (models := self.headed_by(model)) else {})}
        return {**units, **self.common_facets(units, debated=debated)}

    def common_facets(self, units: Units, *, debated: bool = False) -> Units:
        """The stage and control that all units of a phase share, if the run has several; {} without one phase."""
        if (phase := units.get("phase", ())) not in (("1",), ("2",)):
            return {}
        unlabelled = "" in units["identity"] if "identity" in units else None
        return self.shared(
            f"facets of {phase} {unlabelled} {debated}", lambda: self._common_facets(phase, unlabelled, debated)
        )

    def _common_facets(self, phase: tuple[str, ...], unlabelled: bool | None, debated: bool) -> Units:
        rows = (self.debates if debated else self).verdicts
        rows = rows[rows["phase"] == int(phase[0])]
        if unlabelled is not None:
            rows = rows[(rows["identity"] == "") == unlabelled]
        facets: dict[str, tuple[str, ...]] = {}
        if self.staged and self.all_verdicts["stage"].nunique() > 1:
            facets["stage"] = tuple(values_in_order(rows, "stage")) if "stage" in rows else (TALK,)
        if self.all_verdicts["control"].nunique() > 1:
            facets["control"] = tuple(values_in_order(rows, "control"))
        return {name: values for name, values in facets.items() if len(values) == 1}

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Compute a reduction once, for several tables of a report.

        Args:
            name: Name of the reduction.
            make: Computes it.
        """
        if name not in self._shared:
            self._shared[name] = make()
        reduced: T = self._shared[name]
        return reduced

    @cached_property
    def models(self) -> list[str]:
        return values_in_order(self.verdicts, "model")

    @cached_property
    def cluster_noun(self) -> str:
        """The noun for a cluster: "base", "scenario" if scenarios have no base, or the one from `clusters`."""
        return cluster_noun(self.verdicts)

    def counts(self, shown: pd.DataFrame) -> str:
        """Counts of bases, scenarios, units and readable verdicts in a figure, for its caption.

        Args:
            shown: The verdicts that it shows.
        """
        shown = shown[shown["value"].notna() | shown["text"].notna()]
        bases = f"{plural(shown['situation'].nunique(), 'base')}, " if self.cluster_noun != "scenario" else ""
        units = f"{plural(shown['unit'].nunique(), 'unit')} with {plural(len(shown), 'verdict')}"
        return f"{bases}{plural(shown['scenario'].nunique(), 'scenario')}, {units}"

    @property
    def intervals(self) -> str:
        """A note on what the intervals of means cover."""
        return f"Intervals are 95%, over {self.cluster_noun}s of this kind; these judges are taken as fixed."

    @property
    def model_column(self) -> tuple[str, ...]:
        """The column `model` for tables, if there are several models."""
        return ("model",) if len(self.models) > 1 else ()

    @cached_property
    def final_scores(self) -> pd.DataFrame:
        """Phase 1: the judges' final scores, not averaged over the panel."""
        verdicts = self.verdicts
        return final_verdicts(verdicts[(verdicts["phase"] == 1) & ~verdicts["metric"].isin(NOT_SCORES)])

    @cached_property
    def labelled_verdicts(self) -> pd.DataFrame:
        """`final_scores` without the controls that show no identity."""
        return self.final_scores[self.final_scores["identity"] != ""]

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Phase 1, one row per unit and metric: the panel's score."""
        return _grouped(self.final_scores, [*SINGLE, "metric"])["value"].mean().reset_index()

    @cached_property
    def pair_scores(self) -> pd.DataFrame:
        """Phase 2, one row per unit, identity and metric: the panel's scores of both answers after their debate."""
        aloud = self.debates.verdicts
        if not {"subject", "identity_a"} <= set(aloud):  # no pairs
            return self.scores[:0]
        scored = aloud[(aloud["phase"] == 2) & (aloud["control"] == "") & ~aloud["metric"].isin(NOT_SCORES)]
        first, second = (scored[f"identity_{side}"].astype(object) for side in "ab")
        scored = final_verdicts(scored.assign(identity=first.where(scored["subject"] == "A", second)))
        return _grouped(scored, [*SINGLE, "metric"])["value"].mean().reset_index()

    @cached_property
    def labelled_scores(self) -> pd.DataFrame:
        """`scores` without the controls that show no identity."""
        return self.scores[self.scores["identity"] != ""]

    @cached_property
    def categories(self) -> pd.Series:
        """The category of every identity in phase 1; a label belongs to one category."""
        identities = self.labelled_scores.drop_duplicates("identity")
        return identities.set_index("identity")["category"].astype(str)

    @cached_property
    def final_votes(self) -> pd.DataFrame:
        """Phase 2: the judges' final preferences between two identities, before the panel's majority."""
        verdicts = self.verdicts[(self.verdicts["phase"] == 2) & (self.verdicts["control"] == "")]
        return final_verdicts(verdicts[verdicts["metric"] == PREFERRED])

    @cached_property
    def preferences(self) -> pd.DataFrame:
        """Phase 2, one row per unit with the preference; see `panel_preferences`."""
        return panel_preferences(self.verdicts)

    @property
    def win_rate(self) -> str:
        """The name of a win rate: "expected" where it is a mean of probabilities."""
        return "expected win rate" if self.silent else "win rate"

    @cached_property
    def compared(self) -> pd.DataFrame:
        """The judges' comparisons of two identities, one row each; `lead` is how far `identity` is preferred.

        Of a silent ballot it is the probability of the one minus that of the other, over both orders, since a single
        order shows the effect of the place; of a vote 1, 0 for a tie, or -1. It is missing if it could not be read.
        """
        return self._compared(0.5)

    @cached_property
    def compared_without_ties(self) -> pd.DataFrame:
        return self._compared(math.nan)

    def _compared(self, tie: float) -> pd.DataFrame:
        votes = self.final_votes
        lead = 2 * share_of_first(votes, tie) - 1
        if votes.empty:
            return votes.assign(lead=lead)
        turned = votes["identity_a"].astype(object) != votes["identity"].astype(object)
        votes = votes.assign(lead=lead.where(~turned, -lead))
        silent = votes["model"].map(self.read_silently).astype(bool)
        keys = [key for key in (*PAIR, "judge") if key in votes and key not in OF_ORDER]
        ballots = votes[silent].assign(read=votes["order"].where(lead.notna())) if silent.any() else votes[silent]
        if ballots.empty:
            return votes
        both = _grouped(ballots, keys).agg(lead=("lead", "mean"), orders=("read", "nunique")).reset_index()
        both["lead"] = both["lead"].where(both.pop("orders") == 2)
        return pd.concat([votes[~silent], both.assign(order=0)], ignore_index=True)

    @cached_property
    def decided_pairs(self) -> pd.DataFrame:
        """The comparisons of two identities with a winner: of silent ones the sign of the mean log-odds decides."""
        silent = (self.verdicts["metric"] == LOG_ODDS).any()
        units = self.silent_comparisons if silent else self.preferences
        return units[(units["control"] == "") & units["choice"].notna()]

    @cached_property
    def silent_comparisons(self) -> pd.DataFrame:
        """Silent comparisons, one row each: mean log-odds for `identity` over `other`, and who won.

        Both are missing unless both orders could be read.
        """
        verdicts = self.verdicts[self.verdicts["metric"] == LOG_ODDS]
        if verdicts.empty:
            return self.preferences[:0]
        own_first = (verdicts["identity_a"].astype(object) == verdicts["identity"].astype(object)).to_numpy()
        value = verdicts["value"].to_numpy(dtype=float)
        verdicts = verdicts.assign(**{LOG_ODDS: np.where(own_first, value, -value)})
        keys = [key for key in PAIR if key in verdicts and key not in OF_ORDER]
        verdicts = verdicts.assign(order=verdicts["order"].where(verdicts["value"].notna()))
        units = _grouped(verdicts, keys).agg(**{LOG_ODDS: (LOG_ODDS, "mean"), "orders": ("order", "nunique")})
        units = units.reset_index()
        lead = np.sign(units[LOG_ODDS].where(units.pop("orders") == 2).to_numpy())
        first, second = (units[side].astype(object) for side in ("identity", "other"))
        read = np.isfinite(lead)
        winner = first.where(lead > 0, second.where(lead < 0, "tie")).where(read, None)
        choice = pd.Series(np.select([lead > 0, lead < 0], ["A", "B"], "tie").astype(object)).where(read, None)
        return units.assign(identity_a=first, identity_b=second, order=0, winner=winner, choice=choice)

    @cached_property
    def without_chair(self) -> pd.DataFrame:
        """The judges' own verdicts, of all rounds."""
        return self.verdicts[self.verdicts["role"] != "chair"]

    def table(self, model: str, unread: float = math.nan, without: str = "") -> ScoreTable:
        """A model's final scores by scenario, judge, metric and identity.

        Args:
            model: The model.
            unread: The score in place of those that could not be read.
            without: A status whose scores are left out.
        """

        def make() -> ScoreTable:
            scores = self.final_scores[self.final_scores["model"] == model]
            values = scores["value"].mask(scores["status"] == without).fillna(unread)
            return ScoreTable.of(scores.assign(value=values), self.scale(model))

        return self.shared(f"table of {model}, {unread}, {without}", make)

    def pairs(self, model: str) -> list[tuple[str, str, str]]:
        """The planned comparisons of a model: category and two identities.

        Crossed labels ("black female") are compared if they differ in one part.
        """
        return self.shared(f"pairs of {model}", lambda: self._planned_pairs(model))

    def compared_pairs(self, model: str) -> list[tuple[str, str, str]]:
        """Category and identities of every two that a model compared in pairs."""
        units = self.verdicts[(self.verdicts["phase"] == 2) & (self.verdicts["control"] == "")]
        labels = units.loc[units["model"] == model, ["category", "identity", "other"]] if len(units) else units[:0]
        return [*labels.drop_duplicates().astype(str).itertuples(index=False, name=None)]

    @cached_property
    def plan(self) -> Plan:
        """The runs' stored plan; without one, the plan of their labels."""
        pairs: dict[frozenset[str], Contrast] = {}
        for model in self.models:
            for category, first, second in (*self.pairs(model), *self.compared_pairs(model)):
                pairs.setdefault(frozenset((first, second)), Contrast(category, (first,), (second,)))
        return executed(self.plans, Plan.of(pairs.values(), primary=PRIMARY_CONTRASTS if self.staged else ()))

    def _planned_pairs(self, model: str) -> list[tuple[str, str, str]]:
        scores = self.labelled_scores
        labels = scores[scores["model"] == model].drop_duplicates("identity")
        by_category = labels.groupby(labels["category"].astype(str), sort=False)["identity"]
        return [
            (str(category), first, second)
            for category, names in by_category
            for first, second in combinations([str(name) for name in names], 2)
            if differ_in_one_part(str(category), first, second)
        ]


Verdicts: TypeAlias = pd.DataFrame | PanelData
"""Argument type of this package's functions: a frame of verdicts, or its `PanelData`, which shares reductions."""


def panel_data(verdicts: Verdicts, plans: Sequence[Mapping[str, Any]] = ()) -> PanelData:
    """The frame with its reductions; an object that has them already is returned as it is."""
    if isinstance(verdicts, PanelData):
        return verdicts
    rows = verdicts["category"].isin([*PLACEBO]).to_numpy(dtype=bool) if "category" in verdicts else np.array([False])
    return PanelData(verdicts[~rows], plans, verdicts[rows]) if rows.any() else PanelData(verdicts, plans)


def panel_preferences(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Phase 2, one row per unit: the majority's choice (A, B or tie), missing if no reply could be read.

    `winner` is the identity that was preferred, "tie", or missing; `first` is the share that preferred the first.

    Args:
        verdicts: One row per verdict.
    """
    verdicts = check_columns(verdicts)
    votes = final_verdicts(verdicts[(verdicts["phase"] == 2) & (verdicts["metric"] == PREFERRED)])
    keys = [key for key in PAIR if key in votes]
    if votes.empty:
        return pd.DataFrame(columns=[*PAIR, "choice", "winner", "first"])
    marked = votes[keys].assign(**{choice: (votes["text"] == choice).astype(int) for choice in ("A", "B", "tie")})
    by_unit = _grouped(marked.assign(first=share_of_first(votes)), keys)
    units = by_unit[["A", "B", "tie"]].sum().assign(first=by_unit["first"].mean()).reset_index()
    choice = np.array(["A", "B", "tie", None], dtype=object)[majority(units[["A", "B", "tie"]].to_numpy())]
    units["choice"] = choice
    first, second = (units[f"identity_{side}"].astype(object) for side in "ab")
    units["winner"] = first.where(choice == "A", second.where(choice == "B", choice))
    return units.drop(columns=["A", "B", "tie"])


def share_of_first(votes: pd.DataFrame, tie: float = 0.5) -> pd.Series:
    """How far each verdict on a pair prefers the first answer: a silent ballot's probability; a vote's 1, 0, `tie`."""
    voted = votes["text"].astype(object).map({"A": 1.0, "B": 0.0, "tie": tie}).astype(float)
    return votes["value"].astype(float).fillna(voted)


def majority(votes: NDArray[Any]) -> Ints:
    """By unit: the column with most votes; the third (a tie) if several have as many, -1 if nobody voted.

    Args:
        votes: One row per unit; votes for the first, for the second, and for a tie.
    """
    most = votes.max(axis=1, keepdims=True)
    shared = (votes == most).sum(axis=1) > 1
    return np.where(most[:, 0] == 0, -1, np.where(shared, 2, votes.argmax(axis=1)))


def _grouped(frame: pd.DataFrame, keys: list[str]) -> pd.core.groupby.DataFrameGroupBy:
    return frame.groupby(keys, observed=True, sort=False, dropna=False)


def by_metric(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """All metrics together, then each one if there are several."""
    yield ALL, scores
    metrics = values_in_order(scores, "metric")
    for metric in metrics if len(metrics) > 1 else ():
        yield metric, scores[scores["metric"] == metric]
