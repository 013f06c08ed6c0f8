"""Keys are planted everywhere a user may put one, and every byte that is written or printed is searched for them."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import ConfigError, model
from parley.base.address import plain_address
from parley.judging.toxicity.remote import OpenAIModeration
from tests.chaos.faults import FaultServer
from tests.chaos.studies import OWN
from tests.conftest import File
from tests.panels import PAPER_DEBATES

MARK = "Zq7xPlanted"
SECRET = f"hunter2-{MARK}"
PROVIDERS = {
    "openai": "OPENAI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "vllm": "VLLM_API_KEY",
    "server": "PARLEY_SERVER_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
}
FORMS = (MARK.encode(), *(base64.b64encode((" " * n + MARK).encode())[4:-4] for n in range(3)))
"""The mark as it is, and inside a base64 text at any offset."""
RUN = ("run", "own.py:Own", "--size", "2", "--concurrency", "1")


@pytest.fixture(autouse=True)
def _planted(monkeypatch, place):
    for name in (*PROVIDERS.values(), "HF_TOKEN"):
        monkeypatch.setenv(name, f"sk-{MARK}-{name.lower()}-0123456789abcdef")
    (place / "own.py").write_text(OWN["own.py"])


def leaks(folder, *outputs):
    """Every file and every output that contains a planted key."""
    paths = [str(path) for path in folder.rglob("*") if path.is_file() and any(f in path.read_bytes() for f in FORMS)]
    return paths + [text for text in outputs if any(form in text.encode() for form in FORMS)]


class Parrot(FaultServer):
    """Repeats what it was sent, keys included: in errors, in malformed replies, and in replies."""

    how = "reply"
    elsewhere = ""

    @web.middleware
    async def _receive(self, request, handler):
        self.visits += 1
        received = " ".join(f"{name}: {value}" for name, value in request.headers.items())
        if self.how == "redirect":
            return web.Response(status=307, headers={"Location": self.elsewhere})
        if request.method != "POST":
            return web.Response(status=404)
        if self.how == "no reply":
            return web.Response(text=received)
        if self.how != "reply":
            return web.json_response({"error": {"message": received}}, status=int(self.how))
        if "generateContent" in request.path:
            candidate = {"content": {"role": "model", "parts": [{"text": received}]}, "finishReason": "STOP"}
            return web.json_response({"candidates": [candidate]})
        if "chat" in request.path:
            text = json.loads(self.reply_to(await request.json()))["choices"][0]["message"]["content"] + received
            return web.json_response({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
        block, usage = {"type": "text", "text": received}, {"input_tokens": 1, "output_tokens": 1}
        told = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": usage}
        return web.json_response(told)


@pytest.fixture
def parrot():
    server = Parrot(share=0.0, odd=0.0)
    yield server
    server.close()


def model_at(server, provider):
    path = "" if provider in ("anthropic", "google") else "/v1"
    return f"{provider}/m?base_url=http://127.0.0.1:{server.port}{path}&retries=0"


@pytest.mark.parametrize("provider", ["openai", "server", "anthropic", "google"])
def test_a_server_that_repeats_the_key_is_not_quoted(parrot, place, parley, provider):
    for parrot.how in ("reply", "no reply", *(("400", "401", "500") if provider == "server" else ("401",))):
        asked, out = parrot.visits, f"{parrot.how}.sqlite"
        result = parley(*RUN, "--no-cache", "--model", model_at(parrot, provider), "--out", out)
        assert parrot.visits > asked
        assert result.status == (0 if parrot.how == "reply" else 1), result
        assert leaks(place, result.out, result.err, parley("show", out).out) == []
    said = " ".join(text for (text,) in File("reply.sqlite").rows("SELECT text FROM transcript"))
    assert "***" in said


def test_a_key_does_not_follow_a_redirect(parrot, faulty, place, parley):
    """Neither with a chat request, nor with the list of models (vllm)."""
    parrot.how, parrot.elsewhere = "redirect", f"http://localhost:{faulty.port}/v1/elsewhere"
    for provider in PROVIDERS:
        asked = parrot.visits
        result = parley(*RUN, "--model", model_at(parrot, provider), "--out", f"{provider}.sqlite")
        assert (result.status, parrot.visits > asked, faulty.visits) == (1, True, 0), (provider, result)
        assert leaks(place, result.out, result.err) == []


def test_no_file_of_a_run_contains_a_key(faulty, place, parley):
    """Killed during the run, so that SQLite's side files exist too; then resumed, reported, shown, exported."""
    faulty.odd = 0.2
    command = [*PAPER_DEBATES, "--topics", "3", "--rounds", "2", "--model", faulty.model(), "--out", "a.sqlite"]
    command += ["--concurrency", "1"]
    code = "import sys; from parley.cli import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", code, *command], stdout=log, stderr=log, env=environment)
        faulty.holds_from = 12
        while faulty.total() < 12:
            assert process.poll() is None, (place / "log").read_text()
            time.sleep(0.005)
        process_entry = Path(f"/proc/{process.pid}/cmdline")
        arguments = process_entry.read_text() if process_entry.exists() else ""
        process.send_signal(signal.SIGKILL)
        process.wait()
        faulty.holds_from = None
    used = {headers["Authorization"] for headers in faulty.headers}
    assert used == {f"Bearer {os.environ['PARLEY_SERVER_KEY']}"}, "the key was used"
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
UNENCRYPTED = "unencrypted; use https://, or write ?insecure=true where you trust the network"
FROM_ENVIRONMENT = "keys come from the environment"
REFUSED = [
    *((f"{provider}/m?base_url={FAR}", UNENCRYPTED) for provider in PROVIDERS),
    *(
        (f"openai/m?base_url={far}", UNENCRYPTED)
        for far in ("http://10.0.0.5/v1", "http://127.0.0.1.example/v1", "http://[2001:db8::1]/v1")
    ),
    *(
        (f"server/m?base_url={address.replace('?', '%3F').replace('=', '%3D')}", FROM_ENVIRONMENT)
        for address in (
            *(f"https://me:{SECRET}@h/v1", f"me:{SECRET}@h", f"https://h/v1?key={SECRET}", f"https://h/v1%23{SECRET}"),
        )
    ),
    (f"openai/m?api_key={SECRET}", "unknown option 'api_key'"),
]


