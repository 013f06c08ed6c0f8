"""Answers that fit: values for a schema."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any


def fill(node: Mapping[str, Any], seed: int, path: str = "") -> Any:
    """A value that fits a schema, always the same for the same seed, and never the same for the next one."""
    byte = hashlib.blake2b(f"{seed // 2}{path}".encode()).digest()[0] + seed % 2
    if "enum" in node:
        return node["enum"][byte % len(node["enum"])]
    if "anyOf" in node:
        return fill(node["anyOf"][0], seed, path)
    kind = node.get("type")
    if kind == "object":
        properties = node.get("properties", {})
        return {key: fill(child, seed, f"{path}.{key}") for key, child in properties.items()}
    if kind == "array":
        return [fill(node["items"], seed, f"{path}.{nth}") for nth in range(max(1, node.get("minItems", 1)))]
    if kind in ("integer", "number"):
        low, high = limits(node)
        return low + byte % (high - low + 1)
    return byte % 2 == 0 if kind == "boolean" else f"remark {byte}"


def limits(node: Mapping[str, Any]) -> tuple[int, int]:
    """The lowest and the highest number; some vendors accept them in the description only."""
    low, high = (re.search(rf"{name}: (-?\d+)", node.get("description", "")) for name in ("minimum", "maximum"))
    return (node.get("minimum", int(low[1]) if low else 0), node.get("maximum", int(high[1]) if high else 10))
