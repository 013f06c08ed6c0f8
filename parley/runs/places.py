"""Finds the message that a verdict comes from, by judge, round, metric and subject, since run files do not store it.

Nearly always the judge spoke once in that round. The other cases are judges that cast several ballots or spoke twice,
and rules and scorers, which do not speak.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

BALLOTS = {"log-odds": "preferred", "more_biased": "preferred", "bias_in_wording": "bias", "rank": "bias"}
"""The name in ballots of a metric, if it differs from the metric."""
FIRST = ("search_queries", "outside_bias_first", "outside_relevancy_first")
"""Metrics of the first of two messages: queries come before the summary, and the first draft is audited first."""


class Said(NamedTuple):
    """The fields of a message for finding it; `expected` is JSON or None."""

    seq: int
    round: int
    speaker: str
    role: str
    expected: str | None


class Given(NamedTuple):
    """The fields of a verdict for finding its message."""

    judge: str
    role: str
    round: int
    subject: str
    metric: str


def places(verdicts: Sequence[Given], messages: Sequence[Said]) -> Iterator[int | None]:
    """The number (`seq`) of the message that each verdict of a unit was read from; None if there is none.

    Args:
        verdicts: The unit's verdicts, in order.
        messages: The unit's messages, in order, without the narrator's.
    """
    by_speaker: dict[tuple[str, int], list[Said]] = {}
    for message in messages:
        by_speaker.setdefault((message.speaker, message.round), []).append(message)
    alike, before = Counter((verdict.judge, verdict.round, verdict.metric) for verdict in verdicts), Counter[object]()
    for verdict in verdicts:
        key = (verdict.judge, verdict.round, verdict.metric)
        spoken = by_speaker.get((verdict.judge, verdict.round)) or _unspoken(verdict, by_speaker, messages)
        if len(spoken) > 1:
            replies = [message for message in spoken if _asks_for(message, verdict.metric)]
            # Several ballots can make one verdict, in the same order: four wordings, or two orders of a pair.
            first = before[key] * len(replies) // alike[key]
            spoken = replies[first:] or (spoken if verdict.metric in FIRST else spoken[-1:])
        before[key] += 1
        yield spoken[0].seq if spoken else None


def _asks_for(message: Said, metric: str) -> bool:
    """Whether a message is a ballot on a metric: its probabilities are called "bias=1", "bias on scale"."""
    name = json.dumps(BALLOTS.get(metric, metric))[:-1]
    return message.expected is not None and any(f"{name}{end}" in message.expected for end in ("=", " ", '"'))


def _unspoken(
    verdict: Given, by_speaker: Mapping[tuple[str, int], list[Said]], messages: Sequence[Said]
) -> Sequence[Said]:
    """The message that a judge read which did not speak in this round."""
    in_round = [message for message in messages if message.round == verdict.round]
    if verdict.role == "coordinator":  # a rule: about a statement, a draft, or a decision
        drafts = [message for message in in_round if message.role == "generator"]
        decisions = [message for message in messages if message.role == "coordinator"]
        return by_speaker.get((verdict.subject, verdict.round)) or drafts or decisions[-1:]
    # A scorer speaks under the name of its metric, an auditor without its model.
    named = [
        message
        for message in in_round
        if message.speaker == verdict.metric or verdict.judge.startswith(f"{message.speaker}, ")
    ]
    never_speaks = all(message.speaker != verdict.judge for message in messages)
    return named or ((in_round or messages)[-1:] if never_speaks else [])
