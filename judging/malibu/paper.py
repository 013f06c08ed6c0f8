"""MALIBU's panel in the paper's prompts: judges score a response, or two, in a group chat, from 0 to 10.

As in the paper, one of the four cells of a pair (two assignments of label to response, two orders) is judged, and the
judges speak in a fixed order from the beginning; settings given with `--design paper` change that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from parley.agents import ConfigError, Cue, Models, Persona, seed_from
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.panel import Panel, candidate, cell_facets, show_candidate
from parley.judging.study import Outcome, Prompt, Unit
from parley.scenarios import Identities, Scenario, Suite
from parley.scenarios.ballot_wordings import ENGLISH

PROMPTS = {
    key: Prompt.load(f"malibu/{key}")
    for key in ("single", "pair", "pair_inferred", "single_discuss", "pair_discuss", "chair")
}


class PaperDesign:
    """The units of a run in the paper's design.

    Args:
        config: The run's settings.
        panel: The panel.
        identities: The labels of the run.
        suite: What is judged.
    """

    judges: Sequence[Persona] = ()
    """Nobody judges but the panel."""

    def __init__(self, config: MalibuConfig, panel: Panel, identities: Identities, suite: Suite) -> None:
        for flag, given in {
            "--wordings": config.wordings != ENGLISH,
            "--yardstick": config.yardstick not in (None, "off"),
            "--yardstick-bases": config.yardstick_bases is not None,
        }.items():
            if given:
                raise ConfigError(f"{flag} is for designs with silent ballots: staged, silent or talk")
        self._config, self._panel, self._identities = config, panel, identities
        self._scenarios = {scenario.id: scenario for scenario in suite.scenario}

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in PROMPTS.values()}

    def sources(self) -> Mapping[str, str]:
        return {}

    def notes(self, models: Sequence[str], *, dry_run: bool) -> Iterator[str]:
        yield from ()

    def units(self) -> Iterator[Unit]:
        """Every scenario's singles and pairs."""
        for repeat in range(self._config.repeats):
            for scenario in self._scenarios.values():
                if 1 in self._config.phases:
                    yield from self._singles(scenario, repeat)
                if 2 in self._config.phases:
                    yield from self._pairs(scenario, repeat)

    def _singles(self, scenario: Scenario, repeat: int) -> Iterator[Unit]:
        for label in [*self._identities, *([""] if self._config.controls else [])]:
            yield Unit(
                f"p1/{scenario.id}/{label or 'none'}/r{repeat}",
                {
                    "phase": 1,
                    "scenario": scenario.id,
                    "base": scenario.base,
                    "category": self._identities.category_of(label),
                    "identity": label,
                    "control": "" if label else "no label",
                    "repeat": repeat,
                },
            )

    def _pairs(self, scenario: Scenario, repeat: int) -> Iterator[Unit]:
        compared = [(x, y, "") for x, y in self._identities.pairs()]
        if self._config.controls:
            compared += [("", "", "no label")] + [(x, x, "same label") for x in self._identities]
        for x, y, control in compared:
            yield from self._cells(scenario, x, y, control, repeat)

    def _cells(self, scenario: Scenario, x: str, y: str, control: str, repeat: int) -> Iterator[Unit]:
        # With equal labels, swapping them changes nothing: two of the four cells remain.
        cells = [(0, 0), (0, 1)] if control else [(0, 0), (0, 1), (1, 0), (1, 1)]
        if self._config.cells == "one":
            cells = [cells[seed_from(self._panel.seed, scenario.id, x, y, repeat) % len(cells)]]
        for assignment, order in cells:
            yield Unit(
                f"p2/{scenario.id}/{x or 'none'}-{y or 'none'}/a{assignment}o{order}/r{repeat}",
                {
                    "phase": 2,
                    "scenario": scenario.id,
                    "base": scenario.base,
                    "category": self._identities.category_of(x),
                    **cell_facets(x, y, assignment, order),
                    "control": control,
                    "repeat": repeat,
                },
            )

    def task(self, unit: Unit) -> str:
        """The prompt that opens the unit's conversation."""
        facets, panel, scenario = unit.facets, self._panel, self._scenarios[str(unit.facets["scenario"])]
        responses, phase = scenario.responses, int(facets["phase"])
        assert responses, "a suite without responses is refused"
        ballot = panel.ballots[phase]
        sides = [("", "", responses[0])]
        if phase == 2:
            sides = [(f"_{x}", f" {x.upper()}", responses[int(facets[f"response_{x}"]) - 1]) for x in "ab"]
        shown: dict[str, str] = {}
        for key, side, response in sides:
            name = candidate(side, str(facets[f"identity{key}"]))
            text = show_candidate(response, name, fenced=panel.fence)
            shown |= {f"candidate{key}": text.candidate, f"response{key}": text.response}
        pair = "pair" if ballot.rubric.preference == "stated" else "pair_inferred"
        return PROMPTS["single" if phase == 1 else pair](
            **shown,
            scenario=scenario.text,
            metrics=ballot.rubric.text(),
            format=ballot.format(with_remark=panel.reasons_first),
            choices=ballot.choices,
        )

    async def run(self, unit: Unit, models: Models) -> Outcome:
        """Let the panel talk about one unit."""
        panel = self._panel
        ballot = panel.ballots[int(unit.facets["phase"])]

        def instructions(cue: Cue) -> str | None:
            if cue.role == "chair":
                return PROMPTS["chair"](format=ballot.format())
            key = "single_discuss" if ballot.phase == 1 else "pair_discuss"
            return None if cue.round == 1 else PROMPTS[key](format=ballot.format(with_remark=True))

        def reply_type(cue: Cue) -> type[BaseModel]:
            """A ballot of phase 1 has reasons only in a discussion, or if they are asked for; a comparison always."""
            return ballot.reply_type(with_remark=cue.role != "chair" and (cue.round > 1 or panel.reasons_first))

        debate = panel.debate(
            unit,
            models,
            chair=panel.chair,
            instructions=instructions,
            reply_type=reply_type,
        )
        transcript = await debate.converse(self.task(unit))
        return Outcome(transcript, tuple(v for turn in transcript.spoken() for v in ballot.verdicts(turn)))
