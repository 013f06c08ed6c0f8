"""The yardstick: judges score graded responses alone, without labels, in one call each.

A graded set has a good response, and the same with one stated flaw in two doses. Judges are asked the same as in the
first round of phase 1 about a response without a label. `full` asks every judge about every text; `brief` is for small
models and a first look: two severe flaws on a few bases, each base read by one judge on one metric in turn, with scores
read from log-probabilities where the model gives them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from parley.agents import ConfigError, Debate, Models, Readout
from parley.base.text import plural
from parley.judging.malibu.panel import Ballot, Panel
from parley.judging.study import Outcome, Unit, UsageEstimate
from parley.scenarios import Graded, Scenario, Suite
from parley.scenarios import Yardstick as Mode

PHASE = 3
"""The value of the facet `phase` in the yardstick's units."""
BRIEF_BASES = 8
BRIEF_TEXTS = (("", 0), ("safety", 2), ("figure", 2))
PERSONA_TOKENS = 40
SCORES_TOKENS = 40


def is_yardstick(unit: Unit) -> bool:
    """Whether a unit scores a graded response."""
    return unit.facets["phase"] == PHASE


class Yardstick:
    """The graded responses that a run's judges score.

    Args:
        suite: The suite with the graded responses; the run may be on a part of it.
        mode: How much of it is read; None for the default.
        default: How much is read by default, if the suite has graded responses.
        bases: Number of bases (default: those of the run; in `brief` 8, as a small run has too few of its own).
        preferred: The bases to take first: those of the run.
        panel: The judges, and what they report in phase 1. `brief` never asks for reasons, and prefers
            log-probabilities.
    """

    def __init__(
        self,
        suite: Suite,
        mode: Mode | None,
        *,
        default: Mode,
        bases: int | None,
        preferred: Collection[str],
        panel: Panel,
    ) -> None:
        if mode not in (None, "off") and not suite.graded:
            raise ConfigError(f"--yardstick {mode}: {suite.name} has no graded responses; it needs tables [[graded]]")
        mode = mode or default
        if bases is not None and mode == "off":
            raise ConfigError("--yardstick-bases needs a yardstick: --yardstick full or brief")
        self.brief = mode == "brief"
        own = sum(graded.base in preferred for graded in suite.graded)
        most = bases or (BRIEF_BASES if self.brief else own)
        ordered = sorted(suite.graded, key=lambda graded: graded.base not in preferred)  # stable: the suite's order
        self.sets: list[Graded] = [] if mode == "off" else ordered[:most]
        if bases is not None and len(self.sets) < bases:
            raise ConfigError(f"{suite.name} has graded responses for {plural(len(self.sets), 'base')}, not {bases}")
        self._suite = suite.model_copy(update={"graded": tuple(self.sets)})
        self.scenarios = {scenario.id: scenario for scenario in suite.scenario}
        self.texts = {
            (graded.base, flaw, dose): text for graded in self.sets for flaw, dose, text in self._texts_of(graded)
        }
        self._ballots = {graded.base: self._ballot(panel.ballots[1], place) for place, graded in enumerate(self.sets)}
        self.panel, self.with_remark = panel, panel.reasons_first and not self.brief

    def _texts_of(self, graded: Graded) -> Iterator[tuple[str, int, str]]:
        """Kind of flaw, dose and text; the good response has none and 0."""
        for flaw, dose, text in (("", 0, graded.good), *((flaw.kind, flaw.dose, flaw.text) for flaw in graded.flaw)):
            if not self.brief or (flaw, dose) in BRIEF_TEXTS:
                yield flaw, dose, text

    def _ballot(self, ballot: Ballot, place: int) -> Ballot:
        """What is asked about the texts of a base: all metrics; in `brief` one, another on each next base.

        With as many judges as metrics, a judge gets another metric at each turn.
        """
        if not self.brief:
            return ballot
        # Four metrics, each read from log-probabilities, took four calls.
        names = ballot.rubric.names
        return replace(ballot, rubric=ballot.rubric.only([names[(place + place // len(names)) % len(names)]]))

    def ballot(self, unit: Unit) -> Ballot:
        """What a unit's judge reports."""
        return self._ballots[str(unit.facets["base"])]

    def sources(self) -> dict[str, str]:
        """The hash of the graded responses that are read; nothing if none is."""
        if not self.sets:
            return {}
        return {f"graded responses of {self._suite.name} {self._suite.version}": self._suite.graded_digest()}

    def units(self) -> Iterator[Unit]:
        """One unit per text and judge; in `brief` all texts of a base have the same judge."""
        for place, graded in enumerate(self.sets):
            turn = place % len(self.panel.judges)
            readers = [turn] if self.brief else range(len(self.panel.judges))
            for flaw, dose, _ in self._texts_of(graded):
                for reader in readers:
                    yield Unit(
                        f"p3/{graded.base}/{f'{flaw}-{dose}' if flaw else 'good'}/j{reader + 1}",
                        {
                            "phase": PHASE,
                            "scenario": graded.scenario,
                            "base": graded.base,
                            "category": "",
                            "identity": "",
                            "control": "",
                            "repeat": 0,
                            "flaw": flaw,
                            "dose": dose,
                            "reader": self.panel.judges[reader].name,
                        },
                    )

    def scenario(self, unit: Unit) -> Scenario:
        """The situation that a unit's text answers, with the text as its response."""
        facets = unit.facets
        text = self.texts[str(facets["base"]), str(facets["flaw"]), int(facets["dose"])]
        return self.scenarios[str(facets["scenario"])].model_copy(update={"responses": (text, text)})

    def estimate(self, task_chars: int) -> UsageEstimate:
        """The usage of one reading, at four characters per token.

        Args:
            task_chars: Characters of the task.
        """
        reasons = self.panel.ballots[1].remark_chars // 4 if self.with_remark else 0
        return UsageEstimate(
            calls=1, prompt_tokens=task_chars // 4 + PERSONA_TOKENS, completion_tokens=SCORES_TOKENS + reasons
        )

    async def run(self, unit: Unit, task: str, models: Models) -> Outcome:
        """Let one judge score one text.

        Args:
            unit: A unit of `units`.
            task: What the judge is asked.
            models: Clients by model name.
        """
        ballot, panel = self.ballot(unit), self.panel
        judge = next(judge for judge in panel.judges if judge.name == unit.facets["reader"])
        client = models[judge.model or str(unit.facets["model"])]
        readout: Readout = "expected" if self.brief and client.logprobs else panel.readout
        reading = Debate(
            [judge],
            model=models[str(unit.facets["model"])],
            rounds=1,
            reply_type=ballot.reply_type(with_remark=self.with_remark),
            readout=readout,
            options=panel.options,
            models=models,
            placement=panel.placement,
            fence=panel.fence,
        )
        transcript = await reading.converse(task)
        verdicts = [v for turn in transcript.spoken() for v in ballot.verdicts(turn, expected=readout == "expected")]
        return Outcome(transcript, tuple(verdicts))
