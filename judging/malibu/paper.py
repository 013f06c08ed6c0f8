"""MALIBU's panel in the paper's prompts: judges score a response, or two, in a group chat, from 0 to 10.

As in the paper, one of the four cells of a pair (two assignments of label to response, two orders) is judged, and the
judges speak in a fixed order from the beginning; settings given with `--design paper` change that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from parley.agents import Cue, Models, seed_from
from parley.judging.malibu.panel import Panel, candidate, cell_facets, show_candidate
from parley.judging.study import Outcome, Prompt, Unit, UsageEstimate
from parley.scenarios import Identities, Scenario

PROMPTS = {
    key: Prompt.load(f"malibu/{key}")
    for key in ("single", "pair", "pair_inferred", "single_discuss", "pair_discuss", "chair")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPanel:
    """The units of a run in the paper's design.

    Args:
        identities: The labels of the run.
        scenarios: What is judged, by id.
        phases: 1 for single candidates, 2 for pairs.
        controls: Whether null controls are run.
        cells: Whether a pair is judged in all four cells, or in one drawn by the seed.
        repeats: How often each unit is run.
        panel: The panel.
    """

    identities: Identities
    scenarios: Mapping[str, Scenario]
    phases: Sequence[int]
    controls: bool
    cells: Literal["all", "one"]
    repeats: int
    panel: Panel

    def units(self) -> Iterator[Unit]:
        """Every scenario's singles and pairs."""
        for repeat in range(self.repeats):
            for scenario in self.scenarios.values():
                if 1 in self.phases:
                    yield from self._singles(scenario, repeat)
                if 2 in self.phases:
                    yield from self._pairs(scenario, repeat)

    def _singles(self, scenario: Scenario, repeat: int) -> Iterator[Unit]:
        for label in [*self.identities, *([""] if self.controls else [])]:
            yield Unit(
                f"p1/{scenario.id}/{label or 'none'}/r{repeat}",
                {
                    "phase": 1,
                    "scenario": scenario.id,
                    "base": scenario.base,
                    "category": self.identities.category_of(label),
                    "identity": label,
                    "control": "" if label else "no label",
                    "repeat": repeat,
                },
            )

    def _pairs(self, scenario: Scenario, repeat: int) -> Iterator[Unit]:
        compared = [(x, y, "") for x, y in self.identities.pairs()]
        if self.controls:
            compared += [("", "", "no label")] + [(x, x, "same label") for x in self.identities]
        for x, y, control in compared:
            yield from self._cells(scenario, x, y, control, repeat)

    def _cells(self, scenario: Scenario, x: str, y: str, control: str, repeat: int) -> Iterator[Unit]:
        # With equal labels, swapping them changes nothing: two of the four cells remain.
        cells = [(0, 0), (0, 1)] if control else [(0, 0), (0, 1), (1, 0), (1, 1)]
        if self.cells == "one":
            cells = [cells[seed_from(self.panel.seed, scenario.id, x, y, repeat) % len(cells)]]
        for assignment, order in cells:
            yield Unit(
                f"p2/{scenario.id}/{x or 'none'}-{y or 'none'}/a{assignment}o{order}/r{repeat}",
                {
                    "phase": 2,
                    "scenario": scenario.id,
                    "base": scenario.base,
                    "category": self.identities.category_of(x),
                    **cell_facets(x, y, assignment, order),
                    "control": control,
                    "repeat": repeat,
                },
            )

    def task(self, unit: Unit) -> str:
        """The prompt that opens the unit's conversation."""
        facets = unit.facets
        scenario = self.scenarios[str(facets["scenario"])]
        responses = scenario.responses
        assert responses, "a suite without responses is refused"
        phase = int(facets["phase"])
        ballot = self.panel.ballots[phase]
        shared = {
            "scenario": scenario.text,
            "metrics": ballot.rubric.text(),
            "format": ballot.format(with_remark=self.panel.reasons_first),
            "choices": ballot.choices,
        }
        sides = [("", "", responses[0])]
        if phase == 2:
            sides = [(f"_{x}", f" {x.upper()}", responses[int(facets[f"response_{x}"]) - 1]) for x in "ab"]
        shown: dict[str, str] = {}
        for key, side, response in sides:
            name = candidate(side, str(facets[f"identity{key}"]))
            text = show_candidate(response, name, fenced=self.panel.fence)
            shown |= {f"candidate{key}": text.candidate, f"response{key}": text.response}
        pair = "pair" if ballot.rubric.preference == "stated" else "pair_inferred"
        return PROMPTS["single" if phase == 1 else pair](**shown, **shared)

    def _instructions(self, phase: int, cue: Cue) -> str | None:
        if cue.role == "chair":
            return PROMPTS["chair"](format=self.panel.ballots[phase].format())
        if cue.round == 1:
            return None
        key = "single_discuss" if phase == 1 else "pair_discuss"
        return PROMPTS[key](format=self.panel.ballots[phase].format(with_remark=True))

    def _with_remark(self, cue: Cue) -> bool:
        """Whether a ballot of phase 1 has reasons; a comparison always has."""
        return cue.role != "chair" and (cue.round > 1 or self.panel.reasons_first)

    def estimate(self, unit: Unit) -> UsageEstimate:
        """The usage of a unit."""
        return self.panel.estimate(len(self.task(unit)), int(unit.facets["phase"]))

    async def run(self, unit: Unit, models: Models) -> Outcome:
        """Let the panel talk about one unit."""
        phase, readout = int(unit.facets["phase"]), self.panel.readout
        ballot = self.panel.ballots[phase]
        debate = self.panel.debate(
            unit,
            models,
            chair=self.panel.chair,
            instructions=lambda cue: self._instructions(phase, cue),
            reply_type=lambda cue: ballot.reply_type(with_remark=self._with_remark(cue)),
            readout=readout,
        )
        transcript = await debate.converse(self.task(unit))
        verdicts = [v for turn in transcript.spoken() for v in ballot.verdicts(turn, expected=readout == "expected")]
        return Outcome(transcript, tuple(verdicts))
