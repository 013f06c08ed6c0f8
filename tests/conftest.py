"""Fixtures that several folders share: an empty working folder, the command, run files, small disks, a model server."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

if sys.dont_write_bytecode:  # many images set it, and each of hundreds of interpreters would compile everything again
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: threads wait for each other

import pytest
from hypothesis import settings

from parley.cli import main
from tests.servers import Author, Server

# Every run tries the same examples: `python -m tests.nightly` is the place for more and for others.
settings.register_profile("parley", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("parley")


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores, for `-n auto`: some tests wait. Each one takes ten seconds of CPU to start."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Compiles the tests and what they import once in a new checkout; each worker would do it for itself otherwise."""
    tests = Path(__file__).parent
    whole_suite = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    compiled = Path(cache_from_source(str(tests / "analysis" / "conftest.py"))).parent.exists()
    if not whole_suite or len(specs) < 2 or compiled:
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
    *("test_house.py", "test_commands.py", "test_golden.py", "test_units_behind.py", "test_reports.py", "test_ray.py"),
    *("test_install.py", "test_schedulers.py", "test_local.py", "test_notebooks.py", "test_run_page.py"),
    *("test_resume.py", "test_unit_page.py", "test_site.py", "test_examples.py", "test_mutants.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that no worker begins one when the others have nothing left to do."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


ENVIRONMENT = (
    "OPENAI_API_KEY",
    "PARLEY_SERVER_KEY",
    "PARLEY_SERVER_URL",
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
        """Parley's own error lines, without notes on the plan."""
        return [line for line in self.err.splitlines() if re.match("parley: (?!note: )", line)]

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


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


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
