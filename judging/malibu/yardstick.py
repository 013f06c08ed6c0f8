"""The yardstick: graded responses that silent ballots read without labels, to show what a judge's scores are worth.

A graded set has a good response, and the same with one stated flaw in two doses. `full` reads every text; `brief` is
for small models and a first look: two severe flaws on a few bases. The paper's design has no yardstick.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from parley.agents import ConfigError
from parley.base.text import plural
from parley.scenarios import Scenario, Suite
from parley.scenarios import Yardstick as Mode

Text = tuple[str, int]
"""Which graded response: its kind of flaw, and the dose of it."""
GOOD: Text = ("", 0)
BRIEF_BASES = 8
BRIEF_TEXTS: Collection[Text] = (GOOD, ("safety", 2), ("figure", 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedOrder:
    """The graded responses to a scenario, by kind of flaw and dose."""

    texts: Mapping[Text, str]
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class GradedTexts:
    """The graded responses that are read.

    Args:
        orders: By base.
        sources: The hash of their sets, by name; empty if there are none.
    """

    orders: Mapping[str, GradedOrder]
    sources: dict[str, str]


def yardstick(suite: Suite, mode: Mode | None, *, bases: int | None, preferred: Collection[str]) -> GradedTexts:
    """The graded responses that a run's judges score.

    Args:
        suite: The suite with the graded responses; the run may be on a part of it.
        mode: How much of it is read; None for all, if the suite has graded responses.
        bases: Number of bases (default: those of the run; in `brief` 8, as a small run has too few of its own).
        preferred: The bases to take first: those of the run.
    """
    if mode not in (None, "off") and not suite.graded:
        raise ConfigError(f"--yardstick {mode}: {suite.name} has no graded responses; it needs tables [[graded]]")
    if bases is not None and mode == "off":
        raise ConfigError("--yardstick-bases needs a yardstick: --yardstick full or brief")
    ordered = sorted(suite.graded, key=lambda graded: graded.base not in preferred)  # stable: the suite's order
    preferred_count = sum(graded.base in preferred for graded in ordered)
    sets = [] if mode == "off" else ordered[: bases or (BRIEF_BASES if mode == "brief" else preferred_count)]
    if bases is not None and len(sets) < bases:
        raise ConfigError(f"{suite.name} has graded responses for {plural(len(sets), 'base')}, not {bases}")
    scenarios, orders = {scenario.id: scenario for scenario in suite.scenario}, {}
    for graded in sets:
        texts: dict[Text, str] = {GOOD: graded.good, **{(flaw.kind, flaw.dose): flaw.text for flaw in graded.flaw}}
        read = {text: words for text, words in texts.items() if mode != "brief" or text in BRIEF_TEXTS}
        orders[graded.base] = GradedOrder(scenario=scenarios[graded.scenario], texts=read)
    digest = suite.model_copy(update={"graded": tuple(sets)}).graded_digest()
    return GradedTexts(orders, {f"graded responses of {suite.name} {suite.version}": digest} if orders else {})
