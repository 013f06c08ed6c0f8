"""The viewer's pages: their static files, and part of a run as one HTML file that works offline, with its data inside.

The page's security policy allows its script and its style by their hashes and nothing else, so that text written by a
model cannot run as part of the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic_core import to_jsonable_python

from parley.agents import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.reports.labels import first_lines
from parley.runs import RunFile, reading
from parley.runs.studies import find_study, known_studies
from parley.viewer.open_run import OpenRun
from parley.viewer.run_folder import RunFolder

TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
MAX_UNITS = 2000
"""Maximum units of a page; larger ones are slow to open."""


@cache
def static_names() -> frozenset[str]:
    """The names of the static files, as shipped in the package."""
    return frozenset(file.name for file in files("parley.viewer").joinpath("static").iterdir())


def scripts() -> list[str]:
    """The scripts in the order of joining: the shared one first, the one that starts last."""
    names = sorted(name for name in static_names() if name.endswith(".js"))
    return sorted(names, key=lambda name: (name == "app.js") - (name == "dom.js"))


@cache
def static(name: str) -> str:
    return files("parley.viewer").joinpath("static", name).read_text("utf-8")


def content_type(name: str) -> str:
    return TYPES[name.rpartition(".")[2]]


def config_page(file: RunFile) -> dict[str, Any]:
    """The data of the config page: everything stored about a run, its prompts, and the meaning and defaults of its
    settings.

    The meanings are from `parley run STUDY --help`; no code of a user's study is loaded.
    """
    study = str(file.info().get("study"))
    meanings: dict[str, str | None] = {}
    defaults: dict[str, Any] = {}
    with suppress(ConfigError):  # a study may need a package that is not installed here
        fields = find_study(study).Config.model_fields if study in known_studies() else {}
        meanings = {name: field.description for name, field in fields.items()}
        defaults = {
            name: to_jsonable_python(field.get_default()) for name, field in fields.items() if not field.is_required()
        }
    return {**reading.read_config(file), "meanings": meanings, "defaults": defaults}


def export_page(folder: RunFolder, run: OpenRun, name: str, chosen: Sequence[str]) -> str:
    """The page with some units.

    Args:
        folder: the folder of the run, for its summary.
        run: the run.
        name: the run's name in the folder.
        chosen: the ids of the units, in the order in which they are listed.
    """
    if not run.wait_until_indexed(3600):
        raise ConfigError("the run is still being indexed: try again in a moment")
    if not chosen:
        raise ConfigError("no unit matches: there is nothing to export")
    if len(chosen) > MAX_UNITS:
        raise ConfigError(f"{len(chosen):,} units match, but one file can contain {MAX_UNITS:,}: add a filter")
    with run.file() as file:
        units = [reading.read_unit(file, unit) for unit in chosen]
        text_ids = {
            text_id
            for unit in units
            for message in unit["messages"]
            for call in message["calls"]
            for _, _, text_id in call["prompt"]
        }
        texts = reading.read_texts(file, text_ids)
        config, lines = config_page(file), first_lines(file, chosen)
        addresses = HiddenAddresses(file.info())
    for unit in units:
        unit["notes"] = run.notes.notes(unit["id"])
    data = {
        "name": name,
        "summary": folder.summary(name) | {"state": "exported"},
        "headline": run.report(),
        "config": config,
        "table": run.exported_units(chosen),
        "lines": lines,
        "units": units,
        "texts": texts,
    }
    return single_file(addresses.hide(data))


def single_file(data: dict[str, Any]) -> str:
    script = bundle([static(name) for name in scripts()])
    style = static("viewer.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # A "<" in the data could end the script element that contains it.
    embedded = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")
    page = static("index.html").replace('<link rel="stylesheet" href="/static/viewer.css">', f"<style>{style}</style>")
    head, tail = page.split('<script type="module" src="/static/app.js"></script>')
    head = head.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">',
    )
    data_block = f'<script type="application/json" id="data">{embedded}</script>'
    return (
        f"{head}{tail.replace('</body>', '')}".replace("</html>", "")
        + f'{data_block}<script type="module">{script}</script></body></html>\n'
    )


def bundle(modules: list[str]) -> str:
    """The modules as one script, in order, without imports and exports: names must be unique across modules."""
    joined = "\n".join(modules)
    joined = re.sub(r"^import .*? from .*?;\n", "", joined, flags=re.M | re.S)
    return re.sub(r"^export (?=async function|function|const|let|class)", "", joined, flags=re.M)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
