"""The command line. Thin: all that it does can be done in Python.

Exit status: 0 done, 1 not everything was done, 2 something to mend in what was typed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from parley.cli.commands import COMMANDS, add_commands
from parley.cli.text import visible

LONGEST_LINE = 2000
"""Characters: what was typed or found in a file may be named in a complaint, but not fill the screen."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # what the terminal or pipe cannot encode is shown as an escape
        sys.stdout.reconfigure(errors="backslashreplace")
    if line := other_parley():
        _complain(line)
    try:
        return _dispatch(arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _complain("interrupted", status=130)
    except Exception as error:
        return _explain(error)


def other_parley() -> str | None:
    """A line about the unrelated distribution `parley`, which installs a package of the same name over ours."""
    try:
        other = distribution("parley")
    except PackageNotFoundError:
        return None
    if Path(str(other.locate_file("pyproject.toml"))).is_file():
        return None  # metadata that an earlier build left in the checkout: nothing is installed from it
    return (
        f"warning: 'parley' {other.version} is installed too, and overwrites files of 'parley-autogen': "
        "pip uninstall -y parley parley-autogen, then pip install parley-autogen"
    )


def _explain(error: Exception) -> int:
    """One line for what people can mend; anything else is ours to mend, and raised."""
    from parley.agents import ConfigError, ParleyError  # only now: `parley score` does without the agents
    from parley.scenarios import ScenarioError

    if isinstance(error, ConfigError | ScenarioError):
        return _complain(str(error))
    if isinstance(error, ParleyError):
        return _complain(str(error), status=1)
    if isinstance(error, OSError) and error.strerror:  # a disk, a name, a right: of this machine, not of the program
        return _complain(f"{error.filename or 'the system'}: {error.strerror}", status=1)
    raise error


def _dispatch(arguments: list[str]) -> int:
    parsed, rest = parse(arguments)
    status: int = parsed.handler(parsed, rest)
    return status


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """What was typed, and what is left of it: the flags of a study, which `parley run` reads itself."""
    from parley import __version__

    parser = argparse.ArgumentParser(
        prog="parley",
        description="Language models around a table, with personas: run studies, read what was said.",
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_commands(commands, COMMANDS, arguments)
    parsed, rest = parser.parse_known_args(arguments)
    if rest and parsed.command != "run":
        parser.error(f"unrecognised: {visible(' '.join(' '.join(rest).split()))}")
    return parsed, rest


def _complain(line: str, status: int = 2) -> int:
    said = visible(" ".join(line.split()))
    print(f"parley: {said if len(said) <= LONGEST_LINE else said[:LONGEST_LINE] + ' …'}", file=sys.stderr)
    return status
