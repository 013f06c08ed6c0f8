"""`parley scenarios list|show|validate|derive|respond`: read suites, check them, and write new ones with a model."""

from __future__ import annotations

import argparse
import difflib
import json
import textwrap
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.cli.flags import add_flags, given
from parley.cli.run import execute_job
from parley.cli.shared import AddParser
from parley.judging.malibu.derive import Derive, DeriveConfig
from parley.judging.malibu.respond import Respond, RespondConfig
from parley.runs import RunFile
from parley.runs.job import Job
from parley.runs.options import Options, validated
from parley.scenarios import (
    SHIPPED,
    VIEWS,
    BallotWordings,
    Scenario,
    Suite,
    UnknownName,
    check_ballot_wordings,
    check_graded,
    check_suite,
    direction_in_words,
    has_identity_words,
    load_ballot_wordings,
    load_suite,
    names_wordings,
    similarity,
    usable_labels,
    words,
)
from parley.scenarios.statements import GradedStatements, check_statements, load_statements, names_statements

if TYPE_CHECKING:
    from parley.scenarios.giveaways import Giveaways

SUITES = f"{', '.join(VIEWS)}, english, german, a .toml file or a folder"


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="list the scenarios of a suite, or wordings of silent ballots")
    listing.add_argument("suite", nargs="?", default=SHIPPED, help=SUITES)
    listing.add_argument("--bases", action="store_true", help="list the bases instead, with stereotypes and sources")
    showing = verbs.add_parser(
        "show", help="show one scenario and its responses, with the differences underlined, or a label wording"
    )
    showing.add_argument("id", help="the id of the scenario or the label wording")
    showing.add_argument("--suite", default=SHIPPED, help=SUITES)
    checking = verbs.add_parser(
        "validate",
        help="check whether a suite, wordings or graded statements are fit to measure with (exit status 1 if not)",
    )
    checking.add_argument("suite", help=SUITES)
    deriving = verbs.add_parser("derive", help="derive new scenarios from bases, with a model")
    deriving.add_argument("base", nargs="*", help="the bases to derive from (default: all)")
    _add_writing_flags(deriving, DeriveConfig, {"bases"}, "derived")
    responding = verbs.add_parser("respond", help="write pairs of responses for scenarios that have none, with a model")
    responding.add_argument("suite", help="a shipped suite, a .toml file or a folder")
    _add_writing_flags(responding, RespondConfig, {"suite"}, "responses")
    for verb in (listing, showing, checking, deriving, responding):
        verb.add_argument("--json", action="store_true", help="print JSON")
    handlers = {listing: _list, showing: _show, checking: _validate, deriving: _derive, responding: _respond}
    for verb, handler in handlers.items():
        verb.set_defaults(handler=lambda parsed, rest, handler=handler: handler(parsed))


