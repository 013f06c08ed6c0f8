"""STARDTOX's loop on any text, for applications and for `parley detox`.

    revised = detox("You are an idiot.", model="openai/gpt-6-luna")
    revised.text, revised.met
    await detox_async(text, models=models)      # inside an event loop, and for many texts

The loop should do no harm. A text that the scorers find harmless is not changed. Neither is one that they cannot score
or are unsure about, but it does not meet the criteria. The best draft is returned, never one more toxic than the
original. The shipped team uses the thresholds measured for its scorer (`judging/toxicity/thresholds.toml`). A text that
is too long for the model is processed passage by passage.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from parley.agents import DEFAULT_MODEL, Assessment, Client, ConfigError, Critique, Models, Transcript, Turn, Usage
from parley.agents.evaluation import Criterion, ScoreFunction, scores_of
from parley.agents.fencing import fence_judged
from parley.agents.models.sim import refuse_unknown_effects
from parley.agents.transcripts import record_calls
from parley.base.tasks import blocking
from parley.judging.config import NO_MEASURE
from parley.judging.overcorrection import changes, keeps_something
from parley.judging.prompts import Prompt
from parley.judging.stardtox.methods import generator_persona
from parley.judging.stardtox.team import SHUFFLED, Team, Thresholds, load_team, thresholds_of
from parley.judging.toxicity import Scorer, find_scorer

TASK = Prompt.load("stardtox/detox_task")
CONTINUE = Prompt.load("stardtox/detox_continue")
REVISE = Prompt.load("stardtox/detox_revise")
JUDGE = Prompt.load("stardtox/detox_judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score of a draft.

    Args:
        evaluator: The evaluator's name.
        name: The measure: "toxicity", "fluency".
        value: The score; None if there is none.
        criterion: The coordinator's criterion, such as "< 0.1"; empty if it has none for this score.
        met: Whether the criterion is met; None without a criterion.
        note: The evaluator's reason, or why there is no score.
    """

    evaluator: str
    name: str
    value: float | None
    criterion: str = ""
    met: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """A draft and its scores.

    Args:
        passage: The number of its passage, from 0.
        passages: Number of passages in the text.
        iteration: 0 for the original text, then the number of the revision.
        text: The draft.
        scores: Its scores.
        decision: The coordinator's decision, in words.
        outside: Its toxicity by a scorer that the loop does not see; None if there is none.
        changes: Other differences from the original, by name (`parley.judging.overcorrection`).
    """

    passage: int
    passages: int
    iteration: int
    text: str
    scores: tuple[Score, ...]
    decision: str
    outside: float | None = None
    changes: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detoxed:
    """The result of `detox`.

    Args:
        text: The final text.
        met: Whether it meets all criteria.
        passages: Into how many passages the text was split.
        steps: Every draft, in order.
        kept: The iteration of each passage that is in the final text.
        cautions: Cautions on the thresholds and on revisions that were not used.
        usage: Calls, tokens and cost.
    """

    text: str
    met: bool
    passages: int
    steps: tuple[Iteration, ...]
    kept: tuple[int, ...]
    cautions: tuple[str, ...]
    usage: Usage

    @property
    def decisions(self) -> tuple[str, ...]:
        """The final decision for each passage."""
        last = {step.passage: step for step in self.steps}
        return tuple(step.decision for step in last.values())


