"""Silent ballots: a judge answers with one number or one choice, and writes nothing before it.

    ballot = SilentBallot(question="… How good is this answer, from 1 to 9?", metric="Overall", low=1, high=9)
    turn = await Debate([judge], rounds=0, ballots=[ballot], model="local/smollm2").converse("")

Only one token is generated: the probabilities of the scale's numbers after the prompt give the expected score.
A sampled score of a small model has a standard deviation of about two points; this has none. Where the server
continues a given text, the reply is begun with `prefill`: SmolLM2 then puts 0.99 of its probability on the digits, and
0.11 without. A model without log-probabilities is asked `samples` times, and its replies are averaged. A ballot with
less than half on its answers is unread (`LEAST_ON_SCALE`), and so is one whose score rests on numbers that the server
did not list; the turn's text says why.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionTokenLogprob,
    LLMMessage,
    RequestUsage,
)
from pydantic import BaseModel, ConfigDict, Field, model_validator

from parley.agents.models.base import Client
from parley.agents.models.reply import Reply
from parley.agents.models.request import TYPED
from parley.agents.providers import SAMPLED
from parley.agents.structured import StructuredReply, answer_in, asked_again, looks_like_refusal
from parley.agents.transcripts import LEAST_ON_SCALE, ON_SCALE, READ
from parley.base.errors import BadRequest, ConfigError
from parley.base.tasks import gather_or_cancel

LOG_ODDS = "log-odds"
"""Key of `expected`, after the metric: log P(first choice) − log P(second choice)."""
SAMPLE_TOKENS = 8
"""Maximum length of a sampled score-only reply, not counting room to think."""
LEAST_LEFT = 1e-6
"""Least probability left over by the listed tokens: sums are rounded, and odds must be finite."""
MOST_IN_DOUBT = 0.05
"""Points by which numbers that a server does not list may move a score: half of the smallest margin. Models in this
process list all numbers; servers list 20 tokens, which is enough where nearly all of the probability is on the scale.
"""
LONGEST_KEPT = 32
"""Maximum length, in bytes, of a token whose answer is cached."""
_BLANKS = " \t\r\nĠ▁"
_EMPHASIS = str.maketrans("", "", "\"'`*_“”‘’")
_LABEL = re.compile(r"(?:(?:final|overall)\s+)?(?:score|rating|answer)\s*[:=]\s*", re.IGNORECASE)


class SilentBallot(BaseModel):
    """One question, answered by one number on a scale, or by one of a few choices.

    Args:
        question: The whole prompt, except for the judge's persona.
        metric: The name of the score, and its key in `Turn.expected`.
        low: The lowest score.
        high: The highest score; one digit, so that every score is one token.
        choices: The allowed answers in place of a number, such as A and B; none may begin like another.
        prefill: The beginning of the reply, if the model's server can continue a given text.
        samples: How often a model without log-probabilities is asked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    metric: str = "score"
    low: int = Field(1, ge=0)
    high: int = Field(9, le=9)
    choices: tuple[str, ...] = ()
    prefill: str = ""
    samples: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if not self.choices and self.low >= self.high:
            raise ValueError("the scale must have at least two numbers")
        return self

    @property
    def answers(self) -> tuple[str, ...]:
        """The allowed answers."""
        return self.choices or tuple(map(str, range(self.low, self.high + 1)))

    @property
    def form(self) -> tuple[str, tuple[str, ...], int | None]:
        """All that decides how a text is read: the metric, the answers, and the highest score of a scale."""
        return self.metric, self.answers, None if self.choices else self.high

    @property
    def expected(self) -> str:
        """The allowed answers, in words."""
        return ", ".join(self.choices) if self.choices else f"{self.low} to {self.high}"


class BallotReading(BaseModel):
    """The result of a silent ballot.

    Args:
        answer: The most probable answer.
        score: The expected score; None for a ballot with choices.
    """

    answer: str
    score: float | None = None


async def ask_ballot(
    ballot: SilentBallot,
    client: Client,
    prompt: Sequence[LLMMessage],
    options: Mapping[str, Any],
    token: CancellationToken | None = None,
) -> StructuredReply[BallotReading]:
    """Ask one judge, and read the ballot.

    Args:
        ballot: The question.
        client: The judge's model.
        prompt: The question with the judge's persona.
        options: The study's call options; those that would change a one-token reply are dropped.
        token: Cancels the call.
    """
    if client.reads_silently:
        return await _read_silently(ballot, client, prompt, token)
    return await _sample(ballot, client, prompt, options, token)


