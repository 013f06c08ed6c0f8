"""The static files of the pages, as shipped in the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html"}


@cache
def static_names() -> frozenset[str]:
    return frozenset(file.name for file in files("parley.viewer").joinpath("static").iterdir())


@cache
def static(name: str) -> str:
    return files("parley.viewer").joinpath("static", name).read_text("utf-8")


def content_type(name: str) -> str:
    return TYPES[name.rpartition(".")[2]]
