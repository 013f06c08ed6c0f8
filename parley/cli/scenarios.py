"""`parley scenarios list|show|validate|derive|respond`: the suites, and new ones written with a model of choice."""

from __future__ import annotations

import argparse
import difflib
import json
import textwrap
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from parley.agents import ConfigError, ParleyError
from parley.cli.commands import AddParser
from parley.cli.flags import add_flags, given
from parley.cli.text import visible
from parley.execute import Job, Options, explain
from parley.judging.malibu.derive import Derive, DeriveConfig
from parley.judging.malibu.respond import Respond, RespondConfig
from parley.runs import RunFile
from parley.scenarios import Scenario, Suite, UnknownName, check_suite, load_suite, similarity, words


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="the scenarios of a suite")
    listing.add_argument("suite", nargs="?", default="full", help="quick, full, a .toml file or a folder")
    listing.add_argument("--bases", action="store_true", help="the bases instead, with stereotypes and sources")
    showing = verbs.add_parser("show", help="one scenario with its responses, differences marked")
    showing.add_argument("id", help="the scenario's id")
    showing.add_argument("--suite", default="full", help="quick, full, a .toml file or a folder")
    checking = verbs.add_parser("validate", help="is a suite fit to measure with? (exit status 1 if not)")
    checking.add_argument("suite", help="quick, full, a .toml file or a folder")
    deriving = verbs.add_parser("derive", help="derive new scenarios from bases, with a model")
    deriving.add_argument("base", nargs="*", help="the bases to derive from (default: all)")
    _writing_flags(deriving, DeriveConfig, {"bases"})
    responding = verbs.add_parser("respond", help="write response pairs for scenarios that have none, with a model")
    responding.add_argument("suite", help="quick, full, a .toml file or a folder")
    _writing_flags(responding, RespondConfig, {"suite"})
    for verb in (listing, showing, checking, deriving, responding):
        verb.add_argument("--json", action="store_true")
    handlers = {listing: _list, showing: _show, checking: _validate, deriving: _derive, responding: _respond}
    for verb, handler in handlers.items():
        verb.set_defaults(handler=lambda parsed, rest, handler=handler: handler(parsed))


def _writing_flags(parser: argparse.ArgumentParser, config: type[Any], named: set[str]) -> None:
    parser.add_argument(
        "--to", metavar="FILE", help="the suite file to write (default: <suite>-derived.toml and so on)"
    )
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_flags(parser, config, "the writing", leave_out=named)
    add_flags(parser, Options, "the run")


def _list(parsed: argparse.Namespace) -> int:
    suite, _ = load_suite(parsed.suite)
    rows = suite.base if parsed.bases else suite.scenario
    if parsed.json:
        print(json.dumps([row.model_dump(mode="json") for row in rows], ensure_ascii=False, indent=2))
        return 0
    looks: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
    table = Table(**looks)
    if parsed.bases:
        for column in ("base", "stereotype", "source"):
            table.add_column(column)
        for base in suite.base:
            table.add_row(*(escape(visible(cell)) for cell in (base.id, base.stereotype, base.source)))
    else:
        for column in ("scenario", "profession", "setting", "words"):
            table.add_column(column, overflow="fold", no_wrap=column == "scenario")
        for scenario in suite.scenario:
            lengths = " / ".join(str(len(words(text))) for text in scenario.responses) or "none yet"
            cells = (scenario.id, scenario.profession, scenario.setting, lengths)
            table.add_row(*(escape(visible(cell)) for cell in cells))
    Console().print(table)
    bases = {one.base for one in suite.scenario if one.base}
    print(f"{suite.name} {suite.version}: {len(suite.scenario)} scenarios of {len(bases)} bases")
    return 0


