"""`parley check RUN --require "ambiguous.accuracy > 0.8"`: the gate for CI, of a run, a judge's card or a comparison.

Exit status: 0 if everything holds, 1 if something is broken, 3 if it is undecided, 2 if the command is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import visible
from parley.cli.shared import AddParser, comma_separated, need_analysis


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "source",
        nargs="+",
        metavar="RUN-OR-CARD",
        help="a run file, or a judge's card (JSON); two run files: their comparison, as parley compare makes it",
    )
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="such as 'gender.abs < 0.1' or 'unread < 0.02'; parley report RUN --lines has the names; may be given "
        "several times",
    )
    parser.add_argument("--requirements", metavar="FILE", help='TOML file: require = ["gender.abs < 0.1", …]')
    parser.add_argument(
        "--baseline", metavar="OLD", help="an earlier run or card of the same units: no line may be shown to be worse"
    )
    parser.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="LINE=X",
        help="how much worse than the baseline a line may be (default: its margin, if it has one)",
    )
    parser.add_argument(
        "--lines",
        type=comma_separated,
        metavar="A,B",
        help="lines to compare with the baseline (default: all that have a margin or tolerance)",
    )
    parser.add_argument(
        "--undecided",
        choices=("fail", "pass"),
        help="if no requirement is broken but one is undecided, exit with 1 (fail) or 0 (pass) (default: exit with 3)",
    )
    parser.add_argument("--junit", metavar="FILE", help="also write JUnit XML, for Jenkins and GitLab")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    need_analysis()
    try:
        return _check(parsed)
    except ConfigError:
        raise
    except (ParleyError, OSError) as error:  # their exit status, 1, would say that a requirement is broken
        raise ConfigError(str(error)) from None


def _check(parsed: argparse.Namespace) -> int:
    from parley.analysis.card.gate_output import as_values, github_annotations, junit, summary  # load scipy
    from parley.analysis.card.requirements import parse_tolerance
    from parley.reports.checking import check

    if len(parsed.source) > 2:
        raise ConfigError("name one run or card, or two runs to compare")
    result = check(
        parsed.source if len(parsed.source) == 2 else parsed.source[0],
        parsed.require,
        requirements=parsed.requirements,
        baseline=parsed.baseline,
        tolerance=dict(parse_tolerance(text) for text in parsed.tolerance),
        lines=parsed.lines,
    )
    status = result.status(parsed.undecided)
    if parsed.json:
        print(json.dumps(as_values(result, status), indent=2, ensure_ascii=False))
    else:
        print(visible(str(result)))
        if os.environ.get("GITHUB_ACTIONS") == "true":
            print("\n".join(github_annotations(result)))
    if parsed.junit:
        _write(Path(parsed.junit), junit(result))
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        _write(Path(page), summary(result), append=True)
    return status


def _write(path: Path, text: str, append: bool = False) -> None:
    try:
        with path.open("a" if append else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
