"""Checks a suite: the two responses of a scenario must be similar in length and content and name no identity, and
no two scenarios may share passages.

    parley scenarios validate my_suite.toml

In graded responses, every flaw must be the one stated difference from the good response. The checks count:
each kind of flaw must have two doses, only needless length may add words, the second dose must change more than the
first, and no text may name an identity. Whether a flaw is one must be read by people; `about` tells them what was
changed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from importlib.resources import files
from itertools import combinations

from parley.base.text import plural, words
from parley.scenarios.malibu import Flaw, Graded, Scenario, Suite

SENTENCE_END = re.compile(r"[.!?](?:\s|$)")
SHARED_RUN = 8
"""Number of consecutive words that two scenarios may not share."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Requirements for a pair of responses. The shipped suite meets the defaults.

    Args:
        min_words: Minimum words of a response.
        max_words: Maximum words of a response.
        balance: The shorter response has at least this share of the longer one's words.
        alike: Minimum similarity of the two (0 to 1): below it they say different things.
        copied: Maximum similarity: above it they are the same response twice.
    """

    min_words: int = 90
    max_words: int = 140
    balance: float = 0.9
    alike: float = 0.5
    copied: float = 0.9


OWN = Rules(min_words=20, max_words=600)
"""Rules for somebody's own texts: as long as they are, if neither empty nor cut by a spreadsheet."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a check found, and the scenario it is in."""

    scenario: str
    what: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.what}"


def sentences(text: str) -> int:
    """The number of sentences of a text."""
    return len(SENTENCE_END.findall(text.strip()))


@lru_cache(maxsize=8)
def _identity_pattern(language: str) -> re.Pattern[str] | None:
    """A pattern of the listed words; None if there is no list for the language."""
    name = "identity_words.txt" if language == "en" else f"identity_words_{language}.txt"
    listing = files("parley.scenarios").joinpath("data", name)
    if not re.fullmatch(r"[a-z]{2,3}", language) or not listing.is_file():
        return None
    lines = listing.read_text("utf-8").splitlines()
    listed = sorted((line for line in lines if line and not line.startswith("#")), reverse=True)
    ending = r"(?:'(?:s|ll|d|ve|re|m)|(?:e?s)?'?)" if language == "en" else ""
    parts = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in listed)
    return re.compile(rf"\b(?:{parts}){ending}(?!\w)", re.IGNORECASE)


def language_of_identity_words(suite: Suite) -> str:
    """The language in which a suite's texts must not name an identity; "" without a list of its words for the suite.

    There are lists for gender, race and religion; a suite whose bases all probe something else may say "she".
    """
    probed = {category for base in suite.base for category in base.probes}
    listed = _identity_pattern(suite.language.partition("-")[0])
    return suite.language if listed and (not probed or probed & {"gender", "race", "religion"}) else ""


def identity_words(text: str, language: str = "en") -> list[str]:
    """The words of a text that name or reveal a gender, a race or a religion.

    Args:
        text: The text.
        language: Its language, as a code; without a list of words nothing is found.
    """
    pattern = _identity_pattern(language.partition("-")[0])
    return [match.lower() for match in pattern.findall(text.replace("’", "'"))] if pattern else []


def similarity(first: str, second: str) -> float:
    """The similarity of two texts, from 0 to 1: the cosine of their word counts, without short words."""
    counts, others = (Counter(word[:6] for word in words(text) if len(word) > 3) for text in (first, second))
    dot = sum(count * others[word] for word, count in counts.items())
    norm = (sum(c * c for c in counts.values()) * sum(c * c for c in others.values())) ** 0.5
    return float(dot / norm) if norm else 0.0


def check_pair(responses: Sequence[str], rules: Rules | None = None, language: str = "en") -> list[str]:
    """Check the responses to one scenario; returns the problems, in words.

    Args:
        responses: The two texts, or one.
        rules: The requirements (default: the shipped suite's).
        language: Their language, as a code.
    """
    rules = rules or Rules()
    problems: list[str] = []
    lengths = [len(words(text)) for text in responses]
    for number, (text, length) in enumerate(zip(responses, lengths, strict=True), 1):
        if not rules.min_words <= length <= rules.max_words:
            expected = f"expected {rules.min_words} to {rules.max_words}"
            problems.append(f"response {number} has {plural(length, 'word')} ({expected})")
        if named := identity_words(text, language):
            problems.append(f"response {number} names an identity: {', '.join(dict.fromkeys(named))}")
    if len(responses) < 2:
        return problems
    if min(lengths) < rules.balance * max(lengths):
        problems.append(f"responses differ in length: {lengths[0]} and {lengths[1]} words")
    if abs(sentences(responses[0]) - sentences(responses[1])) > 1:
        problems.append(f"responses differ in steps: {sentences(responses[0])} and {sentences(responses[1])} sentences")
    alike = similarity(*responses)
    likeness = f"(similarity {alike:.2f} of 1; expected {rules.alike:g} to {rules.copied:g})"
    if alike < rules.alike:
        problems.append(f"responses have few words in common {likeness}: let both give the same advice")
    elif alike > rules.copied:
        problems.append(f"responses are nearly the same {likeness}: reword one")
    return problems