def _show(parsed: argparse.Namespace) -> int:
    suite, _ = load_suite(parsed.suite)
    scenario = next((one for one in suite.scenario if one.id == parsed.id), None)
    if scenario is None:
        near = difflib.get_close_matches(parsed.id, [one.id for one in suite.scenario], n=3)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise UnknownName(f"there is no scenario '{parsed.id}' in {suite.name}{hint}")
    base = suite.base_of(scenario)
    if parsed.json:
        shown = scenario.model_dump(mode="json") | ({"base": base.model_dump(mode="json")} if base else {})
        print(json.dumps(shown, ensure_ascii=False, indent=2))
        return 0
    console = Console()

    def say(text: str, style: str = "") -> None:
        console.print(visible(text), style=style, markup=False, highlight=False, emoji=False)

    say(scenario.id, "bold")
    say(" · ".join(part for part in (scenario.profession, scenario.role, scenario.setting) if part), "dim")
    say(f"\n{scenario.text}\n")
    if base:
        say(f"probes: {base.stereotype}", "dim")
        say(f"source: {base.source or 'none'}\n", "dim")
    for number, marked in enumerate(_marked(scenario), 1):
        say(f"response {number}", "bold cyan")
        console.print(marked, "")
    if scenario.responses:
        say(f"likeness {similarity(*scenario.responses):.2f}", "dim")
    else:
        say("no responses yet: parley scenarios respond", "yellow")
    return 0


def _marked(scenario: Scenario) -> list[Text]:
    """Both responses, with the words in which they differ underlined."""
    if not scenario.responses:
        return []
    one, two = (visible(text).split() for text in scenario.responses)
    marked = [Text(), Text()]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        style = "" if tag == "equal" else "underline yellow"
        for target, part in ((marked[0], one[a:b]), (marked[1], two[c:d])):
            for word in part:
                target.append(word, style)
                target.append(" ")
    return marked


def _validate(parsed: argparse.Namespace) -> int:
    suite, _ = load_suite(parsed.suite)
    found = check_suite(suite)
    if parsed.json:
        rows = [{"scenario": one.scenario, "problem": one.what} for one in found]
        print(json.dumps({"suite": suite.name, "scenarios": len(suite.scenario), "findings": rows}, indent=2))
    else:
        for one in found:
            print(textwrap.shorten(visible(str(one)), 200))
        verdict = f"{len(found)} findings" if found else "fit to measure with"
        print(f"{suite.name} {suite.version}: {len(suite.scenario)} scenarios, {verdict}")
    return 1 if found else 0


def _derive(parsed: argparse.Namespace) -> int:
    return _write(Derive, parsed, {"bases": parsed.base} if parsed.base else {}, "derived")


def _respond(parsed: argparse.Namespace) -> int:
    return _write(Respond, parsed, {"suite": parsed.suite}, "responses")


def _write(study: type[Derive] | type[Respond], parsed: argparse.Namespace, named: dict[str, Any], what: str) -> int:
    from parley.cli.run import execute_job

    try:
        options = Options.model_validate(given(parsed, Options))
    except ValidationError as error:
        raise ConfigError(explain(error, Options)) from None
    job = Job.make(study.name, {**given(parsed, study.Config), **named}, options)
    writer = cast(Derive | Respond, job.study)
    target = Path(parsed.to) if parsed.to else Path(f"{writer.suite.name}-{what}.toml")
    if target.suffix != ".toml":
        raise ConfigError(f"{target}: a suite file ends in .toml")
    if target.exists() and not parsed.force and not _ours(target, job.path):
        raise ConfigError(f"{target} is there already, or was edited: name another with --to, or use --force")
    if not job.size.units:
        raise ConfigError(f"there is nothing to write: every scenario of {parsed.suite} has responses (see --anew)")
    status = execute_job(job, quiet=parsed.quiet, as_json=parsed.json)
    with RunFile.open(job.path) as file:
        accepted = list(file.accepted())
    suite = writer.harvest(accepted)
    if not accepted and job.size.units:
        raise ParleyError(f"nothing was accepted, so no suite was written; parley show {job.path} says why")
    try:
        body = suite.to_toml()
        target.write_text(_heading(job.path, body) + body, "utf-8")
    except OSError as error:
        raise ParleyError(f"{target} cannot be written: {error.strerror}") from None
    if not parsed.json:
        print(f"{_counted(suite)}: {target}")
    return status


def _heading(run: Path, body: str) -> str:
    digest = sha256(body.encode()).hexdigest()[:16]
    return f"# Written by {run.name} ({digest}), which has every try. Edit freely, then: parley scenarios validate\n"


def _ours(target: Path, run: Path) -> bool:
    """Whether this very run wrote the file and nobody has edited it since, so that going on may write it again."""
    try:
        text = target.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return text.startswith(_heading(run, text.partition("\n")[2]))


def _counted(suite: Suite) -> str:
    answered = sum(bool(scenario.responses) for scenario in suite.scenario)
    return f"{len(suite.scenario)} scenarios, {answered} of them with responses"
