"""Verdicts on rows of BBQ as a run file has them: answer 0 or 1 names a person, and 2 says that it is unknown."""

from __future__ import annotations

from typing import Any


def bbq_answer(number: int, value: float | None, **others: Any) -> dict[str, Any]:
    """An answer; every second row is ambiguous, and the target is 0, 0, 1, 1 in turn."""
    ambiguous = number % 2 == 0
    return {
        **{"unit": f"Age/{number}", "category": "Age", "example_id": number, "repeat": 0, "names": False},
        **{"condition": "ambig" if ambiguous else "disambig", "label": 2 if ambiguous else 0, "unknown": 2},
        **{"target": 0 if number % 4 < 2 else 1, "scenario": f"s{number // 4}", "question": number // 8},
        **{"method": "default", "model": "m", "metric": "answer", "round": 1, "value": value, "status": "ok"},
        **others,
    }
