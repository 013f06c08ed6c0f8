"""`parley scenarios list|show|validate`: read suites, wordings and topics, and check them."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field
from rich.text import Text

from parley.analysis.stats.results import needed_words
from parley.base.text import plural, visible
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional
from parley.cli.tables import cell_table
from parley.judging.malibu.size import size_table
from parley.scenarios import (
    BIASES,
    OWN,
    SHIPPED,
    VIEWS,
    BallotWordings,
    Base,
    Finding,
    LabelChoice,
    Rules,
    Scenario,
    UnknownName,
    built_in,
    check_ballot_wordings,
    check_graded,
    check_identities,
    check_suite,
    language_of_identity_words,
    load_ballot_wordings,
    load_suite,
    load_topics,
    names_identities,
    names_wordings,
    near_duplicates,
    read_choice,
    similarity,
    usable_labels,
    words,
)
from parley.scenarios.ballot_wordings import ENGLISH
from parley.scenarios.checks import GOOD_WORDS

SHARED = "shares words with"
SUITES = f"{', '.join(VIEWS)}, english, german, a .toml file or a folder"


class List(Command):
    """List the scenarios of a suite, the wordings of silent ballots, or the topics of debates and near-duplicates."""

    suite: Positional[str] = Field(
        SHIPPED,
        description=f"{SUITES} (default: {SHIPPED}); for topics {', '.join(BIASES)}, a .txt file, or topics",
    )
    bases: bool = Field(False, description="list the bases instead, with stereotypes and sources")

    def answer(self) -> Answer:
        if self.suite in (*BIASES, "topics") or self.suite.endswith(".txt"):
            return _topics(self.suite)
        if names_wordings(self.suite):
            return _wordings(load_ballot_wordings(self.suite))
        suite, _ = load_suite(self.suite)
        rows = suite.base if self.bases else suite.scenario
        columns: tuple[str, ...] = ("base", "stereotype", "source")
        cells: list[tuple[str, ...]]
        if self.bases:
            cells = [(base.id, base.stereotype, base.source) for base in suite.base]
        else:
            columns = ("scenario", "profession", "setting", "words")
            lengths = [" / ".join(str(len(words(text))) for text in scenario.responses) for scenario in suite.scenario]
            cells = [
                (scenario.id, scenario.profession, scenario.setting, length or "none yet")
                for scenario, length in zip(suite.scenario, lengths, strict=True)
            ]
        bases = {scenario.base for scenario in suite.scenario if scenario.base}
        counts = f"{plural(len(suite.scenario), 'scenario')} of {plural(len(bases), 'base')}"
        table = cell_table(columns, cells, left=len(columns))
        return Answer([row.model_dump(mode="json") for row in rows], [table, f"{suite.name} {suite.version}: {counts}"])


def _topics(bias: str) -> Answer:
    if bias == "topics":
        counts = {name: len(load_topics(name)) for name in BIASES}
        return Answer(counts, [f"{name:<12} {count}" for name, count in counts.items()])
    topics = load_topics(bias)
    pairs = near_duplicates(topics)
    counted = f"{plural(len(topics), 'topic')}, {plural(len(pairs), 'pair')} of near-duplicates"
    near = [f"  {first} / {second}" for first, second in pairs]
    return Answer({"topics": topics, "near": pairs}, [*topics, counted, *near])


def _wordings(wordings: BallotWordings) -> Answer:
    labels = [(label.id, label.kind, label.place, label.text) for label in wordings.label]
    questions = [(question.id, "question", "", question.single) for question in wordings.question]
    table = cell_table(("wording", "kind", "place", "text"), [*labels, *questions], left=4)
    return Answer(wordings.model_dump(mode="json", by_alias=True), [table, _wording_counts(wordings)])


def _wording_counts(wordings: BallotWordings) -> str:
    counts = f"{plural(len(wordings.label), 'label wording')}, {plural(len(wordings.question), 'question wording')}"
    return f"{wordings.name} {wordings.version} ({wordings.language}): {counts}"


class Show(Command):
    """Show a scenario and underline how its responses differ, or show a label wording."""

    id: Positional[str] = Field(description="the id of the scenario or the label wording")
    suite: str = Field(SHIPPED, description=SUITES)

    def answer(self) -> Answer:
        if names_wordings(self.suite):
            return _wording(load_ballot_wordings(self.suite), self.id)
        suite, _ = load_suite(self.suite)
        scenarios = {scenario.id: scenario for scenario in suite.scenario}
        scenario = scenarios.get(self.id)
        if scenario is None:
            of_base = [key for key, scenario in scenarios.items() if scenario.base == self.id]
            similar = of_base[:3] or difflib.get_close_matches(self.id, scenarios, n=3)
            hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
            raise UnknownName(f"there is no scenario '{self.id}' in {self.suite}{hint}")
        base = suite.base_of(scenario)
        data = scenario.model_dump(mode="json") | ({"base": base.model_dump(mode="json")} if base else {})
        return Answer(data, _scenario(scenario, base))


def _wording(wordings: BallotWordings, label_id: str) -> Answer:
    """A label wording filled in for each identity of the file."""
    label = wordings.label_by_id(label_id)
    worded = [identity for identity in wordings.identity if wordings.has_forms(label, [identity])]
    shown = {identity: wordings.label_text(label, identity) for identity in worded}
    lines = [f"{identity}: {text}" for identity, text in shown.items()]
    heading = f"{label.id}: {label.kind}, {label.place} the answer"
    return Answer(label.model_dump(mode="json") | {"shown": shown}, [heading, *lines])


def _scenario(scenario: Scenario, base: Base | None) -> Iterator[Text]:
    yield _text(scenario.id, "bold")
    yield _text(" · ".join(part for part in (scenario.profession, scenario.role, scenario.setting) if part), "dim")
    yield _text(f"\n{scenario.text}\n")
    if base:
        yield _text(f"probes: {base.stereotype or 'no stereotype'}", "dim")
        yield _text(f"source: {base.source or 'none'}\n", "dim")
    for number, response in enumerate(_underlined_responses(scenario), 1):
        yield _text(f"response {number}", "bold cyan")
        yield response.append("\n")
    if len(scenario.responses) == 2:
        yield _text(f"similarity {similarity(*scenario.responses):.2f}", "dim")
    elif not scenario.responses:
        yield _text("no responses yet: parley run malibu-respond --to FILE", "yellow")


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)


def _underlined_responses(scenario: Scenario) -> list[Text]:
    """Both responses, with the words in which they differ underlined."""
    if len(scenario.responses) < 2:
        return [Text(visible(text)) for text in scenario.responses]
    first, second = (visible(text).split() for text in scenario.responses)
    texts = [Text(), Text()]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        style = "" if tag == "equal" else "underline yellow"
        for text, part in ((texts[0], first[a:b]), (texts[1], second[c:d])):
            for word in part:
                text.append(word, style)
                text.append(" ")
    return texts


class Validate(Command):
    """Check a suite, wordings or identities for problems."""

    epilog: ClassVar = "Exit status: 1 if there are problems, otherwise 0."

    suite: Positional[str] = Field(description=f"{SUITES}; also a .toml file of wordings or identities")
    wordings: str = Field(ENGLISH, description="the wordings that identities are checked with")

    def answer(self) -> Answer:
        if names_wordings(self.suite):
            wordings = load_ballot_wordings(self.suite)
            usable = usable_labels(wordings)
            listed = ", ".join(f"{category} {count}" for category, count in usable.items())
            notes = [f"label wordings by category: {listed} (a suite with more bases repeats them)"] if usable else []
            choice = LabelChoice.of(wordings, built_in(wordings))
            notes += [f"{category}, e.g. {text}" for category in usable for text in choice.examples(category)]
            about: dict[str, Any] = {"wordings": wordings.name, "usable": usable}
            counted = _wording_counts(wordings)
            return _findings(check_ballot_wordings(wordings), "wording", about, notes, counted)
        if names_identities(self.suite):
            choice = read_choice(Path(self.suite), load_ballot_wordings(self.wordings))
            categories = choice.identities.categories
            about = {
                "identities": self.suite,
                "usable": {category: len(choice.usable_for(category)) for category in categories},
                "examples": {category: choice.examples(category) for category in categories},
                "notes": [line for category in categories for line in choice.about(category)],
            }
            notes = [line for category in categories for line in choice.lines(category)]
            labels = plural(sum(map(len, categories.values())), "label")
            tests = len(list(choice.identities.pairs()))
            notes.append(f"Each pair of labels within a category is a test: {needed_words(tests, 'base')}.")
            counted = f"{self.suite}: {plural(len(categories), 'category', 'categories')}, {labels}"
            return _findings(check_identities(choice), "label", about, notes, counted)

        suite, _ = load_suite(self.suite)
        notes = []
        if not language_of_identity_words(suite):
            notes.append(
                "Not checked: whether texts name an identity (no list of words fits this language and these bases)."
            )
        bases = len({scenario.base or scenario.id for scenario in suite.scenario})
        notes.append("What it can show with two, four or six labels in a category, each pair of which is a test:")
        notes += size_table([(bases, tests) for tests in (1, 6, 15)], "silent ballots")
        if not suite.graded:
            notes.append("Without [[graded]] answers a run cannot show whether its judges can judge.")
        about = {"suite": suite.name, "scenarios": len(suite.scenario), "bases": len(suite.base)}
        counted = f"{suite.name} {suite.version}: {plural(len(suite.scenario), 'scenario')}"
        rules, good_words = (Rules(), GOOD_WORDS) if self.suite in VIEWS else (OWN, (OWN.min_words, OWN.max_words))
        findings = [*check_suite(suite, rules), *check_graded(suite, good_words)]
        if any("names an identity" in finding.what for finding in findings):
            notes.append(
                "Texts may name people if no label of the run contradicts them: say what each base is about, such as "
                'probes = ["age"]. If none of them is gender, race or religion, words of identity are not looked for.'
            )
        return _findings(findings, "scenario", about, notes, counted)


def _findings(
    findings: Sequence[Finding], kind: str, about: dict[str, Any], notes: Sequence[str], counted: str
) -> Answer:
    """The problems in a file.

    Args:
        findings: The problems.
        kind: The kind of thing that each is about, as a key in JSON.
        about: The file, in JSON.
        notes: Lines below the findings.
        counted: The file's contents, in words.
    """
    rows = [{kind: finding.scenario, "problem": finding.what} for finding in findings]
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        alike.setdefault("" if SHARED in finding.what else finding.what, []).append(finding)
    lines = [textwrap.shorten(visible(_in_one_line(group)), 200) for group in alike.values()]
    end = f"{counted}, {plural(len(findings), 'problem') if findings else 'no problems'}"
    return Answer({**about, "problems": rows}, [*lines, *notes, end], 1 if findings else 0)


def _in_one_line(alike: Sequence[Finding]) -> str:
    """Findings that say the same, or that name passages in several texts."""
    first, names = alike[0], [finding.scenario for finding in alike]
    if any(finding.what != first.what for finding in alike):
        return f"{first} (and {plural(len(alike) - 1, 'other pair')} of texts: --json)"
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{listed}: {first.what}"


VERBS: dict[str, type[Command]] = {"list": List, "show": Show, "validate": Validate}
