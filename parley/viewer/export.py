"""A subset of a run as one HTML file that works from disk, offline: the viewer's own pages with their data inside.

Scripts and styles are allowed by their hashes and nothing else is: what a model wrote cannot become part of the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

from parley.agents import ConfigError
from parley.agents.redaction import HiddenAddresses
from parley.viewer import reading
from parley.viewer.assets import static
from parley.viewer.context import ViewerContext
from parley.viewer.library import Library
from parley.viewer.table import Query

AT_MOST = 2000
"""Units in one file: a page larger than that is no longer pleasant to open."""
MODULES = (
    "dom.js",
    "api.js",
    "charts.js",
    "diff.js",
    "widgets.js",
    "runs.js",
    "run.js",
    "message.js",
    "unit.js",
    "compare.js",
    "label.js",
    "app.js",
)


def export_page(library: Library, desk: ViewerContext, name: str, query: Query, words: str, asked: bool) -> str:
    table = desk.table(wait=True)
    assert table is not None
    if not desk.wait(3600):
        raise ConfigError("the run is still being looked at; try again in a moment")
    places = table.positions(query, desk.search(words, asked=asked))
    if not places:
        raise ConfigError("no unit matches: there is nothing to export")
    if len(places) > AT_MOST:
        raise ConfigError(f"{len(places):,} units match, and one file holds {AT_MOST:,} at most: filter further")
    with desk.file() as file:
        units = [reading.unit_whole(file, table.ids[position]) for position in places]
        prompts = {
            ref
            for one in units
            for message in one["messages"]
            for call in message["calls"]
            for _, _, ref in call["prompt"]
        }
        texts = reading.texts(file, prompts)
        addresses = HiddenAddresses(file.info())
    for one in units:
        one["notes"] = desk.notes.of(one["id"])
        del one["facets"]
    judges = [judge for judge in table.lenses if judge]
    data = {
        "name": name,
        "summary": library.summary(name) | {"state": "exported"},
        "headline": desk.headline(),
        "judges": judges,
        "rows": {judge: [table.row(position, judge) for position in places] for judge in ["", *judges]},
        "units": units,
        "texts": texts,
        "chosen": {key: list(values) for key, values in query.wanted.items()} | ({"q": [words]} if words else {}),
    }
    return single_file(addresses.hide(data))


def single_file(data: dict[str, Any]) -> str:
    script, style = bundle([static(name) for name in MODULES]), static("viewer.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # A "<" in the data would let a text close the block it stands in.
    inside = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")
    page = static("index.html")
    page = page.replace('<link rel="stylesheet" href="/static/viewer.css">', "<style>" + style + "</style>")
    head, tail = page.split('<script type="module" src="/static/app.js"></script>')
    head = head.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">',
    )
    block = f'<script type="application/json" id="data">{inside}</script>'
    return (
        f"{head}{tail.replace('</body>', '')}".replace("</html>", "")
        + f'{block}<script type="module">{script}</script></body></html>\n'
    )


def bundle(modules: list[str]) -> str:
    """The modules as one script, in order: imports and exports fall away, so names must differ between modules."""
    joined = "\n".join(modules)
    joined = re.sub(r"^import .*? from .*?;\n", "", joined, flags=re.M | re.S)
    return re.sub(r"^export (?=async function|function|const|let|class)", "", joined, flags=re.M)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