def test_an_address_that_would_give_a_key_away_is_refused_and_not_repeated(parley, place, monkeypatch):
    def refused(name, words, *how):
        result = parley(*RUN, "--model", name, "--out", "a.sqlite", *how)
        assert (result.status, result.err.count("\n"), words in result.err) == (2, 1, True), result
        assert leaks(place, result.out, result.err) == []
        assert not (place / "a.sqlite").exists()

    for name, words in REFUSED:
        refused(name, words)
        refused(name, words, "--dry-run") if words == FROM_ENVIRONMENT else None
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://me:{SECRET}@proxy/v1")
    refused("openai/m", "OPENAI_BASE_URL: it must not contain a user or password")
    monkeypatch.setenv("OPENAI_BASE_URL", FAR)
    with pytest.raises(ConfigError, match=r"the key would go to gpu\.example unencrypted; use https://"):
        OpenAIModeration()
    monkeypatch.delenv("OPENAI_BASE_URL")
    for provider in PROVIDERS:
        for near in ("http://localhost:8000", "http://127.0.0.9", "http://[::1]:80", "https://gpu.example/v1"):
            assert model(f"{provider}/m", base_url=near)
        assert model(f"{provider}/m?base_url={FAR}&insecure=true"), "the user trusts the network"
    monkeypatch.delenv("PARLEY_SERVER_KEY")
    assert model(f"server/m?base_url={FAR}"), "there is no key to lose"
    assert model(f"ollama/m?base_url={FAR}")


NAMES = st.text("abcXYZ019-._~!$&'()*+,;=%", min_size=1)
SHAPES = st.sampled_from(["https://{}:{}@h/v1", "http://{}{}@[::1]:80", "{}:{}@h", "//{}:{}@h", "ftp://{}:{}@h"])


@given(NAMES, NAMES, SHAPES)
def test_no_address_with_a_password_passes_or_is_quoted(user, password, shape):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        plain_address(shape.format(user, f"{MARK}{password}"))
    assert MARK not in str(caught.value)
