"""Fixtures: run files from real runs or built by hand, the real server, a real browser."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

import parley
from parley.agents import Call, Transcript, Turn
from parley.judging import Outcome, Unit
from parley.judging.malibu.study import Malibu
from parley.judging.study import Verdict
from parley.runs import Record, RunFile
from parley.viewer.server import serve
from tests.bbq_rows import bbq_row, write_bbq
from tests.panels import ONE_CELL
from tests.servers import PATIENCE

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A temporary folder for the viewer's cache."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("PARLEY_HOME", str(folder))
        yield folder


class Comparison(BaseModel):
    A: dict[str, float]
    B: dict[str, float]
    justification: str
    preferred: str


@dataclass(frozen=True)
class JudgeReply:
    """A judge's reply about a pair, in one round."""

    judge: str
    preferred: str
    text: str = "Both are sound, and one is a little clearer."
    status: str = "ok"
    round: int = 1
    heard: tuple[str, ...] = ()


def pair_unit(unit: Unit, replies: Sequence[JudgeReply], task: str = "Who answered better?") -> Record:
    """A finished unit in which judges compared two candidates."""
    turns, verdicts = [Turn("user", "narrator", 0, task)], []
    for reply in replies:
        scores = Comparison(
            A={"Accuracy": 7.0}, B={"Accuracy": 5.0}, justification=reply.text, preferred=reply.preferred
        )
        common: Any = {"judge": reply.judge, "role": "debater", "round": reply.round, "status": reply.status}
        readable = reply.status in ("ok", "repaired")
        text = scores.model_dump_json() if readable else reply.text
        prompt: Any = (("user", "user", task), *(("user", name, f"{name} spoke") for name in reply.heard))
        call = Call("sim/any", prompt, text, 100, 20, latency=0.5, cost=0.0, cached=False, attempts=1)
        about: Any = {"persona": f"You are {reply.judge}.", "parse_status": reply.status, "calls": (call,)}
        turns.append(Turn(reply.judge, "debater", reply.round, text, verdict=scores if readable else None, **about))
        common["turn"] = turns[-1]
        for side, score in (("A", 7.0), ("B", 5.0)):
            value = score if readable else None
            verdicts.append(Verdict(metric="Accuracy", subject=side, value=value, sampled=value, **common))
        verdicts.append(Verdict(metric="preferred", text=reply.preferred if readable else None, **common))
    now = time.time()
    outcome = Outcome(Transcript(tuple(turns), "2 rounds"), tuple(verdicts))
    return Record(unit=unit, started_at=now - 1, finished_at=now, outcome=outcome)


class Assessment(BaseModel):
    score: float
    reason: str


class SearchReply(BaseModel):
    """The reply of a search agent."""

    sources: list[dict[str, str]]


def critique_loop() -> Record:
    """A toxic draft and its revision."""
    source = SearchReply(sources=[{"query": "nurses", "url": "http://example.invalid/source"}])
    turns = [
        Turn("user", "narrator", 0, "Describe a good nurse."),
        Turn("writer", "generator", 0, "A dreadful nurse is kind."),
        Turn("toxicity", "evaluator", 0, "60", verdict=Assessment(score=60, reason="rude"), parse_status="ok"),
        Turn("search", "evaluator", 0, "found", verdict=source, parse_status="ok"),
        Turn("coordinator", "coordinator", 0, "revise: toxicity"),
        Turn("writer", "generator", 1, "A good nurse is kind.", thought="<b>Shorter?</b>", cut=True),
        Turn("toxicity", "evaluator", 1, "5", verdict=Assessment(score=5, reason="fine"), parse_status="ok"),
    ]
    outcome = Outcome(Transcript(tuple(turns), "all criteria are met"))
    return Record(unit=Unit("loop/1", {"topic": "nurses"}), started_at=1.0, finished_at=2.0, outcome=outcome)


def write_run(
    path: Path,
    records: Sequence[Record],
    planned: Sequence[Unit] = (),
    study: str = "by-hand",
    prompts: Mapping[str, str] | None = None,
) -> Path:
    """A run file with these finished units, and some that are only planned."""
    info = {"study": study, "models": ["sim/any"], "config": {}, "plan": f"plan of {path.name}", "versions": {}}
    if study == "by-hand":
        info["facets"] = [asdict(facet) for facet in Malibu.facets]
    units = [record.unit for record in records] + list(planned)
    with RunFile.create(path, info, prompts or {}, units) as file:
        file.note("started", "by hand")
        file.write(records)
    return path


