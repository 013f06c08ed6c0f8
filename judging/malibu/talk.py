"""MALIBU's debate after silent ballots: what do reasons add to a difference between labels, and what does hearing
others add?

Every judge of the panel casts a silent ballot (round 0), then gives reasons and a score before it has heard anybody
(round 1), then discusses (round 2 and later). All of them see the same prompt up to the question.

What a judge hears may move its score because of what was said, or because scores move on a second asking anyway. So in
control units the judges hear the scores of the same panel on the same text under another label: the scores alone, since
reasons could reveal whose they are. A third of the units, drawn at random, have a control on top: were they controls
themselves, hardly any contrast would have both sides left on enough bases. Pairs have no control.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from parley.agents import Debate, Models, Transcript, Turn, seed_from
from parley.judging.ballots import verdicts
from parley.judging.malibu.cell import TALK, MalibuCell
from parley.judging.malibu.panel import Panel
from parley.judging.malibu.silent import SilentBallots
from parley.judging.study import Outcome, Verdict
from parley.scenarios import Scenario

OTHER_LABEL_SHARE = 1 / 3
"""Share of the units that have a control, whose judges hear ballots on the same text under another label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The debates of a run that casts silent ballots.

    Args:
        silent: The ballots that come first, and the words of all prompts.
        panel: The judges, and how they talk.
        controlled: Whether there are control units.
        one_order: Whether a pair is debated in one order, drawn by the seed, as in the paper; else in both.
    """

    silent: SilentBallots
    panel: Panel
    controlled: bool
    one_order: bool

    def cells(self, scenario: Scenario, phases: Sequence[int], repeat: int) -> Iterator[MalibuCell]:
        """The debates of a scenario: the silent cells' labels and words, with what the judges hear."""
        silent: list[MalibuCell] = []
        if 1 in phases:
            silent += self.silent.singles(scenario, controls=False)
        if 2 in phases:
            silent += (cell for cell in self.silent.pairs(scenario) if self._debated(cell))
        controls: list[MalibuCell] = []  # after the others: an echo by chance is looked for in the unit before
        for cell in silent:
            debate = replace(cell, stage=TALK, repeat=repeat, heard="")
            if cell.phase == 1:
                heard = self._heard(debate)
                if heard != cell.identity:
                    controls.append(replace(debate, heard=heard))
                debate = replace(debate, heard=cell.identity)
            yield debate
        yield from controls

    def _debated(self, pair: MalibuCell) -> bool:
        """Whether a pair is debated in the order in which it is shown."""
        drawn = seed_from("debated order", self.panel.seed, pair.scenario, pair.identity, pair.other)
        return not self.one_order or pair.order == drawn % 2

    def _heard(self, cell: MalibuCell) -> str:
        """The label whose ballots are heard: the cell's, or another of its category."""
        others = [x for x in self.silent.identities.categories[cell.category] if x != cell.identity]
        draw = seed_from("heard", self.panel.seed, cell.id) / 2**31
        if not self.controlled or self.panel.rounds < 2 or draw >= OTHER_LABEL_SHARE or not others:
            return cell.identity
        return others[seed_from("heard label", self.panel.seed, cell.id) % len(others)]

    def task(self, cell: MalibuCell, texts: Sequence[str], situation: str) -> str:
        """What opens the debate; the arguments are those of `SilentBallots.ballots`."""
        if cell.phase == 1:
            return self.silent.single_prompt(cell, texts[0], situation, ask=self._asked(1, "first"))
        return self.silent.pair_prompt(cell, texts, situation, ask=self._asked(cell.phase, "first_pair"))

    async def ask(self, cell: MalibuCell, texts: Sequence[str], situation: str, models: Models) -> Outcome:
        """Run the debate; the arguments are those of `SilentBallots.ballots`."""
        before: list[Turn] = []
        if cell.heard and cell.heard != cell.identity:
            # In the order of speaking of this cell, whose control it is.
            heard = self.task(replace(cell, identity=cell.heard), texts, situation)
            before = (await self._debate(cell, models, rounds=1).converse(heard)).spoken()
        ballots = self.silent.ballots(cell, texts, situation)
        words = {turn.speaker: _scores_alone(turn) for turn in before}
        debate = self._debate(cell, models, ballots=ballots, heard=words)
        transcript = await debate.converse(self.task(cell, texts, situation))
        ballot = self.panel.ballots[cell.phase]
        first = transcript.spoken(round=0)
        metrics = [silent.metric for silent in ballots for _ in self.panel.judges]
        given: list[Verdict] = [v for turn, metric in zip(first, metrics, strict=True) for v in verdicts(turn, metric)]
        given += [v for turn in transcript.spoken() if turn.round for v in ballot.verdicts(turn)]
        # Recorded with their calls, but they are about another label, so they are no verdict on this one.
        told = tuple(turn._replace(role="narrator", round=0, verdict=None, parse_status=None) for turn in before)
        return Outcome(Transcript((*transcript.turns, *told), transcript.stop_reason), tuple(given))

    def _debate(self, cell: MalibuCell, models: Models, **arguments: Any) -> Debate:
        ballot = self.panel.ballots[cell.phase]
        discussion = self._asked(ballot.phase, "discuss" if ballot.phase == 1 else "discuss_pair")
        return self.panel.debate(
            cell.id,
            cell.model,
            models,
            instructions=lambda cue: None if cue.round < 2 else discussion,
            reply_type=ballot.reply_type(with_remark=True),
            **arguments,
        )

    def _asked(self, phase: int, part: Literal["first", "discuss", "first_pair", "discuss_pair"]) -> str:
        """What the debate asks for."""
        ballot = self.panel.ballots[phase]
        low, high = ballot.scale
        metrics = ballot.rubric.text() if len(ballot.rubric.metric) > 1 else ""
        wordings = self.silent.wordings
        form = ballot.format(with_remark=True, words=wordings.talk)
        return wordings.talk_part(part, format=form, low=low, high=high, metrics=metrics)


def _scores_alone(turn: Turn) -> str:
    """A reply without its reasons, which may name the label or say "she"; empty braces where it could not be read."""
    reply = turn.verdict.model_dump() if turn.verdict else {}
    scores = {name: value for name, value in reply.items() if isinstance(value, int | float)}
    return json.dumps({name: int(value) if value == int(value) else value for name, value in scores.items()})
