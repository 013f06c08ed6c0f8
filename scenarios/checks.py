"""Is a suite fit to measure with? Every scenario's two responses must be as long and as alike as each other, name no
identity, and no two scenarios may repeat one another.

    parley scenarios validate my_suite.toml
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import combinations

from parley.scenarios.malibu import Scenario, Suite

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
SENTENCE_END = re.compile(r"[.!?](?:\s|$)")
SHARED_RUN = 8
"""Words in a row that two scenarios may not have in common."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a pair of responses is held to. The defaults are those the shipped suite meets."""

    min_words: int = 90
    max_words: int = 140
    balance: float = 0.9
    """The shorter response has at least this share of the longer one's words."""
    alike: float = 0.5
    """Least similarity of the two responses: below it they say different things."""
    copied: float = 0.9
    """Most similarity: above it they are one response twice."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check objects to, and where."""

    scenario: str
    what: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.what}"


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def sentences(text: str) -> int:
    return len(SENTENCE_END.findall(text.strip()))


@lru_cache(maxsize=1)
def _identity_pattern() -> re.Pattern[str]:
    lines = files("parley.scenarios").joinpath("data", "identity_words.txt").read_text("utf-8").splitlines()
    listed = sorted((line for line in lines if line and not line.startswith("#")), key=len, reverse=True)
    ending = r"(?:'(?:s|ll|d|ve|re|m)|(?:e?s)?'?)"
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, listed))}){ending}(?!\w)", re.IGNORECASE)


def identity_words(text: str) -> list[str]:
    """The words of a text that name a gender, a race or a religion, or give one away."""
    return [match.lower() for match in _identity_pattern().findall(text.replace("’", "'"))]


def similarity(first: str, second: str) -> float:
    """How alike two texts are, from 0 to 1: cosine of their words' counts, common short words left out."""
    one, two = (Counter(word[:6] for word in words(text) if len(word) > 3) for text in (first, second))
    dot = sum(count * two[word] for word, count in one.items())
    norm = (sum(c * c for c in one.values()) * sum(c * c for c in two.values())) ** 0.5
    return float(dot / norm) if norm else 0.0


def check_pair(responses: Sequence[str], rules: Rules | None = None) -> list[str]:
    """What is wrong with two responses, in words; nothing where they will do."""
    rules = rules or Rules()
    found: list[str] = []
    lengths = [len(words(text)) for text in responses]
    for number, (text, length) in enumerate(zip(responses, lengths, strict=True), 1):
        if not rules.min_words <= length <= rules.max_words:
            found.append(f"response {number} has {length} words ({rules.min_words} to {rules.max_words} are asked)")
        if named := identity_words(text):
            found.append(f"response {number} names an identity: {', '.join(dict.fromkeys(named))}")
    if min(lengths) < rules.balance * max(lengths):
        found.append(f"responses differ in length: {lengths[0]} and {lengths[1]} words")
    if abs(sentences(responses[0]) - sentences(responses[1])) > 1:
        found.append(f"responses differ in steps: {sentences(responses[0])} and {sentences(responses[1])} sentences")
    alike = similarity(*responses)
    if alike < rules.alike:
        found.append(f"responses say different things (similarity {alike:.2f}, at least {rules.alike:g} is asked)")
    elif alike > rules.copied:
        found.append(f"responses are the same (similarity {alike:.2f}, at most {rules.copied:g} is asked)")
    return found


def shared_runs(texts: dict[str, str], length: int = SHARED_RUN) -> Iterator[tuple[str, str, str]]:
    """Pairs of names whose texts have `length` words in a row in common, with the first such run."""
    places: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for name, text in texts.items():
        said = words(text)
        for start in range(len(said) - length + 1):
            places[tuple(said[start : start + length])][name] = None
    seen: set[tuple[str, str]] = set()
    for run, names in places.items():
        for pair in combinations(names, 2):
            if pair not in seen:
                seen.add(pair)
                yield (*pair, " ".join(run))


def check_suite(suite: Suite, rules: Rules | None = None) -> list[Finding]:
    """All checks on a suite; no finding means that it may be used."""
    found: list[Finding] = []
    for scenario in suite.scenario:
        if named := identity_words(scenario.text):
            found.append(Finding(scenario.id, f"the situation names an identity: {', '.join(dict.fromkeys(named))}"))
        if scenario.responses:
            found += [Finding(scenario.id, what) for what in check_pair(scenario.responses, rules)]
        else:
            found.append(Finding(scenario.id, "has no responses yet"))
    for one, other, run in shared_runs({scenario.id: _all_of(scenario) for scenario in suite.scenario}):
        found.append(Finding(one, f"repeats {other}: '{run}'"))
    return found


def _all_of(scenario: Scenario) -> str:
    return "\n\n".join((scenario.text, *scenario.responses))
