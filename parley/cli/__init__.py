"""The command line: a thin layer over the Python functions.

Exit status: 0 if all is done, 1 if something failed or is left to do, 2 if the command or one of its files is wrong,
75 if a scheduler or the wall time stopped a run, 130 if interrupted.
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
from typing import Any, NamedTuple, NoReturn

from parley import __version__
from parley.base.errors import ConfigError, ParleyError, ScenarioError
from parley.base.text import visible

MAX_MESSAGE_CHARS = 2000
"""Maximum length of an error message, which may quote a flag or a file."""
ANALYSES = {"report", "compare", "view", "export", "power"}
"""Commands with many small matrices, for which BLAS's threads only wait for each other: with two, the audit's fits
take ten times the CPU time."""


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors, for whole flags: `--suit tiny` must not start a run of another suite."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see `{self.prog} --help`)")


class Entry(NamedTuple):
    """A command in the list: its module and its description.

    A module is imported only when its command is typed: with all of them, `--help` took 1.3 s of CPU instead of 0.07
    (`python -X importtime -m parley --help` shows what is loaded). It has the command's class, or one class for each of
    its verbs, in a table `VERBS`.
    """

    module: str
    about: str


GROUPS: dict[str, dict[str, Entry]] = {
    "measure": {
        "run": Entry("parley.cli.run:Run", "run a study, or resume it; --dry-run says what it costs"),
        "replicate": Entry("parley.cli.replicate:Replicate", "run all that a paper ran on a model, and compare"),
        "power": Entry("parley.cli.power:Power", "find how many bases an effect needs"),
        "detox": Entry("parley.cli.detox:Detox", "revise one text until it is not toxic and well written"),
    },
    "read": {
        "report": Entry("parley.cli.report:Report", "report on runs of one study, or on a dataset"),
        "compare": Entry("parley.cli.compare:Compare", "compare two runs or models"),
        "show": Entry("parley.cli.show:Show", "print a conversation in the terminal"),
        "view": Entry("parley.cli.view:View", "read runs in the browser"),
    },
    "datasets and training": {
        "export": Entry("parley.cli.export:Export", "make a dataset from runs, or write a run as JSON lines"),
        "train": Entry("parley.cli.train:Train", "train RLDF's policy: SFT, reward model, RL, evaluation"),
    },
    "set up": {
        "models": Entry("parley.cli.models:Models", "list models and prices, and download embedded ones"),
        "scenarios": Entry("parley.cli.scenarios", "list, show and validate scenarios and topics"),
        "new": Entry("parley.cli.new:New", "start a study of your own, or a file of scenarios"),
        "doctor": Entry("parley.cli.doctor:Doctor", "check packages, keys, proxies, models and GPUs"),
    },
}
COMMANDS: dict[str, Entry] = {name: entry for group in GROUPS.values() for name, entry in group.items()}

NEAR_WORDS = {
    **dict.fromkeys(
        ("list", "ls", "runs"),
        "parley view (runs), parley show RUN --list (units), parley models or parley scenarios list",
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
}
"""Words that newcomers type, and the commands that they may mean."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Args:
        argv: The arguments after `parley`; those of this process by default.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that the terminal or pipe cannot encode are escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    if ANALYSES.intersection(arguments[:1]):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported
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
    """A handler of a scheduler's signals while a run's packages load; other commands have nothing to resume."""
    if arguments[:1] not in (["run"], ["replicate"]):
        return nullcontext()
    from parley.cli.signals import early_signals  # imported late: it loads asyncio

    return early_signals()


def _report_error(error: Exception) -> int:
    """Print one line for an error that the user can fix; raise any other, which is a bug in Parley."""
    if isinstance(error, ConfigError | ScenarioError):
        return max(_print_error(line) for line in vars(error).get("lines", [str(error)]))
    if isinstance(error, ParleyError):
        return _print_error(str(error), status=1)
    if isinstance(error, OSError) and error.strerror:  # a full disk, a missing file, a permission
        return _print_error(f"{error.filename or 'the system'}: {error.strerror}", status=1)
    raise error


