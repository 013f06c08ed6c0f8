"""`ngrams`: a logistic model of words, pairs of words and letter sequences. No package, no key, no network.

STARDTOX's free outside measure. It shares only the list of identity words with `embedded`; model, features, training
texts and labels differ (RealToxicityPrompts with Perspective's scores). Identity words are left out before scoring, so
that a score cannot depend on which one a text has. Its weights are in `ngrams.toml`, by hash rather than by word (so
the repository has no slurs), with the command that made them. It is plain Python, so that the default measure needs no
optional package.
"""

from __future__ import annotations

import base64
import math
import re
import tomllib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

from parley.judging.toxicity.scorer import NO_TEXT, Toxicity, in_pieces, worst
from parley.judging.toxicity.swaps import Swaps

BITS = 15
"""There are 2 ** BITS weights: an n-gram has the weight at its hash, and n-grams with the same hash share it.
Held-out AUCs were 0.86 to 0.88 with 8,192 weights, 0.87 to 0.90 with these 32,768."""
PIECE_WORDS = 60
"""Maximum words of a piece. A longer text is as toxic as its worst piece: an insult would hardly change its score."""
_WORD = re.compile(r"[a-z0-9'*@$!]+")


@lru_cache(maxsize=1 << 16)
def _hashes_of_word(word: str) -> frozenset[int]:
    """A word with its ends marked, and its sequences of three to five letters."""
    marked = f"<{word[:40]}>"
    letters = {marked[start : start + n] for n in (3, 4, 5) for start in range(len(marked) - n + 1)}
    return frozenset(map(_hash, {f"w{marked}", *letters}))


def _hash(ngram: str) -> int:
    return zlib.crc32(ngram.encode("utf-8", "replace")) % (1 << BITS)


def features(text: str) -> set[int]:
    """The hashes of a text's n-grams, without its identity words; empty if it has no words."""
    words = _WORD.findall(Swaps.load().masked(text).lower().replace("’", "'"))
    pairs = {_hash(f"{first} {second}") for first, second in pairwise(words)}
    return pairs.union(*map(_hashes_of_word, words))


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the model, as whole numbers of `scale`."""

    weights: Sequence[int]
    scale: float
    intercept: float
    trained: str

    @classmethod
    @lru_cache(maxsize=1)
    def load(cls) -> Weights:
        """The shipped weights."""
        text = files("parley.judging").joinpath("toxicity", "ngrams.toml").read_text("utf-8")
        table = tomllib.loads(text)
        signed = memoryview(zlib.decompress(base64.b64decode(table["weights"]))).cast("b")
        return cls(signed.tolist(), table["scale"], table["intercept"], table["trained"])

    def probability(self, text: str) -> float:
        """The probability that a text is found toxic."""
        places = features(text)
        total = self.scale * sum(self.weights[place] for place in places)
        return 1 / (1 + math.exp(-self.intercept - total / math.sqrt(max(1, len(places)))))


class Ngrams:
    """The shipped model of n-grams."""

    name = "ngrams"
    languages = ("en",)

    def __init__(self) -> None:
        self._weights = Weights.load()
        self.version = f"{self._weights.trained}-{Swaps.load().version}"

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> Toxicity:
        if not text.strip():
            return Toxicity(None, why=NO_TEXT)
        if not _WORD.search(text.lower()):
            return Toxicity(None, why="the text has no words that it reads")
        return worst([Toxicity(self._weights.probability(piece)) for piece in in_pieces(text, PIECE_WORDS)])

    async def close(self) -> None:
        """Nothing to close."""
