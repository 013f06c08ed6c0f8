"""`mabrf` and `mabrf-search` (Roy and Rehman 2025): the model reasons, a judge scores the reasoning for bias, and it is
rephrased until the judge finds none, with or without a search for evidence first; then the question is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents.search import make_engine
from parley.judging.bbq.mabrf import loop
from parley.judging.bbq.method import BbqContext, Solved, Task
from parley.judging.config import NO_MEASURE
from parley.judging.search import SearchAgent


class MabrfSettings(BaseModel, extra="forbid", frozen=True):
    passes: int = Field(5, ge=0, le=100, description="maximum rephrasings of the chain of thought")
    temperature: float = Field(0.2, ge=0, le=2, description="sampling temperature, unless --temperature is given")
    judge: str | None = Field(None, description="judge's model (default: the model under test)")
    measure: str | None = Field(
        None,
        description="outside judge's model, or none for no outside judge (default: the judge's, with another prompt)",
    )


class SearchSettings(MabrfSettings):
    engine: str = Field("duckduckgo", description="search engine: duckduckgo, folder:DIR, …")
    searched: int = Field(3, ge=1, description="number of queries to search; those that name a group come first")
    search_model: str | None = Field(
        None, description="model that writes queries and summaries (default: the model under test)"
    )


class Mabrf:
    name: ClassVar[str] = "mabrf"
    Settings: ClassVar[type[BaseModel]] = MabrfSettings

    def __init__(self, settings: MabrfSettings) -> None:
        self.settings = settings
        self.search: SearchAgent | None = None

    def prompts(self) -> Mapping[str, str]:
        return loop.prompts(self.search, self.settings.measure)

    def models(self) -> list[str]:
        """Models other than the one under test."""
        settings = self.settings
        named = (settings.judge, getattr(settings, "search_model", None), settings.measure)
        return [name for name in named if name and name != NO_MEASURE]

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        context = replace(context, options={"temperature": self.settings.temperature, **context.options})
        return await loop.Loop(
            task,
            context,
            passes=self.settings.passes,
            search=self.search,
            judge=self.settings.judge,
            search_model=getattr(self.settings, "search_model", None),
            measure=self.settings.measure,
        ).run()


class MabrfSearch(Mabrf):
    name: ClassVar[str] = "mabrf-search"
    Settings: ClassVar[type[BaseModel]] = SearchSettings

    def __init__(self, settings: SearchSettings) -> None:
        super().__init__(settings)
        self.engine = make_engine(settings.engine)
        self.search = SearchAgent(self.engine, searched=settings.searched)

    def sources(self) -> Mapping[str, str]:
        """Hashes of what is searched, if the engine knows: a run only resumes with the same documents."""
        return self.engine.sources()
