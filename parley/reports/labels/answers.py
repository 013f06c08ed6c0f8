"""What a rater may answer about an item, and how it is stored: by the page, from a file, or by a simulated rater.

A simulated rater is `sim/rater?agree=0.8&bias=0.5`: with probability `agree` it says what the judges say, otherwise
anything; `bias` is added to its scores, `noise` is their standard deviation, `skip` the share of items it skips.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from pydantic import BaseModel, Field, ValidationError

from parley.agents import ConfigError, seed_from
from parley.agents.models.request import split_name
from parley.judging.labelled import SCALE
from parley.reports.labels.draws import (
    CHOICES,
    DrawSettings,
    asked_item,
    final_verdicts,
    find_draw,
    majority,
    rater_order,
)
from parley.reports.labels.items import PAIR_VALUES, LabelItem, Question, label_item
from parley.runs import RunFile
from parley.runs.notes import Answer, NotesFile
from parley.runs.reading import NotFound

SIMULATED = "sim/rater"


def answer(item: LabelItem, question: Question, value: str | float | None) -> Answer:
    """An answer as it is stored; raises `ConfigError` with what is wrong about it.

    Args:
        item: The item.
        question: One of its questions.
        value: A score, or the value or the words of an option; None or an empty text for a skip.
    """
    if value is None or value == "":
        return Answer(question.subject, question.name, None, None, None)
    if question.metric is None:
        for option, words in item.options:
            if str(value).strip() in (option, words):
                number = PAIR_VALUES[option] if item.is_pair else float(option)
                return Answer("", question.name, number, None, option if item.is_pair else words)
        known = ", ".join(option if item.is_pair else f"{option} ({words})" for option, words in item.options)
        raise ConfigError(f"'{value}' is not an option of {question.name}: {known}")
    low, high = SCALE
    try:
        score = float(value)
    except (ValueError, OverflowError):
        score = float("nan")
    if not low <= score <= high:
        raise ConfigError(f"{question.name} must be a number from {low} to {high}, not '{value}'")
    return Answer(question.subject, question.name, score, question.metric.on_judges_scale(score), None)


def judged(file: RunFile, unit: str) -> dict[tuple[str, str], float | str]:
    """What the judges said about an item, by subject and question: mean scores on the raters' scale, and choices."""
    try:
        item = label_item(file, unit)
    except NotFound:
        return {}
    verdicts = final_verdicts(file, unit, round=item.round)
    said: dict[tuple[str, str], float | str] = {}
    for choice in CHOICES:
        if chosen := majority(text for metric, _, _, text in verdicts if metric == choice):
            said["", choice] = chosen
    low, high = SCALE
    for subject, name, metric in item.questions():
        if metric is None or metric.scale is None:
            continue
        values = [v for about, on, v, _ in verdicts if about == name and subject in ("", on) and v is not None]
        if values:
            start, end = metric.scale
            said[subject, name] = low + (sum(values) / len(values) - start) / (end - start) * (high - low)
    return said


class SimulatedRater(BaseModel, extra="forbid", frozen=True):
    """A rater that is not a person."""

    agree: float = Field(0.8, ge=0, le=1)
    bias: float = Field(0.0, ge=SCALE[0] - SCALE[1], le=SCALE[1] - SCALE[0])
    noise: float = Field(0.0, ge=0)
    skip: float = Field(0.0, ge=0, le=1)

    @classmethod
    def named(cls, name: str) -> SimulatedRater:
        """The rater of a name such as `sim/rater?agree=0.8`."""
        plain, options = split_name(name)
        if plain != SIMULATED:
            raise ConfigError(f"'{name}' is not a simulated rater; write {SIMULATED}?agree=0.8&bias=0.5")
        try:
            return cls.model_validate(options)
        except ValidationError as error:
            problem = error.errors()[0]
            what = ".".join(map(str, problem["loc"]))
            known = ", ".join(cls.model_fields)
            raise ConfigError(f"'{name}': {what}: {problem['msg']}; the options are {known}") from None

    def answers(self, item: LabelItem, said: Mapping[tuple[str, str], float | str], seed: int) -> list[Answer]:
        """Its answers about an item, given what the judges `said`."""
        generator = random.Random(seed)
        skips = generator.random() < self.skip
        return [
            answer(item, question, None if skips else self._value(item, question, said, generator))
            for question in item.questions()
        ]

    def _value(
        self,
        item: LabelItem,
        question: Question,
        said: Mapping[tuple[str, str], float | str],
        generator: random.Random,
    ) -> str | float:
        judges = said.get((question.subject, question.name))
        agrees = generator.random() < self.agree
        if question.metric is None:
            options = [option for option, _ in item.options]
            words = dict(item.options)
            same = [option for option in options if judges in (option, words[option])]
            return same[0] if agrees and same else generator.choice(options)
        low, high = SCALE
        score = judges if agrees and isinstance(judges, float) else generator.randint(low, high)
        return min(high, max(low, round(score + self.bias + generator.gauss(0, self.noise))))


def simulate(file: RunFile, notes: NotesFile, draw_id: int, rater: str, count: int | None = None) -> int:
    """Let a simulated rater label the items of a draw that it has not labelled; returns how many.

    Args:
        file: The run.
        notes: Its notes.
        draw_id: The draw.
        rater: The rater's name, which has its options.
        count: How many items, at most; None for all.
    """
    simulated = SimulatedRater.named(rater.partition("#")[0])
    draw = find_draw(notes, draw_id)
    settings = DrawSettings.of(draw)
    order = rater_order(settings, notes.items(draw_id), rater)
    known = {row["unit"] for row in notes.labels(draw_id) if row["rater"] == rater}
    new = [(position, unit) for position, unit in enumerate(order) if unit not in known][:count]
    with notes.all_or_none():
        for position, unit in new:
            answers = simulated.answers(
                asked_item(file, unit, settings), judged(file, unit), seed_from(draw["seed"], rater, unit)
            )
            notes.add_labels(draw_id, unit, rater, answers, position=position, simulated=True)
    return len(new)
