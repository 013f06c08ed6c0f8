"""The search agent of MABRF: what is asked becomes queries, the queries results, the results a summary with sources.

    agent = SearchAgent(make_engine("folder:articles"))
    gathered = await agent.gather(models[name], models, context=…, question=…, reasoning=…)
    gathered.quoted     # the summary, ready for another agent's prompt

Every query, result and reply is a turn of the transcript. A search engine that is down raises `SearchError`; finding
nothing is a result like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from parley.agents import Client, Debate, Models, ParseStatus, Persona, Turn, gather_or_cancel
from parley.agents.fencing import Quoted, fence
from parley.agents.search import SearchEngine, SearchResult, quote
from parley.agents.structured import looks_like_refusal
from parley.judging.search.replies import best_first, named_in, read_list, read_summary, unknown_sources
from parley.judging.study import Prompt, Verdict

SEARCHER = Prompt.load("search/searcher")
WHO = "Searcher"
NOTHING = "(the search found nothing)"
NO_CONTEXT = "(none)"


class Script(NamedTuple):
    """The prompts of a search agent; without `groups`, no identity groups are looked for."""

    queries: Prompt
    summary: Prompt
    groups: Prompt | None = None


FAIRNESS = Script(Prompt.load("search/queries"), Prompt.load("search/summary"), Prompt.load("search/groups"))
"""As in the paper's figure 6: for reasoning that may be biased."""
FACTS = Script(Prompt.load("search/fact_queries"), Prompt.load("search/fact_summary"))
"""For questions of fact, which name no groups."""


@dataclass(frozen=True, slots=True)
class SearchEvidence:
    """What a search gave. `summary` is the model's own text; `quoted` is the same, fenced for a prompt."""

    turns: tuple[Turn, ...]
    groups: tuple[str, ...]
    queries: tuple[str, ...]
    found: int
    summary: str
    quoted: str
    status: ParseStatus
    """Of the summary: `unparsed` where it kept none of the headings that were asked for."""
    flags: tuple[str, ...]
    """What in the results or the summary reads like an instruction to the model."""
    verdicts: tuple[Verdict, ...]


