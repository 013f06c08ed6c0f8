"""A critique loop: a generator drafts, evaluators score the draft, a coordinator decides, the generator revises.

    loop = Critique(writer, {"bias": critic}, criteria={"bias": "< 20"}, model="local/smollm2")
    transcript = await loop.converse("Describe a good nurse.")

`parley.agents.evaluation` defines evaluators and criteria. A score that could not be parsed meets no criterion, and the
draft is revised. A score that an evaluator could not give (`Unscored`) meets none either, but if only such scores are
missing the loop ends: there is no feedback to revise by.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import Any

from autogen_agentchat.base import ChatAgent, Team, TerminationCondition
from autogen_agentchat.messages import BaseChatMessage
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from parley.agents.calls import record_calls
from parley.agents.conversation import (
    Conversation,
    Participant,
    Seat,
    TurnMessage,
    gather_or_cancel,
    narrate,
    narrator_turn,
)
from parley.agents.errors import ConfigError
from parley.agents.evaluation import (
    PROMPTS,
    Criterion,
    Evaluator,
    ScoreFunction,
    Unscored,
    feedback_line,
    score_names,
    scores_of,
)
from parley.agents.fencing import fence_judged
from parley.agents.models.registry import Models
from parley.agents.personas import Persona, PersonaAgent
from parley.agents.structured import Readout, parse
from parley.agents.text import plural
from parley.agents.transcripts import Turn

EvaluatorVerdict = BaseModel | Unscored | None
"""A parsed reply; `Unscored`; or None where the reply could not be parsed."""


class Critique(Conversation):
    """A generator whose drafts are scored by evaluators and revised until all criteria are met.

    Args:
        generator: Writes the drafts: a persona, an AutoGen agent or an AutoGen team.
        evaluators: Who scores the drafts, by name: a persona, AutoGen agent or team that is asked for an `Assessment`,
            an `Evaluator`, or a function of task and draft.
        criteria: Thresholds by score name, such as `{"bias": "< 20"}`: `<`, `<=`, `>` or `>=`, and a number. Scores
            are named after their evaluator, or after a field of an `Evaluator`'s reply type. Scores without a criterion
            are feedback only; with no criteria at all the first draft is scored and not revised.
        max_iterations: The highest number of revisions.
        measure_only: Names of evaluators that only measure: they have no criteria, and the generator gets no feedback
            from them.
        draft: A first draft that exists already; by default the generator writes it.
        draft_type: The pydantic type that the generator's replies are parsed as; by default they are plain text.
        show_draft: From the generator's turn to the draft as evaluators read it; by default its text.
        evaluator_task: The task as evaluators read it; by default as the generator does.
        model: The model of all personas without their own, as `provider/model` or any AutoGen client; by default the
            embedded one.
        evaluate_prompt: The prompt of evaluators that are plain participants, with `{task}`, `{draft}` and
            `{criterion}`.
        revise_prompt: The prompt for a revision, with `{feedback}`.
        readout: How scores are read from typed replies: `sampled`, as written, or `expected`, as the mean over the
            scale's tokens (needs log-probabilities).
        options: Passed with every call of a persona, such as `{"max_tokens": 200}`; by default the client's own apply.
        models: The clients to use, in a study those of the run. By default the loop opens its own; `close()` closes
            them.
        termination: An AutoGen condition that ends the loop early.
        name: The loop's name as an AutoGen team, unique where it takes part in another conversation.
        description: Its description as an AutoGen team.
    """

    component_type = "team"

    def __init__(
        self,
        generator: Participant,
        evaluators: Mapping[str, Participant | Evaluator | ScoreFunction],
        *,
        criteria: Mapping[str, str],
        max_iterations: int = 2,
        measure_only: Collection[str] = (),
        draft: str | None = None,
        draft_type: type[BaseModel] | None = None,
        show_draft: Callable[[Turn], str] = lambda turn: turn.text,
        evaluator_task: str | None = None,
        model: str | ChatCompletionClient | None = None,
        evaluate_prompt: str = PROMPTS["critique_evaluate.txt"],
        revise_prompt: str = PROMPTS["critique_revise.txt"],
        readout: Readout = "sampled",
        options: Mapping[str, Any] | None = None,
        models: Models | None = None,
        termination: TerminationCondition | None = None,
        name: str = "critique",
        description: str = "A generator whose drafts are judged and revised.",
    ) -> None:
        super().__init__(
            name,
            description,
            model=model,
            models=models,
            readout=readout,
            options=options,
            termination=termination,
        )
        self.max_iterations = max_iterations
        self._draft, self._draft_type = draft, draft_type
        self._show_draft, self._evaluator_task = show_draft, evaluator_task
        self._revise_prompt, self._measure_only = revise_prompt, frozenset(measure_only)
        self._generator = self._seat(generator, "generator")
        self._evaluators: dict[str, tuple[Seat, Evaluator] | ScoreFunction] = {
            label: self._seat_evaluator(evaluator, evaluate_prompt) for label, evaluator in evaluators.items()
        }
        self.criteria = {score: Criterion.read(text) for score, text in criteria.items()}
        known = [
            name
            for label, evaluator in self._evaluators.items()
            if label not in self._measure_only
            for name in (score_names(label, evaluator[1].reply_type) if isinstance(evaluator, tuple) else (label,))
        ]
        unknown = set(criteria) - set(known)
        if unknown:
            raise ConfigError(f"criteria name scores that no evaluator gives: {', '.join(sorted(unknown))}")
        if len(set(known)) < len(known):
            repeated = sorted({name for name in known if known.count(name) > 1})
            raise ConfigError(f"two evaluators give scores with the same name: {', '.join(repeated)}")

    def _seat_evaluator(
        self, evaluator: Participant | Evaluator | ScoreFunction, prompt: str
    ) -> tuple[Seat, Evaluator] | ScoreFunction:
        if isinstance(evaluator, Persona | ChatAgent | Team):
            evaluator = Evaluator(evaluator, prompt=prompt)
        if not isinstance(evaluator, Evaluator):
            return evaluator
        seat = self._seat(evaluator.agent, "evaluator")
        if evaluator.options is not None and isinstance(seat.agent, PersonaAgent):
            seat.agent.options = dict(evaluator.options)
        return seat, evaluator

    async def _turns(
        self, task: Sequence[BaseChatMessage], token: CancellationToken
    ) -> AsyncGenerator[TurnMessage, None]:
        question = self._evaluator_task or "\n\n".join(message.to_model_text() for message in task)
        for message in task:
            self._generator.inbox.append(message)
            yield narrator_turn(message), message
        if self._draft is None:
            turn, message = await self._speak(self._generator, 0, token, self._draft_type)
        else:
            seat = self._generator
            message = narrate(self._draft, seat.name)
            turn = Turn(speaker=seat.name, role="generator", round=0, text=self._draft, persona=seat.persona)
            seat.inbox.append(narrate(f"Your draft was:\n\n{self._draft}"))
        yield turn, message
        if await self._is_over(message):
            return
        for iteration in range(self.max_iterations + 1):
            draft = self._show_draft(turn)
            evaluated = await gather_or_cancel(
                self._evaluate(label, question, draft, iteration, token) for label in self._evaluators
            )
            over = False
            verdicts: dict[str, EvaluatorVerdict] = {}
            for label, (evaluation, evaluation_message) in zip(self._evaluators, evaluated, strict=True):
                unscored = evaluation.parse_status == "unscored"
                verdicts[label] = Unscored(evaluation.text) if unscored else evaluation.verdict
                yield evaluation, evaluation_message
                over = over or await self._is_over(evaluation_message)
            if over:
                return
            counted = {label: verdict for label, verdict in verdicts.items() if label not in self._measure_only}
            decision, ends = self._decide(counted, iteration)
            self._stop_reason = decision
            coordination = Turn(speaker="coordinator", role="coordinator", round=iteration, text=decision)
            yield coordination, narrate(decision, "coordinator")
            if ends:
                return
            feedback = "\n".join(feedback_line(label, verdict, self.criteria) for label, verdict in counted.items())
            self._generator.inbox.append(narrate(self._revise_prompt.format(feedback=feedback)))
            turn, message = await self._speak(self._generator, iteration + 1, token, self._draft_type)
            yield turn, message
            if await self._is_over(message):
                return

    def _decide(self, verdicts: Mapping[str, EvaluatorVerdict], iteration: int) -> tuple[str, bool]:
        """The coordinator's decision, and whether it ends the loop."""
        scores: dict[str, float] = {}
        for label, verdict in verdicts.items():
            if not isinstance(verdict, Unscored):
                scores |= scores_of(label, verdict)
        missed = [name for name, criterion in self.criteria.items() if not criterion.met(scores.get(name))]
        unscored = [name for name in missed if isinstance(verdicts.get(name), Unscored)]
        revisions = plural(iteration, "revision")
        if not self.criteria:
            return "no criteria: the draft was scored and is final", True
        if not missed:
            return "all criteria are met", True
        if missed == unscored:
            return f"stopped after {revisions}, not scored: {', '.join(unscored)}", True
        if iteration == self.max_iterations:
            return f"stopped after {revisions}, not met: {', '.join(missed)}", True
        return f"revise: {', '.join(name for name in missed if name not in unscored)}", False

    async def _evaluate(
        self, label: str, task: str, draft: str, iteration: int, token: CancellationToken
    ) -> TurnMessage:
        """One evaluator's turn on one draft. Its agent is reset first: no draft is compared with an earlier one."""
        evaluator = self._evaluators[label]
        if not isinstance(evaluator, tuple):
            return await self._score(evaluator, label, task, draft, iteration)
        seat, settings = evaluator
        await seat.agent.on_reset(token)
        seat.inbox = [narrate(settings.prompt.format(task=task, draft=fence_judged(draft, "DRAFT"), criterion=label))]
        turn, message = await self._speak(seat, iteration, token, settings.reply_type)
        if turn.verdict is None and turn.parse_status is None:  # an AutoGen agent, which parses nothing itself
            verdict, _ = parse(turn.text, settings.reply_type)
            turn = turn._replace(verdict=verdict, parse_status="ok" if verdict else "cut" if turn.cut else "unparsed")
        return turn, message

    async def _score(self, function: ScoreFunction, label: str, task: str, draft: str, iteration: int) -> TurnMessage:
        """A plain function's turn on one draft."""
        with record_calls() as calls:
            returned = function(task, draft)
            verdict = await returned if inspect.isawaitable(returned) else returned
        assessment = None if isinstance(verdict, Unscored) else verdict
        text = verdict.why if isinstance(verdict, Unscored) else verdict.model_dump_json()
        turn = Turn(
            speaker=label,
            role="evaluator",
            round=iteration,
            text=text,
            verdict=assessment,
            parse_status="ok" if assessment else "unscored",
            calls=tuple(calls),
        )
        return turn, narrate(text, label)
