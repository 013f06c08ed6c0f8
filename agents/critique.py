"""A critique loop: a generator drafts, evaluators score the draft, a coordinator decides, the generator revises.

    loop = Critique(writer, {"bias": critic}, criteria={"bias": "< 20"}, model="local/smollm2")
    transcript = await loop.converse("Describe a good nurse.")

`parley.agents.evaluation` defines evaluators and criteria. A score that could not be parsed meets no criterion, and the
draft is revised. A score that an evaluator could not give (`Unscored`) meets none either, but if only such scores are
missing the loop ends: there is no feedback to revise by. A draft without any text is not shown to evaluators; it is
revised.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from autogen_agentchat.base import ChatAgent, Team, TerminationCondition
from autogen_agentchat.messages import BaseChatMessage
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from parley.agents.conversation import Conversation, Participant
from parley.agents.evaluation import (
    REVISE_PROMPT,
    Criterion,
    Evaluator,
    ScoreFunction,
    Unscored,
    feedback_line,
    score_names,
    scores_of,
)
from parley.agents.fencing import fence_judged
from parley.agents.messages import narrate
from parley.agents.models.registry import Models
from parley.agents.persona_agent import PersonaAgent, Spoken
from parley.agents.personas import Persona
from parley.agents.seats import Seat
from parley.agents.transcripts import Turn, record_calls, text_of
from parley.base.errors import ConfigError
from parley.base.tasks import gather_or_cancel
from parley.base.text import plural

EvaluatorVerdict = BaseModel | Unscored | None
"""A parsed reply; `Unscored`; or None where the reply could not be parsed."""


def _has_no_text(task: str, draft: str) -> Unscored:
    """The evaluator of empty drafts."""
    return Unscored("there is no text")


class Critique(Conversation):
    """A generator whose drafts are scored by evaluators and revised until all criteria are met.

    Args:
        generator: Writes the drafts: a persona, an AutoGen agent or an AutoGen team.
        evaluators: The evaluators, by name: a persona, AutoGen agent or team that is asked for an `Assessment`,
            an `Evaluator`, or a function of task and draft.
        criteria: Thresholds by score name, such as `{"bias": "< 20"}`: `<`, `<=`, `>` or `>=`, and a number. Scores
            are named after their evaluator, or after a field of an `Evaluator`'s reply type. Scores without a criterion
            are feedback only; with no criteria at all the first draft is scored and not revised.
        max_iterations: The highest number of revisions.
        measure_only: Names of evaluators that only measure: they have no criteria, and the generator gets no feedback
            from them.
        draft: A first draft that exists already; by default the generator writes it.
        draft_type: The pydantic type that the generator's replies are parsed as; by default its own
            `reply_type`, and plain text if it has none.
        show_draft: Turns the generator's turn into the draft that evaluators read; by default its text.
        evaluator_task: The task as evaluators read it; by default the generator's task.
        model: The model of all personas without their own, as `provider/model` or any AutoGen client; by default the
            embedded one.
        revise_prompt: The prompt for a revision, with `{feedback}`.
        first_call: Entered around the first draft's call, to share it with other conversations.
        options: Passed with every call of a persona, such as `{"max_tokens": 200}`; by default the client's own apply.
        models: The clients to use, in a study those of the run. By default the loop opens its own; `close()` closes
            them.
        termination_condition: An AutoGen condition that ends the loop early. As in AutoGen's teams, it gets the task
            too.
        model_client_stream: Whether `run_stream` yields the personas' replies as they arrive, chunk by chunk.
        name: The loop's name as an AutoGen team, unique where it takes part in another conversation.
    """

    description = "A generator whose drafts are judged and revised."

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
        show_draft: Callable[[Turn], str] = text_of,
        evaluator_task: str | None = None,
        model: str | ChatCompletionClient | None = None,
        revise_prompt: str = REVISE_PROMPT,
        first_call: AbstractAsyncContextManager[None] | None = None,
        options: Mapping[str, Any] | None = None,
        models: Models | None = None,
        termination_condition: TerminationCondition | None = None,
        model_client_stream: bool = False,
        name: str = "critique",
    ) -> None:
        super().__init__(
            name,
            model=model,
            models=models,
            options=options,
            termination_condition=termination_condition,
            model_client_stream=model_client_stream,
        )
        self.max_iterations = max_iterations
        self._draft, self._draft_type = draft, draft_type
        self._show_draft, self._evaluator_task = show_draft, evaluator_task
        self._revise_prompt, self._measure_only = revise_prompt, frozenset(measure_only)
        self._first_call = first_call or nullcontext()
        # Loops that are compared start from the same draft; every later call derives its own seed.
        self._generator = self._seat(generator, "generator", keeps_seed=draft is None)
        self._evaluators: dict[str, tuple[Seat, Evaluator] | ScoreFunction] = {
            label: self._seat_evaluator(evaluator) for label, evaluator in evaluators.items()
        }
        self.criteria = {score: Criterion.read(text) for score, text in criteria.items()}
        names = [
            name
            for label, evaluator in self._evaluators.items()
            if label not in self._measure_only
            for name in (score_names(label, evaluator[1].reply_type) if isinstance(evaluator, tuple) else (label,))
        ]
        unknown = set(criteria) - set(names)
        if unknown:
            raise ConfigError(f"criteria name scores that no evaluator gives: {', '.join(sorted(unknown))}")
        if len(set(names)) < len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise ConfigError(f"two evaluators give scores with the same name: {', '.join(repeated)}")

    def _seat_evaluator(
        self, evaluator: Participant | Evaluator | ScoreFunction
    ) -> tuple[Seat, Evaluator] | ScoreFunction:
        if isinstance(evaluator, Persona | ChatAgent | Team):
            evaluator = Evaluator(evaluator)
        if not isinstance(evaluator, Evaluator):
            return evaluator
        seat = self._seat(evaluator.agent, "evaluator")
        if evaluator.options is not None and isinstance(seat.agent, PersonaAgent):
            seat.agent.options = dict(evaluator.options)
        return seat, evaluator

    def _begin(self, task: Sequence[BaseChatMessage]) -> None:
        self._generator.inbox += task

    async def _turns(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        question = self._evaluator_task or "\n\n".join(message.to_model_text() for message in task)
        if self._draft is None:
            async with self._first_call:
                spoken = await self._speak(self._generator, 0, token, self._draft_type)
        else:
            seat = self._generator
            turn = Turn(speaker=seat.name, role="generator", round=0, text=self._draft, persona=seat.persona)
            spoken = Spoken(turn=turn, chat_message=narrate(self._draft, seat.name))
            seat.inbox.append(narrate(f"Your draft was:\n\n{self._draft}"))
        draft = self._read(spoken)
        yield spoken
        if await self._is_over(spoken.messages):
            return
        for iteration in range(self.max_iterations + 1):
            evaluated = await gather_or_cancel(
                self._evaluate(label, question, draft, iteration, token, buffer=position > 0)
                for position, label in enumerate(self._evaluators)
            )
            over = False
            verdicts: dict[str, EvaluatorVerdict] = {}
            for label, evaluation in zip(self._evaluators, evaluated, strict=True):
                unscored = evaluation.turn.parse_status == "unscored"
                verdicts[label] = Unscored(evaluation.turn.text) if unscored else evaluation.turn.verdict
                yield evaluation
                over = over or await self._is_over(evaluation.messages)
            if over:
                return
            counted = {label: verdict for label, verdict in verdicts.items() if label not in self._measure_only}
            decision, ends = self._decide(counted, iteration, empty=not draft.strip())
            self._stop_reason = decision
            coordination = Turn(speaker="coordinator", role="coordinator", round=iteration, text=decision)
            message = narrate(decision, "coordinator")
            yield Spoken(turn=coordination, chat_message=message)
            if ends or await self._is_over([message]):
                return
            feedback = "\n".join(feedback_line(label, verdict, self.criteria) for label, verdict in counted.items())
            self._generator.inbox.append(narrate(self._revise_prompt.format(feedback=feedback)))
            spoken = await self._speak(self._generator, iteration + 1, token, self._draft_type)
            draft = self._read(spoken, before=draft.strip())
            yield spoken
            if await self._is_over(spoken.messages):
                return

    def _read(self, spoken: Spoken, before: str = "") -> str:
        """The draft as evaluators read it, which the generator remembers; its turn is marked if it is empty or a copy.

        Args:
            spoken: The generator's turn.
            before: The draft before it.
        """
        draft, agent = self._show_draft(spoken.turn), self._generator.agent
        if spoken.turn.parse_status is None and draft.strip() in ("", before):
            spoken.turn = spoken.turn._replace(parse_status="copied" if draft.strip() else "empty")
        # Its feedback is about this text. A vendor may refuse an empty one.
        if draft.strip() and draft != spoken.turn.text and self._draft_type is None and isinstance(agent, PersonaAgent):
            agent.remember(draft)
        return draft

    async def _evaluate(
        self, label: str, task: str, draft: str, iteration: int, token: CancellationToken, buffer: bool
    ) -> Spoken:
        """Score one draft by one evaluator. Its agent is reset first, so that it does not compare drafts."""
        evaluator = self._evaluators[label] if draft.strip() else _has_no_text
        if not isinstance(evaluator, tuple):
            return await self._score(evaluator, label, task, draft, iteration)
        seat, settings = evaluator
        await seat.agent.on_reset(token)
        seat.inbox = [narrate(settings.prompt.format(task=task, draft=fence_judged(draft, "DRAFT"), criterion=label))]
        return await self._speak(seat, iteration, token, settings.reply_type, buffer=buffer)

    async def _score(self, function: ScoreFunction, label: str, task: str, draft: str, iteration: int) -> Spoken:
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
        return Spoken(turn=turn, chat_message=narrate(text, label))

    def _decide(self, verdicts: Mapping[str, EvaluatorVerdict], iteration: int, *, empty: bool) -> tuple[str, bool]:
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
        if missed == unscored and not empty:
            return f"stopped after {revisions}, not scored: {', '.join(unscored)}", True
        if iteration == self.max_iterations:
            return f"stopped after {revisions}, not met: {', '.join(missed)}", True
        return (
            f"revise: {'it is empty' if empty else ', '.join(name for name in missed if name not in unscored)}",
            False,
        )
