"""The index of the site's search: the text under every heading of every page, as one script.

It is a script and not JSON because a browser lets a page from disk load a script, but not JSON.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

SECTION = re.compile(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>(.*?)(?=<h[1-6] id=|\Z)', re.S)


def plain_text(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def sections(name: str, title: str, body: str) -> Iterator[dict[str, str]]:
    for anchor, heading, text in SECTION.findall(body):
        yield {"to": f"{name}.html#{anchor}", "page": title, "heading": plain_text(heading), "text": plain_text(text)}


def search_script(pages: dict[str, tuple[str, str]], code: str) -> str:
    """The search script with its index.

    Args:
        pages: Title and HTML of each page, by name.
        code: The script that searches `SECTIONS`.
    """
    index = [section for name, (title, body) in pages.items() for section in sections(name, title, body)]
    return f"const SECTIONS = {json.dumps(index, ensure_ascii=False)};\n{code}"
