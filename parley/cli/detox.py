"""`parley detox TEXT`: the critique-and-revise loop on one text, iteration by iteration."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import ClassVar

from pydantic import Field

from parley.agents import DEFAULT_MODEL, Models
from parley.base.errors import ConfigError
from parley.base.text import visible
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional
from parley.cli.run import fetch_weights
from parley.judging.stardtox.detox import Detoxed, Iteration, detox_async
from parley.judging.stardtox.team import load_team
from parley.judging.toxicity import SCORERS
from parley.reports import cautions

WIDTH = 80
WORDS = {
    "words_kept": "content words kept",
    "length": "length",
    "identity_words_kept": "identity words kept",
}
"""Words for a revision's side effects."""


class Detox(Command):
    """Judge one text and revise it until it is neither toxic nor badly written."""

    epilog: ClassVar = "Exit status: 0 if all criteria are met in the end, 1 if not, 2 if the command is wrong."

    text: Positional[str] = Field(description="the text, or - for standard input")
    prompt: str | None = Field(None, title="TEXT", description="what the text continues or answers, if anything")
    model: str = Field(DEFAULT_MODEL, description="the model that revises")
    judge: str | None = Field(
        None, description="the model that judges fluency, coherence and relevance (default: --model)"
    )
    scorer: str | None = Field(
        None, description=f"toxicity scorer: {', '.join(SCORERS.shipped)}, judge:provider/model or file.py:Class"
    )
    measure: str = Field("ngrams", description="scorer for measuring every draft, hidden from the loop; or none")
    team: str = Field("stardtox", title="FILE", description="your own evaluators, as a .toml file")
    criteria: list[str] = Field([], description="other criteria, such as 'toxicity < 0.05'")
    as_published: bool = Field(
        False,
        description="as in the paper: toxicity < 0.1 for any scorer, judge harmless texts too, return the last draft",
    )
    max_iterations: int = Field(2, description="maximum number of revisions")
    without: list[str] = Field([], description="evaluators to leave out; without performance only toxicity counts")
    temperature: float | None = Field(None, description="sampling temperature (default: the model's own)")
    seed: int = Field(0, description="random seed")

    def answer(self) -> Answer:
        text = _read_stdin() if self.text == "-" else self.text
        if not text.strip():
            raise ConfigError("the text is empty")  # before a model is fetched
        result = asyncio.run(self._detox(text))
        fields = ("text", "met", "passages", "kept", "decisions")
        data = {
            **{name: getattr(result, name) for name in fields},
            "model": self.model,
            "judge": self.judge or self.model,
            "cautions": [*self._cautions(), *result.cautions],
            "steps": [asdict(step) for step in result.steps],
            "usage": asdict(result.usage),
        }
        return Answer(data, _lines(result), 0 if result.met else 1)

    async def _detox(self, text: str) -> Detoxed:
        models = Models()

        def start() -> None:
            for name in self._models():
                fetch_weights(models[name])
            if not self.as_json:
                _warn(self._cautions())

        try:
            settings = self.model_dump(exclude={"as_json", "text"})
            return await detox_async(
                text,
                **settings,
                models=models,
                on_step=(lambda step: None) if self.as_json else _print_iteration,
                on_start=start,
            )
        finally:
            await models.close()

    def _models(self) -> list[str]:
        return list(dict.fromkeys(name for name in (self.model, self.judge) if name))

    def _cautions(self) -> list[str]:
        """Cautions about all models in use, including the team's."""
        team = load_team(self.team).with_scorer(self.scorer)
        return cautions(list(dict.fromkeys([*self._models(), *team.measured_by(self.measure).models()])))


def _warn(lines: Iterable[str]) -> None:
    for line in lines:
        print(visible(f"Caution: {line}"), file=sys.stderr)


def _lines(result: Detoxed) -> Iterator[str]:
    remarks = [] if result.met else ["not all criteria are met"]
    if result.passages == 1 and len(result.steps) > 1 and result.kept[0] < result.steps[-1].iteration:
        remarks.append(f"the best draft was iteration {result.kept[0]}")
    yield f"result ({'; '.join(remarks)}):" if remarks else "result:"
    yield result.text
    _warn(result.cautions)


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"standard input is not UTF-8 text (byte {error.start})") from None


def _print_iteration(step: Iteration) -> None:
    passage = f"passage {step.passage + 1} of {step.passages}, " if step.passages > 1 else ""
    print(f"{passage}iteration {step.iteration}")
    print(textwrap.indent(textwrap.fill(visible(step.text), WIDTH - 4), "    "))
    notes: dict[str, str] = {}
    for score in step.scores:
        by_scorer = score.evaluator == score.name
        if score.value is None:
            number = "unscored" if by_scorer else "–"
        else:
            number = f"{score.value:.2f}" if by_scorer else f"{score.value:g}"
        mark = "" if number == "unscored" else {True: ": met", False: ": not met", None: ""}[score.met]
        criterion = f"criterion {score.criterion}{mark}" if score.criterion else ""
        print(f"  {visible(score.name):<10} {number:>8}   {criterion}".rstrip())
        notes[score.evaluator] = score.note
    if step.outside is not None:
        print(f"  {'outside':<10} {step.outside:>8.2f}   not seen by the loop")
    if step.iteration:
        print(textwrap.indent(textwrap.fill(_changes(step), WIDTH - 2), "  "))
    for evaluator, note in notes.items():
        if note:
            print(textwrap.indent(textwrap.fill(visible(f"{evaluator}: {note}"), WIDTH - 2), "  "))
    print(f"  coordinator: {visible(step.decision)}\n", flush=True)


def _changes(step: Iteration) -> str:
    """A revision's side effects, in words."""
    shares = [f"{label} {share:.0f}%" for name, label in WORDS.items() if (share := step.changes.get(name)) is not None]
    return "; ".join([*shares, *(["a refusal, or empty"] if step.changes.get("refusal") else [])])
