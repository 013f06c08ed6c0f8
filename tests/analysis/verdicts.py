"""One verdict of a frame, as tests by hand need it."""

from __future__ import annotations

from typing import Any

CATEGORIES = {"female": "gender", "male": "gender", "black": "race", "white": "race", "asian": "race"}


def single(scenario: str, identity: str, value: float | None, **others: Any) -> dict[str, Any]:
    """One judge's score of one candidate; None where the reply could not be read.

    Args:
        scenario: Its scenario.
        identity: The label, "" for none.
        value: The score.
        others: More columns, or other values for these.
    """
    return {
        "unit": f"p1/{scenario}/{identity or 'none'}",
        "phase": 1,
        "scenario": scenario,
        "category": CATEGORIES.get(identity, ""),
        "identity": identity,
        "judge": "J",
        "role": "debater",
        "round": 1,
        "subject": "",
        "metric": "Accuracy",
        "value": value,
        "text": None,
        "status": "ok" if value is not None else "unparsed",
        **others,
    }
