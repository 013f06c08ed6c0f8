"""Features of a text other than its content (length, style, words of the instructions), and its words.

Each function returns one row per text; the audit uses chosen minus rejected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial

import numpy as np
from scipy import sparse

from parley.analysis.stats.tables import Floats

_WORD = re.compile(r"\w+(?:['-]\w+)*")
_CAPITAL = re.compile("[A-Z]")
_SENTENCE = re.compile(r"[.!?]+(?:\s|$)")
MAX_WORDS = 2000
MIN_TEXTS = 3
"""Minimum number of texts with a word: rarer ones cannot be learnt on some topics and tested on others."""
MIN_LETTERS = 4
"""Minimum letters of an instruction's word: shorter ones are mostly function words."""

_LISTS = {
    "I, me, my": "i me my mine myself i'm i've i'd i'll",
    "we, us, our": "we us our ours ourselves we're we've we'll",
    "you, your": "you your yours yourself you're you've",
    "hedges": "may might could perhaps maybe possibly probably often sometimes usually generally seems seem likely",
    "absolutes": "always never all every everyone nobody none must only completely absolutely certainly obviously",
    "connectives": "however although though but while whereas because therefore thus moreover furthermore also",
}


@lru_cache(maxsize=100_000)
def words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, with straight apostrophes."""
    return tuple(_WORD.findall(text.lower().replace("’", "'")))


def length(texts: Sequence[str]) -> Floats:
    """The number of words."""
    return np.array([[float(len(words(text)))] for text in texts])


def _share_of(listed: Collection[str], text: str, tokens: Sequence[str], sentences: float) -> float:
    return sum(word in listed for word in tokens) / len(tokens)


def _style_rules() -> dict[str, Callable[[str, Sequence[str], float], float]]:
    rules: dict[str, Callable[[str, Sequence[str], float], float]] = {
        "question marks per sentence": lambda text, tokens, sentences: text.count("?") / sentences,
        "exclamation marks per sentence": lambda text, tokens, sentences: text.count("!") / sentences,
        "commas per word": lambda text, tokens, sentences: text.count(",") / len(tokens),
        "semicolons and colons per word": lambda text, tokens, sentences: len(re.findall("[;:]", text)) / len(tokens),
        "dashes and brackets per word": lambda text, tokens, sentences: len(re.findall("[–—(]", text)) / len(tokens),
        "quotation marks per word": lambda text, tokens, sentences: len(re.findall('["“]', text)) / len(tokens),
        "digits per word": lambda text, tokens, sentences: len(re.findall(r"\d", text)) / len(tokens),
        "lists and headings per sentence": lambda text, tokens, sentences: (
            len(re.findall(r"^\s*(?:[-*#]|\d+[.)])\s", text, re.M)) / sentences
        ),
        "capitals per word": lambda text, tokens, sentences: len(_CAPITAL.findall(text)) / len(tokens),
        "letters per word": lambda text, tokens, sentences: sum(map(len, tokens)) / len(tokens),
        "words per sentence": lambda text, tokens, sentences: len(tokens) / sentences,
    }
    for name, listed in _LISTS.items():
        rules[f"{name} per word"] = partial(_share_of, frozenset(listed.split()))
    return rules


STYLE = _style_rules()
"""Measures of style by name: functions of a text, its words and its number of sentences. Word lists are English."""


def style(texts: Sequence[str]) -> Floats:
    """The measures of `STYLE`; none grows merely with the length of the text."""
    rows = np.zeros((len(texts), len(STYLE)))
    for row, text in zip(rows, texts, strict=True):
        if tokens := words(text):
            sentences = float(max(1, len(_SENTENCE.findall(text))))
            row[:] = [rule(text, tokens, sentences) for rule in STYLE.values()]
    return rows


def vocabulary(texts: Sequence[str]) -> list[str]:
    """The words of at least `MIN_TEXTS` texts, at most `MAX_WORDS` of them, most frequent first."""
    counts = Counter(word for text in texts for word in set(words(text)))
    return [word for word, count in counts.most_common(MAX_WORDS) if count >= MIN_TEXTS]


def presence(texts: Sequence[str], listed: Collection[str]) -> sparse.csr_array:
    """Whether each text has each of the listed words."""
    place = {word: n for n, word in enumerate(listed)}
    cells = [(row, place[word]) for row, text in enumerate(texts) for word in set(words(text)) if word in place]
    rows, columns = zip(*cells, strict=True) if cells else ((), ())
    return sparse.csr_array((np.ones(len(cells)), (rows, columns)), shape=(len(texts), len(place)))
