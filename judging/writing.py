"""What the writing studies share: one writer, several attempts, and only replies that pass a check are accepted.

Every attempt is a turn of the transcript, and every rejection has its reason: the verdict `accepted` is 1 or 0, with
the problems as text. So a finished run shows how many attempts the accepted replies took.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel

from parley.agents import Debate, Models, Persona, Transcript
from parley.judging.config import shipped_personas
from parley.judging.study import Outcome, Verdict

Check = Callable[[BaseModel | None], list[str]]
"""The problems of a reply; an empty list if it is acceptable."""
Next = Callable[[list[str]], str]
"""The writer's next instruction, from the problems of the last reply."""


def writer() -> Persona:
    """The persona of the writer."""
    return shipped_personas("malibu_writer.toml")[0]


async def write(
    task: str,
    reply_type: type[BaseModel],
    *,
    model: str,
    models: Models,
    check: Check,
    then: Next,
    wanted: int,
    tries: int,
    options: dict[str, Any],
) -> Outcome:
    """Ask until enough replies have passed the check, or all attempts are used.

    Args:
        task: The writer's task.
        reply_type: The type that replies are parsed as.
        model: The writer's model.
        models: Clients by model name.
        check: Gives the problems of a reply.
        then: Gives the next instruction.
        wanted: Number of replies to accept.
        tries: Maximum number of replies to request.
        options: Options of every call.
    """
    instruction = ""
    debate = Debate(
        [writer()],
        model=models[model],
        rounds=tries,
        instructions=lambda cue: instruction or None,
        reply_type=reply_type,
        options=options,
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
            verdicts.append(Verdict.from_turn(turn, "accepted", value=passed, sampled=passed, text=text, status=status))
            wanted -= not problems
            if not wanted:
                break
            instruction = then(problems)
    reason = "accepted" if not wanted else f"{tries} tries made"
    return Outcome(Transcript(tuple(turns), reason), tuple(verdicts))
