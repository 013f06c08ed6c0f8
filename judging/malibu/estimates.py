"""What a panel's conversation will cost: calls, tokens, and the prefixes that a prompt cache may have."""

from __future__ import annotations

from collections.abc import Iterator

from parley.agents import Placement
from parley.judging.malibu.ballot import Ballot
from parley.judging.malibu.protocol import PanelProtocol
from parley.judging.study import UsageEstimate

PERSONA_TOKENS = 40
REASON_TOKENS = 90
"""Of a remark or justification that is not cut: 80 to 95 on average, by a model of 1.5 billion parameters."""


def estimate_usage(
    task_chars: int,
    ballot: Ballot,
    protocol: PanelProtocol,
    *,
    judges: int,
    rounds: int,
    chair: bool,
    placement: Placement,
) -> UsageEstimate:
    """The expected usage of a unit, at four characters per token.

    Args:
        task_chars: Characters of the task.
        ballot: What the judges report.
        protocol: How the panel talks.
        judges: How many judges there are.
        rounds: How often each speaks.
        chair: Whether there is a chair.
        placement: Where the judges' personas are put.
    """
    opening = task_chars // 4 + PERSONA_TOKENS
    scores = ballot.phase * (5 + 6 * len(ballot.rubric.metric))
    reasons = min(REASON_TOKENS, ballot.remark_chars // 4)
    without_reasons = judges if ballot.phase == 1 and not protocol.reasons_first else 0
    calls = judges * rounds + chair
    reply = scores + reasons
    heard = sum(range(judges if protocol.blind else 0, calls))  # replies of others in all prompts together
    return UsageEstimate(
        calls=calls,
        prompt_tokens=calls * opening + heard * reply,
        completion_tokens=calls * reply - without_reasons * reasons,
        shared=tuple(_shared_prefixes(opening, reply, ballot.phase, protocol, judges, rounds, placement)),
    )


def _shared_prefixes(
    opening: int, reply: int, phase: int, protocol: PanelProtocol, judges: int, rounds: int, placement: Placement
) -> Iterator[int]:
    """The prefix length of each call that continues an earlier one.

    The calls of a blind round go out at once, and share nothing. Providers put the reply's schema before the prompt:
    where round 1 asks for no reasons, round 2 has another schema, and its first calls share nothing either.
    """
    for call in range(judges * rounds):
        round, place = divmod(call, judges)
        first_with_schema = round == 0 or (phase == 1 and round == 1 and not protocol.reasons_first)
        after_blind = protocol.blind and round == 1
        if placement == "system" and not first_with_schema:  # the judge's own prompt of the round before
            yield opening + (0 if after_blind else call - judges) * reply
        elif placement == "last" and (place > 0 or not first_with_schema) and not (protocol.blind and round == 0):
            only_task = after_blind and place == 0
            yield opening - PERSONA_TOKENS + (0 if only_task else call - 1) * reply
