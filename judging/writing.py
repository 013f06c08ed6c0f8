"""What the writing studies share: one writer, several attempts, and only replies that pass a check are accepted.

Every attempt is a turn of the transcript, and every rejection has its reason: the verdict `accepted` is 1 or 0, with
the problems as text. So a finished run shows how many attempts the accepted replies took.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import BaseModel

from parley.agents import Debate, Models, Persona, Transcript
from parley.judging.config import call_options, shipped_personas
from parley.judging.study import Measure, Outcome, Prompt, Verdict

Check = Callable[[BaseModel | None], list[str]]
"""The problems of a reply; an empty list if it is acceptable."""
Next = Callable[[list[str]], str]
"""The writer's next instruction, from the problems of the last reply."""


class WritingStudy:
    """What the writing studies share: a writer, its model and prompts, and a measure of how much was accepted."""

    measures: ClassVar[tuple[Measure, ...]] = (Measure("accepted", "accepted", better="higher", scale=(0, 1)),)
    used: ClassVar[Mapping[str, Prompt]]
    """The prompts by key."""
    config: Any

    def models(self) -> list[str]:
        return [self.config.model]

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in self.used.values()} | {"persona/Writer": writer().about}

    async def write(
        self,
        task: str,
        reply_type: type[BaseModel],
        models: Models,
        *,
        check: Check,
        then: Next,
        wanted: int,
        tries: int,
    ) -> Outcome:
        """Ask until enough replies have passed the check, or all attempts are used.

        Args:
            task: The writer's task.
            reply_type: The type that replies are parsed as.
            models: Clients by model name.
            check: Gives the problems of a reply.
            then: Gives the next instruction.
            wanted: Number of replies to accept.
            tries: Maximum number of replies to request.
        """
        instruction = ""
        debate = Debate(
            [writer()],
            model=models[self.config.model],
            rounds=tries,
            instructions=lambda cue: instruction or None,
            reply_type=reply_type,
            options=call_options(self.config.max_tokens, self.config.temperature),
            models=models,
            name="writing",
        )
        turns, verdicts = [], []
        async with aclosing(debate.stream(task)) as stream:
            async for turn in stream:
                turns.append(turn)
                if turn.role == "narrator":
                    continue
                problems = check(turn.verdict) if turn.verdict else [f"the reply is {turn.parse_status}"]
                passed, text = float(not problems), "; ".join(problems) or None
                status = turn.parse_status or "unparsed"
                verdicts.append(
                    Verdict.from_turn(turn, "accepted", value=passed, sampled=passed, text=text, status=status)
                )
                wanted -= not problems
                if not wanted:
                    break
                instruction = then(problems)
        reason = "accepted" if not wanted else f"{tries} tries made"
        return Outcome(Transcript(tuple(turns), reason), tuple(verdicts))


def writer() -> Persona:
    """The persona of the writer."""
    return shipped_personas("malibu_writer.toml")[0]
