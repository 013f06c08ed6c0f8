"""Keys are planted everywhere a user may put one, and every byte that is written or printed is searched for them."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import ConfigError, model
from parley.base.address import plain_address
from parley.judging.toxicity.remote import OpenAIModeration
from tests.chaos.faults import FaultServer
from tests.chaos.studies import own_study
from tests.conftest import File
from tests.panels import PAPER_DEBATES

MARK = "Zq7xPlanted"
KEYS = (
    "OPENAI_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "ANTHROPIC_API_KEY",
    "PARLEY_SERVER_KEY",
    "VLLM_API_KEY",
    "HF_TOKEN",
)
FORMS = (MARK.encode(), *(base64.b64encode((" " * n + MARK).encode())[4:-4] for n in range(3)))
"""The mark as it is, and inside a base64 text at any offset."""


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, f"sk-{MARK}-{name.lower()}-0123456789abcdef")


def leaks(folder: Path, *outputs: str) -> list[str]:
    """Every file and every output that contains a planted key."""
    paths = [str(path) for path in folder.rglob("*") if path.is_file() and any(f in path.read_bytes() for f in FORMS)]
    return paths + [text for text in outputs if any(form in text.encode() for form in FORMS)]


class Parrot(FaultServer):
    """Repeats what it was sent, keys included: in errors, in malformed replies, and in replies."""

    how = "reply"

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        if self.how == "redirect":
            self.visits += 1
            return web.Response(status=307, headers={"Location": self.elsewhere})
        return await super()._receive(request)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests += 1
        received = " ".join(f"{name}: {value}" for name, value in request.headers.items())
        if self.how == "no reply":
            return web.Response(text=f"{request.headers.get('Authorization')} {received}")
        if self.how != "reply":
            return web.json_response({"error": {"message": received}}, status=int(self.how))
        if "chat" not in request.path:
            return self._as_another_vendor(request, received)
        text = json.loads(self.reply(body, "q"))["choices"][0]["message"]["content"] + received
        return web.json_response({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    @staticmethod
    def _as_another_vendor(request: web.Request, received: str) -> web.Response:
        if "generateContent" in request.path:
            candidate = {"content": {"role": "model", "parts": [{"text": received}]}, "finishReason": "STOP"}
            return web.json_response({"candidates": [candidate]})
        block, usage = {"type": "text", "text": received}, {"input_tokens": 1, "output_tokens": 1}
        return web.json_response(
            {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": usage}
        )

    elsewhere = ""


@pytest.fixture
def parrot() -> Iterator[Parrot]:
    server = Parrot(share=0.0, odd=0.0)
    yield server
    server.close()


def model_at(server: FaultServer, provider: str) -> str:
    path = "" if provider in ("anthropic", "google") else "/v1"
    return f"{provider}/m?base_url=http://127.0.0.1:{server.port}{path}&retries=0"


PROVIDERS = ["openai", "deepseek", "vllm", "server", "anthropic", "google"]
REPEATERS = ["openai", "server", "anthropic", "google"]


REPEATED = [(how, provider) for how in ("reply", "no reply", "400", "401", "500") for provider in REPEATERS]


@pytest.mark.parametrize(
    ("how", "provider"),
    [
        pytest.param(*case, marks=[] if "reply" in case or "server" in case else pytest.mark.nightly)
        for case in REPEATED
    ],
)
def test_a_server_that_repeats_the_key_is_not_quoted(
    parrot: Parrot, place: Path, parley: Callable[..., Any], provider: str, how: str
) -> None:
    own_study(place)
    parrot.how = how

    command = ("run", "own.py:Own", "--size", "2", "--concurrency", "1", "--out", "a.sqlite")
    result = parley(*command, "--model", model_at(parrot, provider))
    assert parrot.requests > 0
    assert result.status == (0 if how == "reply" else 1), result
    assert leaks(place, result.out, result.err, parley("show", "a.sqlite").out) == []
    if how == "reply":
        assert "***" in " ".join(text for (text,) in File("a.sqlite").rows("SELECT text FROM transcript"))


@pytest.mark.parametrize(
    ("provider", "how"), [*((provider, ()) for provider in PROVIDERS), ("openai", ("--executor", "batch"))]
)
def test_a_key_does_not_follow_a_redirect(
    parrot: Parrot, faulty: FaultServer, place: Path, parley: Callable[..., Any], provider: str, how: tuple[str, ...]
) -> None:
    """Neither with a chat request, nor with the list of models (vllm), nor with a batch's file."""
    own_study(place)
    parrot.how, parrot.elsewhere = "redirect", f"http://localhost:{faulty.port}/v1/elsewhere"

    result = parley(
        "run", "own.py:Own", "--size", "1", "--model", model_at(parrot, provider), "--out", "a.sqlite", *how
    )

    assert result.status == 1
    assert parrot.visits > 0
    assert faulty.visits == 0
    assert leaks(place, result.out, result.err) == []


