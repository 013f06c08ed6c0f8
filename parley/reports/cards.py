"""The judge's card of a file: a card's JSON, or a run file that a card can be read from."""

from __future__ import annotations

from pathlib import Path

from parley.analysis.card.record import Card, read_card


def card_of(source: str | Path | Card) -> Card:
    """The card of a JSON file or a run file.

    Args:
        source: The file, or a card, which is returned as it is.
    """
    if isinstance(source, Card):
        return source
    return read_card(source)
