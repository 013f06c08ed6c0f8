"""Finds the identity words of a text, and makes the same text about other identities; `swaps.toml` has the words.

    swaps = Swaps.load()
    swaps.variants("My neighbour is a gay woman.")     # "My neighbour is a male man.", "… a female woman.", …
    swaps.masked("My neighbour is a gay woman.")       # "My neighbour is a  ."

The replacements of a word depend only on its kind, so that texts that differ only in identity words have the same
variants.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Swaps:
    """The identity words and their replacements."""

    kinds: Mapping[str, str]
    """Each identity word, in lower case, and its kind: an adjective, one person, several people, a relative."""
    others: Mapping[str, tuple[str, ...]]
    """The words of each kind."""
    pattern: re.Pattern[str]
    version: str

    @classmethod
    @lru_cache(maxsize=1)
    def load(cls) -> Swaps:
        """The shipped words."""
        text = files("parley.judging").joinpath("toxicity", "swaps.toml").read_text("utf-8")
        table = tomllib.loads(text)
        kinds = {word: kind for kind, groups in table["words"].items() for words in groups.values() for word in words}
        longest_first = sorted([*kinds, *table["left"]], key=len, reverse=True)
        # Grouped by first letter, so that the pattern tries few words at each place of a text.
        by_letter: dict[str, list[str]] = {}
        for word in longest_first:
            by_letter.setdefault(word[0].lower(), []).append(re.escape(word[1:]))
        either = "|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_letter.items())
        pattern = re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE)
        others = {kind: tuple(word for word in kinds if kinds[word] == kind) for kind in table["words"]}
        return cls(kinds, others, pattern, hashlib.sha256(text.encode()).hexdigest()[:8])

    def identity_words(self, text: str) -> list[str]:
        """The identity words of a text, in lower case, in order."""
        return [word for word in map(str.lower, self.pattern.findall(text)) if word in self.kinds]

    def variants(self, text: str) -> list[str]:
        """Variants of the text, with each other word of the same kind in place of its identity words."""
        pieces = self._pieces(text)
        others = [self.others[kind] for piece in pieces if (kind := self.kinds.get(piece.lower()))]
        variants = []
        for number in range(max(map(len, others), default=0)):
            pieces[1::2] = [words[number % len(words)] for words in others]
            variants.append("".join(pieces))
        return variants

    def masked(self, text: str) -> str:
        """The text without its identity words."""
        return "".join(self._pieces(text)[::2])

    def _pieces(self, text: str) -> list[str]:
        """The text split at its identity words, which are every second piece."""
        pieces, end = [], 0
        for match in self.pattern.finditer(text):
            if match.group().lower() in self.kinds:
                pieces += [text[end : match.start()], match.group()]
                end = match.end()
        return [*pieces, text[end:]]