async def detox_async(
    text: str,
    *,
    prompt: str | None = None,
    model: str = DEFAULT_MODEL,
    judge: str | None = None,
    scorer: str | None = None,
    measure: str = "ngrams",
    team: str = "stardtox",
    without: Sequence[str] = (),
    criteria: Sequence[str] = (),
    as_published: bool = False,
    max_iterations: int = 2,
    temperature: float | None = None,
    seed: int = 0,
    models: Models | None = None,
    on_step: Callable[[Iteration], None] = lambda step: None,
    on_start: Callable[[], None] = lambda: None,
) -> Detoxed:
    """Judge a text and revise it until the criteria are met, or the maximum of revisions is reached.

    Args:
        text: The text.
        prompt: The text or question that it continues or answers, if any.
        model: The model that revises.
        judge: The judges' model (default: the same).
        scorer: The toxicity scorer (default: the team's).
        measure: A scorer that measures every draft, hidden from the loop; or `none`.
        team: The evaluators: `stardtox`, or a path to a .toml file.
        without: Evaluators to leave out, such as `performance`.
        criteria: Thresholds that replace the team's, as "toxicity < 0.05". Without them the shipped team uses those
            measured for its scorer, if any.
        as_published: Follow the paper: toxicity < 0.1 for any scorer, harmless texts are judged and revised too, and
            the last draft is returned, even if an earlier one was better.
        max_iterations: Maximum revisions of a passage.
        temperature: The sampling temperature (default: the model's own).
        seed: The random seed, from which each call derives its own.
        models: Clients to use; they stay open. Saves time for applications that call this often.
        on_step: Called with each draft once it is judged.
        on_start: Called once all settings are known to be valid, before the first call.
    """
    if not text.strip():
        raise ConfigError("the text is empty")
    if max_iterations < 0:
        raise ConfigError(f"max_iterations must be 0 or more, got {max_iterations}")
    evaluators = load_team(team).with_scorer(scorer).without(without).asking(criteria)
    if not evaluators.evaluators:
        raise ConfigError("all evaluators are left out: nothing would be judged")
    for name in (model, judge or model):
        refuse_unknown_effects(name, [score for spec in evaluators.evaluators for score in spec.scores], "the team")
    clients = Models() if models is None else models
    thresholds = Thresholds()
    if team == "stardtox" and not as_published:
        thresholds = thresholds_of(evaluators, clients, chosen=[rule.split()[0].rstrip("<>=") for rule in criteria])
    evaluators.measured_by(measure)  # fails if it is one of the loop's own scorers
    loop = _DetoxLoop(
        team=evaluators.asking(thresholds.criteria),
        thresholds=thresholds,
        measure=None
        if measure == NO_MEASURE
        else clients.share(f"scorer/{measure}", partial(find_scorer, measure, clients)),
        as_published=as_published,
        models=clients,
        model=model,
        judge=judge or model,
        options={"seed": seed} | ({} if temperature is None else {"temperature": temperature}),
        prompt=prompt,
        max_iterations=max_iterations,
    )
    try:
        on_start()
        return await loop.run(text, on_step)
    finally:
        if models is None:
            await clients.close()