async def _read_silently(
    ballot: SilentBallot, client: Client, prompt: Sequence[LLMMessage], token: CancellationToken | None
) -> StructuredReply[BallotReading]:
    messages = list(prompt)
    if ballot.prefill and getattr(client, "continues", False):
        messages.append(AssistantMessage(content=ballot.prefill, source="self"))
    extra = {"max_tokens": 1, "think_tokens": 0, "logprobs": True, "temperature": 0.0}
    reply = await client.create(messages, extra_create_args=extra, cancellation_token=token)
    raw = reply.content.removeprefix(ballot.prefill) if isinstance(reply.content, str) else ""  # llama.cpp repeats it
    if reply.refused:
        return StructuredReply(None, "refused", raw, reply.usage)
    if not reply.whole:
        return StructuredReply(None, "cut", f"{raw!r}, unread: it may not be complete", reply.usage)
    if not reply.logprobs and not client.gave_logprobs:
        raise ConfigError(
            f"{client.name} gives no log-probabilities, so its silent ballots cannot be read: write {client.name}"
            f"{SAMPLED} (or &{SAMPLED[1:]} after other options) and another --out, and its replies are sampled instead"
        )
    client.gave_logprobs = client.gave_logprobs or bool(reply.logprobs)
    if not reply.logprobs or not reply.logprobs[0].top_logprobs:
        return StructuredReply(None, "unparsed", f"{raw!r}, unread: no usable log-probabilities", reply.usage)
    return read_token(ballot, reply.logprobs[0], raw, reply.usage)


def read_token(
    ballot: SilentBallot, token: ChatCompletionTokenLogprob, raw: str, usage: RequestUsage
) -> StructuredReply[BallotReading]:
    """Read a ballot from the probabilities at its one token.

    Args:
        ballot: The question.
        token: The most probable token, with its alternatives.
        raw: The reply's text.
        usage: The call's tokens.
    """
    probabilities = read_answers(token, ballot)
    on_scale = sum(probabilities.values())
    share = {f"{ballot.metric} {ON_SCALE}": on_scale}
    # The token and not the text, in which "<think>" is no answer, and in quotes, so that a space can be seen.
    if on_scale < LEAST_ON_SCALE:
        why = f"{token.token!r}, unread: {on_scale:.1%} of the probability is on {ballot.expected}"
        return StructuredReply(None, "unparsed", why, usage, expected=share)
    if token.token.strip(_BLANKS) != raw.strip(_BLANKS):  # more than one token of it ("10"), or those of another text
        return StructuredReply(None, "unparsed", f"{raw!r}, unread: its first token is {token.token!r}", usage)
    if not ballot.choices and (moved := _doubt(probabilities, token)) > MOST_IN_DOUBT:
        listed = f"listed among its {len(token.top_logprobs or [])} tokens"
        why = f"{token.token!r}, unread: numbers that are not {listed} could move it by {moved:.2f}"
        return StructuredReply(None, "unparsed", why, usage, expected=share)
    shares = {answer: weight / on_scale for answer, weight in probabilities.items()}
    reading = _reading(ballot, shares)
    expected = {f"{ballot.metric}={answer}": round(share, 6) for answer, share in shares.items()}
    expected[f"{ballot.metric} {ON_SCALE}"] = min(1.0, on_scale)
    if reading.score is not None:
        expected[ballot.metric] = reading.score
    elif len(ballot.choices) > 1:
        expected[f"{ballot.metric} {LOG_ODDS}"] = _log_odds(ballot, probabilities, token)
    return StructuredReply(reading, "ok", raw, usage, expected=expected)


def _doubt(probabilities: Mapping[str, float], token: ChatCompletionTokenLogprob) -> float:
    """Width of the range of expected scores that are possible given the listed tokens.

    A number that is not listed has at most the probability of the last token that is; together they have at most what
    the listed tokens leave.
    """
    unseen = sorted(int(answer) for answer, weight in probabilities.items() if not weight)
    if not unseen:
        return 0.0
    listed, ends = [math.exp(top.logprob) for top in token.top_logprobs or []], []
    for sign, numbers in ((-1, unseen), (1, unseen[::-1])):
        weight, left = sum(probabilities.values()), max(0.0, 1 - sum(listed))
        total = sum(int(answer) * probability for answer, probability in probabilities.items())
        for number in numbers:
            step = min(min(listed), left)
            if sign * (number - total / weight) > 0:
                weight, total, left = weight + step, total + step * number, left - step
        ends.append(total / weight)
    return ends[1] - ends[0]


def read_answers(token: ChatCompletionTokenLogprob, ballot: SilentBallot) -> dict[str, float]:
    """The probability of each answer at a token, whatever spaces, quotes or asterisks are around it."""
    form = ballot.form
    probabilities = dict.fromkeys(form[1], 0.0)
    for top in token.top_logprobs or []:
        spelled = bytes(top.bytes or ())
        read = _answer_spelled if len(spelled) <= LONGEST_KEPT else _answer_spelled.__wrapped__
        if (answer := read(spelled, *form)) is not None:
            probabilities[answer] += math.exp(top.logprob)
    return probabilities


def read_answer(text: str, ballot: SilentBallot) -> str | None:
    """The answer in a text that is nothing else: "7", or a form of it such as "Score: 7", "7/9" or "(7).".

    Full-width letters and every script's digits are the same answers as ours. Signs that would change the number, as in
    "<7", "-7", ".7" and "7½", are left where they are.
    """
    return _answer_in(text, *ballot.form)


@lru_cache(maxsize=4096)  # servers list the same twenty tokens for every ballot
def _answer_spelled(token: bytes, metric: str, answers: tuple[str, ...], high: int | None) -> str | None:
    return _answer_in(token.decode("utf-8", "replace"), metric, answers, high)


