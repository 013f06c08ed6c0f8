"""Interim looks: a run in waves, with a test after each; units of comparisons that are decided are skipped.

Clusters (MALIBU's bases, BBQ's templates, the scenarios of other studies) come in an order drawn by the study's seed,
and only whole ones, so that a run that stops early is a fair sample and both sides of a comparison have the same
clusters. Every look is an event of the run file: a resumed run reads the looks that were made, never repeats one, and
keeps to their clusters and their test. Earlier versions took scenarios as clusters, and tested them by Student's t.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parley.agents import ConfigError, ParleyError, seed_from
from parley.base.text import plural
from parley.judging import HasComparisons, Study, Unit
from parley.judging.stopping import cluster_kind, cluster_of
from parley.runs.plan import pending
from parley.runs.store import RunFile
from parley.studies import find_gaps

if TYPE_CHECKING:
    from parley.analysis.stats.sequential import InterimResult, LookTest, StoppingRule

EVENT = "look"


def waves(study: Study, file: RunFile) -> Iterator[Iterator[Unit]]:
    """The units that are not done, wave by wave; advancing to the next wave makes the look that ends the last one."""
    looks = InterimLooks.of(study, file)
    if looks is None:
        yield pending(file, study)
        return
    first = len(looks_made(file)) + 1
    if first > looks.rule.looks:
        yield looks.wave(file, looks.rule.looks)  # all looks were made; only units that failed are run again
    for number in range(first, looks.rule.looks + 1):
        if not looks.undecided(file):
            return
        yield looks.wave(file, number)
        looks.make_look(file, number)


def count_skipped(study: Study, file: RunFile) -> int:
    """How many units are not run because the comparisons they serve are decided."""
    looks = InterimLooks.of(study, file)
    if looks is None:
        return 0
    undecided = looks.undecided(file)
    return sum(not looks.is_needed(unit, undecided) for unit in pending(file, study))


def looks_made(file: RunFile) -> list[list[InterimResult]]:
    """The looks so far, in order, each with its result for every comparison that was undecided."""
    from parley.analysis.stats.sequential import from_record

    _, rows = file.rows("SELECT detail FROM events WHERE kind = ? ORDER BY rowid", (EVENT,))
    return [[from_record(result) for result in json.loads(detail)] for (detail,) in rows]


def counts(file: RunFile) -> dict[str, int]:
    """A run's units by status; those that its stopping rule skipped are `spared` in place of `planned`."""
    by_status, config = file.counts(), file.info().get("config")
    _, rows = file.rows("SELECT kind FROM events WHERE kind IN ('started', 'stopped', 'ended') ORDER BY rowid")
    ended = bool(rows) and rows[-1][0] == "ended" and isinstance(config, dict) and "stop" in config
    if ended and by_status["planned"]:
        return {**by_status, "planned": 0, "spared": by_status["planned"]}
    return by_status


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimLooks:
    """A study's stopping rule, with its comparisons and its clusters."""

    study: Study
    rule: StoppingRule
    planned: dict[str, int]
    """The comparisons, each with its planned number of clusters."""
    order: list[str]
    """All clusters, in the order in which they are run."""
    several_models: bool
    """Whether comparisons are made for each model separately."""
    kind: str
    """What a cluster is: "base", "template", or the facet that names it."""
    test: LookTest

    @classmethod
    def of(cls, study: Study, file: RunFile | None = None) -> InterimLooks | None:
        """The study's interim looks; None without a stopping rule. A rule that cannot work is a `ConfigError`.

        Args:
            study: The study.
            file: Its run file, whose looks settle what the clusters and the test are; None for a new run.
        """
        stop = getattr(study.config, "stop", None)
        if stop is None:
            return None
        if not isinstance(study, HasComparisons):
            raise ConfigError(f"{study.name} defines no comparisons, so a stopping rule cannot be used with it")
        try:
            from parley.analysis.stats.sequential import StoppingRule
        except ModuleNotFoundError:
            raise ConfigError(
                "a stopping rule needs pandas and friends: pip install 'parley-autogen[analysis]'"
            ) from None
        made = [result for look in (looks_made(file) if file else []) for result in look]
        kind, test = (made[0].cluster, made[0].test) if made else (cluster_kind(study), "sign flips")
        several_models = len({unit.facets.get("model") for unit in study.plan()}) > 1
        clusters: dict[str, set[str]] = {}
        order: set[str] = set()
        for unit in study.plan():
            if (cluster := cluster_of(unit, kind)) is None:
                raise ConfigError(f"a stopping rule needs units with a facet '{kind}', and {unit.id} has none")
            order.add(cluster)
            for name in _comparisons(study, unit, several_models):
                clusters.setdefault(name, set()).add(cluster)
        if not clusters:
            raise ConfigError(f"this run of {study.name} compares nothing, so a stopping rule cannot be used with it")
        shuffled = sorted(order)
        random.Random(seed_from("order of clusters", getattr(study.config, "seed", 0))).shuffle(shuffled)
        return cls(
            study=study,
            rule=StoppingRule(**stop.model_dump()),
            planned={name: len(members) for name, members in clusters.items()},
            order=shuffled,
            several_models=several_models,
            kind=kind,
            test=test,
        )

    def clusters(self, number: int) -> list[str]:
        """The clusters that the look of this number (from 1) includes."""
        return self.order[: -(-len(self.order) * number // self.rule.looks)]

    def schedule(self) -> list[int]:
        """The number of clusters at each look."""
        return [len(self.clusters(number)) for number in range(1, self.rule.looks + 1)]

    def in_words(self) -> str:
        """How many comparisons are tested when; and if no look can decide one, what that would take."""
        from parley.analysis.stats.sequential import cluster_noun
        from parley.analysis.stats.signflips import clusters_to_reject

        noun, steps = cluster_noun(self.kind), ", ".join(map(str, self.schedule()))
        words = f"{plural(len(self.planned), 'comparison')} tested after {steps} {noun}s"
        needed = clusters_to_reject(self.rule.alpha, len(self.planned))
        few = max(self.planned.values()) < needed
        return f"{words}; none can be decided, since that takes {plural(needed, noun)}" if few else words

    def undecided(self, file: RunFile) -> set[str]:
        decided = {result.comparison for look in looks_made(file) for result in look if result.decision}
        return set(self.planned) - decided

    def is_needed(self, unit: Unit, undecided: set[str]) -> bool:
        """Whether a unit serves an undecided comparison; one that serves none is needed until all are decided."""
        names = _comparisons(self.study, unit, self.several_models)
        return bool(undecided.intersection(names) if names else undecided)

    def wave(self, file: RunFile, number: int) -> Iterator[Unit]:
        """The units to run before the look of this number."""
        clusters, undecided = set(self.clusters(number)), self.undecided(file)
        units = (unit for unit in pending(file, self.study) if cluster_of(unit, self.kind) in clusters)
        return (unit for unit in units if self.is_needed(unit, undecided))

    def make_look(self, file: RunFile, number: int) -> None:
        """Test the undecided comparisons on all stored verdicts of the look's clusters, and store the results."""
        from parley.analysis.stats.sequential import as_record, interim_look

        try:
            gaps = self._gaps(file, set(self.clusters(number)))
        except ParleyError:
            raise
        except Exception as error:  # a bug in the study's own function
            raise ParleyError(f"interim look {number} failed: {type(error).__name__}: {error}") from None
        before = [result for look in looks_made(file) for result in look]
        results = interim_look(self.rule, number, gaps, self.planned, before, cluster=self.kind, test=self.test)
        file.note(EVENT, json.dumps([as_record(result) for result in results], ensure_ascii=False))

    def _gaps(self, file: RunFile, clusters: set[str]) -> dict[str, list[float]]:
        """The differences of each comparison, one per cluster, by model if there are several."""
        from parley import frames

        verdicts = frames.verdicts(file)
        verdicts["cluster"] = verdicts["unit"].map({unit.id: cluster_of(unit, self.kind) for unit in self.study.plan()})
        verdicts = verdicts[verdicts["cluster"].isin(clusters)]
        gaps: dict[str, list[float]] = {}
        groups = verdicts.groupby("model", observed=True) if self.several_models else [("", verdicts)]
        for model, group in groups if len(verdicts) else ():
            table = find_gaps(self.study)(group)
            for name, gap in zip(table["comparison"], table["gap"], strict=True):
                gaps.setdefault(f"{name} · {model}" if self.several_models else str(name), []).append(float(gap))
        return gaps


def _comparisons(study: Study, unit: Unit, several_models: bool) -> list[str]:
    """The names of the comparisons that a unit serves."""
    assert isinstance(study, HasComparisons), "checked when the rule was read"
    return [f"{name} · {unit.facets['model']}" if several_models else name for name in study.compared(unit)]
