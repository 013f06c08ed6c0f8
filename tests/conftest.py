"""Fixtures that several folders share: an empty working folder, the command, run files, small disks, a model server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: threads wait for each other

import pytest
from aiohttp import web
from hypothesis import settings

from parley.cli import main

# Speed is not tested here, and machines are busy. `python -m tests.nightly` is the place for more examples.
settings.register_profile("parley", deadline=None, max_examples=40)
settings.load_profile("parley")


def pytest_xdist_auto_num_workers() -> int:
    """More than cores, for `-n auto`: some tests wait for servers and processes, which few cores feel most."""
    cores = os.cpu_count() or 1
    return cores + (2 if cores <= 2 else 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Compiles the tests and what they import once in a new checkout; each worker would do it for itself otherwise."""
    tests = Path(__file__).parent
    whole_suite = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not whole_suite or len(specs) < 2 or (tests / "analysis" / "__pycache__").exists():
        return
    collect = [sys.executable, "-m", "pytest", "-qq", "--collect-only", "-p", "no:cacheprovider"]
    folders = sorted({str(path.parent) for path in tests.glob("*/test_*.py")})
    alone = {**os.environ, "PYTEST_ADDOPTS": ""}
    halves = [
        subprocess.Popen([*collect, *half], env=alone, stdout=subprocess.DEVNULL)
        for half in (folders[::2], folders[1::2])
    ]
    for half in halves:
        half.wait()


