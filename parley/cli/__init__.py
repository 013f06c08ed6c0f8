"""The command line: `parley run`, `report`, `show`, `view`, `scenarios`, `models`. Thin: Python can do all of it.

Exit status: 0 done, 1 not everything was done, 2 something to mend in what was typed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    from parley.house import stranger

    if line := stranger():
        return _complain(line)
    from agents import ConfigError, ParleyError
    from scenarios import ScenarioError

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except (ConfigError, ScenarioError) as error:
        return _complain(str(error))
    except ParleyError as error:
        return _complain(str(error), status=1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _complain("interrupted", status=130)


def _dispatch(arguments: list[str]) -> int:
    from parley import __version__
    from parley.cli import models, report, run, scenarios, show, view

    parser = argparse.ArgumentParser(
        prog="parley",
        description="Language models around a table, with personas: run studies, read what was said.",
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (run, report, show, view, scenarios, models):
        command.add_to(commands)
    parsed, rest = parser.parse_known_args(arguments)
    if rest and parsed.command != "run":
        parser.error(f"unrecognised: {' '.join(rest)}")
    status: int = parsed.handler(parsed, rest)
    return status


def _complain(line: str, status: int = 2) -> int:
    from parley.cli.text import visible

    print(f"parley: {visible(' '.join(line.split()))}", file=sys.stderr)
    return status
