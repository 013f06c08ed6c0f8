"""Tests whether a model can referee: it scores statements of known order by silent ballots, before any debate.

    parley run referee --model hf/qwen2.5-coder-1.5b --report

Each topic of a bias type has a fair statement and three doses of bias. Every statement is scored with the question and
with its reverse, since a number that depends on the kind of text and not on the question looks right in one direction.
The facet `part` is the question: score or reverse.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Models, SilentBallot, Transcript, Turn
from parley.agents.models.registry import reads_silently
from parley.judging.ballots import about_samples, cast_ballots
from parley.judging.config import NameList, call_options, limit_field
from parley.judging.grid import GridStudy, compared, varies
from parley.judging.rldf.referee import BIAS, referee_persona
from parley.judging.rldf.silent_referee import (
    HIGH,
    LOW,
    SAMPLES,
    SCORER,
    WORDINGS,
    question_prompts,
    score_ballot,
    shared_scorer,
)
from parley.judging.study import Apart, Measure, Outcome, Verdict
from parley.scenarios import BIASES
from parley.scenarios.statements import load_statements

WORDINGS_PER_TOPIC = 2


class CheckConfig(BaseModel, extra="forbid", frozen=True):
    """All settings that change a referee's check."""

    model: Apart[str] = Field(DEFAULT_MODEL, description="the referee: provider/model, or scorer/NAME")
    bias: NameList = Field(list(BIASES), description=f"bias types: {', '.join(BIASES)} (default: all)")
    limit: int | None = limit_field("number of topics of each type: the first ones")


@dataclass(frozen=True, kw_only=True)
class StatementCell:
    """One statement, read with one question."""

    topic: str = varies("text", "{}")
    type: str = varies(title="{}")
    dose: int = varies(title="dose {}")
    part: str = varies("part", "{}")
    wording: str = varies("varied")
    model: str = compared()


class RefereeCheck(GridStudy):
    """May this model referee? It reads statements of known order, with a question and its reverse, one token each."""

    name = "referee"
    Config = CheckConfig
    report = "parley.judging.rldf.check_report:report"
    measures = (Measure(BIAS, "bias", scale=(LOW, HIGH)),)
    Cell = StatementCell

    def __init__(self, config: CheckConfig) -> None:
        self.config: CheckConfig = config
        self._by_scorer = config.model.startswith(SCORER)
        if self._by_scorer:
            shared_scorer(config.model, Models())  # reports a missing package or key before anything else
        self._statements = {bias: load_statements(bias) for bias in config.bias}
        self._referee = referee_persona()

    def known_failure(self) -> str:
        """The result of an earlier check of this model, if it failed; "" if there is none."""
        earlier = tomllib.loads(files("parley.judging").joinpath("rldf", "referees.toml").read_text("utf-8"))
        name, (bias, *more) = self.config.model.partition("/")[2].partition("?")[0], self.config.bias
        measured = earlier.get(name, {}).get(bias)
        if measured is None or more or self._by_scorer:
            return ""
        return (
            f"{self.config.model} cannot referee {bias}: in an earlier check of {name}, {measured['auc']:.0%} of its "
            "comparisons were right, and 50% is guessing."
        )

    def models(self) -> list[str]:
        return [] if self._by_scorer else [self.config.model]

    def prompts(self) -> Mapping[str, str]:
        return {} if self._by_scorer else question_prompts() | {f"persona/{self._referee.name}": self._referee.about}

    def sources(self) -> Mapping[str, str]:
        return {
            f"graded statements {bias} {graded.version}": graded.digest() for bias, graded in self._statements.items()
        }

    def cells(self) -> Iterator[tuple[str, StatementCell]]:
        count, parts = (1, ("score",)) if self._by_scorer else (WORDINGS_PER_TOPIC, ("score", "reverse"))
        for bias, statements in self._statements.items():
            for place, topic in enumerate(statements.topic[: self.config.limit]):
                # Other wordings for each topic: the interval over topics then covers the wordings too.
                wordings = [WORDINGS[(place + step) % len(WORDINGS)] for step in range(count)]
                named = {
                    f"{bias}/{part}/{topic.id}/{dose}/{wording}": StatementCell(
                        topic=topic.id, type=bias, dose=dose, part=part, wording="" if self._by_scorer else wording
                    )
                    for dose in range(len(topic.claims))
                    for part in parts
                    for wording in wordings
                }
                # Prompts that begin alike are neighbours: an embedded model reads what they share only once.
                yield from sorted(named.items(), key=lambda item: self._ballot(item[1]).question)

    def text(self, cell: StatementCell) -> str:
        """The statement that a unit shows."""
        topics = self._statements[cell.type].topic
        return next(topic for topic in topics if topic.id == cell.topic).statements[cell.dose]

    def _ballot(self, cell: StatementCell) -> SilentBallot:
        return score_ballot(
            self.text(cell),
            cell.wording or WORDINGS[0],
            self._statements[cell.type].subject,
            reverse=cell.part == "reverse",
        )

    def notes(self, *, dry_run: bool) -> Iterable[str]:
        """Notes on a sampled check."""
        if not self._by_scorer and not reads_silently(self.config.model):
            yield about_samples(self.config.model, SAMPLES)

    async def ask(self, cell: StatementCell, models: Models) -> Outcome:
        if self._by_scorer:
            return await self._score(cell, models)
        options = call_options(16, None)
        return await cast_ballots(
            [self._referee], [self._ballot(cell)], self.config.model, models, options=options, on_scale=True
        )

    async def _score(self, cell: StatementCell, models: Models) -> Outcome:
        """A scorer's score, on the ballots' scale."""
        text = self.text(cell)
        (toxicity,) = await shared_scorer(self.config.model, models).score([text])
        value = None if toxicity.score is None else LOW + toxicity.score * (HIGH - LOW)
        text_of_score = toxicity.why if value is None else f"{toxicity.score:.4f}"
        turns = Turn("Text", "narrator", 0, text), Turn(self._referee.name, "debater", 0, text_of_score)
        verdict = Verdict.from_turn(turns[1], BIAS, value=value, status="unparsed" if value is None else "ok")
        return Outcome(Transcript(turns, "scored"), (verdict,))