def test_no_file_of_a_run_contains_a_key(faulty: FaultServer, place: Path, parley: Callable[..., Any]) -> None:
    """Killed during the run, so that SQLite's side files exist too; then resumed, reported, shown, exported."""
    faulty.odd = 0.2
    command = [*PAPER_DEBATES, "--topics", "3", "--rounds", "2", "--model", faulty.model(), "--out", "a.sqlite"]
    command += ["--concurrency", "1"]
    code = "import sys; from parley.cli import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", code, *command], stdout=log, stderr=log, env=environment)
        while faulty.total() < 12:
            assert process.poll() is None, (place / "log").read_text()
            time.sleep(0.005)
        process_entry = Path(f"/proc/{process.pid}/cmdline")
        arguments = process_entry.read_text() if process_entry.exists() else ""
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert faulty.keys == {f"Bearer {os.environ['PARLEY_SERVER_KEY']}"}, "the key was used"
    assert {"a.sqlite", "a.sqlite-wal", "a.sqlite-shm"} <= {path.name for path in place.iterdir()}
    assert leaks(place, arguments) == []

    results = [parley(*command)]
    results += [parley(*words, "a.sqlite") for words in (("show",), ("report",), ("export", "--format", "jsonl"))]
    results.append(parley("view", "a.sqlite", "--export", "page.html"))
    results += [parley(*words) for words in (("models",), ("run", "own.py:Own"))]
    assert [result.status for result in results] == [0, 0, 0, 0, 0, 0, 2]
    assert (place / "page.html").stat().st_size > 10_000
    assert leaks(place, *(result.out + result.err for result in results)) == []


FAR = "http://gpu.example:8000/v1"


OTHERS_FAR = ("http://10.0.0.5/v1", "http://127.0.0.1.example/v1", "http://[2001:db8::1]/v1")


@pytest.mark.parametrize(
    ("provider", "far"), [*((provider, FAR) for provider in PROVIDERS), *(("openai", far) for far in OTHERS_FAR)]
)
def test_a_key_is_not_sent_unencrypted(parley: Callable[..., Any], place: Path, provider: str, far: str) -> None:
    own_study(place)
    result = parley("run", "own.py:Own", "--size", "1", "--model", f"{provider}/m?base_url={far}", "--out", "a.sqlite")

    assert result.status == 2
    assert result.err.count("\n") == 1
    assert "unencrypted; use https://, or write ?insecure=true where you trust the network" in result.err
    assert not (place / "a.sqlite").exists()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_where_a_key_may_go(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for near in ("http://localhost:8000", "http://127.0.0.9", "http://[::1]:80", "https://gpu.example/v1"):
        assert model(f"{provider}/m", base_url=near)
    assert model(f"{provider}/m?base_url={FAR}&insecure=true"), "the user trusts the network"


def test_without_a_key_plain_http_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARLEY_SERVER_KEY")
    assert model(f"server/m?base_url={FAR}")
    assert model(f"ollama/m?base_url={FAR}")


def test_scorers_do_not_send_keys_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", FAR)
    with pytest.raises(ConfigError, match=r"the key would go to gpu\.example unencrypted; use https://"):
        OpenAIModeration()


SECRET = f"hunter2-{MARK}"


@pytest.mark.parametrize(
    "address", [f"https://me:{SECRET}@h/v1", f"me:{SECRET}@h", f"https://h/v1?key={SECRET}", f"https://h/v1%23{SECRET}"]
)
@pytest.mark.parametrize("how", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_an_address_with_a_secret_in_it_is_refused_and_not_repeated(
    parley: Callable[..., Any], place: Path, address: str, how: tuple[str, ...]
) -> None:
    own_study(place)
    named = address.replace("?", "%3F").replace("=", "%3D")
    result = parley("run", "own.py:Own", "--size", "1", "--model", f"server/m?base_url={named}", *how)

    assert result.status == 2
    assert result.err.count("\n") == 1
    assert "keys come from the environment" in result.err
    assert leaks(place, result.out, result.err) == []


NAMES = st.text("abcXYZ019-._~!$&'()*+,;=%", min_size=1)


@given(
    NAMES,
    NAMES,
    st.sampled_from(["https://{}:{}@h/v1", "http://{}{}@[::1]:80", "{}:{}@h", "//{}:{}@h", "ftp://{}:{}@h"]),
)
def test_no_address_with_a_password_passes_or_is_quoted(user: str, password: str, shape: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        plain_address(shape.format(user, f"{MARK}{password}"))
    assert MARK not in str(caught.value)


def test_a_secret_in_an_address_of_the_environment_is_refused_too(
    parley: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_study(place)
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://me:{SECRET}@proxy/v1")

    result = parley("run", "own.py:Own", "--size", "1", "--model", "openai/m")

    assert result.status == 2
    assert "OPENAI_BASE_URL: it must not contain a user or password" in result.err
    assert leaks(place, result.out, result.err) == []


def test_a_key_as_an_option_is_refused_and_not_repeated(parley: Callable[..., Any], place: Path) -> None:
    own_study(place)
    result = parley("run", "own.py:Own", "--size", "1", "--model", f"openai/m?api_key={SECRET}")

    assert result.status == 2
    assert "unknown option 'api_key'" in result.err
    assert leaks(place, result.out, result.err) == []
