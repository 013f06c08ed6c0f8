"""Search engines by name, with options as models have them.

    engine = make_engine("folder:articles")
    found = await engine.search("who built the bridge", limit=5)

An installed package brings an engine by an entry point in the group `parley.search`; a file of the user's by
`file.py:Class`. Either is a class with the members of `Engine`, made with the options as keywords.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any
from urllib.parse import unquote

from agents.errors import ConfigError
from agents.plugins import load_module
from agents.search.careful import Careful
from agents.search.engine import Engine

FOLDER = "folder:"
ENGINES: dict[str, str] = {
    "duckduckgo": "agents.search.duckduckgo:DuckDuckGo",
    "brave": "agents.search.brave:Brave",
    "searxng": "agents.search.searxng:SearxNG",
}


def known_engines() -> dict[str, str]:
    """The names of all engines, installed ones among them."""
    return {**{entry.name: entry.value for entry in entry_points(group="parley.search")}, **ENGINES}


def make_engine(name: str) -> Careful:
    """The engine for a name: paced, tried again, its results kept. Fails at once if it cannot work."""
    if name.startswith(FOLDER):
        from agents.search.folder import FolderEngine

        return Careful(FolderEngine(name.removeprefix(FOLDER)))
    plain, _, query = name.partition("?")
    target = known_engines().get(plain, plain)
    module_name, colon, class_name = target.rpartition(":")
    if not colon:
        known = ", ".join([f"{FOLDER}DIR", *known_engines()])
        raise ConfigError(f"unknown search engine '{plain}' (known: {known}; or your own as file.py:Class)")
    kind: Any = getattr(load_module(module_name), class_name, None)
    if kind is None or not all(hasattr(kind, member) for member in ("search", "close")):
        raise ConfigError(f"{target} is not a search engine (see agents/search/engine.py)")
    try:
        engine: Engine = kind(**_options(plain, query))
    except TypeError as error:
        raise ConfigError(f"{plain}: {error}".replace(f"{class_name}.__init__() ", "")) from None
    return Careful(engine)


def _options(plain: str, query: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    for key, equals, _ in pairs:
        if not equals:
            raise ConfigError(f"{plain}: option '{key}' has no value; write {key}=VALUE")
    return {unquote(key): unquote(value) for key, _, value in pairs}
