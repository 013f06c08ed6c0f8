"""Which of three answers a text means. When in doubt, none: an answer is never given to the wrong person.

In this order: the place or letter alone ("1", "ans1", "(B)"); the answer itself, up to case, articles and
punctuation; the whole answer inside a longer text; a way of saying that nobody can know; and distinctive words, those
that stand in one answer only. Two people in one text, a "not" before a name, or words that fit nobody leave the text
unmatched.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

How = Literal["place", "exact", "inside", "unknown", "words", "ambiguous", "none"]

LETTERS = "ABC"
SHORT = 400
"""Characters of a text whose words are kept: answers and questions, not replies."""
LONG = 20_000
"""Characters beyond which a text is not an answer with an opening before it, and is looked at once."""
_PLACE = re.compile(
    r"^\W*+(?:the )?(?:(?:final )?answer|option|choice|ans)?(?: is)?\W*+([0-2]|[a-c])\W*+$", re.IGNORECASE
)
_LEAD = re.compile(r"^\W*([0-2]|[a-c])\s*[).:\]]\s+(?=\S)", re.IGNORECASE)
_OPENING = re.compile(
    r"^\W*(?:(?:so|therefore|thus)\W+)?(?:the )?(?:(?:final |correct |best )?answer|option)(?: is)?\s*:?\s+", re.I
)
_WORD = re.compile(r"[\w']+")
_ARTICLES = frozenset(("the", "a", "an"))
_DOUBTS = frozenset(
    _WORD.findall(
        "not no never neither nor isn't wasn't aren't weren't don't doesn't didn't cannot can't without except "
        "instead rather unlike than but or either both between"
    )
)
"""Words near which a name may be anything but the answer."""
_FILLERS = frozenset(
    _WORD.findall(
        "it is was were be the a an that this who which one person he she they i think believe would say most likely "
        "probably answer option choice correct of in to and so therefore because context based on s"
    )
)
_NOBODY_KNOWS = tuple(
    tuple(phrase.split())
    for phrase in (
        "can't be determined",
        "cannot be determined",
        "can't answer",
        "cannot answer",
        "not answerable",
        "not enough info",
        "not enough information",
        "not known",
        "unknown",
        "undetermined",
        "can't be known",
        "cannot be known",
        "impossible to say",
        "impossible to tell",
        "impossible to determine",
        "unclear",
    )
)
"""The ten wordings of the benchmark, and a few that models like. They only ever point to the answer tagged unknown."""


class Match(NamedTuple):
    """The place of the answer, or None; and how it was found, or why not."""

    place: int | None
    how: How


def match(text: str, answers: Sequence[str], unknown: int, question: str = "", *, depth: int = 4) -> Match:
    """The answer that the text means, if it surely means one. So many openings ("The answer is: B) …") are read."""
    if found := _PLACE.match(text):
        return Match(_place(found.group(1)), "place")
    words = _words(text)
    if exact := _exact(_bare(words), answers):
        return exact
    depth = depth if len(text) <= LONG else 0
    if depth and (opened := _OPENING.match(text)):
        rest = match(text[opened.end() :], answers, unknown, question, depth=depth - 1)
        if rest.place is not None:
            return rest
    if depth and (led := _LEAD.match(text)):
        rest = match(text[led.end() :], answers, unknown, question, depth=depth - 1)
        agreed = rest.place == _place(led.group(1))
        return rest if agreed else Match(None, "ambiguous" if rest.place is not None else rest.how)
    return _inside(_bare(words), answers, unknown, question)


def _place(mark: str) -> int:
    return int(mark) if mark.isdigit() else LETTERS.index(mark.upper())


def _exact(bare: tuple[str, ...], answers: Sequence[str]) -> Match | None:
    same = [place for place, answer in enumerate(answers) if bare and bare == _bare(_words(answer))]
    return Match(same[0], "exact") if len(same) == 1 else None


def _inside(words: tuple[str, ...], answers: Sequence[str], unknown: int, question: str) -> Match:
    held = set(words)
    spots = _spots(words, [_bare(_words(answer)) for answer in answers], held)
    people = {place for place, _, _ in spots if place != unknown}
    nobody = any(place == unknown for place, _, _ in spots) or any(
        next(_starts(words, phrase), None) is not None for phrase in _NOBODY_KNOWS if held.issuperset(phrase)
    )
    if nobody:  # with one person named it may be about that person only; with both, or none, it is the answer
        return Match(None, "ambiguous") if len(people) == 1 else Match(unknown, "unknown")
    if len(people) > 1:
        return Match(None, "ambiguous")
    asked = set(_words(question))
    if people:
        place = people.pop()
        covered = {at for _, start, end in spots for at in range(start, end)}
        near = {words[at] for _, start, _ in spots for at in range(max(0, start - 4), start)}
        others = {word for at, word in enumerate(words) if at not in covered} - asked
        doubtful = (near | others) & _DOUBTS
        return Match(None, "ambiguous") if doubtful else Match(place, "inside")
    return _by_words(set(words), answers, unknown, asked)


def _by_words(words: set[str], answers: Sequence[str], unknown: int, asked: set[str]) -> Match:
    """By words that stand in one person's answer only; every other word must fit that answer, the question, or fill."""
    own = [set(_bare(_words(answer))) for answer in answers]
    distinctive = [own[at] - set().union(*(own[other] for other in range(3) if other != at)) for at in range(3)]
    hit = [at for at in range(3) if at != unknown and words & distinctive[at]]
    if len(hit) != 1 or words & distinctive[unknown] - _FILLERS:
        return Match(None, "ambiguous" if len(hit) > 1 else "none")
    foreign = words - own[hit[0]] - _FILLERS - asked
    if foreign or words & _DOUBTS:
        return Match(None, "none")
    return Match(hit[0], "words")


def _spots(words: tuple[str, ...], answers: Sequence[tuple[str, ...]], held: set[str]) -> list[tuple[int, int, int]]:
    """Where whole answers stand in the text; one within a longer one is not there ("man" in "old man")."""
    starts = [set(_starts(words, answer)) if held.issuperset(answer) else set() for answer in answers]

    def within_a_longer_one(start: int, end: int) -> bool:
        return any(
            at in starts[place]
            for place, answer in enumerate(answers)
            if len(answer) > end - start
            for at in range(end - len(answer), start + 1)
        )

    return [
        (place, start, start + len(answer))
        for place, answer in enumerate(answers)
        for start in sorted(starts[place])
        if not within_a_longer_one(start, start + len(answer))
    ]


def _starts(words: tuple[str, ...], phrase: tuple[str, ...]) -> Iterator[int]:
    """Where a phrase stands in the text."""
    at = -1
    while phrase:
        try:
            at = words.index(phrase[0], at + 1)
        except ValueError:
            return
        if words[at : at + len(phrase)] == phrase:
            yield at


def _words(text: str) -> tuple[str, ...]:
    return _short_words(text) if len(text) <= SHORT else _split(text)


@lru_cache(maxsize=8192)
def _short_words(text: str) -> tuple[str, ...]:
    """Kept, since the same answers and questions come again and again."""
    return _split(text)


def _split(text: str) -> tuple[str, ...]:
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'").casefold()
    return tuple([bare for word in _WORD.findall(plain) if (bare := word.strip("'"))])


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in _ARTICLES)
