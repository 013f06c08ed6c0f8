"""MALIBU's panel in the paper's prompts: judges score a response, or two, in a group chat, from 0 to 10.

As in the paper, one of the four cells of a pair (two assignments of label to response, two orders) is judged, and the
judges speak in a fixed order from the beginning; settings given with `--design paper` change that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from parley.agents import ConfigError, Cue, Models, Persona, seed_from
from parley.judging.malibu.cell import MalibuCell, sides
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.panel import Panel, candidate, show_candidate
from parley.judging.study import Outcome, Prompt
from parley.scenarios import Identities, Scenario, Suite
from parley.scenarios.ballot_wordings import ENGLISH

PROMPTS = {
    key: Prompt.load(f"malibu/{key}")
    for key in ("single", "pair", "pair_inferred", "single_discuss", "pair_discuss", "chair")
}


class PaperDesign:
    """The cells of a run in the paper's design.

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

    def cells(self) -> Iterator[MalibuCell]:
        """Every scenario's singles and pairs."""
        for repeat in range(self._config.repeats):
            for scenario in self._scenarios.values():
                if 1 in self._config.phases:
                    for label in [*self._identities, *([""] if self._config.controls else [])]:
                        control = "" if label else "no label"
                        yield self._cell(1, scenario, repeat, label, identity=label, control=control)
                if 2 in self._config.phases:
                    yield from self._pairs(scenario, repeat)

    def _cell(self, phase: int, scenario: Scenario, repeat: int, label: str, **more: Any) -> MalibuCell:
        category = self._identities.category_of(label)
        return MalibuCell(
            phase=phase, scenario=scenario.id, base=scenario.base, category=category, repeat=repeat, **more
        )

    def _pairs(self, scenario: Scenario, repeat: int) -> Iterator[MalibuCell]:
        compared = [(x, y, "") for x, y in self._identities.pairs()]
        if self._config.controls:
            compared += [("", "", "no label")] + [(x, x, "same label") for x in self._identities]
        for x, y, control in compared:
            yield from self._assigned(scenario, x, y, control, repeat)

    def _assigned(self, scenario: Scenario, x: str, y: str, control: str, repeat: int) -> Iterator[MalibuCell]:
        # With equal labels, swapping them changes nothing: two of the four cells remain.
        cells = [(0, 0), (0, 1)] if control else [(0, 0), (0, 1), (1, 0), (1, 1)]
        if self._config.cells == "one":
            cells = [cells[seed_from(self._panel.seed, scenario.id, x, y, repeat) % len(cells)]]
        for assignment, order in cells:
            yield self._cell(2, scenario, repeat, x, control=control, **sides(x, y, assignment, order))

    def task(self, cell: MalibuCell) -> str:
        """The prompt that opens the cell's conversation."""
        panel, scenario = self._panel, self._scenarios[cell.scenario]
        assert scenario.responses, "a suite without responses is refused"
        ballot = panel.ballots[cell.phase]
        shown: dict[str, str] = {}
        for side, label, number in zip(
            ("",) if cell.phase == 1 else ("a", "b"), cell.labels, cell.responses, strict=True
        ):
            name = candidate(f" {side.upper()}" if side else "", label)
            text = show_candidate(scenario.responses[number - 1], name, fenced=panel.fence)
            key = f"_{side}" if side else ""
            shown |= {f"candidate{key}": text.candidate, f"response{key}": text.response}
        pair = "pair" if ballot.rubric.preference == "stated" else "pair_inferred"
        return PROMPTS["single" if cell.phase == 1 else pair](
            **shown,
            scenario=scenario.text,
            metrics=ballot.rubric.text(),
            format=ballot.format(with_remark=panel.reasons_first),
            choices=ballot.choices,
        )

    async def ask(self, cell: MalibuCell, models: Models) -> Outcome:
        """Let the panel talk about one cell."""
        panel = self._panel
        ballot = panel.ballots[cell.phase]

        def instructions(cue: Cue) -> str | None:
            if cue.role == "chair":
                return PROMPTS["chair"](format=ballot.format())
            key = "single_discuss" if ballot.phase == 1 else "pair_discuss"
            return None if cue.round == 1 else PROMPTS[key](format=ballot.format(with_remark=True))

        def reply_type(cue: Cue) -> type[BaseModel]:
            """A ballot of phase 1 has reasons only in a discussion, or if they are asked for; a comparison always."""
            return ballot.reply_type(with_remark=cue.role != "chair" and (cue.round > 1 or panel.reasons_first))

        debate = panel.debate(
            cell.id,
            cell.model,
            models,
            chair=panel.chair,
            instructions=instructions,
            reply_type=reply_type,
        )
        transcript = await debate.converse(self.task(cell))
        return Outcome(transcript, tuple(v for turn in transcript.spoken() for v in ballot.verdicts(turn)))
