"""Who a text is about, and the same text about others: the identity words of `swaps.toml`, found and replaced.

    swaps = Swaps.load()
    swaps.variants("My neighbour is a gay woman.")     # "My neighbour is a male man.", "… a female woman.", …
    swaps.masked("My neighbour is a gay woman.")       # "My neighbour is a  ."

What stands in the place of an identity word does not depend on which word stood there, so that two texts that differ
in nothing else have the very same variants.
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
    """Each identity word, lower case, and its kind: what describes someone, one person, or many."""
    put: Mapping[str, tuple[str, ...]]
    pattern: re.Pattern[str]
    version: str

    @classmethod
    @lru_cache(maxsize=1)
    def load(cls) -> Swaps:
        text = files("judging").joinpath("toxicity", "swaps.toml").read_text("utf-8")
        table = tomllib.loads(text)
        kinds = {word: kind for kind, groups in table["words"].items() for words in groups.values() for word in words}
        longest_first = sorted([*kinds, *table["left"]], key=len, reverse=True)
        pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])", re.IGNORECASE)
        put = {kind: tuple(words) for kind, words in table["put"].items()}
        return cls(kinds, put, pattern, hashlib.sha256(text.encode()).hexdigest()[:8])

    def found(self, text: str) -> list[str]:
        """The identity words of a text, lower case, in order."""
        return [word for word in map(str.lower, self.pattern.findall(text)) if word in self.kinds]

    def variants(self, text: str) -> list[str]:
        """The text with others in it, one for each of the longest row of `put`."""
        return [self._replaced(text, nth) for nth in range(max(map(len, self.put.values())))]

    def masked(self, text: str) -> str:
        return self._replaced(text, None)

    def _replaced(self, text: str, nth: int | None) -> str:
        def other(match: re.Match[str]) -> str:
            kind = self.kinds.get(match.group().lower())
            if kind is None:
                return match.group()
            return "" if nth is None else self.put[kind][nth % len(self.put[kind])]

        return self.pattern.sub(other, text)
