"""Search results for a prompt: numbered, and fenced as untrusted text."""

from __future__ import annotations

from collections.abc import Sequence

from parley.agents.fencing import WARNING, Quoted, between_fences, break_tokens, clean, instruction_kinds, one_line
from parley.agents.search.engine import SearchResult

TITLE_CHARS, LINK_CHARS, TEXT_CHARS = 200, 300, 1000


def quote(query: str, results: Sequence[SearchResult]) -> Quoted:
    """The results of one query, numbered, each with its title and link. Links are shown; nothing follows them."""
    blocks: list[str] = []
    flags: list[str] = []
    for number, result in enumerate(results, 1):
        title, link = one_line(result.title, TITLE_CHARS), one_line(result.link, LINK_CHARS)
        text = clean(result.text, TEXT_CHARS)
        kinds = instruction_kinds(f"{title}\n{link}\n{text}")
        flags += [f"result {number} {kind}" for kind in kinds]
        lines = [f"{number}. {title}", f"({link})", *text.split("\n")]
        quoted = [f"> {break_tokens(line)}" for line in lines]
        blocks.append("\n".join([WARNING, *quoted] if kinds else quoted))
    body = "\n\n".join(blocks) or "(nothing was found)"
    label = f"SEARCH RESULTS for: {one_line(query, TITLE_CHARS)}"
    return Quoted(between_fences(body, label), tuple(flags))
