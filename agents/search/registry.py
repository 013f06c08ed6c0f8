"""Search engines by name, with options written as for models (`searxng?base_url=https://host`).

    engine = make_engine("folder:articles")
    results = await engine.search("who built the bridge", limit=5)

An installed package adds an engine by an entry point in the group `parley.search`; your own is `file.py:Class`. Either
is a class with the members of `SearchEngine`, called with the options as keywords.
"""

from __future__ import annotations

from urllib.parse import unquote

from parley.agents.search.client import SearchClient
from parley.agents.search.engine import SearchEngine
from parley.base.errors import ConfigError
from parley.base.plugins import Registry

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
    """All engine names, including those of installed packages, as name → `module:Class`."""
    return _REGISTRY.known()


def make_engine(name: str) -> SearchClient:
    """The engine for a name, with pacing, retries and a cache. ConfigError if it cannot work.

    Args:
        name: `folder:DIR`, a known name, `module:Class` or `file.py:Class`; all but the first may have
            `?option=value&…`.
    """
    if name.startswith(FOLDER):
        from parley.agents.search.folder import FolderEngine

        return SearchClient(FolderEngine(name.removeprefix(FOLDER)))
    plain, _, query = name.partition("?")
    engine_class = _REGISTRY.find(plain)
    try:
        engine: SearchEngine = engine_class(**_options(plain, query))
    except TypeError as error:  # an option that the class does not have
        raise ConfigError(f"{plain}: {error}".replace(f"{engine_class.__name__}.__init__() ", "")) from None
    return SearchClient(engine)


def _options(plain: str, query: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    for key, equals, _ in pairs:
        if not equals:
            raise ConfigError(f"{plain}: option '{key}' has no value; write {key}=VALUE")
    return {unquote(key): unquote(value) for key, _, value in pairs}
