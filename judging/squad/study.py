"""SQuAD v2: a model answers questions of fact, by itself or with a search agent, and may say that there is no answer.

    parley run squad --data dev-v2.0.json --search none,folder:articles --limit 100

As in MABRF, the paragraph a question was written for is not shown (`--paragraph` shows it): the arms compare what a
model knows with what it finds. A unit is one question in one arm; its facets hold the gold answers, so that a run
file can be scored without the data. Scores: `parley report`, or `parley.analysis.squad.scores`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from parley.agents import DEFAULT_MODEL, ConfigError, Debate, Models, Persona, Transcript, Turn
from parley.agents.search import make_engine
from parley.judging.search.agent import FACTS, SearchAgent
from parley.judging.study import Facet, Outcome, Prompt, Unit, UsageEstimate, Verdict
from parley.scenarios.squad import Question, load, sample

NONE = "none"
ANSWER_CHARS = 200
PROMPTS = {key: Prompt.load(f"squad/{key}") for key in ("answer", "paragraph", "insights", "solver")}
Names = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
_NO_ANSWER = re.compile(r"\W*unanswerable\W*", re.IGNORECASE)


class SquadConfig(BaseModel):
    """Everything that changes the results of a SQuAD run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: str | None = Field(None, description="the official JSON of SQuAD v2 (must be given)")
    model: Names = Field([DEFAULT_MODEL], description="the model under test, as provider/model; several answer in turn")
    search: Names = Field([NONE], description="none, folder:DIR, duckduckgo, brave or searxng?base_url=…; several arms")
    paragraph: bool = Field(False, description="show the paragraph the question was written for")
    limit: int | None = Field(None, ge=1, description="so many questions, answerable and not as in the file")
    queries: int = Field(5, ge=1, description="queries the search agent is asked for")
    searched: int = Field(3, ge=1, description="how many of them are searched")
    results: int = Field(5, ge=1, description="results of each that are read")
    repeats: int = Field(1, ge=1, description="how often each question is answered anew")
    temperature: float | None = Field(0.2, ge=0, le=2, description="of every call")
    max_tokens: int = Field(400, ge=16, description="length of one reply, at most")
    seed: int = Field(0, description="of the sample and every call")


class SquadReply(BaseModel):
    """An answer, or the word unanswerable. An empty one is neither: it is asked for again, and then left unread."""

    answer: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1),
        WithJsonSchema({"type": "string", "minLength": 1, "maxLength": ANSWER_CHARS}),
    ]


class SquadStudy:
    """SQuAD v2: exact match and F1 of a model's answers, with and without search."""

    name: ClassVar[str] = "squad"
    Config: ClassVar[type[BaseModel]] = SquadConfig

    def __init__(self, config: SquadConfig) -> None:
        self.config = config
        if not config.data:
            raise ConfigError("squad needs its data: --data FILE, the official JSON of SQuAD v2")
        for given, what in ((config.model, "model"), (config.search, "arm of search")):
            if not given or len(set(given)) < len(given):
                raise ConfigError(f"at least one {what} is needed, and none twice")
        self.agents = {name: None if name == NONE else self._agent(name) for name in config.search}
        self.squad = load(config.data)
        chosen = self.squad.questions
        if config.limit:
            chosen = tuple(sample(chosen, config.limit, config.seed))
        self._questions = {one.id: one for one in chosen}
        self._options: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            self._options["temperature"] = config.temperature

    def _agent(self, name: str) -> SearchAgent:
        counts = {key: getattr(self.config, key) for key in ("queries", "searched", "results")}
        return SearchAgent(make_engine(name), FACTS, **counts)

    def models(self) -> list[str]:
        return list(self.config.model)

    def prompts(self) -> Mapping[str, str]:
        found = {prompt.name: prompt.text for prompt in PROMPTS.values()}
        for agent in filter(None, self.agents.values()):
            found |= agent.prompts()
        return found

    def sources(self) -> Mapping[str, str]:
        found = dict(self.squad.sources)
        for agent in filter(None, self.agents.values()):
            found |= agent.sources()
        return found

    def plan(self) -> Iterator[Unit]:
        """Arms and models stand innermost, so that a run cut short has the same questions of all of them."""
        for repeat in range(self.config.repeats):
            for one in self._questions.values():
                for arm in self.agents:
                    for model in self.config.model:
                        name = f"{one.id}/{arm}/r{repeat}"
                        several = len(self.config.model) > 1
                        yield Unit(f"{name}/@{model}" if several else name, _facets(one, arm, model, repeat))

    def estimate(self, unit: Unit) -> UsageEstimate:
        agent = self.agents[str(unit.facets["search"])]
        one = self._questions[str(unit.facets["question_id"])]
        opening = 120 + len(one.question) // 4 + (len(one.context) // 4 if self.config.paragraph else 0)
        if agent is None:
            return UsageEstimate(1, opening, 15)
        read = 150 * agent.searched * agent.results  # tokens of a passage
        return UsageEstimate(1 + agent.calls(), 3 * opening + 300 + read, 15 + 100 + 250)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        one = self._questions[str(unit.facets["question_id"])]
        agent = self.agents[str(unit.facets["search"])]
        context = one.context if self.config.paragraph else ""
        client = models[str(unit.facets["model"])]
        given = PROMPTS["paragraph"](context=context) + "\n" if context else ""
        turns: tuple[Turn, ...] = ()
        verdicts: tuple[Verdict, ...] = ()
        if agent is not None:
            found = await agent.gather(client, models, context=context, question=one.question, options=self._options)
            given += PROMPTS["insights"](summary=found.quoted) + "\n"
            turns, verdicts = found.turns, found.verdicts
        opening = PROMPTS["answer"](given=f"\n{given}" if given else "", question=one.question)
        solver = Persona("Solver", PROMPTS["solver"].text)
        table = Debate([solver], model=client, rounds=1, reply_type=SquadReply, options=self._options, models=models)
        said = [turn._replace(round=1 + bool(turns)) for turn in (await table.converse(opening)).turns]
        whole = Transcript((*turns, *said), "answered")
        return Outcome(whole, (*verdicts, _verdict(said[-1])))


def _facets(one: Question, arm: str, model: str, repeat: int) -> dict[str, Facet]:
    return {
        "question_id": one.id,
        "article": one.article,
        "paragraph": one.paragraph,
        "answerable": one.answerable,
        "answers": json.dumps(one.answers, ensure_ascii=False),
        "search": arm,
        "model": model,
        "repeat": repeat,
    }


def _verdict(turn: Turn) -> Verdict:
    """`value` is 1 for an answer, 0 for "unanswerable", and None where nothing could be read."""
    if not isinstance(turn.verdict, SquadReply):
        return Verdict(turn.speaker, turn.role, turn.round, "answer", status=turn.parse_status or "unparsed")
    text = turn.verdict.answer
    value = 0.0 if _NO_ANSWER.fullmatch(text) else 1.0
    status = turn.parse_status or "ok"
    return Verdict(turn.speaker, turn.role, turn.round, "answer", value=value, text=text, status=status)
