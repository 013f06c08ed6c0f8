"""A run that stops, for any reason, keeps what is finished; the same command resumes it, asks for nothing twice, and
ends with the file of a run that nothing disturbed."""

from __future__ import annotations

import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from parley.cli import main
from parley.runs import RunFile, engine
from tests.conftest import File
from tests.panels import RUN_PANEL, TINY_PANEL
from tests.parley.test_bad_input import one_line
from tests.servers import Server

KEY = "sk-a-secret-that-must-not-show"
RUN = (*TINY_PANEL, "--concurrency", "1", "--out", "a.sqlite")
UNITS, CALLS = 9, 72


@pytest.fixture(scope="module")
def shared():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(shared):
    """One for all tests: its replies are a function of the request, so that runs can be compared."""
    shared.asked.clear()
    shared.headers.clear()
    shared.delay, shared.silent, shared.cuts_short, shared.holds_from = 0.0, False, False, None
    shared.answer = lambda nth, body: None
    return shared


@pytest.fixture(scope="module")
def peace(shared, tmp_path_factory):
    """The story of the undisturbed run."""
    folder = tmp_path_factory.mktemp("peace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(folder / "home"))
        patch.chdir(folder)
        assert main([*RUN, "--model", shared.model()]) == 0
    return story(File(folder / "a.sqlite"))


def story(file: Any) -> Any:
    """What the file tells, without the model's options: they stand in the units' facets."""
    found = file.story()
    return {**found, "units": [(unit, *rest) for unit, _, _, *rest in found["units"]]}


def error(status: int, message: str, **more: str) -> web.Response:
    headers = {"Retry-After": "0.01"} if status == 429 else {}
    return web.json_response({"error": {"message": message, **more}}, status=status, headers=headers)


@dataclass(frozen=True)
class Stop:
    """How a run is stopped: by flags, by a server that answers so from a call on, or that has a flaw from then on."""

    said: str
    asked: int
    """Calls before it stopped; 0 for any number."""
    failed: int = 0
    flags: tuple[str, ...] = ()
    answers: Callable[[], web.Response] | None = None
    flaw: str = ""
    at: int = 16
    options: str = "retries=0&price_in=10000&price_out=0"  # 100 tokens in, so one dollar a call


def broken() -> web.Response:
    return web.Response(text="<h1>Internal Server Error</h1>", status=500)


SEVEN = "7 units failed, the first with: server/judge: "
STOPS = {
    "calls": Stop("stopped: the budget of 20 calls is spent", 20, flags=("--budget-calls", "20")),
    "tokens": Stop("stopped: the budget of 2,400 tokens is spent", 20, flags=("--budget-tokens", "2400")),
    "a token more": Stop("stopped: the budget of 2,401 tokens is spent", 21, flags=("--budget-tokens", "2401")),
    "dollars": Stop("stopped: the budget of $20 is spent", 20, flags=("--budget-cost", "20")),
    "a refused key": Stop(
        "answered 401, the key was refused; check PARLEY_SERVER_KEY", 21, at=20,
        answers=lambda: error(401, f"Incorrect API key provided: {KEY}"), options="retries=5",
    ),
    "no quota": Stop(
        "answered 429, the account has no credit left: You exceeded your current quota", 21, at=20,
        answers=lambda: error(429, "You exceeded your current quota", code="insufficient_quota"),
    ),
    "no money": Stop(
        "answered 402, the account has no credit left: Insufficient Balance", 21, at=20,
        answers=lambda: error(402, "Insufficient Balance"),
    ),
    "429 for ever": Stop(
        f"{SEVEN}http://127.0.0.1:{{port}}/v1 answered 429, too many requests", 0, 7,
        answers=lambda: error(429, "slow down"), options="retries=1",
    ),
    "500 for ever": Stop("answered 500: <h1>Internal Server Error</h1>", 16 + 7, 7, answers=broken),
    "half a body": Stop(f"{SEVEN}http://127.0.0.1:", 16 + 7, 7, flaw="cuts_short"),
    "no answer": Stop(
        "no answer within 90 s", 0, 7, flaw="silent", options="retries=0&timeout=90"
    ),
}  # fmt: skip


@pytest.fixture
def impatient(server, monkeypatch):
    """While the server is silent, calls time out after a second; others have the time of the option `timeout`."""
    post = aiohttp.ClientSession.post

    def hurried(session, *arguments, **options):
        hurry = {"timeout": aiohttp.ClientTimeout(total=1.0)} if server.silent else {}
        return post(session, *arguments, **options, **hurry)

    monkeypatch.setattr(aiohttp.ClientSession, "post", hurried)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", STOPS)
def test_whatever_stops_a_run_it_is_resumed(parley, server, run_file, peace, monkeypatch, name):
    monkeypatch.setenv("PARLEY_SERVER_KEY", KEY)
    stop, file = STOPS[name], run_file("a.sqlite")

    def answer(nth, body):
        if stop.flaw and nth == stop.at - 1:
            setattr(server, stop.flaw, True)
        return stop.answers() if stop.answers and nth >= stop.at else None

    server.answer = answer
    command = (*RUN, "--model", server.model(stop.options))
    stopped = parley(*command, *stop.flags)
    assert (stopped.status, len(stopped.complaints)) == (1, 1), stopped
    assert stop.said.format(port=server.port) in stopped.complaints[0]
    assert "run the same command again to resume" in stopped.err or stop.flags
    assert "2 of 9 units done" in stopped.out
    assert (file.count(), file.count("failed")) == (2, stop.failed)
    asked, replies = len(server.asked), len(server.asked) if stop.flags else stop.at
    assert asked == (stop.asked or asked)
    assert KEY not in stopped.out + stopped.err
    file.check()
    if stop.flags:
        assert parley(*command, *stop.flags).status == 1
        assert len(server.asked) == asked, "a budget covers all commands together"

    server.answer, server.silent, server.cuts_short = (lambda nth, body: None), False, False
    resumed = parley(*command, "--json")
    assert (resumed.status, resumed.json["done"], resumed.json["stopped"]) == (0, UNITS, None)
    assert len(server.asked) == asked + CALLS - replies, "nothing was paid for twice"
    assert file.one("SELECT count(*) FROM calls WHERE cached") == resumed.json["cached"] == replies - 16
    assert not file.rows("SELECT 1 FROM calls WHERE cached AND (cost, latency, attempts) != (0.0, 0.0, 0)")
    ended = [("every unit was run",)] * (2 if stop.failed else 1)
    assert file.rows("SELECT detail FROM events WHERE kind = 'ended'") == ended
    assert file.one("SELECT count(*) FROM units WHERE started_at BETWEEN 1e9 AND finished_at") == UNITS
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers in server.headers)
    file.check()
    assert story(file) == peace


