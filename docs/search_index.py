"""What the site's search looks through: the text under every heading of every page, as one script.

A script and not JSON, since a page opened from disk may load the one and not the other.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

SECTION = re.compile(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>(.*?)(?=<h[1-6] id=|\Z)', re.S)


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def sections(name: str, title: str, body: str) -> Iterator[dict[str, str]]:
    for address, heading, text in SECTION.findall(body):
        yield {"to": f"{name}.html#{address}", "page": title, "heading": words(heading), "text": words(text)}


def search_script(pages: dict[str, tuple[str, str]], code: str) -> str:
    """The code of the search with its index; `pages` are titles and bodies by name."""
    found = [one for name, (title, body) in pages.items() for one in sections(name, title, body)]
    return f"const SECTIONS = {json.dumps(found, ensure_ascii=False)};\n{code}"
