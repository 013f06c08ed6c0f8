"""SQuAD v2: a model answers factual questions, with or without a search agent, and may say that there is no answer.

    parley run squad --data dev-v2.0.json --search none,folder:articles --limit 100

By default a question's paragraph is not shown (`--paragraph` shows it), so the arms compare what a model knows with
what it finds. MABRF's authors showed it; `--as-published` runs the study as they did. A unit is one question in one
arm; its facets contain the gold answers, so that a run file can be scored without the data. Scores: `parley report`, or
`parley.judging.squad.scores`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, WithJsonSchema, model_validator

from parley.agents import DEFAULT_MODEL, ConfigError, Debate, Models, Persona, Transcript, Turn
from parley.agents.search import make_engine
from parley.judging import Advanced, Apart, Measure, Outcome, Prompt, Verdict
from parley.judging.config import NameList, call_options, limit_field, require_each_once
from parley.judging.grid import GridStudy, compared, repeats, varies
from parley.judging.search import FACTS, SearchAgent
from parley.scenarios.squad import SquadQuestion, load, sample

NONE = "none"
AS_PUBLISHED = {"paragraph": True, "limit": 100, "searched": 5, "temperature": None}
"""The settings of the authors' notebooks (docs/papers.md), as defaults of `as_published`."""
PUBLISHED_TEMPERATURES = {True: 0.8, False: 0.0}
"""Temperatures of the notebooks with and without search."""
ANSWER_CHARS = 200
PROMPTS = {key: Prompt.load(f"squad/{key}") for key in ("answer", "paragraph", "insights", "solver")}
_NO_ANSWER = re.compile(r"\W*unanswerable\W*", re.IGNORECASE)


class SquadConfig(BaseModel, extra="forbid", frozen=True):
    """All settings that change the results of a SQuAD run."""

    data: str | None = Field(None, description="official JSON file of SQuAD v2 (required)")
    model: Apart[NameList] = Field(
        [DEFAULT_MODEL], description="model under test, as provider/model; several models answer the same questions"
    )
    search: NameList = Field(
        [NONE],
        title="ENGINE",
        description="search engine: none, folder:DIR, duckduckgo, file.py:Class; several give several arms",
    )
    search_model: Advanced[str | None] = Field(
        None, description="model that writes the queries and the summary (default: the model under test)"
    )
    paragraph: bool = Field(False, description="show the paragraph that the question was written for")
    as_published: Advanced[bool] = Field(
        False,
        description="run it as MABRF's authors did: the paragraph is shown, the file's first 100 questions, five "
        "queries searched, temperature 0 without search and 0.8 with it; other flags override these",
    )
    limit: int | None = limit_field("number of questions to sample, with the file's proportion of answerable ones")
    searched: Advanced[int] = Field(3, ge=1, description="number of queries to search")
    repeats: int = Field(1, ge=1, le=10_000, description="number of times each question is answered (epochs)")
    temperature: float | None = Field(0.2, ge=0, le=2, description="sampling temperature of every call")
    max_tokens: Advanced[int] = Field(400, ge=16, description="maximum length of one reply, in tokens")
    seed: Apart[int] = Field(0, description="random seed of the sample and every call")

    @model_validator(mode="before")
    @classmethod
    def _published_defaults(cls, values: Any) -> Any:
        if isinstance(values, dict) and str(values.get("as_published")).lower() in ("true", "1", "yes", "on"):
            return {**AS_PUBLISHED, **values}
        return values


class SquadReply(BaseModel):
    """An answer, or the word unanswerable. An empty reply is neither: it is requested again, then unread."""

    answer: Annotated[
        str,
        StringConstraints(strip_whitespace=True, pattern=r"^[^<\w]*\w"),  # a copy of "<the answer…>" is no answer
        WithJsonSchema({"type": "string", "minLength": 1, "maxLength": ANSWER_CHARS}),
    ]


@dataclass(frozen=True, kw_only=True)
class SquadCell:
    """One question in one arm."""

    article: str = varies("text", "{}")
    question_id: str = varies("text", "question {:.6}", label="question")
    answerable: bool = varies(title="{}", silent="true", words={"true": "answerable", "false": "unanswerable"})
    search: str = varies("varied", "search {}", silent="none")
    repeat: int = repeats()
    model: str = compared()
    answers: str = varies("technical")
    paragraph: str = varies("technical")
    paragraph_shown: bool = varies("technical")


