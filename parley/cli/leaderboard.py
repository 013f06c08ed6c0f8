"""`parley leaderboard FOLDER`: judges side by side, in one page that needs no server."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from parley.base.text import plural, visible
from parley.cli.shared import AddParser, need_analysis


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="folder of cards and their runs (default: cards)")
    parser.add_argument("--out", metavar="FILE", help="the page to write (default: FOLDER/leaderboard.html)")
    parser.add_argument(
        "--no-shipped", action="store_true", help="leave out the cards of open models that ship with Parley"
    )
    parser.add_argument("--json", action="store_true", help="also print the leaderboard as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.analysis.card.leaderboard import board_values  # load scipy and pandas
    from parley.reports.leaderboards import FOLDER, PAGE, leaderboard

    def warn(line: str) -> None:
        print(line, file=sys.stderr)

    board = leaderboard(parsed.folder, parsed.out, shipped=not parsed.no_shipped, warn=warn)
    if parsed.json:
        print(json.dumps(board_values(board), indent=1, ensure_ascii=False))
        return 0
    print(board.headline)
    if apart := sum(map(bool, board.apart)):
        print(f"not ranked: {plural(apart, 'card')} of other units or simulated models")
    print(visible(f"page: {parsed.out or Path(parsed.folder or FOLDER) / PAGE}"))
    return 0
