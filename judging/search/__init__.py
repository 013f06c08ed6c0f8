"""The search agent of MABRF: it turns a question into queries, searches them, and summarises the results with sources.

    agent = SearchAgent(make_engine("folder:articles"))
    gathered = await agent.gather(models[name], models, context=…, question=…, reasoning=…)
    gathered.quoted     # the summary, ready for another agent's prompt

Every query, result and reply is a turn of the transcript. A search engine that cannot be reached raises `SearchError`;
an empty result is not an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from parley.agents import Client, Debate, Models, ParseStatus, Persona, Turn, gather_or_cancel
from parley.agents.fencing import fence, instruction_kinds
from parley.agents.search import SearchEngine, quote
from parley.agents.structured import looks_like_refusal
from parley.judging import Prompt, Verdict

SEARCHER = Prompt("persona/Searcher", Prompt.load("search/searcher").ours)
SEARCHER_NAME = "Searcher"
NOTHING = "(the search found nothing)"
NO_CONTEXT = "(none)"
QUERIES, RESULTS = 5, 5
"""Number of queries requested from a model, and of results read for each searched query."""
SUMMARY_TOKENS = 1200
"""Maximum length of a summary, unless the options allow more. Half of the authors' summaries have over 540 tokens,
and a summary that is cut off has lost its conclusion."""


class Script(NamedTuple):
    """The prompts of a search agent.

    Args:
        queries: Asks for search queries.
        summary: Asks for a summary of the results.
        groups: Asks for the identity groups in the question; None to skip that.
    """

    queries: Prompt
    summary: Prompt
    groups: Prompt | None = None


FAIRNESS = Script(Prompt.load("search/queries"), Prompt.load("search/summary"), Prompt.load("search/groups"))
"""The script after the paper's figure 5, for reasoning that may be biased."""
FACTS = Script(Prompt.load("search/fact_queries"), Prompt.load("search/fact_summary"))
"""The script for factual questions, without identity groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEvidence:
    """The outcome of a search.

    Args:
        turns: Every query, result and reply.
        quoted: The model's summary of the results, fenced for another prompt.
        verdicts: Counts of searched queries, of results, of results and summaries that read like an instruction to a
            model, and of cited sources that were never searched.
    """

    turns: tuple[Turn, ...]
    quoted: str
    verdicts: tuple[Verdict, ...]


class SearchAgent:
    """Turns questions into searches, and results into summaries.

    Args:
        engine: The search engine.
        script: The prompts.
        searched: Number of queries to search; those that name an identity group come first.
    """

    def __init__(self, engine: SearchEngine, script: Script = FAIRNESS, *, searched: int = 3) -> None:
        self.engine, self.script, self.searched = engine, script, searched

    def prompts(self) -> Mapping[str, str]:
        used = (prompt for prompt in self.script if prompt is not None)
        return {**{prompt.name: prompt.text for prompt in used}, "persona/Searcher": SEARCHER.text}

    def sources(self) -> Mapping[str, str]:
        """Hashes of the searched documents, if the engine has them."""
        sources = getattr(self.engine, "sources", None)
        return dict(sources()) if sources else {}

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
        """Run a search, from the question to the summary.

        Args:
            client: The model that writes queries and summary.
            models: All clients of the run.
            context: The question's context; may be empty.
            question: The question.
            reasoning: The reasoning to find evidence for, if any.
            options: Options of every call.
            round: The round to store the turns under.
        """
        models.share(f"engine {id(self.engine)}", lambda: self.engine)  # closed with the run's clients
        asker = _Asker(client, models, dict(options or {}), round)
        inputs = {"context": context or NO_CONTEXT, "question": question}
        plan = await self._plan(asker, inputs, reasoning or NO_CONTEXT)
        results = await self._search(asker, plan.queries)
        summary = await self._summarise(asker, inputs, results)
        replies = [turn for turn in (*plan.turns, *summary.turns) if turn.speaker == SEARCHER_NAME]
        counts: dict[str, tuple[float, ParseStatus, Turn]] = {
            "search_queries": (len(plan.queries), plan.status, replies[0]),
            "search_found": (results.number, "ok", replies[-1]),
            "search_flags": (results.flags + bool(instruction_kinds(summary.text)), "ok", replies[-1]),
            "search_unknown_sources": (len(unknown_sources(summary.text, plan.queries)), summary.status, replies[-1]),
        }
        return SearchEvidence(
            turns=(*plan.turns, *results.turns, *summary.turns),
            quoted=summary.quoted,
            verdicts=tuple(
                Verdict.from_turn(turn, metric, value=value, status=status)
                for metric, (value, status, turn) in counts.items()
            ),
        )

    async def _plan(self, asker: _Asker, inputs: Mapping[str, str], reasoning: str) -> _Plan:
        """Request queries and identity groups concurrently. Without a readable query, the question is searched."""
        prompts = [self.script.queries(**inputs, reasoning=reasoning, count=QUERIES)]
        if self.script.groups is not None:
            prompts.append(self.script.groups(**inputs))
        replies = await gather_or_cancel(asker.ask(prompt) for prompt in prompts)
        lists = [read_list(reply[-1].text) for reply in replies]
        statuses = [_status(reply[-1], items) for reply, items in zip(replies, lists, strict=True)]
        turns = [turn for reply, status in zip(replies, statuses, strict=True) for turn in _with_status(reply, status)]
        text = "\n".join(inputs.values())
        groups = [group for group in (lists[1] if len(lists) > 1 else None) or () if named_in(group, text)]
        queries = best_first((lists[0] or [])[:QUERIES], groups, self.searched) or [inputs["question"]]
        return _Plan(tuple(turns), tuple(queries), statuses[0])

    async def _search(self, asker: _Asker, queries: Sequence[str]) -> _Results:
        lists = await gather_or_cancel(self.engine.search(query, RESULTS) for query in queries)
        blocks = [quote(query, results) for query, results in zip(queries, lists, strict=True)]
        turns = [
            Turn(
                self.engine.name,
                "narrator",
                asker.round,
                f"{self.engine.name} found {len(results)} for: {query}\n{block}",
            )
            for query, results, block in zip(queries, lists, blocks, strict=True)
        ]
        # A blank line separates results, and no result has one.
        flags = sum(bool(instruction_kinds(result)) for block in blocks for result in block.split("\n\n"))
        return _Results(tuple(turns), sum(map(len, lists)), "\n\n".join(blocks), flags)

    async def _summarise(self, asker: _Asker, inputs: Mapping[str, str], results: _Results) -> _Summary:
        if not results.number:
            return _Summary((), "", NOTHING, "ok")
        limit = max(SUMMARY_TOKENS, asker.options.get("max_tokens", 0))
        summariser = asker._replace(options={**asker.options, "max_tokens": limit})
        reply = await summariser.ask(self.script.summary(**inputs, results=results.text))
        text = reply[-1].text.strip()
        # A truncated summary has lost its conclusion; the rest is passed on and counted as cut.
        status = "cut" if reply[-1].cut else _status(reply[-1], text if text and not looks_like_refusal(text) else None)
        quoted = NOTHING if status == "refused" or not text else fence(text, "SUMMARY of search results")
        return _Summary(_with_status(reply, status), text, quoted, status)


class _Plan(NamedTuple):
    turns: tuple[Turn, ...]
    queries: tuple[str, ...]
    status: ParseStatus


class _Results(NamedTuple):
    turns: tuple[Turn, ...]
    number: int
    text: str
    flags: int


class _Summary(NamedTuple):
    turns: tuple[Turn, ...]
    text: str
    quoted: str
    status: ParseStatus


class _Asker(NamedTuple):
    client: Client
    models: Models
    options: dict[str, Any]
    round: int

    async def ask(self, prompt: str) -> tuple[Turn, ...]:
        """Send a prompt in a separate conversation."""
        persona = Persona(SEARCHER_NAME, SEARCHER.text)
        debate = Debate([persona], model=self.client, rounds=1, options=self.options, models=self.models)
        return tuple(turn._replace(round=self.round) for turn in (await debate.converse(prompt)).turns)


def _status(turn: Turn, parsed: object | None) -> ParseStatus:
    if parsed is not None:
        return "ok"
    return "refused" if looks_like_refusal(turn.text) else "cut" if turn.cut else "unparsed"


def _with_status(turns: tuple[Turn, ...], status: ParseStatus) -> tuple[Turn, ...]:
    return (*turns[:-1], turns[-1]._replace(parse_status=status))


QUERY_CHARS = 300
LIST_CHARS = 20_000
"""Maximum length of a reply parsed as a list; a few queries are never longer."""

_OPENS = re.compile(r"\[\s*[\"']")
_CLOSES = re.compile(r"[\"']\s*+(?:,\s*+)?\]")
_QUOTED = re.compile(r"(?<=[\[,])\s*([\"'])((?:\\.|[^\n\\]){0,1000}?)\1(?=\s*[,\]])")
_LINE = re.compile(r"^[ \t]*+(?:\d{1,2}[ \t]*+[.):]|[-*•])\s{1,200}+(\S.*)$", re.MULTILINE)
_EMPTY = re.compile(r"\[\s*\]")
_SOURCE = re.compile(r"\[\s*+SOURCE\s*+:\s*+([^\]]{1,1000}+)\]", re.IGNORECASE)


def read_list(text: str) -> list[str] | None:
    """Read a Python or JSON list in prose or code fences, or numbered or bulleted lines; None if there is neither.

    A truncated list gives its complete items. Nothing is evaluated.
    """
    text = text.translate(str.maketrans("“”‘’", "\"\"''"))
    if opens := _OPENS.search(text):
        inside = text[opens.start() :][:LIST_CHARS]
        closes = _CLOSES.search(inside)
        items = [groups[1] for groups in _QUOTED.findall(inside[: closes.end()] if closes else f"{inside},")]
        return _tidy(re.sub(r"\\([\"'\\])", r"\1", item) for item in items) or None
    if _EMPTY.search(text):
        return []
    return _tidy(line.strip(" ,*`").strip("\"'") for line in _LINE.findall(text)) or None


def _tidy(items: Iterable[str]) -> list[str]:
    """The items without duplicates, in order, with single spaces."""
    plain = (" ".join(item.split())[:QUERY_CHARS] for item in items)
    return list({item.casefold(): item for item in reversed([item for item in plain if item])}.values())[::-1]


def named_in(group: str, text: str) -> bool:
    """Whether a text names a group, as a whole word."""
    return re.search(rf"(?<!\w){re.escape(group)}(?!\w)", text, re.IGNORECASE) is not None


def best_first(queries: Sequence[str], groups: Sequence[str], count: int) -> list[str]:
    """The first `count` queries: those that name a group first, otherwise in the model's order."""
    return sorted(queries, key=lambda query: not any(named_in(group, query) for group in groups))[:count]


def unknown_sources(text: str, queries: Sequence[str]) -> list[str]:
    """Sources cited in a summary that were never searched."""
    searched = {_bare(query) for query in queries}
    return [cited for cited in _SOURCE.findall(text) if _bare(cited) not in searched]


def _bare(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()
