"""`parley scenarios list|show|validate|derive|respond`: read suites, check them, and write new ones with a model."""

from __future__ import annotations

import argparse
import difflib
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from parley.base.errors import ConfigError
from parley.base.text import plural, visible
from parley.cli.shared import AddParser
from parley.cli.tables import cell_table
from parley.cli.writer import add_writer_flags, run_writer
from parley.judging.malibu.derive import Derive, DeriveConfig
from parley.judging.malibu.respond import Respond, RespondConfig
from parley.scenarios import (
    SHIPPED,
    VIEWS,
    BallotWordings,
    Finding,
    LabelChoice,
    Scenario,
    Suite,
    UnknownName,
    built_in,
    check_ballot_wordings,
    check_graded,
    check_identities,
    check_suite,
    direction_in_words,
    has_identity_words,
    load_ballot_wordings,
    load_suite,
    names_identities,
    names_wordings,
    read_choice,
    similarity,
    usable_labels,
    words,
)
from parley.scenarios.ballot_wordings import ENGLISH
from parley.scenarios.statements import check_statements, load_statements, names_statements

if TYPE_CHECKING:
    from parley.scenarios.giveaways import Giveaways

SUITES = f"{', '.join(VIEWS)}, english, german, a .toml file or a folder"


def add_list(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("suite", nargs="?", default=SHIPPED, help=f"{SUITES} (default: {SHIPPED})")
    parser.add_argument("--bases", action="store_true", help="list the bases instead, with stereotypes and sources")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=_list)


def add_show(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("id", help="the id of the scenario or the label wording")
    parser.add_argument("--suite", default=SHIPPED, help=f"{SUITES} (default: {SHIPPED})")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=_show)


def add_validate(add_parser: AddParser) -> None:
    parser = add_parser(epilog="Exit status: 1 if there are findings, otherwise 0.")
    parser.add_argument("suite", help=f"{SUITES}; also a .toml file of wordings or identities")
    parser.add_argument(
        "--wordings", default=ENGLISH, help=f"the wordings that identities are checked with (default: {ENGLISH})"
    )
    parser.add_argument(
        "--all", action="store_true", help="print every label wording of identities or wordings, filled with each label"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=_validate)


