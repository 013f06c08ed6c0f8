"""Search engines by name, with options as models have them.

    engine = make_engine("folder:articles")
    found = await engine.search("who built the bridge", limit=5)

An installed package brings an engine by an entry point in the group `parley.search`; a file of the user's by
`file.py:Class`. Either is a class with the members of `SearchEngine`, made with the options as keywords.
"""

from __future__ import annotations

from urllib.parse import unquote

from parley.agents.errors import ConfigError
from parley.agents.plugins import Registry
from parley.agents.search.client import Careful
from parley.agents.search.engine import SearchEngine

FOLDER = "folder:"
ENGINES: dict[str, str] = {
    "duckduckgo": "parley.agents.search.duckduckgo:DuckDuckGo",
    "brave": "parley.agents.search.brave:Brave",
    "searxng": "parley.agents.search.searxng:SearxNG",
}


_REGISTRY = Registry(
    "search engine",
    group="parley.search",
    shipped=ENGINES,
    members=("search", "close"),
    contract="agents/search/engine.py",
    others=(f"{FOLDER}DIR",),
)


def known_engines() -> dict[str, str]:
    """The names of all engines, those of installed packages included."""
    return _REGISTRY.known()


def make_engine(name: str) -> Careful:
    """The engine for a name: paced, tried again, its results kept. Fails at once if it cannot work."""
    if name.startswith(FOLDER):
        from parley.agents.search.folder import FolderEngine

        return Careful(FolderEngine(name.removeprefix(FOLDER)))
    plain, _, query = name.partition("?")
    kind = _REGISTRY.find(plain)
    try:
        engine: SearchEngine = kind(**_options(plain, query))
    except TypeError as error:
        raise ConfigError(f"{plain}: {error}".replace(f"{kind.__name__}.__init__() ", "")) from None
    return Careful(engine)


def _options(plain: str, query: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    for key, equals, _ in pairs:
        if not equals:
            raise ConfigError(f"{plain}: option '{key}' has no value; write {key}=VALUE")
    return {unquote(key): unquote(value) for key, _, value in pairs}
