"""The command line: a thin layer, since everything it does can also be done in Python.

Exit status: 0 if all is done, 1 if something failed or is left to do, 2 if the command or one of its files is wrong,
75 if a scheduler or the wall time stopped a run, 130 if interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from parley.base.text import visible
from parley.cli.commands import COMMANDS, add_commands

MAX_MESSAGE_CHARS = 2000
"""An error message may quote a flag or a file, but must not fill the screen."""
ANALYSES = {"report", "compare", "view", "export", "audit", "calibrate", "power"}
"""Commands with many small matrices. BLAS's threads only wait for each other there: on two of them, the audit's fits
take ten times the processor time."""


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
        return _dispatch(arguments)
    except BrokenPipeError:  # as in `parley show RUN | head`: Python's flush at exit must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _print_error("interrupted", status=130)
    except Exception as error:
        return _report_error(error)


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
    from parley.agents import ConfigError, ParleyError  # imported late: it loads AutoGen
    from parley.scenarios import ScenarioError

    if isinstance(error, ConfigError | ScenarioError):
        return _print_error(str(error))
    if isinstance(error, ParleyError):
        return _print_error(str(error), status=1)
    if isinstance(error, OSError) and error.strerror:  # a full disk, a missing file, a permission
        return _print_error(f"{error.filename or 'the system'}: {error.strerror}", status=1)
    raise error


def _dispatch(arguments: list[str]) -> int:
    parsed, rest = parse(arguments)
    status: int = parsed.handler(parsed, rest)
    return status


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The parsed arguments, and the rest: the flags of a study, which `parley run` parses itself."""
    from parley import __version__

    parser = argparse.ArgumentParser(
        prog="parley",
        description="Run studies in which language models with personas judge, debate and revise, and read them.",
        formatter_class=_CommandList,
        epilog="`parley help COMMAND` shows what a command does and its flags.",
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    add_commands(commands, COMMANDS, arguments)
    parsed, rest = parser.parse_known_args(arguments)
    if rest and parsed.command != "run":
        from parley.cli.flags import refuse_unknown

        refuse_unknown(rest, parsed.parser if parsed.command else parser)
    if not parsed.command:
        parser.print_help()
        parsed.handler = lambda *_: 2
    return parsed, rest


class _CommandList(argparse.HelpFormatter):
    """Room for the longest name of a command: argparse forgets that names of commands are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        self._action_max_length = max(self._action_max_length, 4 + max(map(len, COMMANDS)))


def _print_error(message: str, status: int = 2) -> int:
    line = visible(" ".join(message.split()))
    print(f"parley: {line if len(line) <= MAX_MESSAGE_CHARS else line[:MAX_MESSAGE_CHARS] + ' …'}", file=sys.stderr)
    return status