detox = blocking(detox_async)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DetoxLoop:
    team: Team
    thresholds: Thresholds
    measure: Scorer | None
    as_published: bool
    models: Models
    model: str
    judge: str
    options: Mapping[str, Any]
    prompt: str | None
    max_iterations: int

    async def run(self, text: str, on_step: Callable[[Iteration], None]) -> Detoxed:
        parts = passages(text, longest_passage(self.models[self.model], self.max_iterations))
        steps: list[Iteration] = []
        kept: list[Iteration] = []
        usage, fooled = Usage(), False
        for number, passage in enumerate(parts):
            drafts: list[Iteration] = []
            async with aclosing(self._steps(number, passage, len(parts))) as stream:
                async for step, turns in stream:
                    with record_calls() as measuring:
                        measured = await self._measured(step, passage)
                    drafts.append(measured)
                    fooled = fooled or self._prefers_shuffled(turns)
                    on_step(measured)
                    for call in (*(call for turn in turns for call in turn.calls), *measuring):
                        usage = usage.plus(call)
            steps += drafts
            kept.append(drafts[-1] if self.as_published else self._best(drafts))
        texts = [
            passage if step.iteration == 0 else _with_spaces_of(passage, step.text)
            for passage, step in zip(parts, kept, strict=True)
        ]
        emptied = any(
            step.text and not keeps_something(parts[step.passage], step.text) for step in steps if step.iteration
        )
        cautions = [*self.thresholds.cautions]
        if fooled:
            cautions.append("the judge scores the text's words in random order no lower than the text")
        if emptied and not self.as_published:
            cautions.append("a revision that refuses, or keeps next to nothing of the text, was not used")
        return Detoxed(
            text="".join(texts),
            met=all(score.met is not False for step in kept for score in step.scores),
            passages=len(parts),
            steps=tuple(steps),
            kept=tuple(step.iteration for step in kept),
            cautions=tuple(cautions),
            usage=usage,
        )

    def _prefers_shuffled(self, turns: Sequence[Turn]) -> bool:
        """Whether the judge scored a draft's shuffled words as high as the draft, or higher."""
        scores = {turn.speaker: scores_of(turn.speaker, turn.verdict) for turn in turns if turn.role == "evaluator"}
        mixed = scores.get(SHUFFLED)
        fluent = scores.get(self.team.judges[0].name) if mixed else None
        return bool(mixed and fluent and mixed[SHUFFLED] >= fluent[self.team.judges[0].scores[0]])

    def _best(self, drafts: Sequence[Iteration]) -> Iteration:
        """The best draft by the scorers' criteria, then by the judges'; the earliest one of ties.

        A revision that is empty, refuses, keeps nothing of the original, could not be scored, or is more toxic than the
        original is not considered.
        """
        original = {score.name: score.value for score in drafts[0].scores}

        def harmless(draft: Iteration) -> bool:
            return keeps_something(drafts[0].text, draft.text) and all(
                score.value is not None and (before is None or score.value <= before)
                for score in draft.scores
                if self.team[score.evaluator].scorer
                for before in (original[score.name],)
            )

        def faults(draft: Iteration) -> tuple[int, float, int]:
            missed = [score for score in draft.scores if score.met is False]
            toxic = [score.value or 0.0 for score in missed if self.team[score.evaluator].scorer]
            return len(toxic), max(toxic, default=0.0), len(missed)

        return min([drafts[0], *filter(harmless, drafts[1:])], key=faults)

    async def _steps(self, number: int, text: str, count: int) -> AsyncGenerator[tuple[Iteration, list[Turn]], None]:
        scores = await self._screen(text)
        if reason := self._why_unchanged(scores, long=count > 1):
            step = Iteration(passage=number, passages=count, iteration=0, text=text, scores=scores, decision=reason)
            yield step, []
            return
        judged = None if self.prompt else JUDGE  # without a prompt that it continues, against the original text
        loop = Critique(
            generator_persona(),
            self.team.seat(
                self.models,
                self.judge,
                {**self.options, "max_tokens": 200},
                judged,
                shuffles=lambda draft: draft == text.strip(),
            ),
            criteria=self.team.criteria,
            measure_only=[SHUFFLED],
            max_iterations=self.max_iterations,
            draft=text.strip(),
            evaluator_task=fence_judged(self.prompt or text.strip(), "BEGINNING" if self.prompt else "ORIGINAL"),
            model=self.models[self.model],
            revise_prompt=REVISE.text,
            options={**self.options, "max_tokens": 64 + len(text) // 2},
            models=self.models,
        )
        turns: list[Turn] = []
        async with aclosing(loop.stream(CONTINUE(prompt=self.prompt) if self.prompt else TASK.text)) as stream:
            async for turn in stream:
                turns.append(turn)
                if turn.role == "coordinator":
                    yield self._step(number, count, Transcript(tuple(turns))), turns
                    turns = []

    async def _measured(self, step: Iteration, passage: str) -> Iteration:
        """Add a draft's outside score and its other changes, neither of which influences the loop."""
        scored = await self.measure.score([step.text]) if self.measure and step.text.strip() else []
        changed = changes(passage, step.text)
        return replace(step, outside=scored[0].score if scored else None, changes=changed)

    async def _screen(self, text: str) -> tuple[Score, ...]:
        """The scorers' scores before any judge is called. They are cached, so the loop does not pay for them again."""
        evaluators = self.team.seat(self.models, self.judge, {})
        scores: list[Score] = []
        for spec in self.team.evaluators:
            if spec.scorer:
                scorer: ScoreFunction = evaluators[spec.name]  # type: ignore[assignment]
                assessment: Any = await scorer("", text.strip())  # type: ignore[misc]
                scores.append(self._score(spec.name, spec.name, assessment))
        return tuple(scores)

    def _why_unchanged(self, scores: Sequence[Score], *, long: bool) -> str:
        """The reason for leaving a text or passage unchanged; "" if it must be judged.

        A scorer that cannot score the text cannot score its revisions either, so revising would be blind.
        """
        judged = [score for score in scores if score.met is not None]
        missed = [score for score in judged if not score.met and score.value is not None]
        toxic_from = self.thresholds.toxic_from
        if any(score.value >= toxic_from.get(score.name, score.value) for score in missed if score.value is not None):
            return ""
        if unscored := [score.name for score in judged if score.value is None]:
            return f"unchanged, not scored: {', '.join(unscored)}"
        if missed:
            listed = ", ".join(
                f"{score.name} is neither {score.criterion} nor >= {toxic_from[score.name]:g}" for score in missed
            )
            return f"unchanged, unclear: {listed}"
        return "unchanged: it meets the scorers' criteria" if judged and (long or not self.as_published) else ""

    def _step(self, number: int, count: int, transcript: Transcript) -> Iteration:
        draft, decision = transcript.spoken("generator")[-1], transcript.spoken("coordinator")[-1]
        scores = [
            self._score(spec.name, name, turn.verdict or turn.text)
            for turn in transcript.spoken("evaluator")
            if turn.speaker != SHUFFLED
            for spec in (self.team[turn.speaker],)
            for name in spec.scores
        ]
        return Iteration(
            passage=number,
            passages=count,
            iteration=draft.round,
            text=draft.text.strip(),
            scores=tuple(scores),
            decision=decision.text,
        )

    def _score(self, evaluator: str, name: str, assessment: Any) -> Score:
        rule = self.team.criteria.get(name, "")
        scored = isinstance(assessment, Assessment) or hasattr(assessment, "reason")
        value = scores_of(evaluator, assessment)[name] if scored else None
        note = str(assessment.reason) if scored else str(getattr(assessment, "why", assessment))
        met = Criterion.read(rule).met(value) if rule else None
        return Score(evaluator=evaluator, name=name, value=value, criterion=rule.strip(), met=met, note=note)


def _with_spaces_of(before: str, after: str) -> str:
    """The new text with the surrounding white space of the old one."""
    bare = before.strip()
    start = before.index(bare)
    return before[:start] + after.strip() + before[start + len(bare) :]


RESERVED_TOKENS = 600
"""Tokens for persona, task, feedback and a judge's reply."""
MAX_PASSAGE_CHARS = 6000
"""Maximum length of a passage: longer ones are revised badly even if they fit the context."""
CHARS_PER_TOKEN = 2.5
"""Assumed characters per token: fewer than in English, so that other languages fit too."""
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*\s+|\n+")


def longest_passage(client: Client, max_iterations: int) -> int:
    """Maximum characters of a passage: at the last revision, all its drafts are in the generator's context."""
    tokens = (client.context_tokens - RESERVED_TOKENS) / (max_iterations + 2)
    return max(200, min(MAX_PASSAGE_CHARS, int(tokens * CHARS_PER_TOKEN)))


def passages(text: str, longest: int) -> list[str]:
    """The text in pieces of at most `longest` characters."""
    parts = []
    start = 0
    while len(text) - start > longest:
        window = text[start : start + longest]
        ends = [match.end() for match in _SENTENCE_END.finditer(window)]
        cut = ends[-1] if ends else window.rfind(" ") + 1 or longest
        parts.append(window[:cut])
        start += cut
    return [*parts, text[start:]] if text[start:] else parts
