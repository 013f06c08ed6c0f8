"""A run in waves, with a look after each: what has been decided is spent on no further.

Clusters (the facet `scenario`) come in an order drawn by the study's seed, whole ones only, so that a run that stops
early is a fair sample and every side of a comparison has the same clusters. Every look is an event of the run file:
going on reads the looks that were made and never makes one again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parley.agents import ConfigError, ParleyError, seed_from
from parley.judging import HasComparisons, Study, Unit
from parley.runs.plan import pending
from parley.runs.store import RunFile
from parley.studies import find_gaps

if TYPE_CHECKING:
    from parley.analysis.stats.sequential import InterimResult, StoppingRule

EVENT = "look"


def waves(study: Study, file: RunFile) -> Iterator[Iterator[Unit]]:
    """The units still to be held, wave by wave; asking for the next wave takes the look that ends the one before."""
    looks = InterimLooks.of(study)
    if looks is None:
        yield pending(file, study)
        return
    first = len(looks_made(file)) + 1
    if first > looks.rule.looks:
        yield looks.wave(file, looks.rule.looks)  # every look was made; units that had failed are held again
    for number in range(first, looks.rule.looks + 1):
        if not looks.open(file):
            return
        yield looks.wave(file, number)
        looks.look(file, number)


def spared(study: Study, file: RunFile) -> int:
    """How many units are not held because nothing they serve is open any more."""
    looks = InterimLooks.of(study)
    if looks is None:
        return 0
    still = looks.open(file)
    return sum(not looks.wanted(unit, still) for unit in pending(file, study))


def looks_made(file: RunFile) -> list[list[InterimResult]]:
    """The looks so far, in order, each with what it saw of every comparison that was open."""
    from parley.analysis.stats.sequential import from_record

    _, rows = file.rows("SELECT detail FROM events WHERE kind = ? ORDER BY rowid", (EVENT,))
    return [[from_record(one) for one in json.loads(detail)] for (detail,) in rows]


def counts(file: RunFile) -> dict[str, int]:
    """A run's units by status; those that its stopping rule left out are `spared`, and no longer `planned`."""
    found, config = file.counts(), file.info().get("config")
    _, rows = file.rows("SELECT kind FROM events WHERE kind IN ('started', 'stopped', 'ended') ORDER BY rowid")
    ended = bool(rows) and rows[-1][0] == "ended" and isinstance(config, dict) and "stop" in config
    return {**found, "planned": 0, "spared": found["planned"]} if ended and found["planned"] else found


@dataclass(frozen=True, slots=True)
class InterimLooks:
    """A study's stopping rule with its comparisons (and in how many clusters each is planned) and its clusters."""

    study: Study
    rule: StoppingRule
    planned: dict[str, int]
    order: list[str]
    several: bool

    @classmethod
    def of(cls, study: Study) -> InterimLooks | None:
        """None without a rule; what makes a rule impossible is said before anything is spent."""
        stop = getattr(study.config, "stop", None)
        if stop is None:
            return None
        if not isinstance(study, HasComparisons):
            raise ConfigError(f"{study.name} says nothing about comparisons, so there is nothing to stop for")
        try:
            from parley.analysis.stats.sequential import StoppingRule
        except ModuleNotFoundError:
            raise ConfigError(
                "a stopping rule needs pandas and friends: pip install 'parley-autogen[analysis]'"
            ) from None
        several = len({unit.facets.get("model") for unit in study.plan()}) > 1
        clusters: dict[str, set[str]] = {}
        for unit in study.plan():
            if "scenario" not in unit.facets:
                raise ConfigError(f"a stopping rule needs units with a facet 'scenario', and {unit.id} has none")
            for name in _names(study, unit, several):
                clusters.setdefault(name, set()).add(str(unit.facets["scenario"]))
        if not clusters:
            raise ConfigError(f"this run of {study.name} compares nothing, so there is nothing to stop for")
        order = sorted({str(unit.facets["scenario"]) for unit in study.plan()})
        random.Random(seed_from("order of clusters", getattr(study.config, "seed", 0))).shuffle(order)
        planned = {name: len(found) for name, found in clusters.items()}
        return cls(study, StoppingRule(**stop.model_dump()), planned, order, several)

    def clusters(self, number: int) -> list[str]:
        """Those that the look of this number is to see."""
        return self.order[: -(-len(self.order) * number // self.rule.looks)]

    def schedule(self) -> list[int]:
        """After how many clusters is looked."""
        return [len(self.clusters(number)) for number in range(1, self.rule.looks + 1)]

    def open(self, file: RunFile) -> set[str]:
        return set(self.planned) - {one.comparison for seen in looks_made(file) for one in seen if one.decision}

    def wanted(self, unit: Unit, still: set[str]) -> bool:
        names = _names(self.study, unit, self.several)
        return bool(still.intersection(names) if names else still)

    def wave(self, file: RunFile, number: int) -> Iterator[Unit]:
        here, still = set(self.clusters(number)), self.open(file)
        units = (unit for unit in pending(file, self.study) if str(unit.facets["scenario"]) in here)
        return (unit for unit in units if self.wanted(unit, still))

    def look(self, file: RunFile, number: int) -> None:
        """Made on all that is on disk for the clusters up to here, and written down."""
        from parley.analysis.stats.sequential import as_record, interim_look

        try:
            gaps = self._gaps(file, set(self.clusters(number)))
        except ParleyError:
            raise
        except Exception as error:  # a fault of the study's own function
            raise ParleyError(f"look {number} could not be made: {type(error).__name__}: {error}") from None
        before = [one for seen in looks_made(file) for one in seen]
        seen = interim_look(self.rule, number, gaps, self.planned, before)
        file.note(EVENT, json.dumps([as_record(one) for one in seen], ensure_ascii=False))

    def _gaps(self, file: RunFile, clusters: set[str]) -> dict[str, list[float]]:
        """The differences by comparison, from the frame of verdicts, each model's by itself."""
        from parley import frames

        verdicts = frames.verdicts(file)
        verdicts = verdicts[verdicts["scenario"].astype(str).isin(clusters)]
        found: dict[str, list[float]] = {}
        groups = verdicts.groupby("model", observed=True) if self.several else [("", verdicts)]
        for model, group in groups if len(verdicts) else ():
            table = find_gaps(self.study)(group)
            for name, gap in zip(table["comparison"], table["gap"], strict=True):
                found.setdefault(f"{name} · {model}" if self.several else str(name), []).append(float(gap))
        return found


def _names(study: Study, unit: Unit, several: bool) -> list[str]:
    assert isinstance(study, HasComparisons), "checked when the rule was read"
    return [f"{name} · {unit.facets['model']}" if several else name for name in study.compared(unit)]
