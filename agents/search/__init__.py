"""Search engines: one file each, behind one small protocol."""

from agents.search.engine import Engine, Found

__all__ = ["Engine", "Found"]
