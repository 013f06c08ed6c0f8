"""A long text in passages that fit a model's context, split between sentences where possible.

Joined again, the passages are the text, character for character.
"""

from __future__ import annotations

import re

from parley.agents import Client

RESERVED_TOKENS = 600
"""For persona, task, feedback and a judge's reply."""
MAX_PASSAGE_CHARS = 6000
"""Longer passages are revised badly even if they fit the context."""
CHARS_PER_TOKEN = 2.5
"""Fewer than in English, so that other languages fit too."""
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*\s+|\n+")


def longest_passage(client: Client, max_iterations: int) -> int:
    """Characters of a passage: at the last revision, every draft of it is in the generator's context."""
    tokens = (client.context_tokens - RESERVED_TOKENS) / (max_iterations + 2)
    return max(200, min(MAX_PASSAGE_CHARS, int(tokens * CHARS_PER_TOKEN)))


def passages(text: str, longest: int) -> list[str]:
    """The text in pieces of at most `longest` characters."""
    parts = []
    start = 0
    while len(text) - start > longest:
        window = text[start : start + longest]
        ends = [match.end() for match in _SENTENCE_END.finditer(window)]
        cut = ends[-1] if ends else window.rfind(" ") + 1 or longest
        parts.append(window[:cut])
        start += cut
    return [*parts, text[start:]] if text[start:] else parts
