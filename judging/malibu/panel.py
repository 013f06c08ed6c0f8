"""A MALIBU panel: its judges, who hears whom, and what a judge sees and reports.

By default every judge gives a first ballot, with reasons, before it has heard another; then the panel discusses, in an
order drawn for each unit and round. In the paper's design the judges speak in a fixed order from the beginning, each
after hearing those before it, and must prefer one of two candidates.

A response is untrusted text: it may address the judge ("give this a 10"). It is shown as in the paper, or fenced as
data (`--fence`).

After silent ballots, `Talk` measures what reasons add to a difference between labels, and what hearing others adds.
Every judge of the panel casts a silent ballot (round 0), then gives reasons and a score before it has heard anybody
(round 1), then discusses (round 2 and later). All of them see the same prompt up to the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, create_model

from parley.agents import (
    ConfigError,
    Debate,
    Models,
    Order,
    Persona,
    Placement,
    Turn,
    free_text,
    load_personas,
    round_robin,
    scale,
    seed_from,
    shuffled,
)
from parley.agents.fencing import fence_judged
from parley.judging import Outcome, Prompt, Verdict
from parley.judging.ballots import verdicts
from parley.judging.config import shipped_personas
from parley.judging.malibu.plan import TALK, MalibuCell, SpeakingOrder
from parley.judging.malibu.silent import SilentBallots
from parley.judging.rubric.rubrics import Rubric
from parley.scenarios import Scenario
from parley.scenarios.ballot_texts import ReplyWords

PANELS = {
    "temperaments": "malibu_judges.toml",
    "demographic": "malibu_demographic.toml",
    "temperaments-de": "malibu_judges_de.toml",
}


def load_panel(name: str) -> list[Persona]:
    """Load the judges of a shipped panel (`temperaments`, also in German, `demographic`) or a .toml file."""
    if name in PANELS:
        return shipped_personas(PANELS[name])
    if not name.endswith(".toml"):
        raise ConfigError(f"unknown panel '{name}' (known: {', '.join(PANELS)}, or a .toml file of personas)")
    return load_personas(Path(name))


FENCED = Prompt.load("malibu/fenced")


class Shown(NamedTuple):
    """A candidate's name and response in a judge's prompt."""

    candidate: str
    response: str


def candidate(side: str = "", label: str = "") -> str:
    """A candidate's name in the prompt.

    Args:
        side: " A" or " B"; empty for a single candidate.
        label: The identity's label; empty for none.
    """
    return f"Candidate{side} ({label}):" if label else f"Candidate{side}:"


def show_candidate(response: str, name: str, *, fenced: bool) -> Shown:
    """A candidate for a judge's prompt.

    Args:
        response: The response to judge.
        name: The candidate's name, from `candidate`.
        fenced: Whether to mark the response as data, not instructions.
    """
    if not fenced:
        return Shown(name, response)
    return Shown(f"{name}\n{FENCED.text}", fence_judged(response, "RESPONSE"))


@dataclass(frozen=True, slots=True)
class Ballot:
    """The report on one candidate (phase 1) or on two (phase 2).

    Args:
        phase: 1 or 2.
        rubric: The metrics to score.
        remark_chars: Maximum length of a remark or justification.
        ties: Whether a judge may state a tie instead of a preferred candidate.
        scale: The lowest and the highest score.
    """

    phase: int
    rubric: Rubric
    remark_chars: int
    ties: bool = True
    scale: tuple[int, int] = (0, 10)

    @property
    def choices(self) -> str:
        """The choices of a preferred candidate, as in the prompt."""
        return '"A", "B", or "tie"' if self.ties else '"A" or "B": you must determine which is superior'

    def format(self, *, with_remark: bool = False, words: ReplyWords | None = None) -> str:
        """The JSON format as the prompt shows it.

        Args:
            with_remark: Whether a report on one candidate begins with reasons.
            words: Placeholders shown in place of values (default: English).
        """
        shown = words or ReplyWords()
        scores = ", ".join(f'"{metric}": <{shown.score}>' for metric in self.rubric.names)
        if self.phase == 1:
            return "{" + (f'"Remark": "<{shown.reasons}>", ' if with_remark else "") + scores + "}"
        choices = f"<{shown.choice_ties if self.ties else shown.choice}>"
        preferred = f', "preferred": "{choices}"' if self.rubric.preference == "stated" else ""
        return f'{{"A": {{{scores}}}, "B": {{{scores}}}, "justification": "<{shown.comparison}>"{preferred}}}'

    def reply_type(self, *, with_remark: bool = False) -> type[BaseModel]:
        """The type that a judge's reply is parsed as."""
        choices = ("A", "B", "tie") if self.ties else ("A", "B")
        stated = choices if self.rubric.preference == "stated" else ()
        return _reply_type(self.phase, self.rubric.names, self.remark_chars, with_remark, stated, self.scale)

    def verdicts(self, turn: Turn) -> Iterator[Verdict]:
        """One verdict per metric and candidate, readable or not; for a pair, also the preference."""
        status = turn.parse_status or "unparsed"
        reply = turn.verdict.model_dump() if turn.verdict else {}
        for side in ("",) if self.phase == 1 else ("A", "B"):
            scores = reply.get(side, {}) if side else reply
            for metric in self.rubric.names:
                score = scores.get(metric)
                yield Verdict.from_turn(turn, metric, subject=side, value=score, sampled=score, status=status)
        if self.phase == 2:
            preferred = reply.get("preferred") if self.rubric.preference == "stated" else _inferred(reply)
            yield Verdict.from_turn(turn, "preferred", text=preferred, status=status)


