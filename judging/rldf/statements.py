"""What is noted about a statement, by rule: does it break role, give the role away, refuse, repeat its instructions or
itself, or end cut short?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from parley.agents import Turn
from parley.agents.structured import looks_like_refusal
from parley.judging.rldf.roles import DebateRole
from parley.judging.study import Verdict

RULES = "Rules"
"""Whose verdicts these are: no model's."""
_BREAKS = re.compile(
    r"\bagents?\b|\b(?:as|i am|i'm) an? (?:ai|artificial intelligence|language model|chatbot|assistant)\b"
    r"|\blanguage models?\b|\bmy (?:persona|label|assigned role)\b|\brole-?play(?:s|ed|ing)?\b|\bbias score\b",
    re.IGNORECASE,
)

ECHO = 8
"""Words in a row that nobody says by chance as their instructions have them."""
LOOP_WORDS, LOOP_TIMES = 4, 4
"""Words in a row, and how often a statement has them where a model goes in circles."""
_WORD = re.compile(r"\w+(?:['-]\w+)*")


def breaks_role(text: str, topic: str) -> list[str]:
    """The words by which a statement leaves its role ("agent", "as an AI"); what the topic itself says is no break."""
    said = topic.lower()
    found = dict.fromkeys(match.lower() for match in _BREAKS.findall(text.replace("’", "'")))
    return [words for words in found if words.rstrip("s") not in said]


def echoes(text: str, told: Iterable[str], topic: str) -> str:
    """The first words in a row that are the speaker's instructions; the topic may be quoted."""
    pieces = [piece for one in told for piece in one.split(topic)]
    given = {row for piece in pieces for row in _rows(piece, ECHO)}
    return next((" ".join(row) for row in _rows(text, ECHO) if row in given), "")


def loops(text: str) -> str:
    """The words in a row that come again and again."""
    row, times = next(iter(Counter(_rows(text, LOOP_WORDS)).most_common(1)), ((), 0))
    return " ".join(row) if times >= LOOP_TIMES else ""


def _rows(text: str, length: int) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.replace("’", "'").lower())
    return (tuple(words[at : at + length]) for at in range(len(words) - length + 1))


def statement_verdicts(
    turn: Turn, role: DebateRole, topic: str, max_tokens: int, told: Iterable[str] = ()
) -> Iterator[Verdict]:
    """Each is 1 or 0, with the words it was seen by. `told` is what the speaker was told."""
    echo, loop = echoes(turn.text, told, topic), loops(turn.text)
    broken, leaks = breaks_role(turn.text, topic), role.gives_away(turn.text)
    cut = any(call.completion_tokens >= max_tokens for call in turn.calls)
    refused = looks_like_refusal(turn.text) or not turn.text.strip()
    noted = {
        "role_break": (broken != [], ", ".join(broken)),
        "leak": (leaks != [], ", ".join(leaks)),
        "refused": (refused, ""),
        "echo": (echo != "", echo),
        "loop": (loop != "", loop),
        "cut": (cut, ""),
    }
    for metric, (seen, words) in noted.items():
        value = float(seen)
        yield Verdict(RULES, "coordinator", turn.round, metric, turn.speaker, value, value, words or None)
