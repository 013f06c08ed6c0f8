"""MABRF's loop over one question: solve, judge, then (search,) rephrase and judge until the bias is 1, terminate.

Every agent starts without memory, as in the paper, and sees the others' replies only in its prompt. Therefore this
is not a `Critique`, whose generator remembers its drafts and always revises the last one. Here a candidate
replaces the chain of thought only if its bias is no higher than the best so far. Turns still have a critique's roles,
so that the viewer shows both alike.

A bias that could not be read is not 1, so the loop continues, and such a candidate is never accepted. If the bias of
the current chain could not be read, any candidate with a score replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import ParseStatus, Persona, Role, Transcript, Turn, gather_or_cancel
from parley.agents.fencing import fence_judged
from parley.agents.search import make_engine
from parley.base.text import plural
from parley.judging import Prompt, Verdict
from parley.judging.bbq.mabrf.replies import Judgement, Reasoning, Steps, Terminal, numbered, read_place
from parley.judging.bbq.method import BbqContext, Solved, Task, answer_verdict
from parley.judging.config import NO_MEASURE, shipped_personas
from parley.judging.overcorrection import counted_verdicts
from parley.judging.search import SearchAgent

MARK = "final_bias"
"""A metric that only units of this loop have."""
SOLVE, ANSWER, JUDGE, REPHRASE, REPHRASE_SEARCH, TERMINATE, OUTSIDE = (
    Prompt.load(f"mabrf/{name}", "bbq")
    for name in ("solver", "answer", "judge", "rephrase", "rephrase_search", "terminate", "outside")
)
AUDITOR = "Auditor"
"""The outside judge: its scores have no influence on the loop."""
NO_REASON = "(none that could be read)"
NO_CHAIN = "(no chain of thought could be read)"
UNBIASED = 1.0
NARRATOR = "user"
"""The speaker of prompts. Only the first is stored as a turn; the others are stored with their calls."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A chain of thought and the judge's assessment of it."""

    steps: tuple[str, ...]
    bias: float | None = None
    reason: str = ""
    relevancy: float | None = None
    status: ParseStatus = "unparsed"
    rephrased: int = 0
    """Number of times it was rephrased."""

    @property
    def author(self) -> str:
        """The author of the reasoning, for the Terminator."""
        times = "once" if self.rephrased == 1 else f"{self.rephrased} times"
        return "the Solver agent" + (f", rephrased {times} by the Rephrase agent" if self.rephrased else "")