@pytest.mark.parametrize(("good", "left"), [(0, (0, 3, 6)), (8, (3, 6, 0))])
def test_failures_in_a_row_end_the_run_and_one_fewer_does_not(parley, server, run_file, monkeypatch, good, left):
    """A failed unit takes 1 call, a good one 8."""
    assert engine.MAX_FAILURES_IN_A_ROW == 20, "as docs/runs.md says"
    monkeypatch.setattr(engine, "MAX_FAILURES_IN_A_ROW", 3)
    server.answer = lambda nth, body: broken() if nth % (2 + good) < 2 or not good else None
    file, command = run_file("a.sqlite"), (*RUN, "--no-blind", "--model", server.model())
    result = parley(*command)
    said = ("stopped: 3 units failed in a row, the last with: server/judge: ", "6 units failed, the first with")
    assert (result.status, said[good > 0] in result.complaints[0]) == (1, True)
    assert (file.count(), file.count("failed"), file.count("planned")) == left
    server.answer = lambda nth, body: None
    assert (parley(*command).status, file.count()) == (0, UNITS)


def test_a_server_that_does_not_run(parley):
    result = parley(*RUN, "--model", "server/judge?base_url=http://127.0.0.1:9/v1&retries=0")
    assert (result.status, len(result.complaints)) == (1, 1)
    assert "no connection to http://127.0.0.1:9/v1 (connection refused): " in result.complaints[0]
    encrypted = parley(*RUN[:-1], "b.sqlite", "--model", "server/judge?base_url=https://127.0.0.1:9/v1&retries=0")
    assert encrypted.complaints[0].count("127.0.0.1") == 1, "the address is said once"
    for command in ("show", "report"):
        (line,) = parley(command, "a.sqlite").complaints
        assert "none of 9 units is done (it was stopped: server/judge: no connection to" in line
        assert line.endswith("type the same `parley run malibu` command again to resume it")


