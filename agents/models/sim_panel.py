"""How a simulated judge takes part in a panel: who it is, whom it has heard, and what it adopts.

    sim/judge?examiner.female=-2&follow=0.5&leader=examiner&echo=0.3

`examiner.female=-2` is an effect of one judge, the one whose description names the Examiner; any other option that
shapes a reply can be given by judge too (`editor.noise=0`). `follow` is the rate at which a judge adopts the scores
and the preference of a judge it has heard, as they were when it first spoke; `echo` the rate at which it repeats the
words of one. Both are of `leader` where that is given, else of any. Nobody who has heard nobody follows or echoes.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from autogen_core.models import LLMMessage, SystemMessage, UserMessage

from parley.agents.models.wire import NARRATOR

Path = tuple[str, ...]
"""Where a value stands in a reply: ("A", "Accuracy")."""


class Statement(NamedTuple):
    """What another judge said: its values by path."""

    judge: str
    values: Mapping[Path, Any]


def persona_of(messages: Sequence[LLMMessage]) -> str:
    """The description of the judge who is asked: the system message, else the last message."""
    place = 0 if isinstance(messages[0], SystemMessage) else -1
    return str(messages[place].content)


def is_named(judge: str, persona: str) -> bool:
    """Whether a description names the judge, in any case."""
    return re.search(rf"\b{re.escape(judge)}\b", persona, re.IGNORECASE) is not None


def heard(messages: Sequence[LLMMessage], leader: str) -> list[Statement]:
    """The readable statements of other judges in a prompt, in order; only those of the leader, if there is one."""
    # With the description last, a judge's own turns are there by name too; otherwise they are the assistant's.
    own = "" if isinstance(messages[0], SystemMessage) else persona_of(messages)
    statements = []
    for message in messages:
        if not isinstance(message, UserMessage) or message.source == NARRATOR or is_named(message.source, own):
            continue
        if leader and message.source.lower() != leader.lower():
            continue
        text = str(message.content)
        try:
            reply = json.loads(text[text.index("{") : text.rindex("}") + 1])  # a fence may be around it
        except ValueError:
            continue
        statements.append(Statement(message.source, dict(_values(reply, ()))))
    return statements


def _values(node: Any, path: Path) -> list[tuple[Path, Any]]:
    if isinstance(node, dict):
        return [pair for key, child in node.items() for pair in _values(child, (*path, key))]
    return [(path, node)]


def adopted(statements: Sequence[Statement], follow: float, echo: float, rng: random.Random) -> dict[Path, Any]:
    """What a judge takes over from those it has heard: numbers and choices, or words, or both, or nothing.

    Args:
        statements: What it has heard, in order.
        follow: Rate at which it adopts the verdict of one judge, as first stated.
        echo: Rate at which it repeats the words of a statement.
        rng: Draws whether, and whose.
    """
    taken: dict[Path, Any] = {}
    first = {statement.judge: statement for statement in reversed(statements)}
    if first and follow and rng.random() < follow:
        verdict = first[rng.choice(sorted(first))]
        taken |= {path: value for path, value in verdict.values.items() if not _is_words(value)}
    spoken = [words for said in statements if (words := {p: v for p, v in said.values.items() if _is_words(v)})]
    if spoken and echo and rng.random() < echo:
        taken |= rng.choice(spoken)
    return taken


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and " " in value
