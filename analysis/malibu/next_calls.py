"""The size of a design, the error that it gives a difference of two identities, and what more calls would change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from parley.analysis.stats.components import RESIDUAL, VarianceComponent

BY_JUDGE = "identity × judge"
NOISE = (
    "identity × base",
    "identity × wording",
    "identity × base × wording",
    "identity × scenario",
    "conversation",
    RESIDUAL,
)
"""Components of the error of a difference when judges are fixed, from coarse to fine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How much of everything was run, per model; means where it varies, as if the design were balanced.

    Args:
        bases: Number of bases.
        wordings: Number of label wordings; bases with wordings of their own add theirs.
        wordings_per_base: Label wordings per base.
        shared: Whether bases share wordings, so that more bases do not bring more of them.
        scenarios_per_base: Scenarios of a base.
        repeats: Conversations on the same text under the same label.
        judges: Judges of a conversation.
        identities: Labels.
        calls_per_unit: Calls that a conversation takes.
    """

    bases: float
    wordings: float = 1.0
    wordings_per_base: float = 1.0
    shared: bool = False
    scenarios_per_base: float
    repeats: float
    judges: float
    identities: int
    calls_per_unit: float

    @property
    def conversations(self) -> float:
        """Conversations under one label."""
        return self.bases * self.wordings_per_base * self.scenarios_per_base * self.repeats

    def divisor(self, term: str) -> float:
        """How many independent values of a term one identity's mean contains."""
        return {
            BY_JUDGE: self.judges,
            "identity × base": self.bases,
            "identity × wording": self.wordings,
            "identity × base × wording": self.bases * self.wordings_per_base,
            "identity × scenario": self.bases * self.scenarios_per_base,
            "conversation": self.conversations,
            RESIDUAL: self.conversations * self.judges,
        }[term]


def design_of(replies: pd.DataFrame, asked: pd.DataFrame) -> Design:
    """The sizes of the design, from the scores and from what was asked (phase 1, all rounds)."""
    bases, scenarios = replies["base"].nunique(), replies["scenario"].nunique()
    units = replies["conversation"].nunique()
    worded = replies["wording"] if "wording" in replies else replies["base"]
    cells = len(replies.assign(worded=worded)[["scenario", "identity", "worded"]].drop_duplicates())
    by_base = pd.DataFrame({"identity": replies["identity"], "base": replies["base"], "wording": worded})
    by_base = by_base.drop_duplicates()
    per_label = by_base.groupby("identity")["wording"].nunique()
    per_metric = asked["metric"].value_counts()  # every reply has one verdict per metric
    return Design(
        bases=bases,
        wordings=float(per_label.mean()),
        wordings_per_base=float(by_base.groupby(["identity", "base"]).size().mean()),
        shared=bool(len(by_base) > per_label.sum()),
        scenarios_per_base=scenarios / bases,
        repeats=units / cells,
        judges=len(replies) / units,
        identities=replies["identity"].nunique(),
        calls_per_unit=float(per_metric.max()) / asked["unit"].nunique(),
    )


def plans_of(design: Design, calls: int, has_bases: bool, *, silent: bool = False) -> dict[str, Design]:
    """The design as run, and with the calls spent on more of one thing.

    Args:
        design: As it was run.
        calls: How many more are spent.
        has_bases: Whether scenarios have bases.
        silent: Whether scores are silent ballots: read again, they are the same.
    """
    more = 1 + calls / (design.conversations * design.identities * design.calls_per_unit)
    clusters = "more bases" if has_bases else "more scenarios"
    wordings = design.wordings if design.shared else design.wordings * more
    plans = {"as run": design, clusters: replace(design, bases=design.bases * more, wordings=wordings)}
    if design.shared:
        several = design.wordings_per_base * more
        plans["more wordings"] = replace(design, wordings=design.wordings * more, wordings_per_base=several)
    if has_bases:
        plans["more scenarios per base"] = replace(design, scenarios_per_base=design.scenarios_per_base * more)
    if not silent:
        plans["more repeats"] = replace(design, repeats=design.repeats * more)
    plans["more judges"] = replace(design, judges=design.judges * more)
    return plans


def plan_row(parts: Mapping[str, VarianceComponent], plan: Design) -> dict[str, Any]:
    """The standard error under a plan. A component that includes a finer one is between the two."""
    sizes = {
        "bases": plan.bases,
        "scenarios_per_base": plan.scenarios_per_base,
        "repeats": plan.repeats,
        "judges": plan.judges,
    }
    noise = [parts[name] for name in NOISE if name in parts]
    if not math.isfinite(noise[0].variance):  # the noise between clusters, the largest part of the error
        unknown = dict.fromkeys(["standard_error", "at_best", "with_new_judges"], math.nan)
        return sizes | unknown | {"note": f"the standard error is unknown: {noise[0].note}"}
    known = [part for part in noise if math.isfinite(part.variance)]
    worst = sum(contribution(part, plan) for part in known)
    best = sum(contribution(part, plan, finest=True) for part in known)
    by_judge = parts[BY_JUDGE].variance if BY_JUDGE in parts else math.nan
    together = [part for part in known if part.includes] if best < worst * (1 - 1e-9) else []
    return sizes | {
        "standard_error": math.sqrt(worst),
        "at_best": math.sqrt(best),
        "with_new_judges": math.sqrt(worst + 2 * by_judge / plan.judges),
        "note": "; ".join(f"this run cannot tell {part.name} from {part.includes[-1]}" for part in together),
    }


def contribution(part: VarianceComponent, design: Design, *, finest: bool = False) -> float:
    """What a component adds to the squared standard error of a difference of two identities."""
    finer = [name for name in part.includes if name in NOISE]
    return 2 * part.variance / design.divisor(finer[-1] if finest and finer else part.name)
