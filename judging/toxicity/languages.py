"""Detects the language of a text by its most common words and its script: small, offline, for texts of a few words or
more.

    find_language("Hij is dom en je bent een klootzak.")     # "nl"
    not_in("The weather is lovely today.", ("en",))          # ""

A scorer that reads only some languages lists them in `languages`; `find_scorer` puts `InItsLanguages` around it, and a
text in another language is unscored. Detection is good enough for that only: Danish and Norwegian are often confused,
and a few words that many languages share have no language. 3 of 10,000 English texts are taken for another language.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

from parley.judging.toxicity.scorer import Scorer, Toxicity

UNKNOWN = ""
"""The language of a text with too few words."""
SHORT_WORDS = 4
"""In a text of at most this many words, one common word of another language and none of English are enough."""
SENTENCE_WORDS = 3
"""A sentence within a longer text is in another language if it has this many of its common words, and twice as many as
of English: titles and names ("Rio de la Plata") have fewer."""
_WORD = re.compile(r"[^\W\d_]+")
NAMES = re.compile(r"https?://\S+|[@#]\S+")
"""Addresses and handles, which do not show the language of a text."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")


@lru_cache(maxsize=1)
def _languages_of_words() -> dict[str, tuple[str, ...]]:
    """The languages in which each word is common."""
    languages: dict[str, list[str]] = {}
    for code, table in _table().items():
        for word in table["words"].split():
            languages.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in languages.items()}


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(files("parley.judging").joinpath("toxicity", "languages.toml").read_text("utf-8"))


def language_name(code: str) -> str:
    """The name of a language or script: "Dutch" for "nl", "Cyrillic script"."""
    return _table()[code]["name"] if code in _table() else f"{code} script" if code else "unknown"


def find_language(text: str) -> str:
    """The code of the text's language, the name of its script if that is not Latin, or `UNKNOWN`."""
    words = _WORD.findall(NAMES.sub(" ", text))
    if script := _script(words):
        return script
    counts = _counts(words)
    english = counts.pop("en", 0)
    code, other = max(counts.items(), key=lambda pair: pair[1], default=(UNKNOWN, 0))
    enough = 2 if len(words) > SHORT_WORDS else 1
    if other > english and other >= enough:
        return code
    return "en" if english else UNKNOWN


def not_in(text: str, languages: Sequence[str]) -> str:
    """The language of a text, or of its first sentence, that is none of these languages; "" if there is none.

    Args:
        text: The text.
        languages: Codes of languages. A text of an unknown language may be in one of them.
    """
    code = find_language(text)
    if code not in (UNKNOWN, *languages):
        return code
    for sentence in _SENTENCE_END.split(text):
        code = find_language(sentence)
        if code in (UNKNOWN, *languages):
            continue
        counts = _counts(_WORD.findall(sentence))
        if code not in _table() or counts[code] >= max(
            SENTENCE_WORDS, 2 * max(counts[language] for language in languages)
        ):
            return code
    return ""


def _counts(words: Sequence[str]) -> Counter[str]:
    """Number of words that are common in each language."""
    by_word = _languages_of_words()
    return Counter(code for word in words for code in by_word.get(word.lower(), ()))


def _script(words: Sequence[str]) -> str:
    """The script of most letters, if that is not Latin: "Cyrillic", "CJK"."""
    letters = [letter for word in words for letter in word]
    scripts = Counter("Latin" if letter.isascii() else _script_of(letter) for letter in letters)
    script, count = next(iter(scripts.most_common(1)), ("Latin", 0))
    return "" if script == "Latin" or 2 * count <= len(letters) else script


@lru_cache(maxsize=4096)
def _script_of(letter: str) -> str:
    name = unicodedata.name(letter, "unknown").split()[0]
    return name if name == "CJK" else name.capitalize()


class InItsLanguages:
    """A scorer that leaves texts in languages other than its own unscored.

    Args:
        scorer: The scorer.
        languages: Codes of the languages that it reads.
    """

    def __init__(self, scorer: Scorer, languages: Sequence[str]) -> None:
        self.scorer, self.name, self.version = scorer, scorer.name, scorer.version
        self.languages = tuple(languages)

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        others = {text: not_in(text, self.languages) for text in dict.fromkeys(texts)}
        readable = [text for text, code in others.items() if not code]
        scores = dict(zip(readable, await self.scorer.score(readable) if readable else [], strict=True))
        return [scores[text] if text in scores else Toxicity(None, why=self._why(others[text])) for text in texts]

    def _why(self, code: str) -> str:
        reads = " and ".join(language_name(language) for language in self.languages)
        return f"this looks like {language_name(code)}, but {self.name} reads only {reads}"

    async def close(self) -> None:
        await self.scorer.close()
