"""Checks the wordings of silent ballots. Finds problems that remain in a readable file.

    parley scenarios validate my_wordings.toml

Placeholders are checked when the file is read. Here every label is worded for every identity: no two wordings may read
the same, no two identities may read the same in one of them, and English articles must be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from parley.base.text import WORD, plural, words
from parley.scenarios.ballot_texts import TAG, BallotWordings, LabelWording, ReplyWords
from parley.scenarios.checks import Finding
from parley.scenarios.identities import CATEGORIES, Identities, open_identities, select
from parley.scenarios.label_choice import LabelChoice, misfits
from parley.scenarios.templates import article

MIN_LABELS = 6
"""Minimum label wordings: each base has its own, and a test over fewer than six bases cannot reach p = 0.05."""
_ARTICLE = re.compile(r"(?<![\w'’])(an?) (?=\W{0,2}\w)", re.IGNORECASE)


def built_in(wordings: BallotWordings) -> Identities:
    """The built-in identities that a file has forms of and label wordings for, by category."""
    categories = {
        category: tuple(label for label in labels if label in wordings.identity)
        for category, labels in CATEGORIES.items()
        if any(not label.categories or category in label.categories for label in wordings.label)
    }
    return Identities({category: labels for category, labels in categories.items() if labels})


def usable_labels(wordings: BallotWordings) -> dict[str, int]:
    """Number of label wordings that distinguish the identities of each built-in category."""
    choice = LabelChoice.of(wordings, built_in(wordings))
    return {category: len(choice.usable_for(category)) for category in choice.identities.categories}


def check_ballot_wordings(wordings: BallotWordings) -> list[Finding]:
    """Check a file of wordings; returns an empty list if it may be used.

    Args:
        wordings: The wordings.
    """
    checks = (_form_findings, _english_left, _question_findings, _repeated)
    findings = [finding for check in checks for finding in check(wordings)]
    identities = built_in(wordings)
    for label in wordings.label:
        findings += [Finding(label.id, problem) for problem in _label_problems(wordings, label, identities)]
    too_few: dict[int, list[str]] = {}
    for category, count in usable_labels(wordings).items():
        if count < MIN_LABELS:
            too_few.setdefault(count, []).append(category)
    for count, categories in too_few.items():
        counted = f"has {plural(count, 'label wording')} for {', '.join(categories)}"
        findings.append(Finding(wordings.name, f"{counted} (expected at least {MIN_LABELS})"))
    return findings


def check_identities(choice: LabelChoice) -> list[Finding]:
    """Check the user's labels with these wordings; returns an empty list if they may be used.

    Args:
        choice: The wordings and the labels.
    """
    counts = {name: len(choice.usable_for(name)) for name in choice.identities.categories}
    findings = [
        Finding(category, f"has {plural(count, 'label wording')} (expected at least {MIN_LABELS})")
        for category, count in counts.items()
        if count < MIN_LABELS
    ]
    return [*findings, *_own_findings(choice.wordings, choice.identities)]


def read_choice(path: Path, wordings: BallotWordings) -> LabelChoice:
    """Make the choice for a file of identities; ScenarioError lists all problems if it cannot be used.

    Args:
        path: The file.
        wordings: The wordings.
    """
    file, identities = open_identities(path)
    for loc, problem in misfits(wordings, identities):
        file.add(loc, problem)
    if file.has_problems:  # also reported here, since no other findings follow
        for finding in _own_findings(wordings, identities):
            file.add(("forms", finding.scenario), finding.what)
    file.refuse()
    return LabelChoice.of(wordings, select([str(path)]))


def _own_findings(wordings: BallotWordings, identities: Identities) -> Iterator[Finding]:
    """Problems of the user's labels and forms, independent of the wordings."""
    bare = "is a bare number, which judges may take for a score: write what it counts, as in '18 years old'"
    for label in identities:
        shown = {**wordings.identity.get(label, {TAG: label}), **identities.forms.get(label, {})}
        if shown.get(TAG, "").strip().isdecimal():
            yield Finding(label, bare)
    for label, forms in identities.forms.items() if _is_english(wordings) else ():
        yield from (Finding(label, problem) for problem in _english_problems(forms))


