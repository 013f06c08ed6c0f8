"""The leaderboard: judges' cards side by side, in one page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from urllib.parse import quote

from parley.analysis.card.leaderboard import Board, Entry, board_page, make_board
from parley.analysis.card.record import Card, read_card
from parley.base.errors import ConfigError, ParleyError
from parley.base.text import visible
from parley.reports.cards import RUN_SUFFIXES, make_card

PAGE, FOLDER = "leaderboard.html", "cards"


def leaderboard(
    *places: str | Path,
    out: str | Path | None = None,
    shipped: bool = True,
    warn: Callable[[str], None] = lambda line: None,
) -> Board:
    """Write the leaderboard of judges' cards, and return it.

    Args:
        places: Cards (JSON) and runs of cards, or folders that have them (default: the folder cards).
        out: The page to write (default: leaderboard.html in the first folder).
        shipped: Whether the cards that ship with Parley are shown along with those of the same units.
        warn: Takes a line for each file that has no card.
    """
    own = [Path(place) for place in places] or [Path(FOLDER)]
    for place in own:
        if not place.exists() and not (shipped and not places):
            raise ConfigError(f"there is no card or folder {place}")
    page = Path(out) if out is not None else (own[0].parent if own[0].is_file() else own[0]) / PAGE
    entries = read_entries(own, page, warn)
    if shipped and (entries or not places):
        entries += [Entry(card=card) for card in comparable(shipped_cards(), [entry.card for entry in entries])]
    if not entries:
        raise ConfigError(f"{own[0]} has no judge's card: parley card MODEL --folder {own[0]} makes one")
    board = make_board(entries)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(board_page(board), "utf-8")
    except OSError as error:
        raise ParleyError(f"{page} cannot be written: {error.strerror}") from None
    return board


def shipped_cards() -> list[Card]:
    """The cards of open models that ship with Parley (docs/gallery.md says how they were made)."""
    with as_file(files("parley.analysis.card").joinpath("shipped")) as folder:
        return [read_card(path) for path in sorted(folder.glob("*.json"))]


def comparable(cards: Sequence[Card], own: Sequence[Card]) -> list[Card]:
    """The cards that can be ranked with most of the user's own, and that are not among them; all if there are none."""
    kinds = Counter(str(card.units) for card in own if not card.model.simulated)
    most = kinds.most_common(1)[0][0] if kinds else None
    known = {card.run.sha256 for card in own}
    return [card for card in cards if card.run.sha256 not in known and (not own or str(card.units) == most)]


def read_entries(places: Sequence[Path], page: Path, warn: Callable[[str], None] = lambda line: None) -> list[Entry]:
    """All cards of files and folders, each with links to its files. A run whose card is there too is one entry with it.

    A card is linked to a run by the hash of the verdicts, which is computed from the file: its name proves nothing.

    Args:
        places: The files and folders.
        page: The page that links are relative to.
        warn: Takes a line for each file that has no card.
    """
    runs = {path: card for path in _files(places, RUN_SUFFIXES) if (card := _card(path, make_card, warn))}
    by_hash = {card.run.sha256: path for path, card in runs.items()}
    entries, linked = [], set()
    for path in _files(places, (".json",)):
        card = _card(path, read_card, warn)
        if card:
            run = by_hash.get(card.run.sha256)
            linked.add(run)
            shown = path.with_suffix(".html") if path.with_suffix(".html").is_file() else path
            entries.append(Entry(card=card, card_link=_link(shown, page), run_link=_link(run, page) if run else ""))
    # Two files with the same verdicts are one run: the last stands for both.
    entries += [Entry(card=runs[path], run_link=_link(path, page)) for path in by_hash.values() if path not in linked]
    return sorted(entries, key=lambda entry: entry.card.model.name)


def _files(places: Sequence[Path], suffixes: tuple[str, ...]) -> list[Path]:
    found = {path for place in places for path in ([place] if place.is_file() else place.rglob("*"))}
    return sorted(path for path in found if path.name.endswith(suffixes) and path.is_file())


def _card(path: Path, read: Callable[[Path], Card], warn: Callable[[str], None]) -> Card | None:
    try:
        return read(path)
    except ParleyError as error:
        warn(visible(f"left out: {error}"))
        return None


def _link(path: Path, page: Path) -> str:
    """The address of a file from the page; "./" keeps a name such as "javascript:x" a name."""
    return "./" + quote(Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix())
