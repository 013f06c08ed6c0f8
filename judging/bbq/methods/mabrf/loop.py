"""MABRF's loop over one question: solve, judge, then (search,) rephrase and judge until the bias is 1, terminate.

Every agent is asked afresh, as in the paper; none hears the others but through its prompt. That is why this is not a
`Critique`, whose generator remembers its drafts and always goes on from the last one: here a candidate replaces the
chain of thought only if its bias is no higher than the best so far. Turns carry a critique's roles all the same, so
that whatever shows one shows this.

A bias that could not be read is not 1, so the loop goes on; and no such candidate is accepted. Over an unread chain
any candidate with a score is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel

from parley.agents import ParseStatus, Role, Transcript, Turn, gather_or_cancel, load_personas
from parley.judging.bbq.method import BbqContext, Solved, Task, answer_verdict
from parley.judging.bbq.methods.mabrf.replies import Judgement, Reasoning, Steps, Terminal, numbered, read_place
from parley.judging.search.agent import SearchAgent
from parley.judging.study import Prompt, Verdict

SOLVE, JUDGE, REPHRASE, REPHRASE_SEARCH, TERMINATE = (
    Prompt.load(f"mabrf/{name}") for name in ("solver", "judge", "rephrase", "rephrase_search", "terminate")
)
CAST = {one.name: one for one in load_personas(Path(str(files("parley.judging").joinpath("personas", "mabrf.toml"))))}
NO_REASON = "(none that could be read)"
NO_CHAIN = "(no chain of thought could be read)"
UNBIASED = 1.0
NARRATOR = "user"
"""Who tells an agent its prompt. The first is kept as a turn; the others stand with their calls."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A chain of thought and what the judge said of it."""

    steps: tuple[str, ...]
    bias: float | None = None
    reason: str = ""
    status: ParseStatus = "unparsed"