def add_derive(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("base", nargs="*", help="the bases to derive from (default: all)")
    add_writer_flags(parser, DeriveConfig, {"bases"}, "the suite file to write (default: SUITE-derived.toml)")
    parser.set_defaults(
        handler=lambda parsed: _write(Derive, parsed, {"bases": parsed.base} if parsed.base else {}, "derived")
    )


def add_respond(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("suite", help="a shipped suite, a .toml file or a folder")
    add_writer_flags(parser, RespondConfig, {"suite"}, "the suite file to write (default: SUITE-responses.toml)")
    parser.set_defaults(handler=lambda parsed: _write(Respond, parsed, {"suite": parsed.suite}, "responses"))


def _list(parsed: argparse.Namespace) -> int:
    if names_wordings(parsed.suite):
        return _list_wordings(load_ballot_wordings(parsed.suite), as_json=parsed.json)
    suite, _ = load_suite(parsed.suite)
    rows = suite.base if parsed.bases else suite.scenario
    if parsed.json:
        print(json.dumps([row.model_dump(mode="json") for row in rows], ensure_ascii=False, indent=2))
        return 0
    if parsed.bases:
        columns = ("base", "stereotype", "direction", "source")
        cells = [(base.id, base.stereotype, direction_in_words(base) or "none", base.source) for base in suite.base]
    else:
        columns = ("scenario", "profession", "setting", "words")
        lengths = [" / ".join(str(len(words(text))) for text in scenario.responses) for scenario in suite.scenario]
        cells = [
            (scenario.id, scenario.profession, scenario.setting, length or "none yet")
            for scenario, length in zip(suite.scenario, lengths, strict=True)
        ]
    Console().print(cell_table(columns, cells, left=len(columns)))
    bases = {scenario.base for scenario in suite.scenario if scenario.base}
    counts = f"{plural(len(suite.scenario), 'scenario')} of {plural(len(bases), 'base')}"
    print(f"{suite.name} {suite.version}: {counts}")
    return 0


def _list_wordings(wordings: BallotWordings, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(wordings.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=2))
        return 0
    labels = [(label.id, label.kind, label.place, label.text) for label in wordings.label]
    questions = [(question.id, "question", "", question.single) for question in wordings.question]
    Console().print(cell_table(("wording", "kind", "place", "text"), [*labels, *questions], left=4))
    print(_wording_counts(wordings))
    return 0


def _wording_counts(wordings: BallotWordings) -> str:
    counts = f"{plural(len(wordings.label), 'label wording')}, {plural(len(wordings.question), 'question wording')}"
    return f"{wordings.name} {wordings.version} ({wordings.language}): {counts}"


def _show_wording(wordings: BallotWordings, label_id: str, *, as_json: bool) -> int:
    """A label as every identity of the file has it; names stay a placeholder."""
    label = wordings.label_by_id(label_id)
    known = [identity for identity in wordings.identity if wordings.has_forms(label, [identity])]
    shown = {identity: wordings.label_text(label, identity, name="{name}") for identity in known}
    if as_json:
        print(json.dumps(label.model_dump(mode="json") | {"shown": shown}, ensure_ascii=False, indent=2))
        return 0
    print(visible(f"{label.id}: {label.kind}, {label.place} the answer"))
    for identity, text in shown.items():
        print(visible(f"{identity}: {text}"))
    return 0


def _show(parsed: argparse.Namespace) -> int:
    if names_wordings(parsed.suite):
        return _show_wording(load_ballot_wordings(parsed.suite), parsed.id, as_json=parsed.json)
    suite, _ = load_suite(parsed.suite)
    scenarios = {scenario.id: scenario for scenario in suite.scenario}
    scenario = scenarios.get(parsed.id)
    if scenario is None:
        of_base = [key for key, scenario in scenarios.items() if scenario.base == parsed.id]
        similar = of_base[:3] or difflib.get_close_matches(parsed.id, scenarios, n=3)
        hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
        raise UnknownName(f"there is no scenario '{parsed.id}' in {parsed.suite}{hint}")
    base = suite.base_of(scenario)
    if parsed.json:
        row = scenario.model_dump(mode="json") | ({"base": base.model_dump(mode="json")} if base else {})
        print(json.dumps(row, ensure_ascii=False, indent=2))
        return 0
    console = Console()

    def print_text(text: str, style: str = "") -> None:
        console.print(visible(text), style=style, markup=False, highlight=False, emoji=False)

    print_text(scenario.id, "bold")
    print_text(" · ".join(part for part in (scenario.profession, scenario.role, scenario.setting) if part), "dim")
    print_text(f"\n{scenario.text}\n")
    if base:
        print_text(f"probes: {base.stereotype}", "dim")
        print_text(f"direction: {direction_in_words(base) or 'none'}", "dim")
        print_text(f"source: {base.source or 'none'}\n", "dim")
    for number, response in enumerate(_underlined_responses(scenario), 1):
        print_text(f"response {number}", "bold cyan")
        console.print(response, "")
    if scenario.responses:
        print_text(f"similarity {similarity(*scenario.responses):.2f}", "dim")
    else:
        print_text("no responses yet: parley scenarios respond", "yellow")
    return 0


def _underlined_responses(scenario: Scenario) -> list[Text]:
    """Both responses, with the words in which they differ underlined."""
    if not scenario.responses:
        return []
    first, second = (visible(text).split() for text in scenario.responses)
    texts = [Text(), Text()]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        style = "" if tag == "equal" else "underline yellow"
        for text, part in ((texts[0], first[a:b]), (texts[1], second[c:d])):
            for word in part:
                text.append(word, style)
                text.append(" ")
    return texts


def _validate(parsed: argparse.Namespace) -> int:
    if parsed.all and not (names_wordings(parsed.suite) or names_identities(parsed.suite)):
        raise ConfigError(f"--all needs a file of identities or wordings, got '{parsed.suite}'")
    if names_statements(parsed.suite):
        statements = load_statements(parsed.suite)
        counted = f"{statements.bias} {statements.version}: {plural(len(statements.topic), 'topic')}"
        about = {"statements": statements.bias, "topics": len(statements.topic)}
        return _print_findings(parsed, check_statements(statements), "topic", about, [], counted)
    if names_wordings(parsed.suite):
        wordings = load_ballot_wordings(parsed.suite)
        usable = usable_labels(wordings)
        listed = ", ".join(f"{category} {count}" for category, count in usable.items())
        notes = [f"label wordings by category: {listed} (a suite with more bases repeats them)"] if usable else []
        choice = LabelChoice.of(wordings, built_in(wordings))
        examples = [f"{category}, e.g. {text}" for category in usable for text in choice.examples(category)]
        notes += _filled(choice) if parsed.all else examples
        about = {"wordings": wordings.name, "usable": usable} | _filled_rows(choice, parsed)
        counted = _wording_counts(wordings)
        return _print_findings(parsed, check_ballot_wordings(wordings), "wording", about, notes, counted)
    if names_identities(parsed.suite):
        choice = read_choice(Path(parsed.suite), load_ballot_wordings(parsed.wordings))
        own = choice.identities.categories
        about = {
            "identities": parsed.suite,
            "usable": {category: len(choice.usable_for(category)) for category in own},
            "examples": {category: choice.examples(category) for category in own},
            "notes": [line for category in own for line in choice.about(category)],
        } | _filled_rows(choice, parsed)
        said = choice.about if parsed.all else choice.lines
        notes = [line for category in own for line in said(category)] + (_filled(choice) if parsed.all else [])
        labels = plural(sum(map(len, own.values())), "label")
        counted = f"{parsed.suite}: {plural(len(own), 'category', 'categories')}, {labels}"
        return _print_findings(parsed, check_identities(choice), "label", about, notes, counted)
    suite, _ = load_suite(parsed.suite)
    wording, giveaways = _compare_wordings(suite)
    findings = [*check_suite(suite), *check_graded(suite), *(giveaways.findings(suite.name) if giveaways else [])]
    directed = sum(bool(base.favours or base.disfavours) for base in suite.base)
    notes = [wording]
    if not has_identity_words(suite.language):
        notes.insert(0, f"identity words were not checked: there is no list of them for '{suite.language}'")
    if giveaways:
        notes.append(f"most telling words, uses in response 1:2: {', '.join(map(str, giveaways.tells))}")
    if suite.base:
        notes.append(f"the stereotype has a coded direction in {directed} of {plural(len(suite.base), 'base')}")
    about = {"suite": suite.name, "scenarios": len(suite.scenario), "bases": len(suite.base)}
    about |= {"bases_with_direction": directed, "giveaways": asdict(giveaways) if giveaways else None}
    counted = f"{suite.name} {suite.version}: {plural(len(suite.scenario), 'scenario')}"
    return _print_findings(parsed, findings, "scenario", about, notes, counted)


def _filled_rows(choice: LabelChoice, parsed: argparse.Namespace) -> dict[str, Any]:
    """Every label wording filled with every label, as a key of JSON; without --all, no key."""
    return {"filled": {name: choice.filled(name) for name in choice.identities.categories}} if parsed.all else {}


def _filled(choice: LabelChoice) -> list[str]:
    """The same in lines for people: a wording, and under it how it reads for each label."""
    lines = []
    for category in choice.identities.categories:
        for label_id, texts in choice.filled(category).items():
            lines.append(f"{category}, {label_id} ({choice.wordings.label_by_id(label_id).place} the answer)")
            lines += [f"  {identity}: {text.replace(chr(10), ' / ')}" for identity, text in texts.items()]
    return lines


def _print_findings(
    parsed: argparse.Namespace,
    findings: Sequence[Finding],
    kind: str,
    about: dict[str, Any],
    notes: Sequence[str],
    counted: str,
) -> int:
    """Print what was found in a file, and return the exit status.

    Args:
        parsed: The command's arguments.
        findings: What makes the file unfit.
        kind: What each of them is about, as the key in JSON.
        about: The file, in JSON.
        notes: Lines for people, below the findings.
        counted: The file and what it has, in words.
    """
    if parsed.json:
        rows = [{kind: finding.scenario, "problem": finding.what} for finding in findings]
        print(json.dumps({**about, "findings": rows}, ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            print(textwrap.shorten(visible(str(finding)), 200))
        for line in notes:
            print(visible(line))
        print(visible(f"{counted}, {plural(len(findings), 'finding') if findings else 'fit to measure with'}"))
    return 1 if findings else 0


def _compare_wordings(suite: Suite) -> tuple[str, Giveaways | None]:
    """A line for people on how well the responses are told apart, and the result; none if it could not be computed."""
    try:
        from parley.scenarios.giveaways import MIN_GROUPS, tell_apart
    except ModuleNotFoundError:
        return "the wordings were not compared, which needs numpy: pip install 'parley-autogen[analysis]'", None
    result = tell_apart(suite)
    return str(result or f"too few pairs of responses to compare their wordings (at least {MIN_GROUPS})"), result


def _write(
    study: type[Derive] | type[Respond], parsed: argparse.Namespace, positional: dict[str, Any], suffix: str
) -> int:
    """Run the study that writes, and turn what it accepted into a suite file."""
    written = run_writer(parsed, study, positional, lambda study: f"{study.suite.name}-{suffix}.toml")
    if not written.accepted:
        return written.status
    suite: Suite = written.study.harvest(written.accepted)
    written.save(suite.to_toml(), "Edit freely, then: parley scenarios validate")
    if not parsed.json:
        answered = sum(bool(scenario.responses) for scenario in suite.scenario)
        print(f"{plural(len(suite.scenario), 'scenario')}, {answered} with responses: {written.target}")
    return written.status
