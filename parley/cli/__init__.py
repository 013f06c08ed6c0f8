"""The command line: a thin layer, since everything it does can also be done in Python.

Exit status: 0 if all is done, 1 if something failed or is left to do, 2 if the command or one of its files is wrong,
3 if `check` cannot decide, 75 if a scheduler or the wall time stopped a run, 130 if interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from parley import __version__
from parley.base.errors import ConfigError, ParleyError, ScenarioError
from parley.base.text import visible

MAX_MESSAGE_CHARS = 2000
"""An error message may quote a flag or a file, but must not fill the screen."""
ANALYSES = {"report", "card", "compare", "check", "leaderboard", "view", "export", "audit", "power"}
"""Commands with many small matrices. BLAS's threads only wait for each other there: on two of them, the audit's fits
take ten times the processor time."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as Parley's own."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see `{self.prog} --help`)")


class Entry(NamedTuple):
    """A command: where its flags are added, its line in the list of commands, and its subcommands, if it has any.

    A module is imported only when its command is typed: with all of them, `--help` took 1.3 s of CPU instead of 0.07
    (`python -X importtime -m parley --help` shows what is loaded). Its function (`add_to` if none is named) takes
    `add_parser`, adds the flags and sets a `handler`.
    """

    module: str
    help: str
    verbs: Mapping[str, Entry] = {}


COMMANDS: dict[str, Entry] = {
    "run": Entry("parley.cli.run", "run a study, or resume it"),
    "plan": Entry("parley.cli.plan", "forecast a large run: time, cost, disk space and memory"),
    "report": Entry("parley.cli.report", "report on a run, or on several runs of one study"),
    "card": Entry("parley.cli.card", "measure what a model can do as a judge, and write its card"),
    "compare": Entry("parley.cli.compare", "compare two runs, or two models of one run, on the same units"),
    "leaderboard": Entry("parley.cli.leaderboard", "put judges' cards side by side on one page"),
    "check": Entry("parley.cli.check", "check a judge's card against requirements, for CI"),
    "show": Entry("parley.cli.show:Show", "print a conversation in the terminal"),
    "view": Entry("parley.cli.view:View", "read runs in the browser"),
    "labels": Entry(
        "",
        "draw texts for people to label, and export or import their labels",
        verbs={
            "draw": Entry("parley.cli.labels:Draw", "draw texts to label; people label them in `parley view`"),
            "simulate": Entry("parley.cli.labels:Simulate", "let simulated raters label a draw"),
            "export": Entry("parley.cli.labels:Export", "print all labels of a run, one row per answer"),
            "import": Entry(
                "parley.cli.labels:Import", "add labels from a file: CSV, JSON lines, Label Studio or Argilla"
            ),
        },
    ),
    "export": Entry(
        "parley.cli.export:Export", "make a dataset from runs, or write any run for Inspect or as JSON lines"
    ),
    "audit": Entry("parley.cli.audit", "find what a reward model could learn from pairs besides their content"),
    "train": Entry("parley.cli.train:Train", "train RLDF's policy: SFT, reward model, RL, evaluation"),
    "score": Entry(
        "",
        "score answers or texts from a file, or audit toxicity scorers",
        verbs={
            "bbq": Entry("parley.cli.score:add_bbq", "score answers to BBQ: accuracy and bias by category"),
            "squad": Entry(
                "parley.cli.score:add_squad", "score answers to SQuAD v2: exact match and F1, by the official rules"
            ),
            "rubric": Entry(
                "parley.cli.score_texts:add_rubric",
                "score texts by a rubric (BS, CE, LS by default), with several judges",
            ),
            "toxicity": Entry(
                "parley.cli.score_texts:add_toxicity",
                "score the toxicity of texts, with one scorer or several side by side",
            ),
            "audit": Entry(
                "parley.cli.audit_scorers:add_audit",
                "measure how much toxicity scores depend on the identity named in a sentence",
            ),
            "calibrate": Entry(
                "parley.cli.audit_scorers:add_calibrate",
                "find a toxicity scorer's thresholds for a given miss rate, from labelled texts",
            ),
        },
    ),
    "detox": Entry(
        "parley.cli.detox:Detox", "judge one text and revise it until it is neither toxic nor badly written"
    ),
    "attention": Entry(
        "parley.cli.attention", "measure attention to the framing's words (needs a framing run and the model's weights)"
    ),
    "scenarios": Entry(
        "",
        "list, show and validate suites of scenarios, or write new ones with a model",
        verbs={
            "list": Entry(
                "parley.cli.scenarios:add_list", "list the scenarios of a suite, or the wordings of silent ballots"
            ),
            "show": Entry(
                "parley.cli.scenarios:add_show",
                "show a scenario and underline how its responses differ, or show a label wording",
            ),
            "validate": Entry(
                "parley.cli.scenarios:add_validate",
                "check whether a suite, wordings or graded statements are fit to measure with",
            ),
            "derive": Entry("parley.cli.scenarios:add_derive", "derive new scenarios from bases, with a model"),
            "respond": Entry(
                "parley.cli.scenarios:add_respond", "write pairs of responses for scenarios without any, with a model"
            ),
        },
    ),
    "topics": Entry(
        "",
        "list debate topics, or generate new ones with a model",
        verbs={
            "list": Entry(
                "parley.cli.topics:add_list", "list the topics of a bias type or a file, and near-duplicates"
            ),
            "generate": Entry("parley.cli.topics:add_generate", "write topics with a model"),
        },
    ),
    "power": Entry("parley.cli.power:Power", "find how many bases an effect needs, or which effect they can detect"),
    "models": Entry("parley.cli.models:Models", "list models, and download embedded ones"),
    "doctor": Entry(
        "parley.cli.doctor:Doctor", "check what is installed, which keys are set and which models can be reached"
    ),
    "new": Entry("parley.cli.new:New", "start a study of your own, or a file of scenarios, identities or wordings"),
    "salvage": Entry("parley.cli.pack:add_salvage", "copy what is readable in a damaged run file to a new one"),
    "pack": Entry("parley.cli.pack:add_pack", "compress runs to about a fifth; every command reads packed runs"),
    "unpack": Entry("parley.cli.pack:add_unpack", "restore packed runs"),
    "import": Entry("parley.cli.imports", "make a run file from a log of Inspect, AutoGen, BBQ or MABRF"),
}


