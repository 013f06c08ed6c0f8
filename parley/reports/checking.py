"""`parley.check`: does a judge meet its requirements? For your own tests, and for `parley check`.

result = parley.check("cards/judge.json", ["gender.abs < 0.1", "position < 0.6"], baseline="cards/before.json")
assert result.outcome != "broken", result
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from parley.analysis.card.gate import CheckResult, check_card
from parley.analysis.card.record import Card
from parley.analysis.card.requirements import parse_requirement, read_requirements
from parley.reports.cards import card_of


def check(
    card: str | Path | Card,
    require: str | Sequence[str] = (),
    *,
    requirements: str | Path | None = None,
    baseline: str | Path | Card | None = None,
    tolerance: Mapping[str, float] | None = None,
    lines: Sequence[str] | None = None,
) -> CheckResult:
    """Check a judge's card, or the card of a run, against requirements and an earlier card.

    Args:
        card: The card's JSON file, a run file, or the card itself.
        require: Requirements such as "gender.abs < 0.1"; `.abs` is the distance from the line's null value.
        requirements: A TOML file with more of them, and with `tolerance` and `lines`.
        baseline: An earlier card of the same units: no line may be shown to have become worse.
        tolerance: By line, how much worse it may become (default: the line's margin in the battery).
        lines: The lines that are compared with the baseline (default: all).

    Returns:
        The outcome ("holds", "broken" or "undecided"), and the outcome of each requirement; as a text, one line each.
    """
    given = [require] if isinstance(require, str) else list(require)
    allowed = dict(tolerance or {})
    if requirements is not None:
        file = read_requirements(Path(requirements))
        given = [*file.require, *given]
        allowed = {**file.tolerance, **allowed}
        lines = file.lines if lines is None else lines
    parsed = [parse_requirement(text) for text in given]
    return check_card(
        card_of(card),
        list(dict.fromkeys(parsed)),
        baseline=None if baseline is None else card_of(baseline),
        tolerance=allowed,
        lines=lines,
    )
