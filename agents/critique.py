"""A critique loop: a generator drafts, evaluators judge side by side, a coordinator decides, the generator revises.

    loop = Critique(writer, {"bias": critic}, criteria={"bias": "< 20"}, model="local/smollm2")
    transcript = await loop.converse("Describe a good nurse.")

Who may judge is told in `parley.agents.evaluation`. The coordinator's rules are thresholds by score. A score that
could not be read never meets one; nor does one that an evaluator could not give, but for want of it alone nothing is
revised: nobody said what to change.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import Any

from autogen_agentchat.base import ChatAgent, Team, TerminationCondition
from autogen_agentchat.messages import BaseChatMessage
from autogen_core import CancellationToken
from pydantic import BaseModel

from parley.agents.calls import record_calls
from parley.agents.conversation import Conversation, Participant, Seat, Spoken, gather_or_cancel, narrate
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
from parley.agents.models.base import Client
from parley.agents.models.registry import Models
from parley.agents.personas import Persona, PersonaAgent
from parley.agents.structured import Readout, parse
from parley.agents.transcripts import ParseStatus, Turn

Opinion = BaseModel | Unscored | None


class Critique(Conversation):
    """`aside` names evaluators that only measure: the generator never hears of them, and they have no criteria.

    `draft` is a first draft that stands already, `draft_type` what the generator's replies are read as, `shown` how a
    draft is put before the evaluators, and `judged_as` the task as they are told it (default: as the generator is).
    """

    component_type = "team"

    def __init__(
        self,
        generator: Participant,
        evaluators: Mapping[str, Participant | Evaluator | ScoreFunction],
        *,
        criteria: Mapping[str, str],
        max_iterations: int = 2,
        aside: Collection[str] = (),
        draft: str | None = None,
        draft_type: type[BaseModel] | None = None,
        shown: Callable[[Turn], str] = lambda turn: turn.text,
        judged_as: str | None = None,
        model: str | Client | None = None,
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
            model_name=model,
            models=models,
            readout=readout,
            options=options,
            termination=termination,
        )
        self.max_iterations = max_iterations
        self._draft, self._draft_type = draft, draft_type
        self._shown, self._judged_as = shown, judged_as
        self._revise_prompt, self._aside = revise_prompt, frozenset(aside)
        self._generator = self._seat(generator, "generator")
        self._evaluators: dict[str, tuple[Seat, Evaluator] | ScoreFunction] = {
            label: self._place(one, evaluate_prompt) for label, one in evaluators.items()
        }
        self.criteria = {score: Criterion.read(text) for score, text in criteria.items()}
        known = [
            name
            for label, one in self._evaluators.items()
            if label not in self._aside
            for name in (score_names(label, one[1].reply_type) if isinstance(one, tuple) else (label,))
        ]
        strangers = set(criteria) - set(known)
        if strangers:
            raise ConfigError(f"criteria name no evaluator of this loop: {', '.join(sorted(strangers))}")
        if len(set(known)) < len(known):
            raise ConfigError("two evaluators of this loop give scores of the same name")

    def _place(
        self, one: Participant | Evaluator | ScoreFunction, prompt: str
    ) -> tuple[Seat, Evaluator] | ScoreFunction:
        if isinstance(one, Persona | ChatAgent | Team):
            one = Evaluator(one, prompt=prompt)
        if not isinstance(one, Evaluator):
            return one
        seat = self._seat(one.who, "evaluator")
        if one.options is not None and isinstance(seat.agent, PersonaAgent):
            seat.agent.options = dict(one.options)
        return seat, one

    async def _talk(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        question = self._judged_as or "\n\n".join(message.to_model_text() for message in task)
        for message in task:
            self._generator.inbox.append(message)
            yield Turn(message.source, "narrator", 0, message.to_model_text()), message
        if self._draft is None:
            turn, message = await self._speak(self._generator, 0, token, self._draft_type)
        else:
            message = narrate(self._draft, self._generator.name)
            turn = Turn(self._generator.name, "generator", 0, self._draft, self._generator.persona)
            self._generator.inbox.append(narrate(f"Your draft was:\n\n{self._draft}"))
        yield turn, message
        if await self._is_over(message):
            return
        for iteration in range(self.max_iterations + 1):
            draft = self._shown(turn)
            judged = await gather_or_cancel(
                self._evaluate(label, question, draft, iteration, token) for label in self._evaluators
            )
            over = False
            opinions: dict[str, Opinion] = {}
            for label, (said, said_message) in zip(self._evaluators, judged, strict=True):
                unscored = said.parse_status == "unscored"
                opinions[label] = Unscored(said.text) if unscored else said.verdict
                yield said, said_message
                over = over or await self._is_over(said_message)
            if over:
                return
            heard = {label: opinion for label, opinion in opinions.items() if label not in self._aside}
            decision, ends = self._decide(heard, iteration)
            self._stop_reason = decision
            yield Turn("coordinator", "coordinator", iteration, decision), narrate(decision, "coordinator")
            if ends:
                return
            feedback = "\n".join(feedback_line(label, found, self.criteria) for label, found in heard.items())
            self._generator.inbox.append(narrate(self._revise_prompt.format(feedback=feedback)))
            turn, message = await self._speak(self._generator, iteration + 1, token, self._draft_type)
            yield turn, message
            if await self._is_over(message):
                return

    def _decide(self, opinions: Mapping[str, Opinion], iteration: int) -> tuple[str, bool]:
        """The coordinator's words, and whether the loop ends with them."""
        scores: dict[str, float] = {}
        for label, opinion in opinions.items():
            if not isinstance(opinion, Unscored):
                scores |= scores_of(label, opinion)
        missed = [name for name, rule in self.criteria.items() if not rule.met(scores.get(name))]
        unscored = [name for name in missed if isinstance(opinions.get(name), Unscored)]
        if not self.criteria:
            return "no criteria: the draft was measured, and stands", True
        if not missed:
            return "all criteria are met", True
        if missed == unscored:
            return f"stopped after {iteration} revisions, not scored: {', '.join(unscored)}", True
        if iteration == self.max_iterations:
            return f"stopped after {iteration} revisions, not met: {', '.join(missed)}", True
        return f"revise: {', '.join(name for name in missed if name not in unscored)}", False

    async def _evaluate(self, label: str, task: str, draft: str, iteration: int, token: CancellationToken) -> Spoken:
        """Evaluators are stateless: each draft is judged afresh."""
        one = self._evaluators[label]
        if not isinstance(one, tuple):
            with record_calls() as calls:
                found = one(task, draft)
                opinion = await found if inspect.isawaitable(found) else found
            scored = None if isinstance(opinion, Unscored) else opinion
            text = opinion.why if isinstance(opinion, Unscored) else opinion.model_dump_json()
            status: ParseStatus = "ok" if scored else "unscored"
            turn = Turn(label, "evaluator", iteration, text, "", scored, {}, status, tuple(calls))
            return turn, narrate(text, label)
        seat, how = one
        await seat.agent.on_reset(token)
        seat.inbox = [narrate(how.prompt.format(task=task, draft=draft, criterion=label))]
        turn, message = await self._speak(seat, iteration, token, how.reply_type)
        if turn.verdict is None and turn.parse_status is None:
            verdict, _ = parse(turn.text, how.reply_type)
            turn = turn._replace(verdict=verdict, parse_status="ok" if verdict else "unparsed")
        return turn, message