class Loop:
    """The loop for one question; `run` may be called once.

    Args:
        task: The question.
        context: The model under test and the options of its calls.
        passes: Maximum number of rephrasings.
        search: A search agent that gathers evidence before each rephrasing, if any.
        judge: The judge's model; by default the model under test.
        search_model: The search agent's model; by default the model under test.
        measure: The outside judge's model; by default the judge's. `none`: there is no outside judge, and the
            chosen chain is not judged again, as in the paper.
    """

    def __init__(
        self,
        task: Task,
        context: BbqContext,
        *,
        passes: int,
        search: SearchAgent | None = None,
        judge: str | None = None,
        search_model: str | None = None,
        measure: str | None = None,
    ) -> None:
        self.task, self.context, self.passes, self.search = task, context, passes, search
        self._searcher = context.models[search_model] if search_model else context.client
        models = {"Judge": judge, AUDITOR: measure or judge}
        self._cast = {who.name: Persona(who.name, who.about, models.get(who.name)) for who in cast()}
        self._measured = measure != NO_MEASURE
        self._turns: list[Turn] = []
        self._verdicts: list[Verdict] = []
        self._copied: list[int] = []

    async def run(self) -> Solved:
        # Both arms share the first chain and score, so they differ only in the search.
        async with self.context.shared_start():
            best = await self._solve()
        first, number = best, 0
        chains = {0: numbered(best.steps)}
        while best.steps and best.bias != UNBIASED and number < self.passes:
            number += 1
            best = await self._pass(best, number)
            chains[number] = numbered(best.steps)
        end = number + 1
        coordinator = Turn("coordinator", "coordinator", end, "")
        self._verdicts.append(
            Verdict.from_turn(coordinator, MARK, value=best.bias, sampled=best.bias, status=best.status)
        )
        if best.steps:
            rephrased = (turn for turn in self._turns if turn.role == "generator")
            self._verdicts += counted_verdicts(chains, rephrased, marked=dict.fromkeys(self._copied, "copied"))
        if best.steps and self._measured:
            again, last = await gather_or_cancel([self._judge(best.steps, end), self._terminate(best, end)])
            self._turns.append(again)
            # The same judge scores again, next to the outside judge, to show what selection alone does.
            self._verdicts += score_verdicts(again, {"bias": "bias_again", "relevancy": "final_relevancy"})
            await self._measure(first, best, end)
        else:
            last, value = await self._terminate(best, end), best.relevancy
            status: ParseStatus = best.status if value is None else "ok"
            self._verdicts.append(
                Verdict.from_turn(coordinator, "final_relevancy", value=value, sampled=value, status=status)
            )
        self._turns.append(last)
        place, status = self._place(last)
        transcript = Transcript(tuple(self._turns), _ending(best, number))
        return Solved(transcript, place, status, tuple(self._verdicts))

    async def _measure(self, first: Draft, last: Draft, end: int) -> None:
        """Have an outside judge score the first and the last chain; if they are the same, only once."""
        # Scoring one text twice would only add noise.
        chosen = [first.steps] if last.steps == first.steps else [first.steps, last.steps]
        audits = await gather_or_cancel(self._judge(steps, end, AUDITOR, OUTSIDE) for steps in chosen)
        self._turns += audits
        judge = f"{AUDITOR}, {self._cast[AUDITOR].model or self.context.client.name}"
        for turn, suffix in ((audits[0], "_first"), (audits[-1], "")):
            metrics = {name: f"outside_{name}{suffix}" for name in ("bias", "relevancy")}
            self._verdicts += [replace(verdict, judge=judge) for verdict in score_verdicts(turn, metrics)]

    async def _solve(self) -> Draft:
        # A real solver listed the options as its steps, and stopped, in 66 of 110 first replies.
        transcript = await self.context.converse(
            SOLVE(**self._question()),
            [SOLVE.reads(Reasoning), ANSWER.reads(Terminal)],
            [ANSWER.text],
            persona=self._cast["Solver"],
            until=lambda turn: turn.parse_status == "refused" or self._place(turn)[0] is not None,
        )
        turn, *requested = (turn._replace(role="generator", round=0) for turn in transcript.spoken())
        self._turns += [transcript.turns[0], turn, *(last._replace(role="chair") for last in requested)]
        place, status = self._place(self._turns[-1])
        if requested and place is not None:
            status = "repaired"
        self._verdicts.append(answer_verdict(self._turns[-1], self.task, place, status, metric="first_answer"))
        steps = turn.verdict.steps if isinstance(turn.verdict, Reasoning) else ()
        if not steps:
            self._verdicts += score_verdicts(Turn("Judge", "evaluator", 0, "", parse_status=turn.parse_status))
            return Draft((), status=turn.parse_status or "unparsed")
        return await self._judge_draft(steps, 0)

    async def _pass(self, best: Draft, number: int) -> Draft:
        turn = await self._rephrase(best, number)
        if not (isinstance(turn.verdict, Steps) and turn.verdict.steps):
            self._turns.append(turn)
            self._decide(number, "no candidate", "the rephrasing could not be read", turn.parse_status)
            return best
        steps = turn.verdict.steps
        if steps == best.steps:  # judged all the same, as in the paper; a lower score of the same steps is chance
            turn = turn._replace(parse_status="copied")
            self._copied.append(number)
        self._turns.append(turn)
        candidate = await self._judge_draft(steps, number)
        if candidate.bias is None:
            self._decide(number, "rejected", "its bias could not be read", candidate.status)
            return best
        if best.bias is not None and candidate.bias > best.bias:
            self._decide(number, "rejected", f"bias {candidate.bias:g} is above {best.bias:g}")
            return best
        before = "unread" if best.bias is None else f"{best.bias:g}"
        was, now = len(best.steps), len(steps)
        change = "; the same steps" if steps == best.steps else f"; {was} steps became {now}" * (was != now)
        self._decide(number, "accepted", f"bias {candidate.bias:g}, before {before}{change}")
        return replace(candidate, rephrased=best.rephrased + 1)

    async def _rephrase(self, best: Draft, number: int) -> Turn:
        values = {"chain_of_thought": numbered(best.steps), "bias_reason": best.reason or NO_REASON}
        if self.search is None:
            prompt = REPHRASE(**values, count=len(best.steps))
            return await self._ask("Rephraser", "generator", number, prompt, REPHRASE.reads(Steps))
        evidence = await self.search.gather(
            self._searcher,
            self.context.models,
            context=self.task.row.context,
            question=self.task.row.question,
            reasoning=values["chain_of_thought"],
            options=self.context.options,
            round=number,
        )
        self._turns += [turn for turn in evidence.turns if turn.role != "narrator" or turn.speaker != NARRATOR]
        self._verdicts += evidence.verdicts
        prompt = REPHRASE_SEARCH(**values, search_summary=evidence.quoted, count=len(best.steps))
        return await self._ask("Rephraser", "generator", number, prompt, REPHRASE_SEARCH.reads(Steps))

    async def _judge_draft(self, steps: tuple[str, ...], round: int) -> Draft:
        turn = await self._judge(steps, round)
        self._turns.append(turn)
        self._verdicts += score_verdicts(turn)
        judgement = turn.verdict if isinstance(turn.verdict, Judgement) else Judgement()
        status = _status(turn, judgement.bias)
        return Draft(steps, judgement.bias, judgement.bias_reason, judgement.relevancy, status)

    async def _judge(self, steps: tuple[str, ...], round: int, name: str = "Judge", prompt: Prompt = JUDGE) -> Turn:
        row = self.task.row
        filled = judge_prompt(steps, context=row.context, question=row.question, prompt=prompt)
        return await self._ask(name, "evaluator", round, filled, prompt.reads(Judgement))

    async def _terminate(self, best: Draft, round: int) -> Turn:
        prompt = TERMINATE(**self._question(), author=best.author, reasoning=numbered(best.steps) or NO_CHAIN)
        return await self._ask("Terminator", "chair", round, prompt, TERMINATE.reads(Terminal))

    async def _ask(self, name: str, role: Role, round: int, prompt: str, reply: type[BaseModel]) -> Turn:
        transcript = await self.context.converse(prompt, [reply], persona=self._cast[name])
        return transcript.spoken()[-1]._replace(role=role, round=round)

    def _question(self) -> Mapping[str, str]:
        row, (ans0, ans1, ans2) = self.task.row, self.task.options
        return {"context": row.context, "question": row.question, "ans0": ans0, "ans1": ans1, "ans2": ans2}

    def _place(self, turn: Turn) -> tuple[int | None, ParseStatus]:
        words = getattr(turn.verdict, "answer", None)
        place = read_place(words, self.task) if words else None
        return place, _status(turn, place)

    def _decide(self, number: int, what: str, why: str, status: ParseStatus | None = "ok") -> None:
        turn, value = Turn("coordinator", "coordinator", number, f"{what}: {why}"), float(what == "accepted")
        self._turns.append(turn)
        self._verdicts.append(
            Verdict.from_turn(turn, "accepted", value=value, sampled=value, text=what, status=status or "unparsed")
        )