class SquadStudy(GridStudy):
    """SQuAD v2: exact match and F1 of a model's answers, with and without search."""

    name = "squad"
    Config = SquadConfig
    report = "parley.judging.squad.report:report"
    papers = ("Rajpurkar et al., 2018",)
    comparable = "parley.judging.squad.report:comparable"
    claims = "parley.judging.squad.claims:claimed_values"
    measures = (Measure("answer", "exact match", better="higher", kind="correct", key="answers"),)
    Cell = SquadCell

    def __init__(self, config: SquadConfig) -> None:
        self.config: SquadConfig = config
        if not config.data:
            raise ConfigError("squad needs data: --data FILE, the official JSON of SQuAD v2")
        require_each_once(model=config.model, search=config.search)
        self.agents = {
            name: None if name == NONE else SearchAgent(make_engine(name), FACTS, searched=config.searched)
            for name in config.search
        }
        self.squad = load(config.data)
        questions: Sequence[SquadQuestion] = self.squad.questions
        if config.as_published:
            questions = questions[: config.limit]
        elif config.limit:
            questions = sample(questions, config.limit, config.seed)
        self._questions = {question.id: question for question in questions}

    def models(self) -> list[str]:
        further = [self.config.search_model] if self.config.search_model and any(self.agents.values()) else []
        return list(dict.fromkeys([*self.config.model, *further]))

    def _options(self, *, searches: bool) -> dict[str, Any]:
        temperature = self.config.temperature
        if temperature is None and self.config.as_published:
            temperature = PUBLISHED_TEMPERATURES[searches]
        return call_options(self.config.max_tokens, temperature)

    def prompts(self) -> Mapping[str, str]:
        texts = {prompt.name: prompt.text for prompt in PROMPTS.values()}
        for agent in filter(None, self.agents.values()):
            texts |= agent.prompts()
        return texts

    def sources(self) -> Mapping[str, str]:
        sources = dict(self.squad.sources)
        for agent in filter(None, self.agents.values()):
            sources |= agent.sources()
        return sources

    def cells(self) -> Iterator[tuple[str, SquadCell]]:
        """The cells. Arms are the inner loop, so that an interrupted run has the same questions for all arms."""
        for repeat in range(self.config.repeats):
            for question in self._questions.values():
                for arm in self.agents:
                    yield (
                        f"{question.id}/{arm}/r{repeat}",
                        SquadCell(
                            article=question.article,
                            question_id=question.id,
                            answerable=question.answerable,
                            search=arm,
                            repeat=repeat,
                            answers=json.dumps(question.answers, ensure_ascii=False),
                            paragraph=question.paragraph,
                            paragraph_shown=self.config.paragraph,
                        ),
                    )

    async def ask(self, cell: SquadCell, models: Models) -> Outcome:
        question = self._questions[cell.question_id]
        agent = self.agents[cell.search]
        context = question.context if self.config.paragraph else ""
        client = models[cell.model]
        given = PROMPTS["paragraph"](context=context) + "\n" if context else ""
        options = self._options(searches=agent is not None)
        turns: tuple[Turn, ...] = ()
        verdicts: tuple[Verdict, ...] = ()
        if agent is not None:
            searcher = models[self.config.search_model] if self.config.search_model else client
            evidence = await agent.gather(
                searcher, models, context=context, question=question.question, options=options
            )
            given += PROMPTS["insights"](summary=evidence.quoted) + "\n"
            turns, verdicts = evidence.turns, evidence.verdicts
        opening = PROMPTS["answer"](given=f"\n{given}" if given else "", question=question.question)
        solver = Persona("Solver", PROMPTS["solver"].text)
        debate = Debate(
            [solver],
            model=client,
            rounds=1,
            reply_type=PROMPTS["answer"].reads(SquadReply),
            options=options,
            models=models,
        )
        transcript = await debate.converse(opening)
        answer_turns = [turn._replace(round=1 + bool(turns)) for turn in transcript.turns]
        return Outcome(Transcript((*turns, *answer_turns), "answered"), (*verdicts, _verdict(answer_turns[-1])))


def _verdict(turn: Turn) -> Verdict:
    """`value` is 1 for an answer, 0 for "unanswerable", and None if nothing could be read."""
    if not isinstance(turn.verdict, SquadReply):
        return Verdict.from_turn(turn, "answer")
    text = turn.verdict.answer
    value = 0.0 if _NO_ANSWER.fullmatch(text) else 1.0
    return Verdict.from_turn(turn, "answer", value=value, text=text)
