"""Who may ask the viewer, what it refuses in one line, and that viewing a run changes nothing and runs none of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest

from parley.cli import main
from parley.runs.notes import NotesError, NotesFile
from parley.viewer import api, server
from tests.parley.test_foreign_files import journal
from tests.servers import PATIENCE

NUMBERS = count()


def send(address, raw):
    """Sends raw bytes to the server and returns all of its answer."""
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=PATIENCE) as connection:
        connection.sendall(raw.replace(b"{host}", url.netloc.encode()))
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def answered(address, path, *headers, method=b"GET", body=b""):
    """Sends a request and returns status, head and text."""
    lines = [method + b" " + path.encode() + b" HTTP/1.1", b"Connection: close"]
    lines += [] if any(header.lower().startswith(b"host:") for header in headers) else [b"Host: {host}"]
    lines += [f"Content-Length: {len(body)}".encode()] if body else []
    head, _, text = send(address, b"\r\n".join([*lines, *headers, b"", body])).partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), head.decode(), text.decode()


def request(address, path, *headers, **how):
    status, _, text = answered(address, path, *headers, **how)
    return status, text


NOTE = json.dumps({"unit": "x", "tag": "t"}).encode()
WRITE = (b"Content-Type: application/json",)


@pytest.fixture
def address(shared_viewer):
    return shared_viewer


@pytest.fixture
def run(malibu, shelf):
    """A run of this test alone, in the folder that is served."""
    path = Path(shutil.copy(malibu, shelf / f"attacked-{next(NUMBERS)}.sqlite"))
    yield path
    for file in shelf.glob(f"{path.stem}.*"):
        file.unlink()


def test_viewing_changes_nothing_and_notes_are_in_a_file_of_their_own(run, shelf, address):
    def get(path):
        status, text = request(address, path)
        assert status == 200, text
        return json.loads(text)

    before = run.read_bytes()
    for path in ("runs", "run", "headline", "search", "notes", "pulse"):
        get(f"/api/{path}?run={run.name}&q=steps")
    units = get(f"/api/units?run={run.name}")
    assert ([path.name for path in shelf.glob(f"{run.stem}*")], run.read_bytes()) == ([run.name], before)
    note = json.dumps({"unit": units["ids"][0], "tag": "odd", "comment": '=HYPERLINK("http://example.invalid")'})
    posted = request(address, f"/api/notes?run={run.name}", *WRITE, method=b"POST", body=note.encode())
    assert posted[0] == 200, posted[1]
    assert (shelf / f"{run.stem}.notes.sqlite").exists()
    assert [name for name in get("/api/runs")["runs"] if run.stem in name] == [run.name]
    _, head, notes = answered(address, f"/api/notes?run={run.name}&format=csv")
    assert "Content-Type: text/csv; charset=utf-8" in head
    assert "'=HYPERLINK" in notes, "no note is a spreadsheet's formula"


def test_the_command_serves_the_newest_run_until_ctrl_c(runs):
    command = [sys.executable, "-m", "parley", "view", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=runs.parent) as process:
        lines = process.stdout.readline() + process.stdout.readline()
        address = re.search(r"newest run: (http://127\.0\.0\.1:\d+/)run\?run=quick.sqlite", lines)[1]
        status, text = request(address, "/api/runs")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert (status, json.loads(text)["runs"]) == (200, ["quick.sqlite"])


UNITS, NOTES = "/api/units?run=quick.sqlite", "/api/notes?run=quick.sqlite"
WRITES = ("/api/export", "/api/notes", "/api/notes/withdraw")


def test_other_sites_pages_may_not_read(address):
    """`same-site` is another port of this machine: a page of another program."""
    for site in (b"cross-site", b"same-site", b"anything"):
        header = b"Sec-Fetch-Site: " + site
        assert request(address, UNITS, header)[0] == 403
        assert request(address, "/api/headline?run=quick.sqlite", header)[0] == 403
        assert request(address, "/", header)[0] == 200, "a link to the viewer may be followed"
    for site in (b"same-origin", b"none"):
        assert request(address, UNITS, b"Sec-Fetch-Site: " + site)[0] == 200
    for path in ("/", "/run?run=quick.sqlite", "/api/runs", "/static/app.js", "/nowhere"):
        _, head, _ = answered(address, path)
        policy = re.search("Content-Security-Policy: (.*)", head)[1]
        assert ("default-src 'none'" in policy, "unsafe" in policy) == (True, False), path
        assert "X-Content-Type-Options: nosniff" in head


def test_other_sites_pages_may_not_write(address, malibu):
    for headers in (
        (*WRITE, b"Origin: http://evil.example"),
        (*WRITE, b"Origin: null"),
        (*WRITE, b"Origin: http://127.0.0.1:1"),
        (*WRITE, b"Sec-Fetch-Site: cross-site"),
        (b"Content-Type: text/plain",),
        (b"Content-Type: application/x-www-form-urlencoded",),
        (),
    ):
        for path in WRITES:
            assert request(address, f"{path}?run=quick.sqlite", *headers, method=b"POST", body=NOTE)[0] == 403
    assert not NotesFile(malibu).path.exists()


def test_dns_rebinding_and_invalid_hosts_are_refused(address):
    for host in (b"evil.example", b"evil.example:7575", b"127.0.0.1.evil.example", b"x@127.0.0.1", b"localhost.evil"):
        assert request(address, "/api/runs", b"Host: " + host)[0] == 403
    for host in (b"a b", b":::", b"\xff", b"127.0.0.1:99999999", b"[::-0"):
        assert request(address, "/api/runs", b"Host: " + host)[0] in (400, 403)


def test_beyond_loopback_a_token_is_required_and_a_slow_request_times_out(runs, viewer, monkeypatch):
    monkeypatch.setattr(server, "HEAD_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(api, "BODY_TIMEOUT_SECONDS", 0.3)
    address = viewer(runs, host="0.0.0.0")
    token = urlsplit(address).query.removeprefix("token=")
    assert len(token) >= 20
    for query in ("", "?token=guess", "?token=%FF%ED%A0%80"):
        assert request(address, f"/api/runs{query}")[0] == 401
    for cookie in (b"parley_view=\xff\xfe", b"parley_view=", b"parley_view=" + b"x" * 4000, b"\xff"):
        assert request(address, "/api/runs", b"Cookie: " + cookie)[0] == 401
    status, head, _ = answered(address, f"/run?run=quick.sqlite&token={token}")
    cookie = re.search("Set-Cookie: (.*?);", head)[1].encode()
    assert (status, "Location: /run?run=quick.sqlite\r" in head) == (303, True)
    for path in (f"//evil.test/?token={token}", f"///evil.test?token={token}", rf"/\evil.test?token={token}"):
        status, away, _ = answered(address, path)
        assert (status, bool(re.search(r"Location: /[^/\\]", away))) == (303, True), away
    assert re.search("Set-Cookie: (?=.*HttpOnly).*SameSite=Strict", head)
    assert request(address, "/api/runs", b"Cookie: " + cookie)[0] == 200
    assert send(address, b"GET / HTTP/1.1\r\nHost: {host}\r\nX-Slow: ") == b""
    head = b"POST /api/notes?run=quick.sqlite HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    head += b"Cookie: " + cookie + b"\r\nContent-Length: 500\r\nConnection: close\r\n\r\n{"
    assert send(address, head).startswith(b"HTTP/1.1 408")


def test_a_name_that_is_not_utf8_is_escaped_and_found(malibu, viewer, tmp_path):
    (tmp_path / "runs").mkdir()
    shutil.copy(malibu, tmp_path / "runs" / os.fsdecode(b"r\xff.sqlite"))
    address = viewer(tmp_path / "runs")
    listed = json.loads(request(address, "/api/runs?rows=1")[1])
    assert (listed["runs"], "broken" in listed["rows"][0]) == ([r"r\udcff.sqlite"], False)
    for path in ("run", "units", "headline", "config", "notes", "pulse"):
        assert request(address, f"/api/{path}?run={quote(listed['runs'][0])}")[0] == 200, path


def test_a_folder_that_is_moved_away_is_said_to_be_gone(runs, viewer):
    address = viewer(runs)
    assert json.loads(request(address, "/api/runs?rows=1")[1])["runs"] == ["quick.sqlite"]
    runs.rename(runs.with_name("moved"))
    for path in ("runs?rows=1", "run?run=quick.sqlite", "units?run=quick.sqlite"):
        status, text = request(address, f"/api/{path}")
        assert (status, "the folder of these runs was moved or deleted" in text) == (404, True), text
    pulse = json.loads(request(address, "/api/pulse?run=quick.sqlite")[1])
    assert pulse == {"stamp": "", "notes": ""}, "a page that shows it says that its file is gone"


def test_no_name_leads_out_of_the_folder(address, malibu, shelf):
    secret = Path(shutil.copy(malibu, shelf.parent / "secret.sqlite"))
    for name in (
        *("../secret.sqlite", "..%2fsecret.sqlite", "%2e%2e/secret.sqlite", "..\\secret.sqlite", "quick.sqlite%00"),
        *("./quick.sqlite", "quick.sqlite/", "file:///etc/passwd", "//etc/passwd", "quick.notes.sqlite"),
    ):
        run = f"?run={quote(name, safe='%')}"
        for path in ("run", "units", "headline", "config", "notes"):
            assert request(address, f"/api/{path}{run}")[0] == 404
        assert request(address, f"/api/pulse{run}")[1] == request(address, "/api/pulse?run=gone.sqlite")[1]
        assert request(address, f"/api/export{run}", *WRITE, method=b"POST", body=b'{"units": []}')[0] == 404
    assert not NotesFile(secret).path.exists()
    for name in ("../server.py", "..%2fserver.py", "%2e%2e%2fserver.py", "/etc/passwd", "app.js%00", "."):
        assert request(address, f"/static/{name}")[0] == 404


def test_an_invalid_parameter_note_or_label_gets_a_one_line_error(address, malibu, run):
    for query in ("units?after=x", f"units?after={2**63}", "search?q=" + "x" * 501, "search?q="):
        status, text = request(address, f"/api/{query}&run=quick.sqlite")
        assert (status, bool(re.search(r"\b(after|q)\b", json.loads(text)["error"]))) == (400, True)
    for body in (
        *(b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"unit": "\\ud800", "tag": "t"}', b"[" * 100_000),
        b'{"unit": "x", "tag": "t", "seq": 9223372036854775808}',
        b'{"unit": "x", "tag": "t", "more": 1}',
        b'{"unit": 7, "tag": "t"}',
        b'{"unit": "x", "tag": "' + b"t" * 100 + b'"}',
    ):
        status, text = request(address, NOTES, *WRITE, method=b"POST", body=body)
        assert (status in (400, 403), "Traceback" in text) == (True, False)
    assert not NotesFile(malibu).path.exists()
    odd = (b"Content-Type: application/json; charset=klingon",)
    status, text = request(address, NOTES, *odd, method=b"POST", body=NOTE)
    assert (status, json.loads(text)["error"]) == (404, "there is no unit 'x' in this run"), "the charset is ignored"


def test_large_requests_are_refused(address):
    large = b'{"unit": "x", "comment": "' + b"x" * 1_100_000 + b'"}'
    status, text = request(address, NOTES, *WRITE, method=b"POST", body=large)
    assert (status, list(json.loads(text))) == (413, ["error"])
    assert request(address, "/api/runs", b"X-Any: " + b"x" * 20_000)[0] == 400
    assert request(address, "/api/runs?q=" + "x" * 20_000)[0] == 400
    assert request(address, "/api/runs", *(b"X-%d: x" % n for n in range(1000)))[0] == 400


def test_a_damaged_run_is_reported_without_an_absolute_path(address, run, shelf):
    def shown(*statements):
        with closing(sqlite3.connect(run)) as db, db:
            unit = db.execute("SELECT id FROM units WHERE status = 'done'").fetchone()[0]
            for statement in statements:
                db.execute(statement)
        status, text = request(address, f"/api/unit?run={run.name}&unit={quote(unit)}")
        assert str(shelf) not in text
        return status, json.loads(text)["error"].replace(unit, "UNIT")

    status, error = shown("UPDATE verdicts SET value = value + 1")
    assert (status, error.startswith(f"{run.name} is damaged: unit 'UNIT'")) == (500, True)
    found = shown("DELETE FROM checks", "UPDATE messages SET parsed = '{'")
    assert found == (500, f"{run.name} is damaged: messages.parsed has an invalid value")
    run.write_bytes(b"SQLite format 3\x00 and then nothing")
    status, text = request(address, f"/api/run?run={run.name}")
    assert (status, "broken" in text, str(shelf) in text) == (200, True, False)


def test_viewing_a_run_executes_none_of_its_code(address, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("import pathlib\npathlib.Path('stolen').touch()\nclass Panel: pass\n")
    with closing(sqlite3.connect(run)) as db, db:
        db.execute("UPDATE run SET value = '\"mine\"' WHERE key = 'study'")
        db.execute("UPDATE run SET value = '\"evil.py:Panel\"' WHERE key = 'target'")
    for path in ("headline", "config"):
        assert request(address, f"/api/{path}?run={run.name}")[0] == 200
    assert not (tmp_path / "stolen").exists()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
COLUMNS = ", ".join(
    f"i AS {column}" for column in ("id", "unit", "seq", "author", "tag", "comment", "at", "withdrawn_at")
)
BROUGHT = (
    f"DROP TABLE notes; CREATE VIEW notes AS {ENDLESS} SELECT {COLUMNS} FROM n",
    "CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM notes; END",
    "ALTER TABLE notes ADD COLUMN big AS/**/(zeroblob(1000000000))",
)


def test_notes_that_bring_sql_of_their_own_or_name_a_file_to_delete_are_refused(address, run, tmp_path):
    noted, mine = NotesFile(run), tmp_path / "mine.txt"
    noted.add("p1", None, "Ada", "odd", "look")
    sound = noted.path.read_bytes()

    def refused(words):
        before = noted.path.read_bytes()
        status, text = request(address, f"/api/notes?run={run.name}")
        assert (status >= 400, words in json.loads(text)["error"]) == (True, True)
        with pytest.raises(NotesError, match=words):
            noted.add("p1", None, "Ada", "odd", "again")
        assert noted.path.read_bytes() == before

    for statements in BROUGHT:
        noted.path.write_bytes(sound)
        with closing(sqlite3.connect(noted.path)) as db:
            db.executescript(statements)
        refused("that Parley did not write")
    noted.path.unlink()
    with closing(sqlite3.connect(noted.path)) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    refused("is not a notes file")
    noted.path.write_bytes(sound)
    mine.write_text("years of work")
    noted.path.with_name(noted.path.name + "-journal").write_bytes(journal(noted.path, names=mine))
    refused("names another file")
    assert mine.exists()


# A run in which every text is an attack, on every page

ATTACK = (
    '<img src=x onerror="window.stolen = 1"></script><script>window.stolen = 1</script>\'"{{7*7}}`${window.stolen = 1}`'
)
TEXTS = {
    "texts": ("text",),
    "prompts": ("text",),
    "units": ("error", "stop_reason"),
    "messages": ("speaker", "parse_status"),
    "calls": ("model",),
    "verdicts": ("judge", "role", "subject", "metric", "text", "status"),
    "events": ("kind", "detail"),
}
"""Columns that a model, a data set or a config may fill; ids, facets and the run's own description are set below."""