LONGEST = (
    "test_house.py",
    "test_commands.py",
    "test_true_sentences.py",
    "test_runs_page.py",
    "test_worker_pool.py",
    "test_run_page.py",
    "test_labelling.py",
    "test_injection.py",
    "test_ray.py",
    "test_schedulers.py",
    "test_reports.py",
    "test_local.py",
    "test_import_logs.py",
    "test_site.py",
    "test_tutorial.py",
    "test_notebooks.py",
    "test_leaderboard_page.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that no worker begins one when the others have nothing left to do."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


ENVIRONMENT = (
    "OPENAI_API_KEY",
    "PARLEY_SERVER_KEY",
    "OPENAI_BASE_URL",
    "PYTHONPATH",
    "FORCE_COLOR",
    "NO_COLOR",
    "COLUMNS",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, with an empty home and no API keys."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class CommandResult:
    """The exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """Parley's own error lines."""
        return [line for line in self.err.splitlines() if line.startswith("parley: ")]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def told() -> type[CommandResult]:
    return CommandResult


@pytest.fixture
def parley(capsys: pytest.CaptureFixture[str]) -> Callable[..., CommandResult]:
    """Runs a command in this process."""

    def run(*arguments: object) -> CommandResult:
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        printed = capsys.readouterr()
        return CommandResult(status, printed.out, printed.err)

    return run


class File:
    """Reads a run file with plain SQL, as a user could."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=rw", uri=True)) as db:
            db.execute("PRAGMA query_only = ON")
            return db.execute(sql).fetchall()

    def one(self, sql: str) -> Any:
        return self.rows(sql)[0][0]

    def done(self) -> set[str]:
        return {unit for (unit,) in self.rows("SELECT id FROM units WHERE status = 'done'")}

    def count(self, status: str = "done") -> int:
        return int(self.one(f"SELECT count(*) FROM units WHERE status = '{status}'"))

    def starts(self) -> int:
        """How often the run was started or resumed; 0 if there is no file yet."""
        try:
            return int(self.one("SELECT count(*) FROM events WHERE kind = 'started'"))
        except sqlite3.OperationalError:
            return 0

    def story(self) -> dict[str, list[tuple[Any, ...]]]:
        """The contents of the run, except what differs between executions (times, costs, attempts)."""
        return {
            "units": self.rows("SELECT id, position, facets, status, error, stop_reason FROM units ORDER BY id"),
            "transcript": self.rows(
                "SELECT unit, seq, round, speaker, role, text, parse_status, parsed FROM transcript ORDER BY unit, seq"
            ),
            "verdicts": self.rows("SELECT * FROM verdicts ORDER BY unit, nth"),
            "calls": self.rows(
                "SELECT c.unit, c.seq, c.nth, c.model, c.prompt, t.text, c.prompt_tokens, c.completion_tokens "
                "FROM calls c JOIN texts t ON t.id = c.reply ORDER BY c.unit, c.seq, c.nth"
            ),
        }

    def check(self) -> None:
        """No duplicate rows, no rows without their unit or message, no unused texts."""
        assert self.one("PRAGMA integrity_check") == "ok"
        for table, key in (("units", "id"), ("messages", "unit, seq"), ("calls", "unit, seq, nth")):
            assert self.rows(f"SELECT {key} FROM {table} GROUP BY {key} HAVING count(*) > 1") == []
        unfinished = "SELECT id FROM units WHERE status != 'done'"
        for table in ("messages", "calls", "verdicts"):
            assert self.rows(f"SELECT unit FROM {table} WHERE unit NOT IN (SELECT id FROM units)") == []
            assert self.rows(f"SELECT unit FROM {table} WHERE unit IN ({unfinished})") == []
        assert self.rows("SELECT unit, seq FROM calls EXCEPT SELECT unit, seq FROM messages") == []
        assert self.rows("SELECT unit FROM messages GROUP BY unit HAVING max(seq) + 1 != count(*)") == []
        assert self.rows("SELECT unit FROM verdicts GROUP BY unit HAVING max(nth) + 1 != count(*)") == []
        assert self.rows("SELECT unit FROM calls GROUP BY unit, seq HAVING max(nth) + 1 != count(*)") == []
        used = {text for row in self.rows("SELECT text, persona, thought FROM messages") for text in row}
        for prompt, reply, thought in self.rows("SELECT prompt, reply, thought FROM calls"):
            used |= {text for _, _, text in json.loads(prompt)} | {reply, thought}
        assert {text for (text,) in self.rows("SELECT id FROM texts")} == used - {None}


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A small separate file system, if we may mount one."""
    targets: list[Path] = []

    def mount(options: str) -> Path:
        target = tmp_path / f"mounted{len(targets)}"
        target.mkdir()
        try:
            mounting = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(target)], capture_output=True, text=True
            )
        except FileNotFoundError:
            pytest.skip("there is no mount command")
        if mounting.returncode != 0:
            pytest.skip(f"mounting is not permitted: {mounting.stderr.strip()}")
        targets.append(target)
        return target

    yield mount
    for target in targets:
        subprocess.run(["umount", "-l", str(target)], check=True)


@pytest.fixture
def remount() -> Callable[[Path, str], None]:
    def run(target: Path, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(target)], check=True)

    return run


@pytest.fixture
def run_file() -> type[File]:
    return File


def fill(node: dict[str, Any], seed: int, path: str = "") -> Any:
    """A value that fits a schema, always the same for the same seed."""
    byte = hashlib.blake2b(f"{seed}{path}".encode()).digest()[0]
    if "enum" in node:
        return node["enum"][byte % len(node["enum"])]
    if node.get("type") == "object":
        return {key: fill(child, seed, f"{path}.{key}") for key, child in node["properties"].items()}
    return byte % 11 if node.get("type") in ("integer", "number") else f"remark {byte}"


SILENT = [
    {
        "token": "7",
        "logprob": math.log(0.6),
        "bytes": [55],
        "top_logprobs": [
            {"token": text, "logprob": math.log(share), "bytes": list(text.encode())}
            for text, share in (("7", 0.6), ("8", 0.2), ("A", 0.1), ("B", 0.05))
        ],
    }
]
"""The probabilities after a silent ballot's prompt, whether it asks for a number or for a letter."""
Answer = Callable[[int, dict[str, Any]], web.StreamResponse | None]