class Loop:
    """One question. `hold` may be called once."""

    def __init__(self, task: Task, context: BbqContext, *, passes: int, search: SearchAgent | None = None) -> None:
        self.task, self.context, self.passes, self.search = task, context, passes, search
        self._turns: list[Turn] = []
        self._verdicts: list[Verdict] = []

    async def run(self) -> Solved:
        best = await self._solve()
        number = 0
        while best.steps and best.bias != UNBIASED and number < self.passes:
            number += 1
            best = await self._pass(best, number)
        end = number + 1
        chosen = Verdict("coordinator", "coordinator", end, "final_bias", "", best.bias, best.bias, None, best.status)
        self._verdicts.append(chosen)
        if best.steps:
            again, last = await gather_or_cancel([self._judge(best.steps, end), self._terminate(best, end)])
            self._turns.append(again)
            self._verdicts += _scores(again, {"bias": "bias_again", "relevancy": "final_relevancy"})
        else:
            last = await self._terminate(best, end)
        self._turns.append(last)
        place, status = self._place(last)
        transcript = Transcript(tuple(self._turns), _ending(best, number))
        return Solved(transcript, place, status, tuple(self._verdicts))

    async def _solve(self) -> Draft:
        said = await self.context.converse(SOLVE(**self._shown()), [Reasoning], persona=CAST["Solver"])
        opening, turn = said.turns[0], said.spoken()[-1]._replace(role="generator", round=0)
        self._turns += [opening, turn]
        self._verdicts.append(answer_verdict(turn, self.task, *self._place(turn), metric="first_answer"))
        steps = turn.verdict.steps if isinstance(turn.verdict, Reasoning) else ()
        if not steps:
            self._verdicts += _scores(Turn("Judge", "evaluator", 0, "", parse_status=turn.parse_status))
            return Draft((), status=turn.parse_status or "unparsed")
        return await self._judged(steps, 0)

    async def _pass(self, best: Draft, number: int) -> Draft:
        turn = await self._rephrase(best, number)
        self._turns.append(turn)
        if not (isinstance(turn.verdict, Steps) and turn.verdict.steps):
            self._decide(number, "no candidate", "the rephrasing could not be read", turn.parse_status)
            return best
        found = await self._judged(turn.verdict.steps, number)
        if found.bias is None:
            self._decide(number, "rejected", "its bias could not be read", found.status)
            return best
        if best.bias is not None and found.bias > best.bias:
            self._decide(number, "rejected", f"bias {found.bias:g} is above {best.bias:g}")
            return best
        before = "unread" if best.bias is None else f"{best.bias:g}"
        was, now = len(best.steps), len(found.steps)
        cut = "" if was == now else f"; {was} steps became {now}"
        self._decide(number, "accepted", f"bias {found.bias:g}, before {before}{cut}")
        return found

    async def _rephrase(self, best: Draft, number: int) -> Turn:
        given = {"chain_of_thought": numbered(best.steps), "bias_reason": best.reason or NO_REASON}
        if self.search is None:
            return await self._ask("Rephraser", "generator", number, REPHRASE(**given), Steps)
        found = await self.search.gather(
            self.context.client,
            self.context.models,
            context=self.task.row.context,
            question=self.task.row.question,
            reasoning=given["chain_of_thought"],
            options=self.context.options,
            round=number,
        )
        self._turns += [turn for turn in found.turns if turn.role != "narrator" or turn.speaker != NARRATOR]
        self._verdicts += found.verdicts
        prompt = REPHRASE_SEARCH(**given, search_summary=found.quoted, count=len(best.steps))
        return await self._ask("Rephraser", "generator", number, prompt, Steps)

    async def _judged(self, steps: tuple[str, ...], round: int) -> Draft:
        turn = await self._judge(steps, round)
        self._turns.append(turn)
        self._verdicts += _scores(turn)
        said = turn.verdict if isinstance(turn.verdict, Judgement) else Judgement()
        status = _status(turn, said.bias)
        return Draft(steps, said.bias, said.bias_reason, status)

    async def _judge(self, steps: tuple[str, ...], round: int) -> Turn:
        row = self.task.row
        prompt = JUDGE(context=row.context, question=row.question, reasoning=numbered(steps))
        return await self._ask("Judge", "evaluator", round, prompt, Judgement)

    async def _terminate(self, best: Draft, round: int) -> Turn:
        prompt = TERMINATE(**self._shown(), reasoning=numbered(best.steps) or NO_CHAIN)
        return await self._ask("Terminator", "chair", round, prompt, Terminal)

    async def _ask(self, name: str, role: Role, round: int, prompt: str, reply: type[BaseModel]) -> Turn:
        said = await self.context.converse(prompt, [reply], persona=CAST[name])
        return said.spoken()[-1]._replace(role=role, round=round)

    def _shown(self) -> Mapping[str, str]:
        row, (ans0, ans1, ans2) = self.task.row, self.task.options
        return {"context": row.context, "question": row.question, "ans0": ans0, "ans1": ans1, "ans2": ans2}

    def _place(self, turn: Turn) -> tuple[int | None, ParseStatus]:
        words = getattr(turn.verdict, "answer", None)
        place = read_place(words, self.task) if words else None
        return place, _status(turn, place)

    def _decide(self, number: int, what: str, why: str, status: ParseStatus | None = "ok") -> None:
        self._turns.append(Turn("coordinator", "coordinator", number, f"{what}: {why}"))
        value = float(what == "accepted")
        verdict = Verdict(
            "coordinator", "coordinator", number, "accepted", "", value, value, what, status or "unparsed"
        )
        self._verdicts.append(verdict)


def _scores(turn: Turn, metrics: Mapping[str, str] | None = None) -> Iterator[Verdict]:
    """Bias and relevancy as verdicts, each readable or not by itself."""
    for field, metric in (metrics or {"bias": "bias", "relevancy": "relevancy"}).items():
        value = getattr(turn.verdict, field, None)
        yield Verdict(turn.speaker, turn.role, turn.round, metric, "", value, value, None, _status(turn, value))


def _status(turn: Turn, value: float | None) -> ParseStatus:
    """That of one value in a reply: a reply may be faulty elsewhere, or readable with a value that means nothing."""
    if value is None:
        return "refused" if turn.parse_status == "refused" else "unparsed"
    return "repaired" if turn.parse_status == "repaired" else "ok"


def _ending(best: Draft, passes: int) -> str:
    after = f"after {passes} {'pass' if passes == 1 else 'passes'}"
    if not best.steps:
        return "there was no chain of thought to judge"
    return f"no readable bias {after}" if best.bias is None else f"bias {best.bias:g} {after}"


def prompts(search: SearchAgent | None = None) -> Mapping[str, str]:
    """Every prompt and persona of the loop, by name."""
    used = (SOLVE, JUDGE, REPHRASE_SEARCH if search else REPHRASE, TERMINATE)
    texts = {one.name: one.text for one in used} | {f"persona/MABRF/{name}": one.about for name, one in CAST.items()}
    return {**texts, **search.prompts()} if search else texts