def _add_writing_flags(parser: argparse.ArgumentParser, config: type[Any], positional: set[str], suffix: str) -> None:
    parser.add_argument("--to", metavar="FILE", help=f"the suite file to write (default: SUITE-{suffix}.toml)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_flags(parser, config, "writing", leave_out=positional)
    add_flags(parser, Options, "run")


def _list(parsed: argparse.Namespace) -> int:
    if names_wordings(parsed.suite):
        return _list_wordings(load_ballot_wordings(parsed.suite), as_json=parsed.json)
    suite, _ = load_suite(parsed.suite)
    rows = suite.base if parsed.bases else suite.scenario
    if parsed.json:
        print(json.dumps([row.model_dump(mode="json") for row in rows], ensure_ascii=False, indent=2))
        return 0
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    if parsed.bases:
        for column in ("base", "stereotype", "direction", "source"):
            table.add_column(column, overflow="fold")
        for base in suite.base:
            cells = (base.id, base.stereotype, direction_in_words(base) or "none", base.source)
            table.add_row(*(escape(visible(cell)) for cell in cells))
    else:
        for column in ("scenario", "profession", "setting", "words"):
            table.add_column(column, overflow="fold")
        for scenario in suite.scenario:
            lengths = " / ".join(str(len(words(text))) for text in scenario.responses) or "none yet"
            cells = (scenario.id, scenario.profession, scenario.setting, lengths)
            table.add_row(*(escape(visible(cell)) for cell in cells))
    Console().print(table)
    bases = {scenario.base for scenario in suite.scenario if scenario.base}
    counts = f"{plural(len(suite.scenario), 'scenario')} of {plural(len(bases), 'base')}"
    print(f"{suite.name} {suite.version}: {counts}")
    return 0


def _list_wordings(wordings: BallotWordings, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(wordings.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=2))
        return 0
    table = Table("wording", "kind", "place", "text", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for label in wordings.label:
        table.add_row(*(escape(visible(cell)) for cell in (label.id, label.kind, label.place, label.text)))
    for question in wordings.question:
        table.add_row(*(escape(visible(cell)) for cell in (question.id, "question", "", question.single)))
    Console().print(table)
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
    if names_statements(parsed.suite):
        return _validate_statements(load_statements(parsed.suite), as_json=parsed.json)
    if names_wordings(parsed.suite):
        return _validate_wordings(load_ballot_wordings(parsed.suite), as_json=parsed.json)
    suite, _ = load_suite(parsed.suite)
    wording, giveaways = _compare_wordings(suite)
    findings = [*check_suite(suite), *check_graded(suite), *(giveaways.findings(suite.name) if giveaways else [])]
    directed = sum(bool(base.favours or base.disfavours) for base in suite.base)
    if parsed.json:
        rows = [{"scenario": finding.scenario, "problem": finding.what} for finding in findings]
        counts = {"scenarios": len(suite.scenario), "bases": len(suite.base), "bases_with_direction": directed}
        told_apart = {"giveaways": asdict(giveaways) if giveaways else None}
        print(json.dumps({"suite": suite.name, **counts, **told_apart, "findings": rows}, indent=2))
    else:
        for finding in findings:
            print(textwrap.shorten(visible(str(finding)), 200))
        if not has_identity_words(suite.language):
            print(f"identity words were not looked for: there is no list of them for '{visible(suite.language)}'")
        print(wording)
        if giveaways:
            print(f"most telling, times in response 1:2: {', '.join(map(str, giveaways.tells))}")
        verdict = plural(len(findings), "finding") if findings else "fit to measure with"
        if suite.base:
            print(f"the stereotype has a coded direction in {directed} of {plural(len(suite.base), 'base')}")
        print(f"{suite.name} {suite.version}: {plural(len(suite.scenario), 'scenario')}, {verdict}")
    return 1 if findings else 0


def _validate_wordings(wordings: BallotWordings, *, as_json: bool) -> int:
    findings, usable = check_ballot_wordings(wordings), usable_labels(wordings)
    if as_json:
        rows = [{"wording": finding.scenario, "problem": finding.what} for finding in findings]
        print(json.dumps({"wordings": wordings.name, "usable": usable, "findings": rows}, indent=2))
        return 1 if findings else 0
    for finding in findings:
        print(textwrap.shorten(visible(str(finding)), 200))
    if usable:
        listed = ", ".join(f"{category} {count}" for category, count in usable.items())
        print(f"label wordings by category: {listed} (they repeat in a suite of more bases)")
    verdict = plural(len(findings), "finding") if findings else "fit to measure with"
    print(f"{_wording_counts(wordings)}, {verdict}")
    return 1 if findings else 0


def _validate_statements(statements: GradedStatements, *, as_json: bool) -> int:
    findings = check_statements(statements)
    if as_json:
        rows = [{"topic": finding.scenario, "problem": finding.what} for finding in findings]
        print(json.dumps({"statements": statements.bias, "topics": len(statements.topic), "findings": rows}, indent=2))
        return 1 if findings else 0
    for finding in findings:
        print(textwrap.shorten(visible(str(finding)), 200))
    verdict = plural(len(findings), "finding") if findings else "fit to measure with"
    print(f"{visible(statements.bias)} {statements.version}: {plural(len(statements.topic), 'topic')}, {verdict}")
    return 1 if findings else 0


def _compare_wordings(suite: Suite) -> tuple[str, Giveaways | None]:
    """A line for people on how well the responses are told apart, and the result; none if it could not be computed."""
    try:
        from parley.scenarios.giveaways import MIN_GROUPS, tell_apart
    except ModuleNotFoundError:
        return "the wordings were not compared: that needs numpy: pip install 'parley-autogen[analysis]'", None
    result = tell_apart(suite)
    return str(result or f"too few pairs of responses to compare their wordings (at least {MIN_GROUPS})"), result


def _derive(parsed: argparse.Namespace) -> int:
    return _write(Derive, parsed, {"bases": parsed.base} if parsed.base else {}, "derived")


def _respond(parsed: argparse.Namespace) -> int:
    return _write(Respond, parsed, {"suite": parsed.suite}, "responses")


def _write(
    study: type[Derive] | type[Respond], parsed: argparse.Namespace, positional: dict[str, Any], suffix: str
) -> int:
    """Run the study that writes, and turn what it accepted into a suite file."""
    options = validated(Options, given(parsed, Options))
    job = Job.make(study.name, {**given(parsed, study.Config), **positional}, options)
    writer = cast(Derive | Respond, job.study)
    target = Path(parsed.to) if parsed.to else Path(f"{writer.suite.name}-{suffix}.toml")
    if target.suffix != ".toml":
        raise ConfigError(f"{target}: the name of a suite file must end in .toml")
    if target.exists() and not parsed.force and not _is_unedited_output(target, job.path):
        raise ConfigError(f"{target} already exists; choose another file with --to, or overwrite it with --force")
    status = execute_job(job, quiet=parsed.quiet, as_json=parsed.json)
    if status and not job.path.exists():  # removed meanwhile, as already reported
        return status
    with RunFile.open(job.path) as file:
        accepted = list(file.accepted())
    suite = writer.harvest(accepted)
    if not accepted:
        raise ParleyError(f"nothing was accepted, so no suite was written; parley show {job.path} shows why")
    try:
        body = suite.to_toml()
        heading = f"{_signature(job.path, body)}, which has every attempt. Edit freely, then: parley scenarios validate"
        target.write_text(f"{heading}\n{body}", "utf-8")
    except OSError as error:
        raise ParleyError(f"{target} cannot be written: {error.strerror}") from None
    if not parsed.json:
        print(f"{_scenario_counts(suite)}: {target}")
    return status


def _signature(run: Path, body: str) -> str:
    return f"# Written by {run.name} ({sha256(body.encode()).hexdigest()[:16]})"


def _is_unedited_output(target: Path, run: Path) -> bool:
    """Whether this run wrote the file and it has not been edited since, so that a resumed run may overwrite it."""
    try:
        text = target.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return text.startswith(_signature(run, text.partition("\n")[2]))


def _scenario_counts(suite: Suite) -> str:
    answered = sum(bool(scenario.responses) for scenario in suite.scenario)
    return f"{plural(len(suite.scenario), 'scenario')}, {answered} with responses"