def judge_prompt(steps: tuple[str, ...], *, context: str, question: str, prompt: Prompt = JUDGE) -> str:
    """The prompt of a judge about a chain of thought.

    Args:
        steps: The chain of thought.
        context: The question's context.
        question: The question.
        prompt: The judge's prompt, or the outside judge's.
    """
    return prompt(context=context, question=question, reasoning=fence_judged(numbered(steps), "REASONING"))


def score_verdicts(turn: Turn, metrics: Mapping[str, str] | None = None) -> Iterator[Verdict]:
    """Bias and relevancy as verdicts, each with its own parse status."""
    for field, metric in (metrics or {"bias": "bias", "relevancy": "relevancy"}).items():
        value = getattr(turn.verdict, field, None)
        yield Verdict.from_turn(turn, metric, value=value, sampled=value, status=_status(turn, value))


def _status(turn: Turn, value: float | None) -> ParseStatus:
    """The parse status of one value, which may differ from the whole reply's."""
    if value is None:
        if turn.parse_status == "refused":
            return "refused"
        return "cut" if turn.cut else "unparsed"
    return "repaired" if turn.parse_status == "repaired" else "ok"


def _ending(best: Draft, passes: int) -> str:
    after = f"after {plural(passes, 'pass', 'passes')}"
    if not best.steps:
        return "there was no chain of thought to judge"
    return f"no readable bias {after}" if best.bias is None else f"bias {best.bias:g} {after}"


def cast() -> list[Persona]:
    """The loop's agents."""
    return shipped_personas("mabrf.toml", "MABRF/")


def prompts(search: SearchAgent | None = None, measure: str | None = None) -> Mapping[str, str]:
    """Every prompt and persona of the loop, by name."""
    measured = measure != NO_MEASURE
    rephrase = REPHRASE_SEARCH if search else REPHRASE
    used = (SOLVE, ANSWER, JUDGE, rephrase, TERMINATE, *([OUTSIDE] if measured else []))
    texts = {prompt.name: prompt.text for prompt in used}
    texts |= {f"persona/MABRF/{who.name}": who.about for who in cast() if measured or who.name != AUDITOR}
    return {**texts, **search.prompts()} if search else texts


class MabrfSettings(BaseModel, extra="forbid", frozen=True):
    passes: int = Field(5, ge=0, le=100, description="maximum rephrasings of the chain of thought")
    temperature: float = Field(0.2, ge=0, le=2, description="sampling temperature, unless --temperature is given")
    judge: str | None = Field(None, description="judge's model (default: the model under test)")
    measure: str | None = Field(
        None,
        description="outside judge's model (default: the judge's, with another prompt); none: as the paper, which has "
        "no outside judge and does not judge the chosen chain again",
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
        return prompts(self.search, self.settings.measure)

    def models(self) -> list[str]:
        """Models other than the one under test."""
        settings = self.settings
        named = (settings.judge, getattr(settings, "search_model", None), settings.measure)
        return [name for name in named if name and name != NO_MEASURE]

    async def solve(self, task: Task, context: BbqContext) -> Solved:
        context = replace(context, options={"temperature": self.settings.temperature, **context.options})
        return await Loop(
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
        """Hashes of the searched documents, if the engine has them: a run only resumes with the same ones."""
        return self.engine.sources()
