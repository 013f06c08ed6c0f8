"""Who hears whom in a MALIBU panel: ours, or the paper's.

By default every judge gives a first ballot, with reasons, before it has heard another; then the panel discusses, in an
order drawn for each unit and round. In the paper's design the judges speak in a fixed order from the beginning, each
after hearing those before it, and must prefer one of two candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from parley.agents import Order, round_robin, seed_from, shuffled
from parley.scenarios import Design

SpeakingOrder = Literal["fixed", "shuffled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelProtocol:
    """How a panel talks.

    Args:
        blind: Whether round 1 is blind.
        speaking_order: The panel's own order (`fixed`), or one that is drawn for each unit and round (`shuffled`).
        ties: Whether a judge may call a pair a tie.
        reasons_first: Whether round 1 asks for reasons in phase 1 too; in the paper's prompt it asks for scores only.
    """

    blind: bool
    speaking_order: SpeakingOrder
    ties: bool
    reasons_first: bool

    @classmethod
    def choose(
        cls, design: Design, *, blind: bool | None, speaking_order: SpeakingOrder | None, ties: bool | None
    ) -> PanelProtocol:
        """The protocol of a design, with what the user has set.

        Args:
            design: The design.
            blind: None for the design's own.
            speaking_order: None for the design's own.
            ties: None for the design's own.
        """
        paper = design == "paper"
        return cls(
            blind=not paper if blind is None else blind,
            speaking_order=speaking_order or ("fixed" if paper else "shuffled"),
            ties=not paper if ties is None else ties,
            reasons_first=not paper,
        )

    def settings(self) -> dict[str, Any]:
        """As the run's config stores it."""
        return {"blind": self.blind, "speaking_order": self.speaking_order, "ties": self.ties}

    def order(self, seed: int, item: str) -> Order:
        """Who speaks when.

        Args:
            seed: The run's seed.
            item: The unit's id without the model, so that all models hear the same order.
        """
        if self.speaking_order == "fixed":
            return round_robin
        return shuffled(seed_from("speaking order", seed, item))