class Loopback:
    """An HTTP server on loopback, in a thread of its own. A subclass adds its routes."""

    def __init__(self) -> None:
        self._loop, self._stop, self._ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        self._add_routes(app)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def _add_routes(self, app: web.Application) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


class Server(Loopback):
    """An OpenAI-compatible server.

    `asked` has the bodies of all requests; `answer(n, body)` may replace the response to the n-th. `silent` never
    answers; `cuts_short` closes the connection in the middle of a response.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Answer = lambda nth, body: None
        self.delay = 0.0
        self.silent = self.cuts_short = False
        super().__init__()

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._respond)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        nth = len(self.asked)
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        await asyncio.sleep(3600 if self.silent else self.delay)
        if self.cuts_short:
            partial = web.StreamResponse(headers={"Content-Length": "500"})
            await partial.prepare(request)
            await partial.write(b'{"choices": [{"message": {"con')
            assert request.transport is not None
            request.transport.abort()
            return partial
        response = self.answer(nth, body)
        if response is not None:
            return response
        return self.reply(self.fitting(body), SILENT if body.get("logprobs") else None)

    @staticmethod
    def fitting(body: dict[str, Any]) -> str:
        """A reply that fits the requested schema; to a silent ballot, a number of the scale."""
        if "response_format" not in body:
            return "7"
        schema = body["response_format"]["json_schema"]["schema"]
        return json.dumps(fill(schema, body["seed"]))

    @staticmethod
    def reply(text: str, logprobs: list[dict[str, Any]] | None = None) -> web.Response:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": logprobs}}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})

    def model(self, options: str = "retries=0", provider: str = "server", name: str = "judge") -> str:
        return f"{provider}/{name}?base_url=http://127.0.0.1:{self.port}/v1&{options}"


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


class BatchServer(Server):
    """A server that also accepts batches. `error(n, line)` may give the n-th line an error.

    `slow` keeps a batch in progress; `refuses` lets it fail. `deaf` creates a batch and never answers; `broken` creates
    it and answers 500, once. `torn` files of answers end in the middle, one for each time they are read.
    """

    def __init__(self) -> None:
        self.torn = 0
        self.files: dict[str, list[dict[str, Any]]] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.error: Callable[[int, dict[str, Any]], dict[str, Any] | None] = lambda nth, line: None
        self.slow = self.deaf = self.broken = self.refuses = False
        super().__init__()

    def _add_routes(self, app: web.Application) -> None:
        super()._add_routes(app)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._state)

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        text = form["file"].file.read().decode()  # type: ignore[union-attr]
        name = f"file-{len(self.files)}"
        self.files[name] = [json.loads(line) for line in text.splitlines()]
        self.headers.append(dict(request.headers))
        return web.json_response({"id": name, "object": "file"})

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        batch = {**body, "id": f"batch_{len(self.batches)}", "status": "validating"}
        self.batches[batch["id"]] = batch
        if self.deaf:
            await asyncio.sleep(3600)
        if self.broken:
            self.broken = False
            return web.Response(status=500)
        return web.json_response(batch)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"data": list(self.batches.values())[::-1], "has_more": False})

    async def _state(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        lines = self.files[batch["input_file_id"]]
        batch["request_counts"] = {"total": len(lines), "completed": 0, "failed": 0}
        if self.refuses:
            batch.update(status="failed", errors={"data": [{"message": "the queue is full"}]})
        elif self.slow:
            batch["status"] = "in_progress"
        elif batch["status"] not in ("completed", "failed"):
            self._complete(batch, lines)
        return web.json_response(batch)

    def _complete(self, batch: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        good, bad = [], []
        for nth, line in enumerate(lines):
            if error := self.error(nth, line):
                bad.append({"custom_id": line["custom_id"], **error})
                continue
            self.asked.append(line["body"])
            body = json.loads(self.reply(self.fitting(line["body"])).text or "")
            good.append({"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}, "error": None})
        for key, results in (("output_file_id", good), ("error_file_id", bad)):
            if results:
                batch[key] = f"{batch['id']}-{key}"
                self.files[batch[key]] = results[::-1]  # a provider may answer in any order
        batch["status"] = "completed"
        batch["request_counts"] = {"total": len(lines), "completed": len(good), "failed": len(bad)}

    async def _content(self, request: web.Request) -> web.Response:
        text = "".join(json.dumps(line) + "\n" for line in self.files[request.match_info["id"]])
        if self.torn:
            self.torn -= 1
            return web.Response(text=text[: len(text) // 2])
        return web.Response(text=text)


@pytest.fixture
def quick_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in this process do not wait a second for each batch."""
    monkeypatch.setattr("parley.runs.executors.batch.COLLECT_SECONDS", 0.2)
    monkeypatch.setattr("parley.runs.executors.batch.FIRST_POLL_SECONDS", 0.05)


