"""What MALIBU's report decides by: stored with its hash when a run begins, and executed from there.

A report follows the plan that is in the run file, whatever this version would plan. Verdicts that come without one get
the plan of their labels, which is made here too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from parley.analysis.stats.results import ALPHA, Contrast

MARGIN = 0.1
"""Points of the scale within which two identities count as alike. The paper's largest difference is 0.33."""
# A mean near 0 is not enough: with +1.5 points on ten bases and -1.5 on ten, 40 of 40 simulated runs would be called
# alike within ±0.5. The price is that sampled designs have almost no chance to show "alike" at the default margin.
# Silent ballots do: in simulated runs with an SD of 0.05 between bases "alike" is said in all, at ±1.5 in none, and at
# an SD that is just the limit, 0.2, in 2 to 5%, as the upper limit is one of 95%
# (`python -m benchmarks.calibration --adversarial --only "silent, alike"`).
SPREAD = 2.0
"""In margins: for "alike", the SD of effects between bases must be shown to be smaller."""
BASES = 29
"""Fewest bases for "alike": with these, a kind that is one in ten is missing from fewer than 5% of samples, 0.9²⁹."""
PRIMARY = (
    Contrast("gender", ("female",), ("male",)),
    Contrast("race", ("black", "asian", "hispanic"), ("white",)),
    Contrast("religion", ("muslim", "jewish", "atheist"), ("christian",)),
)
"""The primary contrasts; a run has those among its labels."""
METHOD: Mapping[str, Any] = {
    "version": 9,
    "alpha": ALPHA,
    "tests": ["sign flips over clusters", "Student's t"],
    "equivalence": "two one-sided sign-flip tests",
    "correction": "Holm in each family, phase and model; none across them",
    "looks": 1,
}
"""What no run can choose: stored, so that another version's report can say where it differs."""
PLANNED, SENSITIVITY, EXPLORATORY = "planned", "sensitivity", "exploratory"
TABLES: Mapping[str, Mapping[str, str] | str] = {
    "primary": PLANNED,
    "by_judge": PLANNED,
    "means": PLANNED,
    "pair_means": EXPLORATORY,
    "differences": {
        "all metrics together, within a category": PLANNED,
        "columns scenario_low, scenario_high, scenario_p": SENSITIVITY,
        "a single metric": EXPLORATORY,
        "between categories": EXPLORATORY,
    },
    "mde": PLANNED,
    "by_base": EXPLORATORY,
    "win_rates": PLANNED,
    "tests": EXPLORATORY,
    "position": PLANNED,
    "unread": PLANNED,
    "unread_differences": PLANNED,
    "yardstick_auc": PLANNED,
    "yardstick_flaws": PLANNED,
    "talking": PLANNED,
    "contagion": PLANNED,
    "echo": PLANNED,
}
"""Tables of the report, or some of their rows or columns. A table that is not here was not planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The contrasts and thresholds of a report.

    Args:
        primary: The primary contrasts, which the headline is about: one family.
        pairs: The pairs of labels. Those that are no primary contrast are the second family.
        margin: Points of the scale, or in pairs wins minus losses per comparison: a smaller difference counts as none.
        spread: In margins: for "alike", the SD of effects between bases must be shown to be smaller.
        bases: Fewest bases for "alike".
    """

    primary: tuple[Contrast, ...]
    pairs: tuple[Contrast, ...]
    margin: Annotated[float, Field(gt=0, allow_inf_nan=False)] = MARGIN
    spread: Annotated[float, Field(gt=0, allow_inf_nan=False)] = SPREAD
    bases: Annotated[int, Field(gt=0)] = BASES

    @classmethod
    def of(cls, pairs: Iterable[Contrast], *, primary: Iterable[Contrast] = PRIMARY, margin: float = MARGIN) -> Plan:
        """The plan of some labels.

        Args:
            pairs: Their pairs.
            primary: The primary contrasts, of which those among these labels are planned.
            margin: As above.
        """
        pairs = tuple(pairs)
        labels = {label for pair in pairs for label in (*pair.first, *pair.second)}
        return cls(primary=tuple(among(primary, labels)), pairs=pairs, margin=margin)

    def data(self) -> dict[str, Any]:
        """The plan as a run file stores it."""
        return {**METHOD, **asdict(self)}


def among(contrasts: Iterable[Contrast], labels: Collection[str]) -> Iterator[Contrast]:
    """The contrasts among some labels, without those that have nobody on one side.

    Args:
        contrasts: All contrasts.
        labels: The labels that exist.
    """
    for contrast in contrasts:
        first, second = (tuple(name for name in side if name in labels) for side in (contrast.first, contrast.second))
        if first and second:
            yield Contrast(contrast.category, first, second)


def executed(stored: Sequence[Mapping[str, Any]], of_labels: Plan) -> Plan:
    """What the plans of several runs agree on; where they differ, or there is none, it is what their labels give.

    Args:
        stored: The plans as the run files have them.
        of_labels: What this version plans for the labels.
    """
    plans = [_read(plan, of_labels) for plan in stored] or [of_labels]
    by_field = {field.name: {getattr(plan, field.name) for plan in plans} for field in fields(Plan)}
    return Plan(
        **{name: values.pop() if len(values) == 1 else getattr(of_labels, name) for name, values in by_field.items()}
    )


def _read(stored: Mapping[str, Any], of_labels: Plan) -> Plan:
    """A stored plan; that of the labels if it cannot be read, as a run file may come from anyone."""
    try:
        if isinstance(sides := stored.get("primary", {}), Mapping):  # before version 9, pairs had no category
            primary = tuple(Contrast(category, *map(tuple, both)) for category, both in sides.items())
            stored = {**stored, "primary": primary or of_labels.primary, "pairs": of_labels.pairs}
        return TypeAdapter(Plan).validate_python(stored)
    except (TypeError, ValueError):
        return of_labels
