"""Who a text is about, and the same text about others: the identity words of `swaps.toml`, found and replaced.

    swaps = Swaps.load()
    swaps.variants("My neighbour is a gay woman.")     # "My neighbour is a male man.", "… a female woman.", …
    swaps.masked("My neighbour is a gay woman.")       # "My neighbour is a  ."

What is put in the place of a word depends on its kind only, so that texts that differ in nothing else have the very
same variants.
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
    kinds: Mapping[str, str]
    """Each identity word, lower case, and its kind: what describes someone, one person, many, kin."""
    others: Mapping[str, tuple[str, ...]]
    """The words of each kind."""
    pattern: re.Pattern[str]
    version: str

    @classmethod
    @lru_cache(maxsize=1)
    def load(cls) -> Swaps:
        text = files("parley.judging").joinpath("toxicity", "swaps.toml").read_text("utf-8")
        table = tomllib.loads(text)
        kinds = {word: kind for kind, groups in table["words"].items() for words in groups.values() for word in words}
        longest_first = sorted([*kinds, *table["left"]], key=len, reverse=True)
        begun: dict[str, list[str]] = {}  # by their first letters: each place of a text is held against few words
        for word in longest_first:
            begun.setdefault(word[0].lower(), []).append(re.escape(word[1:]))
        either = "|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in begun.items())
        pattern = re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE)
        others = {kind: tuple(word for word in kinds if kinds[word] == kind) for kind in table["words"]}
        return cls(kinds, others, pattern, hashlib.sha256(text.encode()).hexdigest()[:8])

    def found(self, text: str) -> list[str]:
        """The identity words of a text, lower case, in order."""
        return [word for word in map(str.lower, self.pattern.findall(text)) if word in self.kinds]

    def variants(self, text: str) -> list[str]:
        """The text with all others of the kinds that stand in it, each in turn."""
        pieces = self._pieces(text)
        others = [self.others[kind] for piece in pieces if (kind := self.kinds.get(piece.lower()))]
        made = []
        for nth in range(max(map(len, others), default=0)):
            pieces[1::2] = [words[nth % len(words)] for words in others]
            made.append("".join(pieces))
        return made

    def masked(self, text: str) -> str:
        return "".join(self._pieces(text)[::2])

    def _pieces(self, text: str) -> list[str]:
        """What stands between identity words, and these: every second piece is one."""
        pieces, end = [], 0
        for match in self.pattern.finditer(text):
            if match.group().lower() in self.kinds:
                pieces += [text[end : match.start()], match.group()]
                end = match.end()
        return [*pieces, text[end:]]