def _answer_in(text: str, metric: str, answers: tuple[str, ...], high: int | None) -> str | None:
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(sign, sign)) for sign in unicodedata.normalize("NFKC", text))
    text = text.translate(_EMPHASIS).strip()
    text = text[label.end() :] if (label := _LABEL.match(text)) else text.removeprefix(f"{metric}:").lstrip()
    text = text.removesuffix(".")
    if high is not None:
        text = re.sub(rf"\s*(?:/|out of)\s*{high}\Z", "", text)
    if text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
    text = text.removeprefix("(").removeprefix("[").removesuffix(")").removesuffix("]").strip()
    return text if text in answers else None


def _reading(ballot: SilentBallot, shares: Mapping[str, float]) -> BallotReading:
    answer = max(shares, key=lambda key: shares[key])
    mean = None if ballot.choices else sum(int(number) * share for number, share in shares.items())
    return BallotReading(answer=answer, score=mean)


def _log_odds(ballot: SilentBallot, probabilities: Mapping[str, float], token: ChatCompletionTokenLogprob) -> float:
    """Log-odds of the first choice against the second.

    A choice that is not listed has at most the last listed probability, and at most what the listed ones leave: the
    odds are at least as large as these.
    """
    listed = [math.exp(top.logprob) for top in token.top_logprobs or []]
    least = min(*listed, max(1 - sum(listed), LEAST_LEFT))
    first, second = (math.log(probabilities[choice] or least) for choice in ballot.choices[:2])
    return first - second


async def _sample(
    ballot: SilentBallot,
    client: Client,
    prompt: Sequence[LLMMessage],
    options: Mapping[str, Any],
    token: CancellationToken | None,
) -> StructuredReply[BallotReading]:
    """Average score-only replies; a reply that is more than an answer is requested once more.

    The same prompt at the same time gets another seed at each call.
    """
    extra = {key: value for key, value in options.items() if key in ("temperature", "effort", "think_tokens")}
    extra["max_tokens"] = SAMPLE_TOKENS
    most = min(client.at_once, ballot.samples)
    counts = [min(most, ballot.samples - first) for first in range(0, ballot.samples, most)]
    batches = await gather_or_cancel(_replies(client, prompt, {**extra, TYPED: True}, token, count) for count in counts)
    replies = [reply for batch in batches for reply in batch]
    usage = RequestUsage(
        sum(reply.usage.prompt_tokens for reply in replies), sum(reply.usage.completion_tokens for reply in replies)
    )
    read_texts = [answer_in(reply, typed=True) for reply in replies]
    answers = [
        read_answer(each.raw, ballot) if reply.whole else None for reply, each in zip(replies, read_texts, strict=True)
    ]
    again = [
        place
        for place, each in enumerate(read_texts)
        if answers[place] is None and not replies[place].refused and not (each.cut and not each.raw.strip())
    ]
    problem = f"it must be one of {ballot.expected}"
    second = await gather_or_cancel(
        client.create(
            asked_again(prompt, read_texts[place].raw, problem), extra_create_args=extra, cancellation_token=token
        )
        for place in again
    )
    pressed = False
    for place, reply in zip(again, second, strict=True):
        usage.prompt_tokens += reply.usage.prompt_tokens
        usage.completion_tokens += reply.usage.completion_tokens
        each = answer_in(reply, typed=True)
        if reply.whole and (answer := read_answer(each.raw, ballot)) is not None:
            read_texts[place], answers[place], pressed = each, answer, True
    readable = [answer for answer in answers if answer is not None]
    raw = ", ".join(each.raw.strip() for each in read_texts)
    read = {f"{ballot.metric} {READ}": len(readable) / len(replies)}
    if len(readable) < LEAST_ON_SCALE * len(replies):
        refused = any(reply.refused for reply in replies) or any(looks_like_refusal(each.raw) for each in read_texts)
        return StructuredReply(None, "refused" if refused else "unparsed", raw, usage, expected=read)
    votes = Counter(readable)
    shares = {answer: votes[answer] / len(readable) for answer in ballot.answers}
    expected = {f"{ballot.metric}={answer}": share for answer, share in shares.items() if share} | read
    if not ballot.choices:
        expected[ballot.metric] = sum(map(int, readable)) / len(readable)
    return StructuredReply(_reading(ballot, shares), "repaired" if pressed else "ok", raw, usage, expected=expected)


async def _replies(
    client: Client,
    prompt: Sequence[LLMMessage],
    extra: Mapping[str, Any],
    token: CancellationToken | None,
    count: int,
) -> list[Reply]:
    """Sample `count` replies, in one request if the vendor supports it."""
    replies: list[Reply] = []
    if count > 1 and client.at_once > 1:
        try:
            several = await client.create(prompt, extra_create_args={**extra, "n": count}, cancellation_token=token)
            replies = several.each()
        except BadRequest:  # a model of the vendor may not have it; if it was something else, the next call says so
            client.at_once = 1
    missing = range(count - len(replies))
    return replies + await gather_or_cancel(
        client.create(prompt, extra_create_args=extra, cancellation_token=token) for _ in missing
    )
