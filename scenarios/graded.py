"""Are graded responses fit to measure judges with? Every flaw must be the one stated difference from the good response.

    parley scenarios validate my_suite.toml

What can be counted is checked: that every base has a good response with each kind of flaw in two doses, that only
needless length adds words, that the second dose changes more than the first, and that nothing names an identity.
Whether a flaw is a flaw is for people to read; `about` tells them what was changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import product
from typing import get_args

from parley.scenarios.checks import Finding, identity_words, shared_runs, words
from parley.scenarios.malibu import Flaw, FlawKind, Graded, Suite

KINDS: tuple[FlawKind, ...] = get_args(FlawKind)
DOSES = (1, 2)
GOOD_WORDS = (90, 130)
"""Words of a good response: as long as the suite's other responses, which judges read with labels."""
NEARLY_AS_LONG = 0.25
"""Share of the good response's words by which another flaw than length may make it longer or shorter."""
LONGER = {1: (1.25, 1.6), 2: (1.75, 2.5)}
"""By dose: how many times as long needless length makes a response."""


def changed_words(first: str, second: str) -> int:
    """How many words would have to be taken out or put in to turn one text into the other."""
    blocks = SequenceMatcher(None, words(first), words(second), autojunk=False).get_matching_blocks()
    kept = sum(block.size for block in blocks)
    return len(words(first)) + len(words(second)) - 2 * kept


def check_graded(suite: Suite) -> list[Finding]:
    """The problems of a suite's graded responses; an empty list if they may be used, or if there are none.

    Args:
        suite: The suite.
    """
    if not suite.graded:
        return []
    findings: list[Finding] = []
    for graded in suite.graded:
        findings += [Finding(_name(graded), problem) for problem in _problems(graded)]
    texts = _graded_texts(suite)
    others = {scenario.id: "\n\n".join((scenario.text, *scenario.responses)) for scenario in suite.scenario}
    for first, second, ngram in shared_runs(texts | others):
        if first in texts or second in texts:
            findings.append(Finding(first, f"shares words with {second}: '{ngram}'"))
    return findings


def _problems(graded: Graded) -> Iterator[str]:
    length = len(words(graded.good))
    if not GOOD_WORDS[0] <= length <= GOOD_WORDS[1]:
        yield f"the good response has {length} words (expected {GOOD_WORDS[0]} to {GOOD_WORDS[1]})"
    yield from _text_problems("the good response", graded.good, graded)
    flaws: dict[tuple[str, int], Flaw] = {(flaw.kind, flaw.dose): flaw for flaw in graded.flaw}
    for kind, dose in product(KINDS, DOSES):
        name, flaw = f"'{kind}' in dose {dose}", flaws.get((kind, dose))
        if flaw is None:
            yield f"{name} is missing"
            continue
        yield from _text_problems(name, flaw.text, flaw)
        yield from _flaw_problems(name, flaw, graded.good)
    for kind in KINDS:
        mild, severe = (flaws.get((kind, dose)) for dose in DOSES)
        if mild and severe and changed_words(graded.good, severe.text) <= changed_words(graded.good, mild.text):
            yield f"'{kind}': dose 2 does not change more words than dose 1"


def _text_problems(name: str, text: str, claims: Graded | Flaw) -> Iterator[str]:
    if named := identity_words(text):
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
    if not low <= times <= high:
        yield f"{name} is {times:.2f} times as long as the good response (expected {low:g} to {high:g})"


def _graded_texts(suite: Suite) -> dict[str, str]:
    """The graded responses of each base as one text, for passages that two bases share."""
    return {_name(graded): "\n\n".join((graded.good, *(flaw.text for flaw in graded.flaw))) for graded in suite.graded}


def _name(graded: Graded) -> str:
    return f"{graded.base} (graded)"