@pytest.fixture
def batch_server(quick_batches: None) -> Iterator[BatchServer]:
    running = BatchServer()
    yield running
    running.close()


class Author:
    """A model on the server with prepared replies.

    In a conversation about `topic`, the n-th request gets the n-th reply, and further requests the last one. Replies
    depend only on the conversation, never on the order of requests.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._replies: dict[str, tuple[str, ...]] = {}
        server.answer = self._answer

    @property
    def model(self) -> str:
        return self._server.model(name="author")

    def writes(self, topic: str, *replies: dict[str, str] | str) -> None:
        self._replies[topic] = tuple(reply if isinstance(reply, str) else json.dumps(reply) for reply in replies)

    @property
    def asked(self) -> list[list[dict[str, str]]]:
        """The conversations it was sent, in the order of the requests."""
        return [body["messages"] for body in self._server.asked if body["model"] == "author"]

    def told(self, topic: str) -> list[str]:
        """The last message before each of its replies about a topic."""
        return [messages[-1]["content"] for messages in self.asked if topic in messages[1]["content"]]

    def _answer(self, nth: int, body: dict[str, Any]) -> web.Response | None:
        if body["model"] != "author":
            return None
        messages = body["messages"]
        replies = next(replies for topic, replies in self._replies.items() if topic in messages[1]["content"])
        attempts = sum(message["role"] == "assistant" for message in messages)
        return self._server.reply(replies[min(attempts, len(replies) - 1)])


@pytest.fixture
def author(server: Server) -> Author:
    return Author(server)


WIDTH, HEADS, INNER_WIDTH = 32, 2, 64
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def _byte_characters() -> list[str]:
    """The printable characters that represent the 256 bytes in GPT-2's byte-level vocabulary."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    return [
        chr(byte) if byte in printable else chr(256 + sum(other not in printable for other in range(byte)))
        for byte in range(256)
    ]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level language model with a few thousand random weights, as a GGUF file: it writes nonsense, quickly.

    What llama.cpp does around a model (slots, batches, prefix cache, grammars) can be tested with it.
    """
    import gguf
    import numpy as np

    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    characters = _byte_characters()
    merged = characters[ord(" ")] + "t"
    tokens = [*SPECIAL_TOKENS, *characters, merged]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(16_384)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER_WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL] * len(SPECIAL_TOKENS) + [gguf.TokenType.NORMAL] * (len(characters) + 1)
    )
    writer.add_token_merges([f"{characters[ord(' ')]} t"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    rng = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        values = np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))

    add("token_embd", len(tokens), WIDTH)
    add("output_norm", WIDTH)
    add("output", len(tokens), WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}", WIDTH, WIDTH)
    add("blk.0.ffn_gate", INNER_WIDTH, WIDTH)
    add("blk.0.ffn_up", INNER_WIDTH, WIDTH)
    add("blk.0.ffn_down", WIDTH, INNER_WIDTH)
    add("blk.0.attn_norm", WIDTH)
    add("blk.0.ffn_norm", WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