class SearchAgent:
    """Asks for `queries` queries, searches the best `searched` of them, and takes `results` results of each."""

    def __init__(
        self, engine: SearchEngine, script: Script = FAIRNESS, *, queries: int = 5, searched: int = 3, results: int = 5
    ) -> None:
        self.engine, self.script = engine, script
        self.queries, self.searched, self.results = queries, searched, results

    def prompts(self) -> Mapping[str, str]:
        used = (prompt for prompt in self.script if prompt is not None)
        return {**{prompt.name: prompt.text for prompt in used}, "persona/Searcher": SEARCHER.text}

    def sources(self) -> Mapping[str, str]:
        """Hashes of what is searched, where the engine can say."""
        tell = getattr(self.engine, "sources", None)
        return dict(tell()) if tell else {}

    def calls(self) -> int:
        """Model calls of one search."""
        return sum(prompt is not None for prompt in self.script)

    async def gather(
        self,
        client: Client,
        models: Models,
        *,
        context: str,
        question: str,
        reasoning: str = "",
        options: Mapping[str, Any] | None = None,
        round: int = 1,
    ) -> SearchEvidence:
        """One search, from the question to the summary."""
        models.share(f"engine {id(self.engine)}", lambda: self.engine)  # closed with the run's clients
        asker = _Asker(client, models, dict(options or {}), round)
        told = {"context": context or NO_CONTEXT, "question": question}
        planned = await self._plan(asker, told, reasoning or NO_CONTEXT)
        searched = await self._search(asker, planned.queries)
        summed = await self._summarise(asker, told, searched)
        flags = (*searched.flags, *(f"the summary {flag}" for flag in summed.quoted.flags))
        counts: dict[str, tuple[float, ParseStatus]] = {
            "search_queries": (len(planned.queries), planned.status),
            "search_found": (searched.found, "ok"),
            "search_flags": (len(flags), "ok"),
            "search_unknown_sources": (len(unknown_sources(summed.text, planned.queries)), summed.status),
        }
        return SearchEvidence(
            turns=(*planned.turns, *searched.turns, *summed.turns),
            groups=planned.groups,
            queries=planned.queries,
            found=searched.found,
            summary=summed.text,
            quoted=summed.quoted.text,
            status=summed.status,
            flags=flags,
            verdicts=tuple(
                Verdict(WHO, "debater", round, metric, value=value, status=status)
                for metric, (value, status) in counts.items()
            ),
        )

    async def _plan(self, asker: _Asker, told: Mapping[str, str], reasoning: str) -> _Planned:
        """Queries and identity groups, asked for side by side. With no readable query, the question is searched."""
        asked = [self.script.queries(**told, reasoning=reasoning, count=self.queries)]
        if self.script.groups is not None:
            asked.append(self.script.groups(**told))
        replies = await gather_or_cancel(asker.ask(prompt) for prompt in asked)
        lists = [read_list(reply[-1].text) for reply in replies]
        statuses = [_status(reply[-1].text, items) for reply, items in zip(replies, lists, strict=True)]
        turns = [turn for reply, status in zip(replies, statuses, strict=True) for turn in _marked(reply, status)]
        text = "\n".join(told.values())
        groups = [group for group in (lists[1] if len(lists) > 1 else None) or () if named_in(group, text)]
        queries = best_first((lists[0] or [])[: self.queries], groups, self.searched) or [told["question"]]
        return _Planned(tuple(turns), tuple(groups), tuple(queries), statuses[0])

    async def _search(self, asker: _Asker, queries: Sequence[str]) -> _Searched:
        results = await gather_or_cancel(self.engine.search(query, self.results) for query in queries)
        blocks = [quote(query, found) for query, found in zip(queries, results, strict=True)]
        turns = [
            Turn(self.engine.name, "narrator", asker.round, _headed(self.engine.name, query, found, block))
            for query, found, block in zip(queries, results, blocks, strict=True)
        ]
        flags = tuple(f"{query}: {flag}" for query, block in zip(queries, blocks, strict=True) for flag in block.flags)
        return _Searched(tuple(turns), sum(map(len, results)), "\n\n".join(block.text for block in blocks), flags)

    async def _summarise(self, asker: _Asker, told: Mapping[str, str], searched: _Searched) -> _Summed:
        if not searched.found:
            return _Summed((), "", Quoted(NOTHING), "ok")
        reply = await asker.ask(self.script.summary(**told, results=searched.text))
        text = reply[-1].text.strip()
        status = _status(text, read_summary(text) or None)
        quoted = Quoted(NOTHING) if status == "refused" or not text else fence(text, "SUMMARY of search results")
        return _Summed(_marked(reply, status), text, quoted, status)


class _Planned(NamedTuple):
    turns: tuple[Turn, ...]
    groups: tuple[str, ...]
    queries: tuple[str, ...]
    status: ParseStatus


class _Searched(NamedTuple):
    turns: tuple[Turn, ...]
    found: int
    text: str
    flags: tuple[str, ...]


class _Summed(NamedTuple):
    turns: tuple[Turn, ...]
    text: str
    quoted: Quoted
    status: ParseStatus


class _Asker(NamedTuple):
    client: Client
    models: Models
    options: dict[str, Any]
    round: int

    async def ask(self, prompt: str) -> tuple[Turn, ...]:
        """One prompt and its reply, in a conversation of its own."""
        who = Persona(WHO, SEARCHER.text)
        table = Debate([who], model=self.client, rounds=1, options=self.options, models=self.models)
        return tuple(turn._replace(round=self.round) for turn in (await table.converse(prompt)).turns)


def _status(text: str, read: object | None) -> ParseStatus:
    if read is not None:
        return "ok"
    return "refused" if looks_like_refusal(text) else "unparsed"


def _marked(turns: tuple[Turn, ...], status: ParseStatus) -> tuple[Turn, ...]:
    return (*turns[:-1], turns[-1]._replace(parse_status=status))


def _headed(engine: str, query: str, found: Sequence[SearchResult], block: Quoted) -> str:
    """Results as a reader sees them: who found them, and in the first lines what to beware of."""
    beware = "".join(f"\nFLAGGED: {flag}" for flag in block.flags)
    return f"{engine} found {len(found)} for: {query}{beware}\n{block.text}"
