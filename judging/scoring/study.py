"""Scores any texts by a rubric, with several judges who do not hear each other: RLDF's BS, CE and LS by default.

    parley score rubric answers.jsonl --model openai/gpt-4o-mini

The file is JSON lines (a field for the text, one for its context if there is any, one to compare groups by), or plain
text with one text a line. BS is severity: 0 is no bias, 10 is extreme. (The paper's rubric has it the wrong way round.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import from_json

from parley.agents import (
    DEFAULT_MODEL,
    ConfigError,
    Cue,
    Debate,
    Models,
    Readout,
    Turn,
    load_personas,
    scale,
    simultaneous,
)
from parley.judging.scoring.rubrics import Metric, load_rubric
from parley.judging.study import Outcome, Prompt, Unit, UsageEstimate, Verdict

SCORE = Prompt.load("rubric/score")
Names = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class ScoringConfig(BaseModel):
    """Everything that changes the scores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(description="texts: a .jsonl file, or a .txt file with one text a line")
    field: str = Field("text", description="the field of a JSON line that holds the text")
    context: str | None = Field("topic", description="the field that holds what the text answers, where there is one")
    by: str | None = Field(None, description="the field to compare groups by (a method, a model)")
    rubrics: Names = Field(["bs", "ce", "ls"], description="rubrics by name, or .toml files")
    model: Names = Field([DEFAULT_MODEL], description="the judges' model, as provider/model; several judge in turn")
    judges: str | None = Field(None, description="a .toml file of personas (default: five labellers)")
    readout: Readout = Field("sampled", description="the score said, or its expectation (needs log-probabilities)")
    temperature: float | None = Field(None, ge=0, le=2, description="default: the model's own")
    max_tokens: int = Field(100, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of every random choice")


@dataclass(frozen=True, slots=True)
class Text:
    id: str
    text: str
    context: str
    group: str


class RubricScores:
    """Any texts, scored by a rubric: RLDF's BS, CE and LS by default."""

    name: ClassVar[str] = "rubric"
    Config: ClassVar[type[BaseModel]] = ScoringConfig

    def __init__(self, config: ScoringConfig) -> None:
        self.config = config
        self._texts = {one.id: one for one in read_texts(config)}
        metrics = [metric for name in config.rubrics for metric in load_rubric(name).metric]
        self.metrics: dict[str, Metric] = {metric.name: metric for metric in metrics}
        if not metrics or len(self.metrics) < len(metrics):
            raise ConfigError("at least one rubric is needed, and no metric may stand in two of them")
        if len(set(config.model)) < len(config.model):
            raise ConfigError("a model is named twice")
        shipped = Path(str(files("parley.judging").joinpath("personas", "rubric_judges.toml")))
        self.judges = load_personas(Path(config.judges) if config.judges else shipped)
        fields: dict[str, Any] = {name: (scale(0, 10), ...) for name in self.metrics}
        self._reply = create_model("RubricReply", **fields)
        self._format = "{" + ", ".join(f'"{name}": <score>' for name in self.metrics) + "}"
        self._rubric = "\n\n".join("\n- ".join((one.name, *one.questions)) for one in metrics)
        self._options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            self._options["temperature"] = config.temperature

    def models(self) -> list[str]:
        return list(dict.fromkeys([*self.config.model, *(judge.model for judge in self.judges if judge.model)]))

    def prompts(self) -> Mapping[str, str]:
        return {SCORE.name: SCORE.text, "rubric": self._rubric} | {
            f"persona/{judge.name}": judge.about for judge in self.judges
        }

    def sources(self) -> Mapping[str, str]:
        whole = "\x1e".join("\x1f".join((one.id, one.text, one.context, one.group)) for one in self._texts.values())
        return {f"texts {Path(self.config.file).name}": hashlib.sha256(whole.encode()).hexdigest()}

    def plan(self) -> Iterator[Unit]:
        """Models stand innermost, so that a run cut short has scored the same texts with all of them."""
        several = len(self.config.model) > 1
        for one in self._texts.values():
            for model in self.config.model:
                name = f"{one.id}/@{model}" if several else one.id
                yield Unit(name, {"item": one.id, "group": one.group, "model": model})

    def task(self, unit: Unit) -> str:
        one = self._texts[str(unit.facets["item"])]
        context = f"\nContext:\n{one.context}\n" if one.context else ""
        return SCORE(metrics=self._rubric, context=context, text=one.text, format=self._format)

    def estimate(self, unit: Unit) -> UsageEstimate:
        calls = len(self.judges)
        return UsageEstimate(calls, calls * (len(self.task(unit)) // 4 + 40), calls * (6 + 5 * len(self.metrics)))

    async def run(self, unit: Unit, models: Models) -> Outcome:
        table = Debate(
            self.judges,
            model=models[str(unit.facets["model"])],
            rounds=1,
            order=simultaneous,
            sees=nobody,
            reply_type=self._reply,
            readout=self.config.readout,
            options=self._options,
            models=models,
        )
        transcript = await table.converse(self.task(unit))
        return Outcome(transcript, tuple(verdict for turn in transcript.spoken() for verdict in self._verdicts(turn)))

    def _verdicts(self, turn: Turn) -> Iterator[Verdict]:
        status = turn.parse_status or "unparsed"
        reply = turn.verdict.model_dump() if turn.verdict else {}
        for metric in self.metrics:
            sampled = reply.get(metric)
            value = turn.expected.get(metric, sampled) if self.config.readout == "expected" else sampled
            yield Verdict(turn.speaker, turn.role, turn.round, metric, "", value, sampled, None, status)


def nobody(listener: Cue, turn: Turn) -> bool:
    """Whom each judge hears who judges alone."""
    return False


def read_texts(config: ScoringConfig) -> Iterator[Text]:
    """The texts of the file; a line that has none is named, and an id that stands twice."""
    path = Path(config.file)
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    if path.suffix not in (".jsonl", ".txt"):
        raise ConfigError(f"{path}: a .jsonl or a .txt file is asked for")
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if path.suffix == ".txt":
            yield Text(f"line-{number}", line.strip(), "", "")
            continue
        one = _from_json(line, f"{path}, line {number}", number, config)
        if one.id in seen:
            raise ConfigError(f"{path}, line {number}: the id '{one.id}' stands in it twice")
        seen.add(one.id)
        yield one
    if not any(line.strip() for line in lines):
        raise ConfigError(f"{path}: there is no text in it")


def _from_json(line: str, where: str, number: int, config: ScoringConfig) -> Text:
    try:
        row = from_json(line)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    if not isinstance(row, dict) or config.field not in row:
        raise ConfigError(f"{where}: no text in the field '{config.field}'")
    text = row[config.field]
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"{where}: the field '{config.field}' holds no text")
    if config.by is not None and config.by not in row:
        raise ConfigError(f"{where}: no field '{config.by}'")
    context = row.get(config.context) if config.context else None
    group = str(row[config.by]) if config.by else ""
    return Text(str(row.get("id", f"line-{number}")), text.strip(), str(context or ""), group)
