"""The leaderboard of a folder: all cards and run files in it, side by side, in one page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from urllib.parse import quote

from parley.analysis.card.changes import units_of
from parley.analysis.card.leaderboard import Board, Entry, board_page, make_board
from parley.analysis.card.record import Card, read_card
from parley.base.errors import ConfigError, ParleyError
from parley.base.text import visible
from parley.reports.cards import RUN_SUFFIXES, make_card

PAGE, FOLDER = "leaderboard.html", "cards"


def leaderboard(
    folder: str | Path | None = None,
    out: str | Path | None = None,
    *,
    shipped: bool = True,
    warn: Callable[[str], None] = lambda line: None,
) -> Board:
    """Write the leaderboard of a folder, and return it.

    Args:
        folder: A folder with cards (JSON), runs of cards, or both; folders inside it are read too (default: cards).
        out: The page to write (default: leaderboard.html in the folder).
        shipped: Whether the cards that ship with Parley are shown along with those of the same units.
        warn: Takes a line for each file that has no card.
    """
    place = Path(folder or FOLDER)
    if not place.is_dir() and not (shipped and folder is None):
        raise ConfigError(f"{place} is not a folder")
    page = Path(out) if out is not None else place / PAGE
    entries = read_entries(place, page, warn)
    if shipped and (entries or folder is None):
        entries += [Entry(card=card) for card in comparable(shipped_cards(), [entry.card for entry in entries])]
    if not entries:
        raise ConfigError(f"{place} has no judge's card: parley card MODEL --folder {place} makes one")
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
    kinds = Counter(str(units_of(card)) for card in own if not card.model.simulated)
    most = kinds.most_common(1)[0][0] if kinds else None
    known = {card.run.sha256 for card in own}
    return [card for card in cards if card.run.sha256 not in known and (not own or str(units_of(card)) == most)]


def read_entries(folder: Path, page: Path, warn: Callable[[str], None] = lambda line: None) -> list[Entry]:
    """All cards of a folder, each with links to its files. A run whose card is there too is one entry with it.

    A card is linked to a run by the hash of the verdicts, which is computed from the file: its name proves nothing.

    Args:
        folder: The folder.
        page: The page that links are relative to.
        warn: Takes a line for each file that has no card.
    """
    runs = {path: card for path in _files(folder, RUN_SUFFIXES) if (card := _card(path, make_card, warn))}
    by_hash = {card.run.sha256: path for path, card in runs.items()}
    entries, linked = [], set()
    for path in _files(folder, (".json",)):
        card = _card(path, read_card, warn)
        if card:
            run = by_hash.get(card.run.sha256)
            linked.add(run)
            shown = path.with_suffix(".html") if path.with_suffix(".html").is_file() else path
            entries.append(Entry(card=card, card_link=_link(shown, page), run_link=_link(run, page) if run else ""))
    # Two files with the same verdicts are one run: the last stands for both.
    entries += [Entry(card=runs[path], run_link=_link(path, page)) for path in by_hash.values() if path not in linked]
    return sorted(entries, key=lambda entry: entry.card.model.name)


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name.endswith(suffixes) and path.is_file())


def _card(path: Path, read: Callable[[Path], Card], warn: Callable[[str], None]) -> Card | None:
    try:
        return read(path)
    except ParleyError as error:
        warn(visible(f"left out: {error}"))
        return None


def _link(path: Path, page: Path) -> str:
    """The address of a file from the page; "./" keeps a name such as "javascript:x" a name."""
    return "./" + quote(Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix())
