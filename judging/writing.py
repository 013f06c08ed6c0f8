"""What the studies that write have in common: one writer, several tries, and only what passes a check is accepted.

Every try is a turn of the transcript, and every refusal has its reason: `accepted` is 1 or 0, with the problems as
text. So a finished run says how hard it was to get what was kept.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from parley.agents import Debate, Models, Persona, Transcript, load_personas
from parley.judging.study import Outcome, Verdict

Check = Callable[[BaseModel | None], list[str]]
"""The problems of a reply; none where it will do."""
Next = Callable[[list[str]], str]
"""What the writer is told before the next try, from the problems of the last."""


def writer() -> Persona:
    return load_personas(Path(str(files("parley.judging").joinpath("personas", "malibu_writer.toml"))))[0]


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
    """Ask until `wanted` replies have passed the check, or `tries` were made."""
    told = ""
    table = Debate(
        [writer()],
        model=models[model],
        rounds=tries,
        instructions=lambda cue: told or None,
        reply_type=reply_type,
        options=options,
        models=models,
        name="writing",
    )
    turns, verdicts = [], []
    async with aclosing(table.stream(task)) as stream:
        async for turn in stream:
            turns.append(turn)
            if turn.role == "narrator":
                continue
            problems = check(turn.verdict) if turn.verdict else [f"the reply is {turn.parse_status}"]
            status = turn.parse_status or "unparsed"
            text, passed = "; ".join(problems) or None, float(not problems)
            verdicts.append(Verdict(turn.speaker, turn.role, turn.round, "accepted", "", passed, passed, text, status))
            wanted -= not problems
            if not wanted:
                break
            told = then(problems)
    reason = "accepted" if not wanted else f"{tries} tries made"
    return Outcome(Transcript(tuple(turns), reason), tuple(verdicts))
