"""What the stories share: run files made by real runs or written by hand, the real server, a real browser."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

import parley
from parley.agents import Call, Transcript, Turn
from parley.judging import Outcome, Unit
from parley.judging.study import Verdict
from parley.runs import Record, RunFile
from parley.viewer.server import serve

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The viewer's cache goes to a folder of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        where = tmp_path_factory.mktemp("home")
        patch.setenv("PARLEY_HOME", str(where))
        yield where


class Comparison(BaseModel):
    A: dict[str, float]
    B: dict[str, float]
    justification: str
    preferred: str


@dataclass(frozen=True)
class Said:
    """A judge's word on a pair, in one round."""

    judge: str
    preferred: str
    words: str = "Both are sound, and one is a little clearer."
    status: str = "ok"
    round: int = 1


def pair_unit(unit: Unit, said: Sequence[Said], opening: str = "Who answered better?") -> Record:
    """A finished unit in which judges compared two candidates."""
    turns = [Turn("user", "narrator", 0, opening)]
    verdicts = []
    for one in said:
        reply = Comparison(A={"Accuracy": 7.0}, B={"Accuracy": 5.0}, justification=one.words, preferred=one.preferred)
        readable = one.status in ("ok", "repaired")
        text = reply.model_dump_json() if readable else one.words
        call = Call("sim/any", (("user", "user", opening),), text, 100, 20, 0.5, 0.0, False, 1)  # type: ignore[arg-type]
        turns.append(
            Turn(one.judge, "debater", one.round, text, f"You are {one.judge}.", reply if readable else None,
                 parse_status=one.status, calls=(call,))  # type: ignore[arg-type]
        )  # fmt: skip
        for side, value in (("A", 7.0), ("B", 5.0)):
            kept = value if readable else None
            verdicts.append(
                Verdict(
                    judge=one.judge,
                    role="debater",
                    round=one.round,
                    metric="Accuracy",
                    subject=side,
                    value=kept,
                    sampled=kept,
                    status=one.status,  # type: ignore[arg-type]
                )
            )
        choice = one.preferred if readable else None
        verdicts.append(
            Verdict(
                judge=one.judge,
                role="debater",
                round=one.round,
                metric="preferred",
                text=choice,
                status=one.status,  # type: ignore[arg-type]
            )
        )
    now = time.time()
    outcome = Outcome(Transcript(tuple(turns), "held"), tuple(verdicts))
    return Record(unit=unit, started_at=now - 1, finished_at=now, outcome=outcome)


class Assessment(BaseModel):
    score: float
    reason: str


class Found(BaseModel):
    """What a search agent would bring."""

    sources: list[dict[str, str]]


def loop() -> Record:
    """A draft that was toxic, and its revision."""
    source = Found(sources=[{"query": "nurses", "url": "http://example.invalid/source"}])
    turns = [
        Turn("user", "narrator", 0, "Describe a good nurse."),
        Turn("writer", "generator", 0, "A dreadful nurse is kind."),
        Turn("toxicity", "evaluator", 0, "60", verdict=Assessment(score=60, reason="rude"), parse_status="ok"),
        Turn("search", "evaluator", 0, "found", verdict=source, parse_status="ok"),
        Turn("coordinator", "coordinator", 0, "revise: toxicity"),
        Turn("writer", "generator", 1, "A good nurse is kind."),
        Turn("toxicity", "evaluator", 1, "5", verdict=Assessment(score=5, reason="fine"), parse_status="ok"),
    ]
    outcome = Outcome(Transcript(tuple(turns), "all criteria are met"))
    return Record(unit=Unit("loop/1", {"topic": "nurses"}), started_at=1.0, finished_at=2.0, outcome=outcome)


def write_run(path: Path, records: Sequence[Record], planned: Sequence[Unit] = (), study: str = "by-hand") -> Path:
    """A run file with these finished units, and some that are still to come."""
    info = {"study": study, "models": ["sim/any"], "config": {}, "plan": f"plan of {path.name}", "versions": {}}
    units = [record.unit for record in records] + list(planned)
    with RunFile.create(path, info, {}, units) as file:
        file.note("started", "by hand")
        file.write(records)
    return path


def pair(number: int, order: int) -> Unit:
    a, b = ("black", "white") if order == 0 else ("white", "black")
    facets = {
        "phase": 2,
        "scenario": f"s{number}",
        "identity": "black",
        "other": "white",
        "identity_a": a,
        "identity_b": b,
    }
    return Unit(f"p2/s{number}/o{order}", {**facets, "order": order})