def parse(arguments: list[str]) -> argparse.Namespace:
    """The parsed arguments, with the `handler` of the command; ConfigError if one of them is unknown."""
    typed = arguments[0] if arguments else ""
    if typed in ("", "-h", "--help"):
        return argparse.Namespace(command=None, handler=partial(_list_commands, status=0 if typed else 2))
    if typed == "--version":
        return argparse.Namespace(command=None, handler=_print_version)
    if typed not in COMMANDS:
        _refuse_unknown_command(typed)
    parser, words = make_parser(arguments)
    parsed, rest = parser.parse_known_args(words)
    if rest:
        from parley.cli.shared import refuse_unknown  # imported late: --help and --version do not need it

        refuse_unknown(rest, parser)
    parsed.command = typed
    return parsed


def make_parser(arguments: Sequence[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser of the command that was typed, or of one of its verbs, and the words that it parses.

    Args:
        arguments: What was typed; the first word is a command.
    """
    name, *words = arguments
    entry = COMMANDS[name]
    module, _, target = entry.module.partition(":")
    imported = import_module(module)
    prog = f"parley {name}"
    if verbs := getattr(imported, "VERBS", None):
        verb = words[0] if words else ""
        if verb not in verbs:
            return _parser_of_verbs(name, entry, verbs, verb), words
        command, prog, words = verbs[verb], f"{prog} {verb}", words[1:]
    else:
        command = getattr(imported, target)
    make = partial(Parser, prog=prog)
    return command.add_to(make, words), words


def _parser_of_verbs(name: str, entry: Entry, verbs: Mapping[str, Any], verb: str) -> argparse.ArgumentParser:
    """A parser with only --help, for a missing or unknown verb."""
    if verb and not verb.startswith("-"):
        similar = difflib.get_close_matches(verb, verbs, n=1)
        hint = f"did you mean {similar[0]}?" if similar else f"known: {', '.join(verbs)}"
        raise ConfigError(f"there is no command 'parley {name} {verb}' ({hint})")
    if verb not in ("-h", "--help"):
        raise ConfigError(f"parley {name} needs one of: {', '.join(verbs)} (see `parley {name} --help`)")
    lines = [f"  {word:<10} {' '.join((command.__doc__ or '').split())}" for word, command in verbs.items()]
    about = "\n".join([f"{entry.about[0].upper()}{entry.about[1:]}.", "", *lines])
    raw = argparse.RawDescriptionHelpFormatter
    return Parser(prog=f"parley {name}", usage=f"parley {name} VERB [flags]", description=about, formatter_class=raw)


def _refuse_unknown_command(typed: str) -> None:
    """Raise an error that suggests the most similar command."""
    if typed.startswith("-"):
        raise ConfigError(f"name a command before {typed} (`parley --help` lists them)")
    if typed.lower() in NEAR_WORDS:
        raise ConfigError(f"there is no command '{typed}'; did you mean {NEAR_WORDS[typed.lower()]}?")
    from parley.runs.studies import SHIPPED  # imported late: it loads AutoGen

    similar = difflib.get_close_matches(typed, COMMANDS, n=1)
    meant = f"parley run {typed}" if typed in SHIPPED else similar[0] if similar else ""
    hint = f"did you mean {meant}?" if meant else f"known: {', '.join(COMMANDS)}"
    raise ConfigError(f"there is no command '{typed}' ({hint})")


def _list_commands(_: argparse.Namespace, status: int) -> int:
    """All commands with their sentences, on one screen of 80 columns and 30 lines."""
    print("usage: parley COMMAND [flags]    parley help COMMAND    parley --version")
    print("Studies in which language models with personas judge, debate and revise.")
    for group, entries in GROUPS.items():
        print(f"\n{group}")
        for name, entry in entries.items():
            print(f"  {name:<10} {entry.about}")
    return status


def _print_version(_: argparse.Namespace) -> int:
    print(f"parley {__version__}")
    return 0


def _print_error(message: str, status: int = 2) -> int:
    line = visible(" ".join(message.split()))
    print(f"parley: {line if len(line) <= MAX_MESSAGE_CHARS else line[:MAX_MESSAGE_CHARS] + ' …'}", file=sys.stderr)
    return status
