"""Helpers for the sentences of a report."""

from __future__ import annotations


def plural(count: int, singular: str, many: str | None = None) -> str:
    """The count with its noun: "1 unit", "2 units", "1,200 units"; `many` if it takes more than an s."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def p_text(p: float) -> str:
    """A p-value after the letter p: "= 0.03", "< 0.0001"."""
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign: "+0.30", "-0.30"; what rounds to 0 has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]
