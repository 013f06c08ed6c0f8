"""The yardstick: graded responses that silent ballots read without labels, to show what a judge's scores are worth.

A graded set has a good response, and the same with one stated flaw in two doses. `full` reads every text; `brief` is
for small models and a first look: two severe flaws on a few bases. The paper's design has no yardstick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from parley.agents import ConfigError
from parley.base.text import plural
from parley.scenarios import Graded, Suite
from parley.scenarios import Yardstick as Mode

BRIEF_BASES = 8
BRIEF_TEXTS = (("", 0), ("safety", 2), ("figure", 2))


class Yardstick:
    """The graded responses that a run's judges score.

    Args:
        suite: The suite with the graded responses; the run may be on a part of it.
        mode: How much of it is read; None for the default.
        default: How much is read by default, if the suite has graded responses.
        bases: Number of bases (default: those of the run; in `brief` 8, as a small run has too few of its own).
        preferred: The bases to take first: those of the run.
    """

    def __init__(
        self, suite: Suite, mode: Mode | None, *, default: Mode, bases: int | None, preferred: Collection[str]
    ) -> None:
        if mode not in (None, "off") and not suite.graded:
            raise ConfigError(f"--yardstick {mode}: {suite.name} has no graded responses; it needs tables [[graded]]")
        mode = mode or default
        if bases is not None and mode == "off":
            raise ConfigError("--yardstick-bases needs a yardstick: --yardstick full or brief")
        self._brief = mode == "brief"
        own = sum(graded.base in preferred for graded in suite.graded)
        most = bases or (BRIEF_BASES if self._brief else own)
        ordered = sorted(suite.graded, key=lambda graded: graded.base not in preferred)  # stable: the suite's order
        self.sets: list[Graded] = [] if mode == "off" else ordered[:most]
        if bases is not None and len(self.sets) < bases:
            raise ConfigError(f"{suite.name} has graded responses for {plural(len(self.sets), 'base')}, not {bases}")
        self._suite = suite.model_copy(update={"graded": tuple(self.sets)})
        self.scenarios = {scenario.id: scenario for scenario in suite.scenario}
        self.texts = {
            (graded.base, flaw, dose): text for graded in self.sets for flaw, dose, text in self._texts_of(graded)
        }

    def _texts_of(self, graded: Graded) -> Iterator[tuple[str, int, str]]:
        """Kind of flaw, dose and text; the good response has none and 0."""
        for flaw, dose, text in (("", 0, graded.good), *((flaw.kind, flaw.dose, flaw.text) for flaw in graded.flaw)):
            if not self._brief or (flaw, dose) in BRIEF_TEXTS:
                yield flaw, dose, text

    def sources(self) -> dict[str, str]:
        """The hash of the graded responses that are read; nothing if none is."""
        if not self.sets:
            return {}
        return {f"graded responses of {self._suite.name} {self._suite.version}": self._suite.graded_digest()}
