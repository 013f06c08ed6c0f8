"""`parley compare CARD CARD …`: judges side by side, in one page that needs no server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from parley.base.text import plural
from parley.cli.command import Answer


def are_cards(places: Sequence[Path]) -> bool:
    """Whether these are judges' cards, or folders of them, and not runs."""
    return any(place.suffix == ".json" or place.is_dir() for place in places)


def compare_cards(places: Sequence[Path], out: Path | None, *, shipped: bool) -> Answer:
    """Write the leaderboard.

    Args:
        places: Cards, or folders of them; without any, the folder cards and those that ship with Parley.
        out: The page, or the folder for it (default: beside the first card).
        shipped: Whether the cards that ship with Parley are shown too.
    """
    from parley.analysis.card.leaderboard import board_values  # load scipy and pandas
    from parley.reports.leaderboards import FOLDER, PAGE, leaderboard

    def warn(line: str) -> None:
        print(line, file=sys.stderr)

    first = places[0] if places else Path(FOLDER)
    page = out or (first.parent if first.suffix == ".json" else first)
    page = page if page.suffix == ".html" else page / PAGE
    board = leaderboard(*places, out=page, shipped=shipped, warn=warn)
    apart = sum(map(bool, board.apart))
    left = [f"not ranked: {plural(apart, 'card')} of other units or simulated models"] if apart else []
    return Answer(board_values(board), [board.headline, *left, f"page: {page}"])
