"""Parsing a search agent's replies: lists of queries in any notation, and summaries by their headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

HEADINGS = ("Factual Information", "Information Gaps", "Contradictory Information", "Conclusion")
QUERY_CHARS = 300
LIST_CHARS = 20_000
"""Only so much of a reply is parsed as a list: a few queries are never longer."""

_OPENS = re.compile(r"\[\s*[\"']")
_CLOSES = re.compile(r"[\"']\s*+(?:,\s*+)?\]")
_QUOTED = re.compile(r"(?<=[\[,])\s*([\"'])((?:\\.|[^\n\\]){0,1000}?)\1(?=\s*[,\]])")
_LINE = re.compile(r"^[ \t]*+(?:\d{1,2}[ \t]*+[.):]|[-*•])\s{1,200}+(\S.*)$", re.MULTILINE)
_EMPTY = re.compile(r"\[\s*\]")
_SOURCE = re.compile(r"\[\s*+SOURCE\s*+:\s*+([^\]]{1,1000}+)\]", re.IGNORECASE)
_HEADING = re.compile(rf"^[ \t#*>\-]*+({'|'.join(HEADINGS)})\s*\**\s*:?[\s*]*", re.IGNORECASE | re.MULTILINE)


def read_list(text: str) -> list[str] | None:
    """A Python or JSON list in prose or code fences, or numbered or bulleted lines; None if there is neither.

    A truncated list gives its complete items. Nothing is evaluated.
    """
    text = text.translate(str.maketrans("“”‘’", "\"\"''"))
    if opens := _OPENS.search(text):
        inside = text[opens.start() :][:LIST_CHARS]
        closes = _CLOSES.search(inside)
        items = [groups[1] for groups in _QUOTED.findall(inside[: closes.end()] if closes else f"{inside},")]
        return _tidy(re.sub(r"\\([\"'\\])", r"\1", item) for item in items) or None
    if _EMPTY.search(text):
        return []
    return _tidy(line.strip(" ,*`").strip("\"'") for line in _LINE.findall(text)) or None


def _tidy(items: Iterable[str]) -> list[str]:
    """The items without duplicates, in their order, with single spaces."""
    plain = (" ".join(item.split())[:QUERY_CHARS] for item in items)
    return list({item.casefold(): item for item in reversed([item for item in plain if item])}.values())[::-1]


def named_in(group: str, text: str) -> bool:
    """Whether a text names a group, as a whole word."""
    return re.search(rf"(?<!\w){re.escape(group)}(?!\w)", text, re.IGNORECASE) is not None


def best_first(queries: Sequence[str], groups: Sequence[str], count: int) -> list[str]:
    """The first `count` queries: those that name a group first, otherwise in the model's order."""
    return sorted(queries, key=lambda query: not any(named_in(group, query) for group in groups))[:count]


def read_summary(text: str) -> Mapping[str, str]:
    """The sections of a summary by heading; empty if it has no headings."""
    headings = list(_HEADING.finditer(text))
    ends = [match.start() for match in headings[1:]] + [len(text)] * bool(headings)
    names = {name.casefold(): name for name in HEADINGS}
    return {
        names[match.group(1).casefold()]: text[match.end() : end].strip()
        for match, end in zip(headings, ends, strict=True)
    }


def unknown_sources(text: str, queries: Sequence[str]) -> list[str]:
    """Sources that a summary cites although they were never searched."""
    known = {_bare(query) for query in queries}
    return [cited for cited in _SOURCE.findall(text) if _bare(cited) not in known]


def _bare(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()
