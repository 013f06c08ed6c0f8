"""Search results in a prompt: numbered and fenced as text from outside."""

from __future__ import annotations

from collections.abc import Sequence

from parley.agents.fencing import WARNING, Quoted, between_fences, break_tokens, clean, one_line, suspicions
from parley.agents.search.engine import SearchResult

TITLE_CHARS, LINK_CHARS, TEXT_CHARS = 200, 300, 1000


def quote(query: str, found: Sequence[SearchResult]) -> Quoted:
    """The results of one query, numbered, each with its title and link. Links are shown; nothing follows them."""
    blocks: list[str] = []
    flags: list[str] = []
    for number, one in enumerate(found, 1):
        title, link = one_line(one.title, TITLE_CHARS), one_line(one.link, LINK_CHARS)
        text = clean(one.text, TEXT_CHARS)
        suspected = suspicions(f"{title}\n{link}\n{text}")
        flags += [f"result {number} {what}" for what in suspected]
        lines = [f"{number}. {title}", f"({link})", *text.split("\n")]
        quoted = [f"> {break_tokens(line)}" for line in lines]
        blocks.append("\n".join([WARNING, *quoted] if suspected else quoted))
    body = "\n\n".join(blocks) or "(nothing was found)"
    return Quoted(
        between_fences(body, f"SEARCH RESULTS for: {one_line(break_tokens(query), TITLE_CHARS)}"), tuple(flags)
    )