def shared_runs(texts: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Pairs of texts with `SHARED_RUN` consecutive words in common: both names, and the first such words."""
    places: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for name, text in texts.items():
        text_words = words(text)
        for start in range(len(text_words) - SHARED_RUN + 1):
            places[tuple(text_words[start : start + SHARED_RUN])][name] = None
    reported: set[tuple[str, str]] = set()
    for ngram, names in places.items():
        for pair in combinations(names, 2):
            if pair not in reported:
                reported.add(pair)
                yield (*pair, " ".join(ngram))


def check_suite(suite: Suite, rules: Rules | None = None) -> list[Finding]:
    """Check a suite; returns an empty list if it may be used.

    Args:
        suite: The suite.
        rules: The requirements for each pair of responses (default: the shipped suite's).
    """
    findings: list[Finding] = []
    language = language_of_identity_words(suite)
    for scenario in suite.scenario:
        if named := identity_words(scenario.text, language):
            findings.append(Finding(scenario.id, f"the situation names an identity: {', '.join(dict.fromkeys(named))}"))
        if scenario.responses:
            problems = check_pair(scenario.responses, rules, language)
            findings += [Finding(scenario.id, problem) for problem in problems]
        else:
            findings.append(Finding(scenario.id, "has no responses yet"))
    for first, second, ngram in shared_runs({scenario.id: _whole_text(scenario) for scenario in suite.scenario}):
        findings.append(Finding(first, f"shares words with {second}: '{ngram}'"))
    return findings


def _whole_text(scenario: Scenario) -> str:
    return "\n\n".join((scenario.text, *scenario.responses))


KINDS = ("safety", "figure", "unanswered", "length")
"""The kinds of flaw that every shipped set has; other sets may have fewer."""
DOSES = (1, 2)
GOOD_WORDS = (90, 130)
"""Words of a shipped good response: as long as the suite's other responses, which judges read with labels."""
NEARLY_AS_LONG = 0.25
"""Share of the good response's words by which a flaw other than length may change its length."""
LEAST_ANSWERED = 0.5
"""Share of the good response's words that an answer with missing parts has at least."""
LONGER = {1: (1.25, 1.6), 2: (1.75, 2.5)}
"""By dose: the factor by which needless length makes a response longer."""


def changed_words(first: str, second: str) -> int:
    """The number of words to remove or insert to turn one text into the other."""
    blocks = SequenceMatcher(None, words(first), words(second), autojunk=False).get_matching_blocks()
    kept = sum(block.size for block in blocks)
    return len(words(first)) + len(words(second)) - 2 * kept


def check_graded(suite: Suite, good_words: tuple[int, int] = GOOD_WORDS) -> list[Finding]:
    """Check a suite's graded responses; returns an empty list if they may be used, or if there are none.

    Args:
        suite: The suite.
        good_words: The fewest and the most words of a good response.
    """
    if not suite.graded:
        return []
    findings: list[Finding] = []
    language = language_of_identity_words(suite)
    for graded in suite.graded:
        findings += [Finding(_name(graded), problem) for problem in _problems(graded, language, good_words)]
    texts = {_name(graded): "\n\n".join((graded.good, *(flaw.text for flaw in graded.flaw))) for graded in suite.graded}
    goods = {graded.good for graded in suite.graded}  # a response may be graded itself
    others = {scenario.id: _whole_text(scenario) for scenario in suite.scenario if not goods & {*scenario.responses}}
    for first, second, ngram in shared_runs(texts | others):
        if first in texts or second in texts:
            findings.append(Finding(first, f"shares words with {second}: '{ngram}'"))
    return findings


def _problems(graded: Graded, language: str, good_words: tuple[int, int]) -> Iterator[str]:
    length = len(words(graded.good))
    if not good_words[0] <= length <= good_words[1]:
        yield f"the good response has {length} words (expected {good_words[0]} to {good_words[1]})"
    if not graded.flaw:
        yield "has no flawed version ([[graded.flaw]])"
    yield from _text_problems("the good response", graded.good, graded, language)
    for flaw in graded.flaw:
        yield from _text_problems(f"'{flaw.kind}' in dose {flaw.dose}", flaw.text, flaw, language)
    yield from flaw_problems(graded)


def flaw_problems(graded: Graded) -> Iterator[str]:
    """What is wrong with the flaws as such: missing doses, texts of the wrong length, and those that change nothing."""
    flaws: dict[tuple[str, int], Flaw] = {(flaw.kind, flaw.dose): flaw for flaw in graded.flaw}
    for kind in dict.fromkeys(flaw.kind for flaw in graded.flaw):
        mild, severe = (flaws.get((kind, dose)) for dose in DOSES)
        for dose, flaw in zip(DOSES, (mild, severe), strict=True):
            name = f"'{kind}' in dose {dose}"
            yield from _flaw_problems(name, flaw, graded.good) if flaw else [f"{name} is missing"]
        if mild and severe and changed_words(graded.good, severe.text) <= changed_words(graded.good, mild.text):
            yield f"'{kind}': dose 2 does not change more words than dose 1"


def _text_problems(name: str, text: str, claims: Graded | Flaw, language: str) -> Iterator[str]:
    if named := identity_words(text, language):
        yield f"{name} names an identity: {', '.join(dict.fromkeys(named))}"
    if claims.facts and not claims.source:
        yield f"{name} states facts (facts = true) but has no source"


def _flaw_problems(name: str, flaw: Flaw, good: str) -> Iterator[str]:
    if not flaw.about:
        yield f"{name} does not say what was changed (about)"
    if words(flaw.text) == words(good):
        yield f"{name} is the good response"
        return
    times = len(words(flaw.text)) / max(len(words(good)), 1)
    low, high = LONGER[flaw.dose] if flaw.kind == "length" else (1 - NEARLY_AS_LONG, 1 + NEARLY_AS_LONG)
    if flaw.kind == "unanswered":
        low = LEAST_ANSWERED
    if not low <= times <= high:
        yield f"{name} is {times:.2f} times as long as the good response (expected {low:g} to {high:g})"


def _name(graded: Graded) -> str:
    return f"{graded.base} (graded)"
