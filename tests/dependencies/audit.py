"""Known vulnerabilities of the pinned versions, asked of the OSV database (https://osv.dev), which has PyPI's own
advisories. Whoever cannot reach it is told so: not asked is not safe."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError

SERVICE = "https://api.osv.dev/v1/querybatch"
SECONDS = 30


class NotAsked(Exception):
    """The database could not be asked, and why."""


def pins(constraints: Path) -> dict[str, str]:
    """Names and versions of a constraints file."""
    lines = (line.partition("#")[0].strip() for line in constraints.read_text("utf-8").splitlines())
    return dict(tuple(line.split("==", 1)) for line in lines if "==" in line)  # type: ignore[misc]


def advisories(pinned: Mapping[str, str], service: str = SERVICE) -> dict[str, list[str]]:
    """The ids of what is known against each package; packages without any are left out."""
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": at} for name, at in pinned.items()]
    asked = urllib.request.Request(
        service, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
            results = json.load(answer)["results"]
    except (URLError, OSError) as error:
        raise NotAsked(f"{service} cannot be reached ({getattr(error, 'reason', error)})") from None
    except (ValueError, KeyError, TypeError):
        raise NotAsked(f"{service} answered what is no list of advisories") from None
    if len(results) != len(queries):
        raise NotAsked(f"{service} answered {len(results)} of {len(queries)} questions")
    found = ([one["id"] for one in result.get("vulns", [])] for result in results)
    return {name: ids for name, ids in zip(pinned, found, strict=True) if ids}
