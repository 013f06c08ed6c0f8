"""The addresses of model servers are nobody else's business: files that are made to be shared do not have them."""

from __future__ import annotations

import json
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from parley.base.redaction import HiddenAddresses, hide_in_error
from tests.panels import RUN_PANEL

HOSTS = ("gpu-box.zq7corp.example", "projectx-zq7")
RUN = (*RUN_PANEL, "--suite", "tiny", "--phases", "1", "--rounds", "1", "--judges", "one.toml", "--no-cache")


@pytest.fixture(autouse=True)
def _private_hosts(place, monkeypatch):
    """The hosts are this machine, by another name."""
    resolve = socket.getaddrinfo

    def resolved(host, *rest, **options):
        return resolve("127.0.0.1" if host in HOSTS else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setenv("NO_PROXY", "*")
    (place / "one.toml").write_text('[[persona]]\nname = "Ada"\nabout = "You are Ada."\n')


def models(server: Any) -> list[str]:
    """The same model at two addresses."""
    return [f"server/judge?base_url=http://{host}:{server.port}/v1&retries=0" for host in HOSTS]


def assert_no_address(text: str | bytes) -> None:
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    assert "zq7" not in text.lower(), text[max(0, text.lower().index("zq7") - 200) :][:400]


def assert_none_in(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert_no_address(path.read_bytes())


@pytest.fixture
def run(parley, server):
    """A run of two models; the third request fails, and the error of another unit is one of an older Parley."""

    def fails(nth, body):
        return web.json_response({"error": {"message": "out of memory"}}, status=500) if nth == 2 else None

    server.answer = fails
    result = parley(*RUN, "--quiet", "--model", ",".join(models(server)), "--concurrency", 1, "--out", "a.sqlite")
    assert result.status == 1, result.err
    with sqlite3.connect("a.sqlite") as file:
        units = [row[0] for row in file.execute("SELECT id FROM units WHERE status = 'done' ORDER BY position")]
        old = f"server/judge: http://{HOSTS[1]}:8000/v1: Cannot connect to host {HOSTS[1]}:8000 ssl:default [None]"
        file.execute("UPDATE units SET status = 'failed', error = ? WHERE id = ?", (old, units[0]))
        file.execute("INSERT INTO events VALUES (9e9, 'stopped', ?)", (f"9 units failed in a row: {old}",))
        file.execute("DELETE FROM checks WHERE unit = ?", (units[0],))  # as in a run from before checksums
    return "a.sqlite"


def test_nothing_that_is_made_to_be_shared_has_an_address(parley, run, server):
    assert parley("report", run, "--out", "shared/report", "--draws", 50).status == 0
    compared = parley("compare", run, "--models", ",".join(models(server)), "--out", "shared/compared")
    assert compared.status == 0, compared.err
    assert parley("view", run, "--export", "shared/page.html").status == 0
    assert parley("export", run, "--format", "transcripts", "--to", "shared/log.jsonl").status == 0
    assert "server/judge?base_url=…2" in Path("shared/log.jsonl").read_text("utf-8")
    data = parley("report", run, "--json", "--draws", 50)
    for text in (compared.out, data.out):
        assert_no_address(text)
    assert_none_in(Path("shared"))
    names = ["server/judge?base_url=…&retries=0", "server/judge?base_url=…2&retries=0"]
    assert data.json["runs"][0]["models"] == names
    assert {row["model"] for row in data.json["means"]} == set(names), "they are not mixed up"
    page = Path("shared/page.html").read_text("utf-8")
    shown = json.loads(page.split('id="data">')[1].split("</script>")[0])
    ids = [unit["id"] for unit in shown["units"]]
    assert len(set(ids)) == len(ids)
    assert ids == shown["table"]["ids"]
    assert any(unit["error"] and unit["error"].startswith("server/judge: http://…") for unit in shown["units"])


def test_a_failed_unit_keeps_its_error_without_the_address_and_is_resumed(parley, server, run_file, run):
    error = run_file(run).one("SELECT error FROM units WHERE status = 'failed' AND error LIKE '%memory%'")
    assert error == "server/judge: http://… answered 500: out of memory"
    server.answer = lambda nth, body: web.Response(status=500)
    result = parley(*RUN, "--model", models(server)[1], "--out", "b.sqlite")
    assert result.status == 1
    assert HOSTS[1] in result.err, "whoever runs it must know what to fix"
    for sql in ("SELECT group_concat(error) FROM units", "SELECT group_concat(detail) FROM events"):
        assert_no_address(run_file("b.sqlite").one(sql))
    server.answer = lambda nth, body: None
    assert parley(*RUN, "--quiet", "--model", ",".join(models(server)), "--out", run).status == 0
    assert run_file(run).count() == run_file(run).one("SELECT count(*) FROM units")


ERRORS = {
    "vllm/m: no server at http://gpu:8000/v1; start one": "vllm/m: no server at http://…; start one",
    "server/m: https://a.corp/v1: Cannot connect to host a.corp:443 ssl:default [Name or service not known]": (
        "server/m: https://…: Cannot connect to host … ssl:default [Name or service not known]"
    ),
    "m: http://gpu/v1: [Errno 111] Connect call failed ('::1', 80, 0, 0), [Errno 111] Connect call failed ('x', 80)": (
        "m: http://…: [Errno 111] Connect call failed …, [Errno 111] Connect call failed …"
    ),
    "server/m: http://[fd00::7]:80/v1 answered 500": "server/m: http://… answered 500",
    "server/m: http://a.corp answered 502: a.corp is down": "server/m: http://… answered 502: … is down",
    "m: 10.0.0.7:8000 refused the connection": "m: … refused the connection",
    "ValueError: 3 < 4, and nothing else": "ValueError: 3 < 4, and nothing else",
}


def test_an_error_keeps_of_an_address_the_scheme():
    for error, stored in ERRORS.items():
        assert hide_in_error(error) == hide_in_error(stored) == stored
    hidden = HiddenAddresses(
        {"search": ["none", "duckduckgo?base_url=http://find&region=de", "x/y?url=http://a.b:1/c"]}
    )
    shown = hidden.hide({"speaker": "duckduckgo find de", "text": "I find it.", "n": 1})
    assert shown == {"speaker": "duckduckgo … de", "text": "I find it.", "n": 1}, "only where it speaks"
    assert hidden.hide_in_error("find:80 cannot be reached") == "… cannot be reached"
    assert hidden.hide(["x/y?url=http://a.b:1/c", {"base_url": "http://z"}]) == ["x/y?url=…2", {"base_url": "…"}]


NAMES = st.from_regex(r"[a-z]{1,8}(\.[a-z]{2,6}){1,2}", fullmatch=True)


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), st.text(max_size=20), st.integers(1, 65535))
def test_no_host_of_a_run_survives_and_models_stay_apart(hosts, text, port):
    names = [f"server/M?base_url=http://{host}.corp:{port}/V1&RETRIES=0" for host in hosts]
    hidden = HiddenAddresses({"models": names, "config": {"model": ",".join(names)}})
    told = [*names, *(f"{text} {host}.corp:{port} {text}" for host in hosts), f"id/@{names[0]}/2"]
    shown = hidden.hide(told)
    assert not any(f"{host}.corp" in line for host in hosts for line in shown)
    assert len(set(shown[: len(names)])) == len(names)
    assert hidden.hide(shown) == shown
    assert shown[-1] == "id/@server/M?base_url=…&RETRIES=0/2"
