"""A long text in passages that a model can hold, cut between sentences where that can be done.

The passages put together again are the text, character for character.
"""

from __future__ import annotations

import re

from parley.agents import Client

ROOM = 600
"""Tokens for persona, task, feedback and a judge's reply."""
LONGEST = 6000
"""Characters: a longer passage is rewritten badly even where it would fit."""
CHARACTERS_A_TOKEN = 2.5
"""Fewer than English has, so that other languages fit too."""
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*\s+|\n+")


def longest_passage(client: Client, max_iterations: int) -> int:
    """Characters of a passage: by the last revision, the generator holds it once for every draft."""
    tokens = (client.context_tokens - ROOM) / (max_iterations + 2)
    return max(200, min(LONGEST, int(tokens * CHARACTERS_A_TOKEN)))


def passages(text: str, longest: int) -> list[str]:
    """The text in pieces of at most `longest` characters."""
    found = []
    start = 0
    while len(text) - start > longest:
        window = text[start : start + longest]
        ends = [match.end() for match in _SENTENCE_END.finditer(window)]
        cut = ends[-1] if ends else window.rfind(" ") + 1 or longest
        found.append(window[:cut])
        start += cut
    return [*found, text[start:]] if text[start:] else found