NEAR_WORDS = {
    **dict.fromkeys(
        ("list", "ls", "runs"),
        "parley view (runs), parley show RUN --list (units), parley models, "
        "parley scenarios list or parley topics list",
    ),
    **dict.fromkeys(("start", "resume", "continue"), "parley run STUDY, which also resumes a run"),
    **dict.fromkeys(("open", "serve", "browse", "ui", "web"), "parley view"),
    **dict.fromkeys(("results", "result", "analyse", "analyze", "summary", "stats"), "parley report RUN"),
    **dict.fromkeys(("read", "cat", "print", "log", "logs"), "parley show RUN"),
    **dict.fromkeys(("init", "create"), "parley new study, scenarios, identities or wordings"),
    **dict.fromkeys(("diff", "cmp"), "parley compare RUN RUN"),
    **dict.fromkeys(("validate", "suites"), "parley scenarios"),
    **dict.fromkeys(("download", "fetch", "pull"), "parley models fetch NAME"),
    **dict.fromkeys(("example", "demo"), "parley view --example"),
    "calibrate": "parley score calibrate (a scorer's thresholds) or, in a checkout, python -m benchmarks.calibration "
    "(false-positive rates of the tests)",
    **dict.fromkeys(("debate", "malibu", "rldf", "bbq", "squad", "stardtox", "injection"), "parley run STUDY"),
}
"""What people who do not know the commands type, and what they may mean."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: The arguments after `parley`; those of this process by default.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # what the terminal or pipe cannot encode is shown as an escape
        sys.stdout.reconfigure(errors="backslashreplace")
    if ANALYSES.intersection(arguments[:1]):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported
    if warning := conflicting_package_warning():
        _print_error(warning)
    try:
        with _signals_of(arguments):
            parsed = parse(arguments)
            status: int = parsed.handler(parsed)
            return status
    except BrokenPipeError:  # as in `parley show RUN | head`: Python's flush at exit must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _print_error("interrupted", status=130)
    except Exception as error:
        return _report_error(error)


def _signals_of(arguments: Sequence[str]) -> AbstractContextManager[None]:
    """What handles a scheduler's signals while a run's packages are loaded; other commands have nothing to resume."""
    if arguments[:1] not in (["run"], ["card"]):
        return nullcontext()
    from parley.cli.signals import early_signals  # it loads asyncio

    return early_signals()


def conflicting_package_warning() -> str | None:
    """A warning if the unrelated distribution `parley` is installed, whose package has the same name as ours."""
    try:
        other = distribution("parley")
    except PackageNotFoundError:
        return None
    if Path(str(other.locate_file("pyproject.toml"))).is_file():
        return None  # metadata that an earlier build left in the checkout; it is not installed
    return (
        f"warning: 'parley' {other.version} is also installed, and overwrites files of 'parley-autogen': "
        "pip uninstall -y parley parley-autogen, then pip install parley-autogen"
    )


def _report_error(error: Exception) -> int:
    """Print one line for an error that the user can fix; raise any other, which is a bug in Parley."""
    if isinstance(error, ConfigError | ScenarioError):
        return _print_error(str(error))
    if isinstance(error, ParleyError):
        return _print_error(str(error), status=1)
    if isinstance(error, OSError) and error.strerror:  # a full disk, a missing file, a permission
        return _print_error(f"{error.filename or 'the system'}: {error.strerror}", status=1)
    raise error


def parse(arguments: list[str]) -> argparse.Namespace:
    """The parsed arguments; `rest` has the flags of a study, which `parley run` parses itself."""
    parser = Parser(
        prog="parley",
        description="Run and read studies in which language models with personas judge, debate and revise.",
        formatter_class=_CommandList,
        epilog="`parley help COMMAND` shows what a command does and its flags.",
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    add_commands(commands, COMMANDS, arguments)
    parsed, rest = parser.parse_known_args(arguments)
    parsed.rest = rest
    if rest and parsed.command != "run":
        from parley.cli.shared import refuse_unknown  # it loads what reads runs, which --help and --version do without

        refuse_unknown(rest, parsed.parser if parsed.command else parser)
    if not parsed.command:
        parser.print_help()
        parsed.handler = lambda _: 2
    return parsed


def add_commands(subparsers: Any, commands: Mapping[str, Entry], arguments: Sequence[str]) -> None:
    """Add all commands with their help lines, but flags only for the one that was typed.

    Args:
        subparsers: What `ArgumentParser.add_subparsers` returned.
        commands: The commands by name.
        arguments: What was typed; the first word is the command.
    """
    typed = arguments[0] if arguments else ""
    if typed and not typed.startswith("-") and typed not in commands:
        _refuse_unknown_command(typed, commands)
    for name, command in commands.items():
        description = f"{command.help[0].upper()}{command.help[1:]}."
        add_parser = partial(subparsers.add_parser, name, help=command.help, description=description)
        if typed != name:
            add_parser()
        elif command.verbs:
            verbs = add_parser().add_subparsers(dest="verb", required=True, metavar="KIND")
            add_commands(verbs, command.verbs, arguments[1:])
        else:
            module, _, function = command.module.partition(":")
            target = getattr(import_module(module), function or "add_to")
            getattr(target, "add_to", target)(add_parser)
            parser = subparsers.choices[name]
            parser.set_defaults(parser=parser)
            for action in parser._actions:  # as the flags that are made from a study's config
                if action.option_strings and action.metavar is None:
                    action.metavar = {int: "N", float: "X"}.get(action.type)


def _refuse_unknown_command(typed: str, commands: Mapping[str, Entry]) -> None:
    """Raise an error that names the command most like what was typed."""
    if typed.lower() in NEAR_WORDS and commands is COMMANDS:
        raise ConfigError(f"there is no command '{typed}'; did you mean {NEAR_WORDS[typed.lower()]}?")
    similar = difflib.get_close_matches(typed, commands, n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"known: {', '.join(commands)}"
    raise ConfigError(f"there is no command '{typed}' ({hint})")


class _CommandList(argparse.HelpFormatter):
    """Room for the longest name of a command: argparse forgets that names of commands are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        self._action_max_length = max(self._action_max_length, 4 + max(map(len, COMMANDS)))


def _print_error(message: str, status: int = 2) -> int:
    line = visible(" ".join(message.split()))
    print(f"parley: {line if len(line) <= MAX_MESSAGE_CHARS else line[:MAX_MESSAGE_CHARS] + ' …'}", file=sys.stderr)
    return status
