"""Helpers for texts: messages for users, and escaping of untrusted texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def normal(text: str) -> str:
    """A text without case, punctuation and spacing, for comparing spellings."""
    return " ".join(words(text))


_PROPER = re.compile(r"(?<![\w?&/.=-])(asian|black|christian|hispanic|jewish|muslim|white)(?![\w=/-])")


def as_written(text: str) -> str:
    """The text with labels as people write them: "Muslim", "Asian"; names of models and files as they are."""
    return _PROPER.sub(lambda label: label[0].title(), text)


def plural(count: int, singular: str, many: str | None = None) -> str:
    """The count with its noun: "1 unit", "2 units", "1,200 units"; `many` is an irregular plural."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def p_text(p: float) -> str:
    """A p-value to follow the letter p: "= 0.03", "< 0.0001"."""
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign: "+0.30", "-0.30"; one that rounds to 0 has no sign."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def number_text(value: Any) -> str:
    """A number with three digits, a dash if missing; texts are unchanged."""
    return "–" if value is None or value != value else f"{value:.3g}" if isinstance(value, float) else str(value)


def visible(text: str) -> str:
    """The text with control characters written out.

    Models' texts are untrusted: they could control the terminal or reverse the text.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def visible_in_json(text: str) -> str:
    """JSON with all control characters escaped."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def markdown_cell(text: str) -> str:
    """The text for a cell of a Markdown table: one line, without HTML or links."""
    escaped = text.replace("\\", r"\\").replace("|", r"\|").replace("](", r"]\(")
    return " ".join(without_tags(escaped).split())


def without_tags(text: str) -> str:
    """The text with HTML tags escaped: names come from others' files, and Markdown runs HTML."""
    return re.sub(r"<(?=[a-zA-Z/!?])", r"\<", text)


def encodable(text: str) -> str:
    """The text with lone surrogates, which JSON may contain, escaped for UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def without_surrogates(value: Any) -> Any:
    """Values from JSON with lone surrogates replaced."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(inner) for key, inner in value.items()}
    return [without_surrogates(inner) for inner in value] if isinstance(value, list) else value


def in_words(text: str, fields: Mapping[str, object] | None = None) -> str:
    """A reply on one line; for a typed reply its longest text, without keys and scores.

    Args:
        text: The reply.
        fields: The fields of a typed reply; None for any other.
    """
    if fields:
        text = max((value for value in fields.values() if isinstance(value, str)), key=len, default="")
    return " ".join(text.split())
