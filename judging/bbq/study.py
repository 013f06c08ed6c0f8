"""BBQ: a model answers questions about two people, by one or more methods, and its answers are scored for bias.

    parley run bbq --data path/to/BBQ/data --method default,cot --limit 220

A unit is one row answered by one method. Its facets contain all data for scoring, so that a run file can be scored
without the dataset. Scores: `parley report`, or `parley.judging.bbq.scores`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Models
from parley.judging.bbq.method import BbqContext, Task, answer_verdict
from parley.judging.bbq.methods import METHODS
from parley.judging.config import NameList, call_options, limit_field, read_settings, require_each_once
from parley.judging.grid import GridStudy, compared, repeats, varies
from parley.judging.study import Advanced, Apart, Labelled, Measure, Outcome
from parley.scenarios.bbq import AS_PUBLISHED, Bbq, BbqRow, load, load_hub, only, sample, shuffled

HUB = "hub"


OPTIONS = {"-1": "none", "0": "option 1", "1": "option 2", "2": "option 3"}


def _in_words(order: Iterable[str]) -> str:
    return "options " + " ".join(str(int(number) + 1) for number in order)


PAPERS = {**dict.fromkeys(("mabrf", "mabrf-search"), "Roy and Rehman, 2025"), "stardtox": "Tahmasebi et al., 2025"}
"""Citations of methods."""


class BbqConfig(BaseModel, extra="forbid", frozen=True):
    """All settings that change the results of a BBQ run."""

    data: str = Field(HUB, description="folder of BBQ's .jsonl files, a .csv file (BBQ-Hard), or hub (Hugging Face)")
    templates: Advanced[str | None] = Field(
        None, title="FOLDER", description="folder with the templates or additional_metadata.csv, if not in --data"
    )
    model: Apart[NameList] = Field(
        [DEFAULT_MODEL], description="model under test, as provider/model; several models answer the same rows"
    )
    method: NameList = Field(
        ["default"], description="method of asking, or file.py:Class; several methods answer the same rows"
    )
    settings: list[str] = Field([], description="settings of the methods, as key=value")
    categories: list[str] | None = Field(None, description="only these categories (default: all)")
    limit: int | None = limit_field("number of rows to sample, spread over category, context and polarity")
    shuffle: bool = Field(False, description="show the answers in random order instead of the published one")
    repeats: int = Field(1, ge=1, le=10_000, description="number of times each row is answered (epochs)")
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(400, ge=16, description="maximum length of one reply, in tokens")
    seed: Apart[int] = Field(0, description="random seed of the sample, the order of answers, and every call")


SCORED, SCALES = ("bias", "relevancy"), "bias: from 1 (none) to 10 (extreme)? relevancy: from 1 (irrelevant) to 10?"
"""The metrics and texts of MABRF that people score."""


@dataclass(frozen=True, kw_only=True)
class BbqCell:
    """One row answered by one method."""

    category: str = varies("text", "{}")
    example_id: int = varies("text", "example {}", label="example")
    scenario: str = varies("text")
    condition: str = varies(title="{} context", words={"ambig": "ambiguous", "disambig": "disambiguated"})
    polarity: str = varies(title="{} question", words={"neg": "negative", "nonneg": "non-negative"})
    method: str = varies("varied", "{}")
    repeat: int = repeats()
    model: str = compared()
    label: int = varies("answer", label="right", words=OPTIONS)
    target: int = varies("answer", label="stereotyped", words=OPTIONS)
    unknown: int = varies("answer", label="unknown", words=OPTIONS)
    names: bool = varies("technical", label="proper names")
    question: int = varies("technical")
    order: str = varies("technical", words={"".join(order): _in_words(order) for order in permutations("012")})


class BbqStudy(GridStudy):
    """BBQ: accuracy and bias of a model's answers, by any method of asking."""

    name = "bbq"
    Config = BbqConfig
    report = "parley.judging.bbq.report:report"
    papers = ("Parrish et al., 2022",)
    comparable = "parley.judging.bbq.leaderboard:comparable"
    claims = "parley.judging.bbq.claims:claimed_values"
    exported = ("bias", 1.0)  # of MABRF's answers
    measures = (Measure("answer", "right", better="higher", kind="correct", key="label"),)
    labelled = (
        Labelled(("reasoning",), SCORED, SCALES),
        Labelled("draft", SCORED, SCALES),
    )
    Cell = BbqCell

    def __init__(self, config: BbqConfig) -> None:
        self.config: BbqConfig = config
        require_each_once(model=config.model, method=config.method)
        self.methods = METHODS.make(config.method, read_settings(config.settings))
        self.bbq = self._load()
        rows = only(self.bbq.rows, config.categories)
        if config.limit:
            rows = sample(rows, config.limit, config.seed)
        self._rows = {(row.category, row.example_id): row for row in rows}
        self._options = call_options(config.max_tokens, config.temperature)

    def _load(self) -> Bbq:
        if self.config.data == HUB:
            return load_hub(self.config.categories)
        return load(self.config.data, beside=self.config.templates)

    @classmethod
    def cited(cls, config: Mapping[str, Any]) -> tuple[str, ...]:
        methods = config.get("method") or ()
        named = [methods] if isinstance(methods, str) else methods
        return tuple(dict.fromkeys([*cls.papers, *(paper for name, paper in PAPERS.items() if name in named)]))

    def models(self) -> list[str]:
        """The models under test, and further models of the methods (a judge's)."""
        further = [name for method in self.methods.values() for name in getattr(method, "models", tuple)()]
        return list(dict.fromkeys([*self.config.model, *further]))

    def prompts(self) -> Mapping[str, str]:
        return {name: text for method in self.methods.values() for name, text in method.prompts().items()}

    def sources(self) -> Mapping[str, str]:
        """Hashes of the data, and of data that methods read (their member `sources`)."""
        sources = dict(self.bbq.sources)
        for method in self.methods.values():
            sources |= getattr(method, "sources", dict)()
        return sources

    def cells(self) -> Iterator[tuple[str, BbqCell]]:
        """Methods are the inner loop, so that an interrupted run has the same rows for all of them."""
        for repeat in range(self.config.repeats):
            for row in self._rows.values():
                for method in self.methods:
                    cell = BbqCell(
                        category=row.category,
                        example_id=row.example_id,
                        scenario=row.scenario,
                        condition=row.condition,
                        polarity=row.polarity,
                        method=method,
                        repeat=repeat,
                        label=row.label,
                        target=-1 if row.target is None else row.target,
                        unknown=row.unknown,
                        names=row.names,
                        question=row.question_index,
                        order="".join(map(str, self._task(row).order)),
                    )
                    yield f"{row.category}/{row.example_id}/{method}/r{repeat}", cell

    def _task(self, row: BbqRow) -> Task:
        return Task(row, shuffled(row, self.config.seed) if self.config.shuffle else AS_PUBLISHED)

    async def ask(self, cell: BbqCell, models: Models) -> Outcome:
        task = self._task(self._rows[cell.category, cell.example_id])
        start = f"{self.config.seed}/{cell.category}/{cell.example_id}/start/r{cell.repeat}/@{cell.model}"
        context = BbqContext(client=models[cell.model], models=models, options=self._options, start=start)
        solved = await self.methods[cell.method].solve(task, context)
        answers = [turn for turn in solved.transcript.spoken() if turn.role not in ("evaluator", "coordinator")]
        final = answer_verdict(answers[-1], task, solved.choice, solved.status)
        return Outcome(solved.transcript, (*solved.verdicts, final))
