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
    calls = judges * rounds + chair
    bare = judges if ballot.phase == 1 and not protocol.reasons_first else 0  # the first replies, without reasons
    replies = [scores + (reasons if call >= bare else 0) for call in range(calls)]
    blind = judges if protocol.blind else 0
    heard = [0 if call < blind else sum(replies[:call]) for call in range(calls)]

    def shared() -> Iterator[int]:
        """The prefix of each call that continues an earlier one: the judge's own last, or whichever came before it.

        The calls of a blind round go out at once and share nothing. Providers put the reply's schema before the prompt,
        so calls with different schemas share nothing either.
        """
        for call in range(blind, judges * rounds):
            earlier = call - (judges if placement == "system" else 1)
            if earlier >= 0 and (earlier < bare) == (call < bare):
                yield opening - (PERSONA_TOKENS if placement == "last" else 0) + heard[earlier]

    return UsageEstimate(
        calls=calls,
        prompt_tokens=calls * opening + sum(heard),
        completion_tokens=sum(replies),
        shared=tuple(shared()),
    )
