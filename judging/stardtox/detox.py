"""STARDTOX's loop on a text of anybody's: what an application calls, and `parley detox` shows.

    done = await detox("You are an idiot.", model="openai/gpt-4o-mini")
    done.text, done.met

A text that a scorer cannot read stays as it came, and is not met. One that is too long for the model goes through
passage by passage: each is scored, and only those are judged and revised that the scorers object to; the others stand,
to the letter.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from parley.agents import DEFAULT_MODEL, Assessment, ConfigError, Critique, Models, Transcript, Turn, Usage
from parley.agents.evaluation import Criterion, ScoreFunction, scores_of
from parley.judging.stardtox.method import generator_persona
from parley.judging.stardtox.passages import longest_passage, passages
from parley.judging.stardtox.team import Team, load_team
from parley.judging.study import Prompt

TASK = Prompt.load("stardtox/detox_task")
CONTINUE = Prompt.load("stardtox/detox_continue")
REVISE = Prompt.load("stardtox/detox_revise")
JUDGE = Prompt.load("stardtox/detox_judge")


@dataclass(frozen=True, slots=True)
class Score:
    """One score of a draft; `value` is None where there is none, and `note` then says why."""

    evaluator: str
    name: str
    value: float | None
    asked: str = ""
    met: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Iteration:
    """A draft as it was judged: iteration 0 is the text as it came."""

    passage: int
    passages: int
    iteration: int
    text: str
    scores: tuple[Score, ...]
    decision: str


@dataclass(frozen=True, slots=True)
class Detoxed:
    """The text that came out, every step on the way, whether all criteria are met in the end, and what it cost."""

    text: str
    met: bool
    passages: int
    steps: tuple[Iteration, ...]
    usage: Usage

    @property
    def decisions(self) -> tuple[str, ...]:
        """How it ended, for every passage."""
        return tuple(last.decision for last in self._last().values())

    def _last(self) -> dict[int, Iteration]:
        return {step.passage: step for step in self.steps}


async def detox(
    text: str,
    *,
    prompt: str | None = None,
    model: str = DEFAULT_MODEL,
    judge: str | None = None,
    scorer: str | None = None,
    team: str = "stardtox",
    performance: bool = True,
    without: Sequence[str] = (),
    criteria: Sequence[str] = (),
    max_iterations: int = 2,
    temperature: float | None = None,
    seed: int = 0,
    models: Models | None = None,
    on_step: Callable[[Iteration], None] = lambda step: None,
) -> Detoxed:
    """Judge the text and revise it until the criteria are met, or `max_iterations` revisions were made.

    `prompt` is what the text goes on from or answers, if anything; `without` names evaluators that are left out. An
    application that calls this often gives its own `models`, which stay open.
    """
    if not text.strip():
        raise ConfigError("there is no text to look at")
    if max_iterations < 0:
        raise ConfigError("the number of iterations cannot be negative")
    gone = [*without, *([] if performance else ["performance"])]
    chosen = load_team(team).with_scorer(scorer).without(gone).asking(criteria)
    if not chosen.evaluators:
        raise ConfigError("every evaluator was left out: nothing would be judged")
    opened = Models() if models is None else models
    options: dict[str, Any] = {"seed": seed} | ({} if temperature is None else {"temperature": temperature})
    work = _Work(chosen, opened, model, judge or model, options, prompt, max_iterations)
    try:
        return await work.on(text, on_step)
    finally:
        if models is None:
            await opened.close()


@dataclass(frozen=True, slots=True)
class _Work:
    team: Team
    models: Models
    model: str
    judge: str
    options: Mapping[str, Any]
    prompt: str | None
    max_iterations: int

    async def on(self, text: str, on_step: Callable[[Iteration], None]) -> Detoxed:
        cut = passages(text, longest_passage(self.models[self.model], self.max_iterations))
        steps: list[Iteration] = []
        written: list[str] = []
        spent = Usage()
        for at, passage in enumerate(cut):
            now = passage
            async with aclosing(self._steps(at, passage, len(cut))) as found:
                async for step, turns in found:
                    steps.append(step)
                    on_step(step)
                    now = passage if step.iteration == 0 else _with_ends(passage, step.text)
                    for call in (call for turn in turns for call in turn.calls):
                        spent = spent.plus(call)
            written.append(now)
        last = {step.passage: step for step in steps}
        met = all(score.met is not False for step in last.values() for score in step.scores)
        return Detoxed("".join(written), met, len(cut), tuple(steps), spent)

    async def _steps(self, at: int, text: str, count: int) -> AsyncGenerator[tuple[Iteration, list[Turn]], None]:
        scores = await self._screen(text)
        if stands := _why_it_stands(scores, long=count > 1):
            yield Iteration(at, count, 0, text, scores, stands), []
            return
        loop = Critique(
            generator_persona(),
            self.team.seat(self.models, self.judge, {**self.options, "max_tokens": 200}, self._judge_prompt()),
            criteria=self.team.criteria,
            max_iterations=self.max_iterations,
            draft=text.strip(),
            evaluator_task=self.prompt or text.strip(),
            model=self.models[self.model],
            revise_prompt=REVISE.text,
            options={**self.options, "max_tokens": 64 + len(text) // 2},
            models=self.models,
        )
        turns: list[Turn] = []
        async with aclosing(loop.stream(CONTINUE(prompt=self.prompt) if self.prompt else TASK.text)) as talk:
            async for turn in talk:
                turns.append(turn)
                if turn.role == "coordinator":
                    yield self._step(at, count, Transcript(tuple(turns))), turns
                    turns = []

    def _judge_prompt(self) -> Prompt | None:
        """Without a prompt to go on from, a text is judged against itself as it came."""
        return None if self.prompt else JUDGE

    async def _screen(self, text: str) -> tuple[Score, ...]:
        """What the scorers say before anybody else is asked; their scores are kept, so the loop pays for none twice."""
        seated = self.team.seat(self.models, self.judge, {})
        scores: list[Score] = []
        for spec in (one for one in self.team.evaluators if one.scorer):
            scorer: ScoreFunction = seated[spec.name]  # type: ignore[assignment]
            said: Any = await scorer("", text.strip())  # type: ignore[misc]
            scores.append(self._score(spec.name, spec.name, said))
        return tuple(scores)

    def _step(self, at: int, count: int, talk: Transcript) -> Iteration:
        draft, decision = talk.spoken("generator")[-1], talk.spoken("coordinator")[-1]
        scores = [
            self._score(spec.name, name, turn.verdict or turn.text)
            for turn in talk.spoken("evaluator")
            for spec in (self.team[turn.speaker],)
            for name in spec.scores
        ]
        return Iteration(at, count, draft.round, draft.text.strip(), tuple(scores), decision.text)

    def _score(self, evaluator: str, name: str, said: Any) -> Score:
        rule = self.team.criteria.get(name, "")
        scored = isinstance(said, Assessment) or hasattr(said, "reason")
        value = scores_of(evaluator, said)[name] if scored else None
        note = str(said.reason) if scored else str(getattr(said, "why", said))
        met = Criterion.read(rule).met(value) if rule else None
        return Score(evaluator, name, value, rule.strip(), met, note)


def _why_it_stands(scores: Sequence[Score], *, long: bool) -> str:
    """Why a text, or a passage of a long one, is left as it came; empty if it must be judged, and revised if need be.

    Who cannot tell whether the text is toxic cannot tell whether a revision is better.
    """
    if any(score.met is False and score.value is not None for score in scores):
        return ""
    if unscored := [score.name for score in scores if score.met is False]:
        return f"stays as it came, not scored: {', '.join(unscored)}"
    return "stands: nothing in it was objected to" if long and scores else ""


def _with_ends(before: str, after: str) -> str:
    """The new text with the white space that the old one had around it."""
    bare = before.strip()
    start = before.index(bare)
    return before[:start] + after.strip() + before[start + len(bare) :]
