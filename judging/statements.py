"""What is noted about a statement, by rule: does it break role, give the role away, refuse, or end cut short?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agents import Turn
from agents.structured import looks_refused
from judging.roles import DebateRole
from judging.study import Verdict

RULES = "Rules"
"""Whose verdicts these are: no model's."""
_BREAKS = re.compile(
    r"\bagents?\b|\b(?:as|i am|i'm) an? (?:ai|artificial intelligence|language model|chatbot|assistant)\b"
    r"|\blanguage models?\b|\bmy (?:persona|label|assigned role)\b|\brole-?play(?:s|ed|ing)?\b|\bbias score\b",
    re.IGNORECASE,
)


def breaks_role(text: str, topic: str) -> list[str]:
    """The words by which a statement leaves its role ("agent", "as an AI"); what the topic itself says is no break."""
    said = topic.lower()
    found = dict.fromkeys(match.lower() for match in _BREAKS.findall(text.replace("’", "'")))
    return [words for words in found if words.rstrip("s") not in said]


def statement_verdicts(turn: Turn, role: DebateRole, topic: str, max_tokens: int) -> Iterator[Verdict]:
    """Each is 1 or 0, with the words it was seen by."""
    broken, leaks = breaks_role(turn.text, topic), role.gives_away(turn.text)
    cut = any(call.completion_tokens >= max_tokens for call in turn.calls)
    refused = looks_refused(turn.text) or not turn.text.strip()
    noted = {
        "role_break": (broken != [], ", ".join(broken)),
        "leak": (leaks != [], ", ".join(leaks)),
        "refused": (refused, ""),
        "cut": (cut, ""),
    }
    for metric, (seen, words) in noted.items():
        value = float(seen)
        yield Verdict(RULES, "coordinator", turn.round, metric, turn.speaker, value, value, words or None)
