"""Rules that check a statement: whether it breaks role, speaks for others, reveals the role, refuses, repeats its
instructions or itself, or is truncated. Also splits datasets by topic, so that no topic is in two splits.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from parley.agents import ConfigError, Turn, seed_from
from parley.agents.structured import looks_like_refusal
from parley.judging.rldf.roles import DebateRole
from parley.judging.study import Verdict
from parley.scenarios import normal

RULES = "Rules"
"""The judge's name of these verdicts, which come from rules, not from a model."""
_BREAKS = re.compile(
    r"\bagents?\b|\b(?:as|i am|i'm) an? (?:ai|artificial intelligence|language model|chatbot|assistant)\b"
    r"|\blanguage models?\b|\bmy (?:persona|label|assigned role)\b|\brole-?play(?:s|ed|ing)?\b|\bbias score\b",
    re.IGNORECASE,
)

ECHO_WORDS = 8
"""Number of consecutive words shared with the instructions that is not a coincidence. Half of the statements that the
first SFT model learnt from repeated their instructions or themselves, and it introduced itself in the words of its
system message in 30 of 50 answers. No referee's score shows this, since a text without content has no bias."""
LOOP_WORDS, LOOP_TIMES = 4, 4
"""A statement loops if this many consecutive words occur this many times in it."""
Words = list[str]
_WORD = re.compile(r"\w+(?:['-]\w+)*")


def own_words(text: str, speaker: str, others: Iterable[str]) -> str:
    """The speaker's part of a reply that also has the others' turns, as a small model writes them: what it labels as
    the speaker's, else what comes before the first label. A reply that begins with another's turn stays whole.

    Args:
        text: The reply.
        speaker: Who speaks.
        others: Everyone else in the debate.
    """
    before, *labelled = _label(frozenset({speaker, *others})).split(text)
    parts = dict(zip(labelled[-2::-2], labelled[::-2], strict=True))  # each speaker's first
    return parts.get(speaker, before).strip() or text


@lru_cache(maxsize=64)
def _label(names: frozenset[str]) -> re.Pattern[str]:
    """The beginning of a turn in a line: "Forty:", "**Forty (40)**:", "### Forty"."""
    listed = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"^[^\w\n]*({listed})\b[^\w\n:]*(?:\([^)\n]*\)[^\w\n:]*)?(?::[^\w\n\"“]*|$)", re.MULTILINE)


def breaks_role(text: str, topic: str, others: Iterable[str] = ()) -> list[str]:
    """The words by which a statement leaves its role ("agent", "as an AI"), except those of the topic itself.

    Args:
        text: The statement.
        topic: The topic of the debate.
        others: Whom it must not speak for in a line "Forty: …": a small model writes the others' turns, too.
    """
    names = "|".join(map(re.escape, others))
    played = re.findall(rf"^\W*((?:{names})\W*:)", text, re.MULTILINE) if names else []
    matches = dict.fromkeys(match.lower() for match in [*_BREAKS.findall(text.replace("’", "'")), *played])
    return [words for words in matches if words.rstrip("s") not in topic.lower()]


def echoes(words: Words, instructions: Iterable[str], topic: str) -> str:
    """The first consecutive words that repeat the speaker's instructions; quoting the topic does not count."""
    pieces = (piece for instruction in instructions for piece in instruction.split(topic))
    instructed = frozenset[tuple[str, ...]]().union(*map(_all_ngrams, pieces))
    return next((" ".join(ngram) for ngram in _ngrams(words, ECHO_WORDS) if ngram in instructed), "")


def loops(words: Words) -> str:
    """The consecutive words that a looping statement repeats; empty if it does not loop."""
    ngram, times = next(iter(Counter(_ngrams(words, LOOP_WORDS)).most_common(1)), ((), 0))
    return " ".join(ngram) if times >= LOOP_TIMES else ""


def words_of(text: str) -> Words:
    """The words of a text, in lower case."""
    return _WORD.findall(text.replace("’", "'").lower())


@lru_cache(maxsize=1024)  # instructions are the same in every debate, except for the topic and the scores
def _all_ngrams(piece: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_ngrams(words_of(piece), ECHO_WORDS))


def _ngrams(words: Words, length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(length)), strict=False)


def statement_verdicts(
    turn: Turn, role: DebateRole, topic: str, instructions: Iterable[str] = (), others: Iterable[str] = ()
) -> Iterator[Verdict]:
    """One verdict per rule: 1 or 0, with the words found.

    Args:
        turn: The statement.
        role: The speaker's role.
        topic: The topic of the debate.
        instructions: All texts given to the speaker.
        others: The names of all others in the debate.
    """
    words = words_of(turn.text)
    echo, loop = echoes(words, instructions, topic), loops(words)
    broken, leaks = breaks_role(turn.text, topic, others), role.gives_away(turn.text)
    reply = turn.calls[-1].reply.strip() if turn.calls else turn.text
    labels = set(_label(frozenset({turn.speaker, *others})).findall(reply))
    left_out = turn.text != reply and labels > {turn.speaker} & labels
    refused = turn.parse_status == "refused" or looks_like_refusal(turn.text) or not turn.text.strip()
    findings = {
        "role_break": (broken != [], ", ".join(broken)),
        "leak": (leaks != [], ", ".join(leaks)),
        "refused": (refused, ""),
        "echo": (echo != "", echo),
        "loop": (loop != "", loop),
        "cut": (turn.cut, ""),
        "shortened": (left_out, ""),
    }
    for metric, (count, shown) in findings.items():
        yield Verdict(
            judge=RULES,
            role="coordinator",
            round=turn.round,
            metric=metric,
            subject=turn.speaker,
            value=float(count),
            sampled=float(count),
            text=shown or None,
            turn=turn,
        )


SPLITS = ("train", "validation", "test")


def split_topics(topics: Iterable[str], shares: Sequence[float], seed: int) -> dict[str, str]:
    """Each topic's split. Topics are ordered by a hash, so that adding a few topics moves few others.

    Args:
        topics: The topics, in any order.
        shares: The shares of train, validation and test; they must add up to 1.
        seed: Another seed gives another split.
    """
    if len(shares) != len(SPLITS) or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise ConfigError(f"splits must be three shares that add up to 1, got {', '.join(map(str, shares))}")
    keys = sorted({normal(topic) for topic in topics}, key=lambda key: (seed_from("split", seed, key), key))
    ends = [round(len(keys) * sum(shares[: n + 1])) for n in range(len(SPLITS))]
    starts = [0, *ends[:-1]]
    return {key: name for name, start, end in zip(SPLITS, starts, ends, strict=True) for key in keys[start:end]}