def _english_problems(forms: Mapping[str, str]) -> Iterator[str]:
    """Articles that are wrong, missing or too many in the forms of a label."""
    for key, form in forms.items():
        yield from (f"{key} has a wrong article: '{phrase}'" for phrase in _wrong_articles(form))
    noun = forms.get("noun", "")
    if noun[:1].islower() and noun.split()[0] not in ("a", "an", "the", "some", "someone", "somebody", "one"):
        yield f"noun has no article: '{noun}' (expected: '{article(noun)} {noun}')"
    if _ARTICLE.match(adjective := forms.get("adjective", "")):
        yield f"adjective has an article: '{adjective}' (wordings put one before it)"


def _form_findings(wordings: BallotWordings) -> Iterator[Finding]:
    for identity, forms in wordings.identity.items():
        for key, form in forms.items():
            if not form.strip():
                yield Finding(wordings.name, f"[identity.{identity}]: '{key}' is empty")
    for category, labels in built_in(wordings).categories.items():
        for missing in (label for label in CATEGORIES[category] if label not in labels):
            yield Finding(
                wordings.name, f"[identity.{missing}] is missing, although the other identities of {category} have one"
            )


def _english_left(wordings: BallotWordings) -> Iterator[Finding]:
    """Words that have an English default and are missing in a file of another language."""
    if not _is_english(wordings):
        for key in ReplyWords.model_fields:
            if key not in wordings.talk.model_fields_set:
                yield Finding(wordings.name, f"[talk]: '{key}' is missing, so the prompt would have English words")


def _is_english(wordings: BallotWordings) -> bool:
    return wordings.language.partition("-")[0] == "en"


def _question_findings(wordings: BallotWordings) -> Iterator[Finding]:
    for letter, heading in (("A", wordings.prompt.answer_a), ("B", wordings.prompt.answer_b)):
        if not _says(letter, heading):
            yield Finding(wordings.name, f"the heading '{heading}' does not contain the letter {letter}")
        for question in wordings.question:
            for text in (question.pair, question.pair_ties):
                if not _says(letter, text):
                    yield Finding(question.id, f"does not say that {letter} is a possible reply: '{text}'")


def _says(letter: str, text: str) -> bool:
    return bool(re.search(rf"(?<!\w){letter}(?!\w)", text))


def _repeated(wordings: BallotWordings) -> Iterator[Finding]:
    """Wordings that read the same as an earlier one."""
    seen: dict[tuple[str, ...], str] = {}
    for label in wordings.label:
        identities = [identity for identity in wordings.identity if wordings.has_forms(label, [identity])]
        shown = {identity: wordings.label_text(label, identity) for identity in identities}
        earlier = {
            first
            for identity, text in shown.items()
            if (first := seen.setdefault((label.place, identity, *words(text)), label.id)) != label.id
        }
        yield from (Finding(label.id, f"reads the same as {first}") for first in sorted(earlier))
    for question in wordings.question:
        for kind in ("single", "metric", "pair", "pair_ties"):
            key = (kind, *words(getattr(question, kind)))
            if (first := seen.setdefault(key, question.id)) != question.id:
                yield Finding(question.id, f"'{kind}' reads the same as that of {first}")


def _label_problems(wordings: BallotWordings, label: LabelWording, identities: Identities) -> Iterator[str]:
    compared = [
        labels
        for category, labels in identities.categories.items()
        if (not label.categories or category in label.categories) and wordings.has_forms(label, labels)
    ]
    for labels in compared:
        yield from _alike(wordings, label, labels)
    if _is_english(wordings):
        shown = [wordings.label_text(label, identity) for labels in compared for identity in labels]
        wrong = [match for text in shown for match in _wrong_articles(text)]
        yield from (f"has a wrong article: '{phrase}' (write {{a}})" for phrase in dict.fromkeys(wrong))


def _alike(wordings: BallotWordings, label: LabelWording, labels: Sequence[str]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for identity in labels:
        text = wordings.label_text(label, identity)
        if (first := seen.setdefault(text, identity)) != identity:
            yield f"reads the same for {first} and {identity}: '{text}'"


def _wrong_articles(text: str) -> Iterator[str]:
    for match in _ARTICLE.finditer(text):
        rest = text[match.end() :]
        if match[1].lower() != article(rest):
            yield f"{match[1]} {WORD.findall(rest)[0]}"
