"""Access, errors, and that viewing a run changes nothing."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from hashlib import sha256
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest


def request(address, path, *, method="GET", body=None, **headers):
    """Status, headers and text of the response; redirects are not followed."""
    url = urlsplit(address)
    connection = HTTPConnection(url.hostname, url.port, timeout=60)
    connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers, text


def test_every_page_has_a_strict_security_policy(shared_viewer):
    address = shared_viewer
    for path in ("/", "/run?run=quick.sqlite", "/api/runs", "/static/app.js", "/nowhere"):
        _, headers, _ = request(address, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy, path
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_token_is_required_beyond_loopback(runs, viewer):
    address = viewer(runs, host="0.0.0.0")
    token = urlsplit(address).query.removeprefix("token=")
    assert len(token) >= 20
    assert request(address, "/api/runs")[0] == 401
    assert request(address, "/api/runs?token=guess")[0] == 401
    status, headers, _ = request(address, f"/run?run=quick.sqlite&token={token}")
    assert (status, headers["Location"]) == (303, "/run?run=quick.sqlite")
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]
    assert request(address, "/api/runs", Cookie=headers["Set-Cookie"].partition(";")[0])[0] == 200


@pytest.mark.parametrize(
    "query", ["units?after=x", f"units?after={2**63}", "search?q=" + "x" * 501, "search?unit=a&q="]
)
def test_an_invalid_parameter_gives_a_one_line_error(shared_viewer, query):
    status, _, text = request(shared_viewer, f"/api/{query}&run=quick.sqlite")
    assert status == 400
    assert re.search(r"\b(after|q)\b", json.loads(text)["error"])


def test_viewing_changes_nothing_in_the_folder(runs, viewer):
    before = {path.name: sha256(path.read_bytes()).hexdigest() for path in runs.iterdir()}
    address = viewer(runs)
    for path in ("runs", "run", "headline", "units", "search", "notes", "label/sets", "pulse"):
        assert request(address, f"/api/{path}?run=quick.sqlite&q=steps")[0] == 200
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in runs.iterdir()} == before


def test_a_packed_run_is_viewed_and_labelled_under_its_name(runs, viewer):
    def get(path):
        status, _, text = request(address, path)
        assert status == 200, text
        return json.loads(text)

    address = viewer(runs)
    before = get("/api/units?run=quick.sqlite")
    (runs / "quick.sqlite.gz").write_bytes(gzip.compress((runs / "quick.sqlite").read_bytes()))
    (runs / "quick.sqlite").unlink()
    assert "quick.sqlite.gz" in get("/api/runs")["runs"]
    assert get("/api/units?run=quick.sqlite.gz") == before
    note = json.dumps({"unit": before["ids"][0], "tag": "odd", "comment": '=HYPERLINK("http://example.invalid")'})
    posted = request(
        address, "/api/notes?run=quick.sqlite.gz", method="POST", body=note, Content_Type="application/json"
    )
    assert posted[0] == 200, posted[2]
    assert (runs / "quick.notes.sqlite").exists()
    assert "quick.notes.sqlite" not in get("/api/runs")["runs"]
    _, _, text = request(address, "/api/notes?run=quick.sqlite.gz&format=csv")
    assert "'=HYPERLINK" in text, "no note is a spreadsheet's formula"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_a_read_only_folder_can_be_viewed(runs, viewer):
    runs.chmod(0o555)
    try:
        status, _, text = request(viewer(runs), "/api/units?run=quick.sqlite")
    finally:
        runs.chmod(0o755)
    assert (status, len(json.loads(text)["ids"])) == (200, 9)


def test_the_command_serves_until_ctrl_c(runs):
    command = [sys.executable, "-m", "parley", "view", str(runs), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line).group()
        status, _, text = request(address, "/api/runs")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert (status, json.loads(text)["runs"]) == (200, ["quick.sqlite"])
