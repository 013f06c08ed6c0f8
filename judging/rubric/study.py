"""Scores any texts by a rubric, with several independent judges: RLDF's BS, CE and LS by default.

    parley run rubric --data answers.jsonl --model openai/gpt-6-luna

The file has JSON lines (a field for the text, optionally one for its context and one to compare groups by), or plain
text with one text per line. BS is severity: 0 is no bias, 10 is extreme. (In the paper's rubric it is the other
way round.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, Field
from pydantic_core import from_json

from parley.agents import (
    DEFAULT_MODEL,
    ConfigError,
    Debate,
    Models,
    load_personas,
    simultaneous,
)
from parley.base.toml import read_text
from parley.judging.config import NameList, call_options, limit_field, require_each_once, shipped_personas
from parley.judging.grid import GridStudy, compared, varies
from parley.judging.rubric.rubrics import SCORE, ScoreSheet
from parley.judging.study import Advanced, Apart, Labelled, Measure, Outcome


class ScoringConfig(BaseModel, extra="forbid", frozen=True):
    """All settings that change the scores."""

    data: str = Field(description="texts to score: a .jsonl file, or a .txt file with one text per line")
    field: str = Field("text", description="field of a JSON line with the text")
    context: str | None = Field("topic", title="FIELD", description="field with what the text answers, if there is one")
    by: str | None = Field(None, title="FIELD", description="field to compare groups by (a method, a model)")
    limit: int | None = limit_field("number of texts: the first of the file")
    rubrics: NameList = Field(["bs", "ce", "ls"], description="rubrics by name, or .toml files")
    examples: Advanced[bool] = Field(
        False,
        description="show the judges an example of a low, a middle and a high score for BS, CE and LS",
    )
    model: Apart[NameList] = Field(
        [DEFAULT_MODEL], description="judges' model, as provider/model; several models judge the same texts"
    )
    judges: str | None = Field(None, description=".toml file of personas (default: five labellers)")
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(100, ge=16, description="maximum length of one reply, in tokens")
    seed: Apart[int] = Field(0, description="random seed")


@dataclass(frozen=True, slots=True)
class Text:
    """A text to score, with its question, group and topic.

    Texts about one topic are not independent of each other. Without a topic of its own, a text's topic is its
    question; "" if that is unknown too.
    """

    id: str
    text: str
    context: str
    group: str
    topic: str = ""
    bias: str = ""
    """Its bias type, as RLDF's tables have one a column."""


@dataclass(frozen=True, kw_only=True)
class RubricCell:
    """One text."""

    topic: str | None = varies("text", "{}", default=None)
    item: str = varies("text", "{}")
    group: str = varies("varied", "{}")
    bias: str | None = varies("text", "{}", default=None)
    model: str = compared()


class RubricScores(GridStudy):
    """Any texts, scored by a rubric: RLDF's BS, CE and LS by default."""

    name = "rubric"
    Config = ScoringConfig
    report = "parley.judging.rubric.report:report"
    claims = "parley.judging.rubric.claims:claimed_values"
    papers = ("Cheng et al., 2024",)
    measures = (Measure("", "score"),)
    labelled = (Labelled(("text",)),)
    Cell = RubricCell

    def __init__(self, config: ScoringConfig) -> None:
        self.config: ScoringConfig = config
        require_each_once(model=config.model, rubrics=config.rubrics)
        self._texts = {text.id: text for text in islice(read_texts(config), config.limit)}
        self.sheet = ScoreSheet(config.rubrics, examples=config.examples)
        self.judges = load_personas(Path(config.judges)) if config.judges else shipped_personas("rubric_judges.toml")
        self._options = call_options(config.max_tokens, config.temperature)

    def models(self) -> list[str]:
        return list(dict.fromkeys([*self.config.model, *(judge.model for judge in self.judges if judge.model)]))

    def prompts(self) -> Mapping[str, str]:
        return {SCORE.name: SCORE.text, "rubric": self.sheet.rubric} | {
            f"persona/{judge.name}": judge.about for judge in self.judges
        }

    def sources(self) -> Mapping[str, str]:
        rows = ("\x1f".join((text.id, text.text, text.context, text.group)) for text in self._texts.values())
        return {f"texts {Path(self.config.data).name}": hashlib.sha256("\x1e".join(rows).encode()).hexdigest()}

    def cells(self) -> Iterator[tuple[str, RubricCell]]:
        for text in self._texts.values():
            yield text.id, RubricCell(topic=text.topic or None, item=text.id, group=text.group, bias=text.bias or None)

    async def ask(self, cell: RubricCell, models: Models) -> Outcome:
        text = self._texts[cell.item]
        debate = Debate(
            self.judges,
            model=models[cell.model],
            rounds=1,
            order=simultaneous,
            reply_type=SCORE.reads(self.sheet.reply_type),
            options=self._options,
            models=models,
        )
        transcript = await debate.converse(self.sheet.task(text.text, text.context))
        verdicts = [v for turn in transcript.spoken() for v in self.sheet.verdicts(turn)]
        return Outcome(transcript, tuple(verdicts))


def read_texts(config: ScoringConfig) -> Iterator[Text]:
    """Read the texts of a file; a line without text or with a repeated id is an error with its number."""
    path = Path(config.data)
    try:
        lines = read_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    if path.suffix not in (".jsonl", ".txt"):
        raise ConfigError(f"{path}: expected a .jsonl or .txt file")
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if path.suffix == ".txt":
            yield Text(f"line-{number}", line.strip(), "", "")
            continue
        text = _from_json(line, f"{path}, line {number}", number, config)
        if text.id in seen:
            raise ConfigError(f"{path}, line {number}: the id '{text.id}' occurs twice")
        seen.add(text.id)
        yield text
    if not any(line.strip() for line in lines):
        raise ConfigError(f"{path}: contains no text")


def _from_json(line: str, where: str, number: int, config: ScoringConfig) -> Text:
    try:
        row = from_json(line)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    if not isinstance(row, dict) or config.field not in row:
        raise ConfigError(f"{where}: has no field '{config.field}'")
    text = row[config.field]
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"{where}: the field '{config.field}' contains no text")
    if config.by is not None and config.by not in row:
        raise ConfigError(f"{where}: has no field '{config.by}'")
    context = row.get(config.context) if config.context else None
    group = str(row[config.by]) if config.by else ""
    answered = hashlib.sha256(str(context).encode()).hexdigest()[:12] if context else ""
    topic = row.get("topic") if isinstance(row.get("topic"), str | int) else answered
    return Text(
        str(row.get("id", f"line-{number}")),
        text.strip(),
        context=str(context or ""),
        group=group,
        topic=str(topic or ""),
        bias=str(row.get("bias") or ""),
    )