def test_budgets_are_never_exceeded_money_needs_a_price_and_repeats_share_no_reply(parley, server, run_file):
    server.delay = 0.005
    assert parley(*RUN, "--model", server.model(), "--budget-calls", "0").status == 1
    assert server.asked == []
    refused = parley(*RUN[:-1], "b.sqlite", "--model", server.model(), "--budget-cost", "1")
    one_line(refused, 2, "--budget-cost needs the price of server/", "?price_in=…&price_out=…")
    assert not run_file("b.sqlite").path.exists()
    assert parley(*RUN, "--model", server.model(), "--budget-calls", "30", "--concurrency", "64").status == 1
    assert len(server.asked) == 30
    server.asked.clear()
    twice = ("--no-cache", "--repeats", "2", "--phases", "1", "--model", server.model())
    assert parley(*RUN[:-1], "c.sqlite", *twice).status == 0
    assert len({body["seed"] for body in server.asked}) == len(server.asked) == 2 * 6 * 8


def test_a_finished_run_is_left_alone_and_loads_no_model(parley, whole, run_file, monkeypatch):
    async def load(client):
        raise AssertionError("weights were loaded for nothing")

    monkeypatch.setattr("parley.agents.models.sim.SimClient.prepare", load)
    before = run_file(whole).story()
    again = parley(*TINY_PANEL, "--model", "sim/judge", "--out", whole)
    assert (again.status, "9 of 9 units done" in again.out) == (0, True)
    assert run_file(whole).story() == before


@pytest.mark.parametrize(
    ("budget", "most"),
    [(("--budget-calls", "60"), 60), (("--budget-cost", "6"), 51), (("--budget-tokens", "6000"), 51)],
)
def test_a_budget_counts_the_calls_of_processes_that_were_killed(parley, start, server, run_file, budget, most):
    """At 120 tokens and 12 cents a call. Before, only finished units counted: four processes sent 236 of 60 calls."""
    server.delay = 0.2
    model = server.model("price_in=1000&price_out=1000")
    command = (*TINY_PANEL, "--repeats", "8", "--model", model, "--concurrency", "32", "--out", "a.sqlite", *budget)
    for sent in (5, 15, 25, 35):
        process = start(*command)
        process.wait_for(lambda sent=sent, process=process: len(server.asked) >= sent or not process.process.alive)
        process.process.signal(signal.SIGKILL)  # which may have come to the end of its budget
        process.process.end()
    server.delay = 0.0
    assert parley(*command).status == 1
    assert 5 <= len(server.asked) <= most
    with RunFile.open(run_file("a.sqlite").path) as file:
        spent = file.spent()
    assert len(server.asked) <= spent.calls or budget[0] != "--budget-calls"
    assert parley(*command).status == 1
    assert len(server.asked) <= most


# With --no-cache a run has a reply cache of its own, next to its file: it goes with the last unit


def kept(place: Path) -> int:
    """How many replies the private cache has."""
    private = place / "a.sqlite.replies"
    if not private.exists():
        return 0
    with closing(sqlite3.connect(private)) as db:
        try:
            return int(db.execute("SELECT count(*) FROM replies").fetchone()[0])
        except sqlite3.OperationalError:  # the table is yet to be made
            return 0


def test_a_killed_run_asks_again_only_for_replies_that_did_not_arrive(parley, start, server, run_file, peace, place):
    """Replies are written about twice a second, also while no other arrives."""
    server.holds_from = 20
    command = (*TINY_PANEL, "--no-cache", "--model", server.model(), "--concurrency", "6", "--out", "a.sqlite")
    process = start(*command)
    process.wait_for(lambda: kept(place) == 20 and len(server.asked) > 20)
    process.kill()
    answered = [body["seed"] for body in server.asked[:20]]
    server.holds_from = None
    assert parley(*command).status == 0
    times = Counter(body["seed"] for body in server.asked)
    assert len(times) == CALLS
    assert {times[seed] for seed in answered} == {1}
    assert [path.name for path in place.glob("a.sqlite*")] == ["a.sqlite"], "it goes with the last unit"
    assert not (place / "home" / "replies.sqlite").exists(), "nothing is kept for other runs"
    run_file("a.sqlite").check()
    assert story(run_file("a.sqlite")) == peace