def attack(path):
    """Puts the attack into every text of a run; its units and judges stay distinct. Returns the first unit's id."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM checks")
        for table, columns in TEXTS.items():
            for column in columns:
                db.execute(f"UPDATE {table} SET {column} = ? || coalesce(substr({column}, 1, 40), '')", (ATTACK,))
        db.execute("UPDATE messages SET parsed = ? WHERE parsed IS NOT NULL", (json.dumps({ATTACK: ATTACK}),))
        for unit, facets in db.execute("SELECT id, facets FROM units").fetchall():
            attacked_facets = {
                key: f"{ATTACK}{value}" if isinstance(value, str) else value
                for key, value in json.loads(facets).items()
            }
            new = f"{ATTACK}/{unit}"
            values = (new, json.dumps({**attacked_facets, ATTACK: ATTACK}), unit)
            db.execute("UPDATE units SET id = ?, facets = ? WHERE id = ?", values)
            for table in ("messages", "calls", "verdicts"):
                db.execute(f"UPDATE {table} SET unit = ? WHERE unit = ?", (new, unit))
        info = {
            "config": {"suite": ATTACK, ATTACK: [ATTACK], "seed": 0},
            "study": ATTACK,
            "models": [ATTACK],
            "versions": {ATTACK: ATTACK},
        }
        for key, value in info.items():
            db.execute("UPDATE run SET value = ? WHERE key = ?", (json.dumps(value), key))
        first = db.execute("SELECT id FROM units ORDER BY position").fetchone()[0]
        db.commit()
    notes = NotesFile(path)
    notes.add(first, 1, ATTACK[:80], ATTACK[:60], ATTACK)
    return first


def assert_unharmed(page, *more):
    assert page.evaluate("window.stolen") is None
    assert page.locator(", ".join(("main script, main img, main base, main iframe, main style", *more))).count() == 0


def test_a_runs_texts_are_never_markup_on_a_page_in_an_export_or_report(
    malibu, shelf, shared_viewer, open_page, tmp_path
):
    expect = pytest.importorskip("playwright.sync_api", reason="pip install '.[dev]'").expect
    run, target, folder = shelf / "attack.sqlite", tmp_path / "page.html", tmp_path / "report"
    run.write_bytes(malibu.read_bytes())
    attacked = attack(run)
    page = open_page(shared_viewer)
    expect(page.locator("main")).to_contain_text("onerror")
    assert_unharmed(page)
    for path in (
        "run?run=attack.sqlite",
        f"unit?{urlencode({'run': run.name, 'unit': attacked})}",
        "compare?run=attack.sqlite&with=attack.sqlite",
    ):
        page.goto(shared_viewer + path)
        expect(page.locator("h1")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert_unharmed(page)
    page.goto(shared_viewer + "run?run=attack.sqlite&q=onerror")
    expect(page.locator(".excerpt mark").first).to_be_visible()
    assert_unharmed(page)
    page.close()  # it asks for the run's state again and again, and the run is deleted below
    assert main(["view", str(run), "--export", str(target)]) == 0
    page = open_page(target.as_uri())
    page.locator("a.unit").first.click()
    expect(page.locator(".message").first).to_be_visible()
    assert_unharmed(page)
    assert main(["report", str(run), "--out", str(folder), "--draws", "10"]) == 0
    page.goto((folder / "report.html").as_uri())
    expect(page.locator("h1").first).to_be_visible()
    assert_unharmed(page, "script, base, iframe, img[src='x']")
    for path in shelf.glob("attack.*"):
        path.unlink()
