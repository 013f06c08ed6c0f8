"""Texts of known order, as MALIBU's yardstick and the referee's check show them.

Every cluster, a base or a topic, has one text that is known to be better and others that are worse, each by a stated
flaw. They are read one by one, with a question and with its reverse, and side by side in both orders. Needless length
is no flaw. `parley.analysis.known_order` has the numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

Text = tuple[str, int]
"""Which text of a cluster: its kind of flaw, and the dose of it."""
GOOD: Text = ("", 0)
LENGTH = "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One way in which some of the texts are read.

    Args:
        name: What it is for: "graded", "reverse-pairs".
        texts: Those that are read so.
        paired: Whether each stands beside the good text, in both orders.
        wording: The question's wording, where it does not follow from the texts.
    """

    name: str
    texts: Collection[Text]
    paired: bool = False
    wording: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOrder:
    """The texts of one cluster; the good one is better than every flawed one."""

    texts: Mapping[Text, str]

    def readings(self, *parts: Part) -> Iterator[tuple[Part, Text, str]]:
        """How the texts are read, one after the other: alone, or as A or B of a pair."""
        for text in self.texts:
            for part in parts:
                if text in part.texts:
                    yield from ((part, text, side) for side in ("AB" if part.paired else ("",)))

    def shown(self, text: Text, side: str = "") -> list[str]:
        """The text, or the text and the good one in their order.

        Args:
            text: Which text.
            side: Its place in a pair, A or B; "" if it stands alone.
        """
        pair = [self.texts[text], self.texts[GOOD]] if side else [self.texts[text]]
        return pair[::-1] if side == "B" else pair