def test_a_failed_run_gets_its_own_replies_back_and_no_other_run_does(parley, server, run_file, place):
    server.answer = lambda nth, body: None if nth < 20 else web.Response(status=400, text="no")
    command = (*TINY_PANEL, "--no-cache", "--model", server.model(), "--concurrency", "1", "--out", "a.sqlite")
    assert parley(*command).status == 1
    assert (run_file("a.sqlite").count(), run_file("a.sqlite").count("failed"), kept(place)) == (2, 7, 20)

    def calls_of(*words):
        server.asked.clear()
        assert parley(*words).status == 0
        return len(server.asked)

    server.answer = lambda nth, body: None
    assert calls_of(*(word for word in command if word != "--no-cache")) == 7 * 8 - 4, "the third unit had four replies"
    assert run_file("a.sqlite").one("SELECT count(*) FROM calls WHERE cached") == 4
    assert not (place / "a.sqlite.replies").exists()
    Path("a.sqlite").unlink()
    server.asked.clear()
    server.answer = lambda nth, body: None if nth < 4 else web.Response(status=400, text="no")
    assert (parley(*command).status, kept(place)) == (1, 4)
    Path("a.sqlite").unlink()
    server.answer = lambda nth, body: None
    assert calls_of(*command) == CALLS, "a new run does not get the replies of a deleted one"


def a_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE replies (text TEXT)")
        db.execute("INSERT INTO replies VALUES ('mine')")


def a_link(path: Path) -> None:
    a_database(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("suffix", "make"),
    [
        (".replies", a_database),
        (".replies", a_link),
        (".replies", lambda path: path.write_text("my replies")),
        (".replies-wal", lambda path: path.write_text("my log")),
        (".replies-shm", lambda path: path.write_text("my memory")),
    ],
)
def test_a_users_file_with_the_name_of_a_private_cache_is_left_alone(suffix, make, parley, place):
    users = place / f"a.sqlite{suffix}"
    make(users)
    before = users.read_bytes()
    run = (*TINY_PANEL, "--model", "sim/judge", "--out", "a.sqlite")
    one_line(parley(*run, "--no-cache"), 1, f"a.sqlite{suffix} is not a reply cache of Parley's; move it away")
    assert users.read_bytes() == before
    assert parley(*run).status == 0, "with the cache that all runs share it is not needed"
    assert users.read_bytes() == before
    assert {path.name for path in place.glob("a.sqlite*")} == {"a.sqlite", users.name}


def test_a_private_cache_outlives_a_run_file_that_was_moved_away(parley, start, server, place):
    """The message says that the replies are in the cache: the same command gets them, and then they go."""
    server.delay = 0.05
    command = (*TINY_PANEL, "--no-cache", "--model", server.model(), "--concurrency", "4", "--out", "a.sqlite")
    process = start(*command)
    process.wait_for(lambda: kept(place) >= 20)
    (place / "a.sqlite").rename(place / "moved.sqlite")
    assert "the replies so far are in the reply cache" in process.end().err
    stored, asked = kept(place), len(server.asked)
    server.delay = 0.0
    assert parley(*command).status == 0
    assert len(server.asked) - asked <= CALLS - stored, "what was stored was not asked for again"
    assert [path.name for path in place.glob("a.sqlite*")] == ["a.sqlite"]


def test_ctrl_c_twice_abandons_the_units_in_progress_and_loses_no_finished_one(parley, start, server, run_file):
    server.holds_from = 100  # the calls in progress never end by themselves
    command = (*RUN_PANEL, "--suite", "tiny", "--repeats", "3", "--model", server.model(), "--concurrency", "8")
    file = run_file("stopped.sqlite")
    process = start(*command, "--out", file.path)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0 and len(server.asked) > 100)
    before = file.done()
    process.press_ctrl_c()
    process.wait_for(lambda: "press Ctrl-C again to abandon them" in process.output().err)
    process.press_ctrl_c()
    ended = process.end()
    assert (ended.status, "run the same command again to resume" in ended.err) == (130, True)
    assert "Traceback" not in ended.err
    assert before <= file.done()
    assert file.count() < 27
    file.check()
    server.holds_from = None
    assert parley(*command, "--out", file.path).status == 0
    file.check()
