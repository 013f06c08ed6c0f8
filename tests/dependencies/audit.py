"""Known vulnerabilities of the pinned versions, from the OSV database (https://osv.dev), which includes PyPI's
advisories. If the database cannot be reached, that is an error: unchecked is not safe."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError

SERVICE = "https://api.osv.dev/v1/querybatch"
TIMEOUT_SECONDS = 30


class AuditUnavailable(Exception):
    """The database could not be queried."""


def pins(constraints: Path) -> dict[str, str]:
    """Names and versions of a constraints file."""
    lines = (line.partition("#")[0].strip() for line in constraints.read_text("utf-8").splitlines())
    return dict(tuple(line.split("==", 1)) for line in lines if "==" in line)  # type: ignore[misc]


def advisories(pinned: Mapping[str, str], service: str = SERVICE) -> dict[str, list[str]]:
    """The ids of the advisories for each package; packages without any are left out."""
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in pinned.items()]
    request = urllib.request.Request(
        service, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            results = json.load(response)["results"]
    except (URLError, OSError) as error:
        raise AuditUnavailable(f"{service} cannot be reached ({getattr(error, 'reason', error)})") from None
    except (ValueError, KeyError, TypeError):
        raise AuditUnavailable(f"{service} did not answer with a list of advisories") from None
    if len(results) != len(queries):
        raise AuditUnavailable(f"{service} answered {len(results)} of {len(queries)} queries")
    ids_by_package = ([advisory["id"] for advisory in result.get("vulns", [])] for result in results)
    return {name: ids for name, ids in zip(pinned, ids_by_package, strict=True) if ids}