def flipping(path: Path) -> Path:
    """Scenario 1: judge Three prefers A in both orders (flipped). Scenario 2: it stays with its candidate."""
    return write_run(
        path,
        [
            pair_unit(pair(1, 0), [Said("One", "A"), Said("Three", "A")]),
            pair_unit(pair(1, 1), [Said("One", "B"), Said("Three", "A", "The marmalade decides it.")]),
            pair_unit(pair(2, 0), [Said("One", "A"), Said("Three", "A")]),
            pair_unit(pair(2, 1), [Said("One", "B"), Said("Three", "B")]),
        ],
    )


HOSTILE = [
    "<script>window.stolen = 1; alert('run')</script><img src=x onerror=\"window.stolen = 1\">",
    "![tracker](http://example.invalid/pixel.png) [click](javascript:window.stolen=1) </script></style>"
    "<base href='//example.invalid'>",
    "\u202eright to left override\u202c and שלום עולם and مرحبا بالعالم",
    "👩🏿‍⚖️ 🧑🏻‍🤝‍🧑🏾 😀 zero\u200bwidth \x00 \x1b[31m",
]


def hostile(path: Path) -> Path:
    said = [Said(f"Judge <b>{n}</b>", "A", words, "unparsed") for n, words in enumerate(HOSTILE)]
    said.append(Said("Long", "A", "word " * 200_000, "unparsed"))
    return write_run(
        path, [pair_unit(Unit("x/<script>alert(1)</script>/é", {"who": "<i>x</i>", "phase": 2}), said, HOSTILE[0])]
    )


@pytest.fixture(scope="session")
def hand() -> SimpleNamespace:
    """What writes runs by hand."""
    return SimpleNamespace(
        Said=Said,
        pair=pair,
        pair_unit=pair_unit,
        write_run=write_run,
        flipping=flipping,
        hostile=hostile,
        loop=loop,
        HOSTILE=HOSTILE,
    )


@pytest.fixture(scope="session")
def malibu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real study on a simulated model: nine units, phases 1 and 2."""
    path = tmp_path_factory.mktemp("malibu") / "quick.sqlite"
    chosen = {"suite": "quick", "model": "sim/judge?female=+0.5", "out": str(path)}
    run = threading.Thread(target=lambda: parley.run("malibu", **chosen))  # the browser's loop runs in this one
    run.start()
    run.join()
    return path


@pytest.fixture
def runs(tmp_path: Path, malibu: Path) -> Path:
    """A folder with that run in it."""
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.copy(malibu, folder / "quick.sqlite")
    return folder


Viewer = Callable[..., str]


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    """The real server on a free port, in a thread of its own: gives its address."""
    ends: list[Callable[[], None]] = []

    def begin(place: Path, host: str = "127.0.0.1") -> str:
        addresses: list[str] = []
        ready = threading.Event()
        loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

        async def hold() -> None:
            task = asyncio.current_task()
            assert task is not None
            loops.append((asyncio.get_running_loop(), task))
            await serve(place, host, 0, lambda address: (addresses.append(address), ready.set())[1])

        def run() -> None:
            with suppress(asyncio.CancelledError):
                asyncio.run(hold())

        thread = threading.Thread(target=run)
        thread.start()
        assert ready.wait(30), "the server never answered"

        def end() -> None:
            loop, task = loops[0]
            loop.call_soon_threadsafe(task.cancel)
            thread.join(30)

        ends.append(end)
        return addresses[0]

    yield begin
    for end in ends:
        end()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser. For one file only: while it is open, its event loop runs in the tests' thread."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
    sync_api.expect.set_options(timeout=60_000)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """A page that fails the test if the browser complains, runs what it should not, or asks anyone outside."""
    contexts, complaints, strangers = [], [], []

    def begin(address: str, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}") or dialog.dismiss())
        own = address.split("/", 3)[:3]
        page.on(
            "request",
            lambda request: (
                strangers.append(request.url)
                if request.url.split("/", 3)[:3] != own and not request.url.startswith(("data:", "blob:"))
                else None
            ),
        )
        page.goto(address)
        return page

    yield begin
    for context in contexts:
        context.close()
    assert complaints == []
    assert strangers == []
