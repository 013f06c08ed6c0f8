"""Casts and reads silent ballots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from parley.agents import (
    LOG_ODDS,
    ON_SCALE,
    READ,
    Models,
    Persona,
    Placement,
    SilentBallot,
    Transcript,
    Turn,
    ask_silently,
)
from parley.base.text import plural
from parley.judging.study import Outcome, Verdict

PREFERRED = "preferred"
"""The metric of a ballot about two answers."""
SAMPLED_TEXT = "mean of sampled replies"
"""The text of a ballot whose model has no log-probabilities."""


def about_samples(model: str, samples: int) -> str:
    """A note on a model whose ballots are sampled."""
    replies = plural(samples, "sampled reply", "sampled replies")
    return f"{model} gives no log-probabilities: each ballot is the mean of {replies}"


async def cast_ballots(
    judges: Sequence[Persona],
    ballots: Sequence[SilentBallot],
    model: str,
    models: Models,
    *,
    options: Mapping[str, Any],
    placement: Placement = "system",
    on_scale: bool = False,
) -> Outcome:
    """Ask each judge every ballot.

    Args:
        judges: The judges.
        ballots: The ballots.
        model: The model of judges that have none of their own.
        models: The run's models.
        options: The options of every call.
        placement: Where a judge's persona is in the prompt.
        on_scale: Whether to store the probability on the ballot's answers as a verdict.
    """
    turns = await ask_silently(judges, ballots, model=model, models=models, options=options, placement=placement)
    read = [
        verdict
        for ballot, (_, *answers) in zip(ballots, turns, strict=True)
        for answer in answers
        for verdict in verdicts(answer, ballot.metric, on_scale=on_scale)
    ]
    return Outcome(Transcript(tuple(chain(*turns))), tuple(read))


def verdicts(turn: Turn, metric: str, *, on_scale: bool = False) -> Iterator[Verdict]:
    """The verdicts of a silent ballot, readable or not.

    Args:
        turn: A turn of round 0.
        metric: The ballot's metric.
        on_scale: Whether to add the probability on its answers, or the share of sampled replies that were read.
    """
    yield from _answers(turn, metric)
    if on_scale:
        unspoken = 0.0 if turn.parse_status == "refused" else None  # unknown if log-probabilities were unusable
        share = turn.expected.get(f"{metric} {ON_SCALE}", turn.expected.get(f"{metric} {READ}", unspoken))
        yield Verdict.from_turn(turn, ON_SCALE, value=share, status="unparsed" if share is None else "ok")


def _answers(turn: Turn, metric: str) -> Iterator[Verdict]:
    status = turn.parse_status or "unparsed"
    reading = turn.verdict.model_dump() if turn.verdict else {}
    if metric != PREFERRED:
        expected = turn.expected.get(metric)
        answer = reading.get("answer")
        yield Verdict.from_turn(
            turn,
            metric,
            value=expected,
            sampled=None if answer is None else float(answer),
            text=None if f"{metric} {ON_SCALE}" in turn.expected or expected is None else SAMPLED_TEXT,
            status=status,
        )
        return
    of_a, of_b = (turn.expected.get(f"{PREFERRED}={side}", 0.0) for side in "AB")
    yield Verdict.from_turn(
        turn,
        PREFERRED,
        text=reading.get("answer") if reading.get("answer") in ("A", "B", None) else "tie",
        value=of_a / (of_a + of_b) if of_a + of_b else None,
        status=status,
    )
    yield Verdict.from_turn(turn, LOG_ODDS, value=_log_odds(turn, of_a, of_b), status=status)


def _log_odds(turn: Turn, of_a: float, of_b: float) -> float | None:
    if turn.verdict is None:  # unread
        return None
    stored = turn.expected.get(f"{PREFERRED} {LOG_ODDS}")
    # Half a reply is added to both counts: with few samples and none for B, the odds would be infinite.
    return stored if stored is not None else math.log((of_a + 0.1) / (of_b + 0.1))