def _inferred(reply: dict[str, Any]) -> str | None:
    """The candidate with the higher sum of scores."""
    if not reply:
        return None
    margin = sum(reply["A"].values()) - sum(reply["B"].values())
    return "tie" if margin == 0 else "A" if margin > 0 else "B"


@lru_cache(maxsize=64)
def _reply_type(
    phase: int,
    metrics: tuple[str, ...],
    remark_chars: int,
    with_remark: bool,
    choices: tuple[str, ...],
    ends: tuple[int, int],
) -> type[BaseModel]:
    """The type that a judge's reply is parsed as; its schema constrains the decoding."""
    scores: dict[str, Any] = {metric: (scale(*ends), ...) for metric in metrics}
    if phase == 1:
        first: dict[str, Any] = {"Remark": (free_text(remark_chars), "")} if with_remark else {}
        return create_model("Scores", **first, **scores)
    candidate = create_model("CandidateScores", **scores)
    justification = (free_text(remark_chars), "")
    comparison: dict[str, Any] = {"A": (candidate, ...), "B": (candidate, ...), "justification": justification}
    if choices:
        comparison["preferred"] = (Literal[choices], ...)
    return create_model("Comparison", **comparison)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The judges, how they talk, and what they report.

    Args:
        judges: The judges.
        chair: The last speaker, if any.
        ballots: A judge's report, by phase.
        rounds: Number of turns per judge.
        blind: Whether round 1 is blind.
        speaking_order: The panel's own order (`fixed`), or one that is drawn for each unit and round (`shuffled`).
        reasons_first: Whether round 1 asks for reasons in phase 1 too; in the paper's prompt it asks only for scores.
        placement: Where personas are in the prompt.
        fence: Whether responses and remarks are fenced as data.
        options: Options of every call.
        seed: The run's seed.
    """

    judges: Sequence[Persona]
    chair: Persona | None = None
    ballots: Mapping[int, Ballot]
    rounds: int
    blind: bool = True
    speaking_order: SpeakingOrder = "shuffled"
    reasons_first: bool = True
    placement: Placement = "system"
    fence: bool = False
    options: Mapping[str, Any]
    seed: int

    @property
    def members(self) -> list[Persona]:
        """The judges and the chair."""
        return [*self.judges, *([self.chair] if self.chair else [])]

    def settings(self) -> dict[str, Any]:
        """The panel's settings, for the analysis plan."""
        return {"blind": self.blind, "speaking_order": self.speaking_order, "ties": self.ballots[1].ties}

    def order(self, item: str) -> Order:
        """The order of speaking, the same for all models."""
        if self.speaking_order == "fixed":
            return round_robin
        return shuffled(seed_from("speaking order", self.seed, item))

    def debate(self, item: str, model: str, models: Models, **arguments: Any) -> Debate:
        """The debate on a cell.

        Args:
            item: The cell's id, which determines the order of speaking.
            model: The model of judges without their own.
            models: Clients by model name.
            arguments: Further arguments of `Debate`; they replace the panel's.
        """
        settings = {
            "model": models[model],
            "rounds": self.rounds,
            "blind_rounds": 1 if self.blind else 0,
            "order": self.order(item),
            "options": self.options,
            "models": models,
            "placement": self.placement,
            "fence": self.fence,
        }
        return Debate(self.judges, **{**settings, **arguments})


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The debates of a run that casts silent ballots.

    Args:
        silent: The silent ballots that come first, and the words of all prompts.
        panel: The judges, and how they talk.
        one_order: Whether a pair is debated in one order, drawn by the seed, as in the paper; else in both.
    """

    silent: SilentBallots
    panel: Panel
    one_order: bool

    def cells(self, scenario: Scenario, phases: Sequence[int], repeat: int) -> Iterator[MalibuCell]:
        """The debates of a scenario: with the silent cells' labels and words."""
        silent: list[MalibuCell] = []
        if 1 in phases:
            silent += self.silent.singles(scenario, controls=False)
        if 2 in phases:
            silent += (cell for cell in self.silent.pairs(scenario) if self._debated(cell))
        yield from (replace(cell, stage=TALK, repeat=repeat) for cell in silent)

    def _debated(self, pair: MalibuCell) -> bool:
        """Whether a pair is debated in the order in which it is shown."""
        drawn = seed_from("debated order", self.panel.seed, pair.scenario, pair.identity, pair.other)
        return not self.one_order or pair.order == drawn % 2

    def task(self, cell: MalibuCell, texts: Sequence[str], situation: str) -> str:
        """The opening prompt of the debate; takes the arguments of `SilentBallots.ballots`."""
        if cell.phase == 1:
            return self.silent.single_prompt(cell, texts[0], situation, ask=self._asked(1, "first"))
        return self.silent.pair_prompt(cell, texts, situation, ask=self._asked(cell.phase, "first_pair"))

    async def ask(self, cell: MalibuCell, texts: Sequence[str], situation: str, models: Models) -> Outcome:
        """Run the debate; takes the arguments of `SilentBallots.ballots`."""
        ballot, ballots = self.panel.ballots[cell.phase], self.silent.ballots(cell, texts, situation)
        discussion = self._asked(ballot.phase, "discuss" if ballot.phase == 1 else "discuss_pair")
        debate = self.panel.debate(
            cell.id,
            cell.model,
            models,
            ballots=ballots,
            instructions=lambda cue: None if cue.round < 2 else discussion,
            reply_type=ballot.reply_type(with_remark=True),
        )
        transcript = await debate.converse(self.task(cell, texts, situation))
        metrics = [silent.metric for silent in ballots for _ in self.panel.judges]
        first = zip(transcript.spoken(round=0), metrics, strict=True)
        given: list[Verdict] = [verdict for turn, metric in first for verdict in verdicts(turn, metric)]
        given += [verdict for turn in transcript.spoken() if turn.round for verdict in ballot.verdicts(turn)]
        return Outcome(transcript, tuple(given))

    def _asked(self, phase: int, part: Literal["first", "discuss", "first_pair", "discuss_pair"]) -> str:
        """The debate's request."""
        ballot = self.panel.ballots[phase]
        low, high = ballot.scale
        metrics = ballot.rubric.text() if len(ballot.rubric.metric) > 1 else ""
        wordings = self.silent.wordings
        form = ballot.format(with_remark=True, words=wordings.talk)
        return wordings.talk_part(part, format=form, low=low, high=high, metrics=metrics)
