"""A critique loop: a generator drafts, evaluators judge side by side, a coordinator decides, the generator revises.

    loop = Critique(writer, {"bias": critic}, criteria={"bias": "< 20"}, model="local/smollm2")
    transcript = await loop.hold("Describe a good nurse.")

An evaluator is a persona or AutoGen agent that is asked for a score and a reason, or a plain function of task and
draft (a classifier, say). The coordinator's rules are thresholds by evaluator; a score that could not be read
never meets one.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from autogen_agentchat.base import ChatAgent, Team, TerminationCondition
from autogen_agentchat.messages import BaseChatMessage
from autogen_core import CancellationToken
from pydantic import BaseModel

from agents.conversation import Conversation, Participant, Seat, Spoken, narrate, together
from agents.errors import ConfigError
from agents.models.base import Client
from agents.models.registry import Models
from agents.personas import Persona
from agents.structured import Readout, parse, remark, scale
from agents.transcripts import ParseStatus, Turn

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Assessment(BaseModel):
    """What an evaluator says of a draft."""

    score: scale(0, 100)  # type: ignore[valid-type]
    reason: remark(400) = ""  # type: ignore[valid-type]


Scorer = Callable[[str, str], Assessment | Awaitable[Assessment]]
"""A plain evaluator: from task and draft to an assessment."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A rule of the coordinator: `"< 0.1"`."""

    sign: str
    threshold: float

    @classmethod
    def read(cls, text: str) -> Criterion:
        match = re.fullmatch(r"\s*(<=|>=|<|>)\s*(-?\d+(?:\.\d+)?)\s*", text)
        if match is None:
            raise ConfigError(f"'{text}' is not a criterion; write one like '< 0.1' or '>= 80'")
        return cls(match.group(1), float(match.group(2)))

    def met(self, assessment: Assessment | None) -> bool:
        return assessment is not None and bool(_COMPARE[self.sign](assessment.score, self.threshold))


def _prompt(name: str) -> str:
    return files("agents").joinpath("prompts", name).read_text("utf-8")


PROMPTS = {name: _prompt(name) for name in ("critique_evaluate.txt", "critique_revise.txt")}


class Critique(Conversation):
    component_type = "team"

    def __init__(
        self,
        generator: Participant,
        evaluators: Mapping[str, Participant | Scorer],
        *,
        criteria: Mapping[str, str],
        max_iterations: int = 2,
        draft: str | None = None,
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
        strangers = set(criteria) - set(evaluators)
        if strangers:
            raise ConfigError(f"criteria name no evaluator of this loop: {', '.join(sorted(strangers))}")
        self.criteria = {evaluator: Criterion.read(text) for evaluator, text in criteria.items()}
        self.max_iterations = max_iterations
        self._draft = draft
        self._evaluate_prompt, self._revise_prompt = evaluate_prompt, revise_prompt
        self._generator = self._seat(generator, "generator")
        self._evaluators: dict[str, Seat | Scorer] = {
            label: self._seat(one, "evaluator") if _is_participant(one) else one  # type: ignore[arg-type,misc]
            for label, one in evaluators.items()
        }

    async def _talk(self, task: Sequence[BaseChatMessage], token: CancellationToken) -> AsyncGenerator[Spoken, None]:
        question = "\n\n".join(message.to_model_text() for message in task)
        for message in task:
            self._generator.inbox.append(message)
            yield Turn(message.source, "narrator", 0, message.to_model_text()), message
        if self._draft is None:
            turn, message = await self._speak(self._generator, 0, token, None)
        else:
            message = narrate(self._draft, self._generator.name)
            turn = Turn(self._generator.name, "generator", 0, self._draft, self._generator.persona)
            self._generator.inbox.append(narrate(f"Your draft was:\n\n{self._draft}"))
        yield turn, message
        if await self._is_over(message):
            return
        for iteration in range(self.max_iterations + 1):
            judged = await together(
                self._evaluate(label, question, turn.text, iteration, token) for label in self._evaluators
            )
            over = False
            assessments: dict[str, Assessment | None] = {}
            for label, (opinion, opinion_message) in zip(self._evaluators, judged, strict=True):
                assessments[label] = opinion.verdict if isinstance(opinion.verdict, Assessment) else None
                yield opinion, opinion_message
                over = over or await self._is_over(opinion_message)
            if over:
                return
            missed = [label for label, rule in self.criteria.items() if not rule.met(assessments[label])]
            decision = f"revise: {', '.join(missed)}" if missed else "all criteria are met"
            if missed and iteration == self.max_iterations:
                decision = f"stopped after {iteration} revisions, not met: {', '.join(missed)}"
            self._stop_reason = decision
            yield Turn("coordinator", "coordinator", iteration, decision), narrate(decision, "coordinator")
            if not missed or iteration == self.max_iterations:
                return
            feedback = "\n".join(_line(label, found) for label, found in assessments.items())
            self._generator.inbox.append(narrate(self._revise_prompt.format(feedback=feedback)))
            turn, message = await self._speak(self._generator, iteration + 1, token, None)
            yield turn, message
            if await self._is_over(message):
                return

    async def _evaluate(self, label: str, task: str, draft: str, iteration: int, token: CancellationToken) -> Spoken:
        """Evaluators are stateless: each draft is judged afresh."""
        one = self._evaluators[label]
        if not isinstance(one, Seat):
            found = one(task, draft)
            assessment = await found if inspect.isawaitable(found) else found
            text = assessment.model_dump_json()
            return Turn(label, "evaluator", iteration, text, verdict=assessment, parse_status="ok"), narrate(
                text, label
            )
        await one.agent.on_reset(token)
        one.inbox = [narrate(self._evaluate_prompt.format(task=task, draft=draft, criterion=label))]
        turn, message = await self._speak(one, iteration, token, Assessment)
        if turn.verdict is None and turn.parse_status is None:
            verdict, _ = parse(turn.text, Assessment)
            status: ParseStatus = "ok" if verdict else "unparsed"
            turn = Turn(turn.speaker, turn.role, turn.round, turn.text, turn.persona, verdict, {}, status, turn.calls)
        return turn, message


def _is_participant(one: Participant | Scorer) -> bool:
    return isinstance(one, Persona | ChatAgent | Team)


def _line(label: str, found: Assessment | None) -> str:
    return f"- {label}: no readable score" if found is None else f"- {label}: {found.score:g}. {found.reason}"