def pair(number: int, order: int) -> Unit:
    a, b = ("black", "white") if order == 0 else ("white", "black")
    facets = {"phase": 2, "scenario": f"s{number}", "identity": "black", "other": "white", "order": order}
    return Unit(f"p2/s{number}/o{order}", {**facets, "identity_a": a, "identity_b": b})


def judged(number: int, order: int = 0, **reply: str) -> Record:
    """A finished pair on which one judge prefers A."""
    return pair_unit(pair(number, order), [JudgeReply("One", "A", **reply)])


def flipping(path: Path) -> Path:
    """Scenario 1: judge Three prefers A in both orders (flipped). Scenario 2: it prefers the same candidate."""
    return write_run(
        path,
        [
            pair_unit(pair(1, 0), [JudgeReply("One", "A"), JudgeReply("Three", "A")]),
            pair_unit(pair(1, 1), [JudgeReply("One", "B"), JudgeReply("Three", "A", "The marmalade decides it.")]),
            pair_unit(pair(2, 0), [JudgeReply("One", "A"), JudgeReply("Three", "A")]),
            pair_unit(pair(2, 1), [JudgeReply("One", "B"), JudgeReply("Three", "B")]),
        ],
    )


@pytest.fixture(scope="session")
def build() -> Any:
    """The functions above, which build run files by hand."""
    return SimpleNamespace(**globals())


def run_study(name: str, path: Path, **options: Any) -> Path:
    """A real run, in a thread: the browser's event loop may be running in this one."""
    thread = threading.Thread(target=lambda: parley.run(name, out=str(path), **options))
    thread.start()
    thread.join()
    return path


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `shared_viewer`. A test may add runs under names of its own, and changes only those."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture(scope="session")
def malibu(shelf: Path) -> Path:
    """A small real study on a simulated model: nine units, phases 1 and 2. Nothing may be written to it."""
    options = {"suite": "tiny", "model": "sim/judge?female=+0.5", **ONE_CELL}
    return run_study("malibu", shelf / "quick.sqlite", **options)


@pytest.fixture(scope="session")
def flips(shelf: Path) -> Path:
    return flipping(shelf / "flips.sqlite")


@pytest.fixture(scope="session")
def bbq(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question of BBQ, answered directly and after debiasing: its judge gives the chain 5, then 3, then 1."""
    folder = tmp_path_factory.mktemp("bbq")
    write_bbq(folder / "Age.jsonl", bbq_row(1, context_condition="ambig", context="Two met.", label=2))
    options = {"data": str(folder), "method": ["default", "mabrf"], "model": "sim/any?base=5&round=-2&noise=0"}
    return run_study("bbq", shelf / "bbq.sqlite", **options)


@pytest.fixture
def runs(tmp_path: Path, malibu: Path) -> Path:
    """A folder with that run in it."""
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.copy(malibu, folder / "quick.sqlite")
    return folder


@contextmanager
def serving(path: Path, host: str = "127.0.0.1") -> Iterator[str]:
    """The real server in a thread, on a free port; gives its address."""
    addresses: list[str] = []
    ready = threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def serve_until_cancelled() -> None:
        task = asyncio.current_task()
        assert task is not None
        loops.append((asyncio.get_running_loop(), task))
        await serve(path, host, 0, lambda address: (addresses.append(address), ready.set())[1])

    def run() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(serve_until_cancelled())

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE), "the server never answered"
    yield addresses[0]
    loop, task = loops[0]
    loop.call_soon_threadsafe(task.cancel)
    thread.join(PATIENCE)


Viewer = Callable[..., str]


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    """Starts a server and returns its address."""
    with ExitStack() as servers:
        yield lambda path, host="127.0.0.1": servers.enter_context(serving(path, host))


@pytest.fixture(scope="session")
def shared_viewer(shelf: Path, malibu: Path) -> Iterator[str]:
    """One server for most tests: starting the process that makes its reports takes seconds."""
    with serving(shelf) as address:
        yield address


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """The browser, for this folder only: while it is open, its event loop runs in the tests' thread."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[dev]'")
    sync_api.expect.set_options(timeout=PATIENCE * 1000)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page that fails the test on a console error, a dialog, or a request to another host."""
    contexts, problems, foreign_requests = [], [], []

    def open_address(address: str, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}") or dialog.dismiss())
        own_host = address.split("/", 3)[:3]
        page.on(
            "request",
            lambda request: (
                foreign_requests.append(request.url)
                if request.url.split("/", 3)[:3] != own_host and not request.url.startswith(("data:", "blob:"))
                else None
            ),
        )
        page.goto(address)
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert problems == []
    assert foreign_requests == []
