"""What Parley stands on: licences we accept, versions that are audited where that can be asked, and extras by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from tests.dependencies import audit, bare, licences

ROOT = Path(__file__).parents[1]


def test_every_installed_package_has_a_licence_we_accept() -> None:
    listed, _ = licences.packages()
    assert {"pydantic", "aiohttp", "autogen-core"} <= {one.name for one in listed}
    assert [f"{one.name}: '{one.licence}'" for one in listed if not one.accepted] == []


def test_the_page_of_licences_is_what_the_packages_say() -> None:
    known = licences.read_page()
    listed, _ = licences.packages()
    assert len(known) > 100
    wrong = [one.name for one in listed if known.get(one.name, (one.licence,))[0] != one.licence]
    assert wrong == [], "python -m tests.dependencies licences --write"


def test_what_any_extra_asks_for_is_on_the_page_wherever_it_is_installed() -> None:
    asked = {canonicalize_name(one.name) for group in licences.groups().values() for one in group}
    assert sorted(asked - set(licences.read_page())) == []


@pytest.mark.parametrize(
    ("licence", "accepted"),
    [("MIT", True), ("MIT AND PSF-2.0", True), ("GPL-3.0 OR MIT", True), ("MIT AND GPL-3.0", False), ("", False),
     ("GPL-3.0-only", False), ("Proprietary", False), ("Apache-2.0 OR BSD-3-Clause", True)],
)  # fmt: skip
def test_a_licence_counts_by_all_its_parts(licence: str, accepted: bool) -> None:
    assert licences.Package("x", "1", licence, ("core",)).accepted is accepted


class Database(BaseHTTPRequestHandler):
    """An OSV database that knows one thing against one version."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        known = ("aiohttp", "3.0.0")
        results = [{"vulns": [{"id": "OSV-1"}]} if (q["package"]["name"], q["version"]) == known else {} for q in asked]
        body = json.dumps({"results": results}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def database() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Database)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/querybatch"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_is_known_against_a_version_is_named(database: str) -> None:
    assert audit.advisories({"aiohttp": "3.0.0", "rich": "14.0.0"}, database) == {"aiohttp": ["OSV-1"]}
    assert audit.advisories(audit.pins(ROOT / "constraints.txt"), database) == {}


def test_not_asked_is_not_safe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.dependencies", "audit", "--service", "http://127.0.0.1:9/"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("NOT AUDITED: http://127.0.0.1:9/ cannot be reached")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each command said in a process where no extra is installed."""
    place = tmp_path_factory.mktemp("bare")
    done = subprocess.run(
        [sys.executable, "-m", "tests.dependencies.bare", str(place)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {one["command"]: one for one in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize(
    ("extra", "words"), bare.COMMANDS, ids=[f"{extra}: {' '.join(words[:2])}" for extra, words in bare.COMMANDS]
)
def test_an_extra_that_is_missing_is_named(told: dict[str, dict[str, Any]], extra: str, words: tuple[str, ...]) -> None:
    one = told[" ".join(words)]
    assert one["status"] == 2, one
    assert f"pip install 'parley-autogen[{extra}]'" in one["said"]
    assert one["said"].count("\n") == 1, one["said"]


def test_every_extra_with_a_command_behind_it_was_tried() -> None:
    """`openai` is for AutoGen's own client, `notebooks`, `docs` and `dev` are for working on Parley."""
    others = {"openai", "notebooks", "docs", "dev", "core"}
    assert {extra for extra, _ in bare.COMMANDS} | others == set(licences.groups())
